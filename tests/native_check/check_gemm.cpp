#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace check {

namespace {

// As of pruned or padded models: of some rows all numbers, or those of a group, are zeros.
std::vector<float> with_zeros(std::vector<float> rows, int64_t columns) {
    const int64_t count = static_cast<int64_t>(rows.size()) / columns;
    for (int64_t row = between(0, 3); row < count; row += between(1, 40)) {
        const bool all = flip();
        const int64_t begin = all ? 0 : between(0, (columns - 1) / kGroupInputs) * kGroupInputs;
        const int64_t end = all ? columns : std::min(columns, begin + int64_t{kGroupInputs});
        std::fill(rows.begin() + row * columns + begin, rows.begin() + row * columns + end, 0.0F);
    }
    return rows;
}

// Numbers of up to 12 times half of `scale` in magnitude, groups of zeros among them.
void pack_random_codes(ThreadPool& pool, const PackedMatrix& matrix, float scale, bool extremes) {
    std::vector<int8_t> codes(static_cast<size_t>(matrix.num_outputs * matrix.num_inputs));
    std::vector<float> scales(static_cast<size_t>(matrix.num_outputs * num_groups(matrix)));
    for (int8_t& code : codes) code = extremes ? (flip() ? 12 : -12) : kDoubledE2M1[between(0, 15)];
    for (float& each : scales) each = scale * static_cast<float>(pick({0, 1, 2, 4, 4})) / 8;
    pool.run([&](int thread, int count) {
        kernels().packing.pack_codes(matrix, 0, matrix.num_outputs, codes.data(), scales.data(), nullptr, thread,
                                     count);
    });
}

}  // namespace

Weights::Weights(ThreadPool& pool, int64_t outputs, int64_t inputs, DType dtype, PanelLayout layout, bool with_bias,
                 float scale, bool extremes)
    : plain(stored(with_zeros(extremes ? extreme(outputs * inputs, scale) : normal(outputs * inputs, scale), inputs),
                   is_quantized(dtype) ? DType::f32 : dtype)),
      panels([&] {
          matrix.num_outputs = outputs;
          matrix.num_inputs = inputs;
          matrix.dtype = dtype;
          matrix.layout = layout;
          return packed_words(matrix);
      }()) {
    matrix.panels = panels.data();
    if (dtype == DType::f4) {
        pack_random_codes(pool, matrix, scale, extremes);
    } else if (is_quantized(dtype)) {
        pool.run([&](int thread, int count) {
            kernels().packing.quantize_rows(matrix, 0, outputs, plain.data(), DType::f32, thread, count);
        });
    } else {
        pool.run([&](int thread, int count) { pack_rows(matrix, 0, outputs, plain.data(), thread, count); });
    }
    if (is_quantized(dtype)) {
        std::vector<float> held(plain.values.size());
        pool.run([&](int thread, int count) { unpack_rows(matrix, 0, outputs, held.data(), thread, count); });
        for (size_t i = 0; dtype != DType::f4 && i < held.size(); ++i) {
            // Half a step of the largest weight that normal() makes; four bits may cut off two steps at the end.
            expect_near(held[i], plain.values[i], (dtype == DType::i8 ? 0.025 : 1.5) * scale, "quantised weight");
        }
        plain = stored(held, DType::f32);
    }
    if (!with_bias) return;
    plain_bias = normal(outputs);
    packed_bias.resize(static_cast<size_t>(num_panels(matrix) * kPanelColumns));
    for (int64_t row = 0; row < outputs; ++row) packed_bias[packed_column(matrix, row)] = plain_bias[row];
    matrix.bias = packed_bias.data();
}

namespace {

// Which pages of `memory` have been written to.
std::vector<unsigned char> touched(void* memory, size_t bytes, size_t page) {
    std::vector<unsigned char> pages((bytes + page - 1) / page);
    expect(mincore(memory, bytes, pages.data()) == 0, "mincore", errno, 0);
    for (unsigned char& each : pages) each &= 1;
    return pages;
}

void check_placing() {
    PackedMatrix matrix{};
    matrix.num_outputs = 40 * kPanelColumns;
    matrix.num_inputs = 1024;
    matrix.dtype = DType::bf16;
    const size_t bytes = static_cast<size_t>(packed_words(matrix)) * 4;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(memory != MAP_FAILED, "mmap", errno, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    matrix.panels = memory;
    constexpr int threads = 4;
    for (int thread = threads - 1; thread >= 0; --thread) {
        place_panels(matrix, thread, threads);
        const std::vector<unsigned char> pages = touched(memory, bytes, page);
        // From the first page of this thread's panels to the end, and nothing before.
        for (size_t i = 0; i < pages.size(); ++i) {
            expect(pages[i] == (i >= pages.size() * thread / threads), "page placed", pages[i], thread);
        }
    }
    munmap(memory, bytes);
}

struct Product {
    std::vector<double> sums;
    std::vector<double> sizes;  // of the terms together: what rounding errors go with
};

Product expected(const Stored& input, int64_t stride, int64_t rows, const Weights& weights) {
    const int64_t outputs = weights.matrix.num_outputs, inputs = weights.matrix.num_inputs;
    Product product;
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < outputs; ++column) {
            // Codes with minimums are multiplied apart from these, and what that cancels rounds, too.
            double apart = 0;
            for (int64_t k = 0; weights.matrix.dtype == DType::u4 && k < inputs; ++k) {
                apart = std::max(apart, 3.0 * std::fabs(weights.plain.values[column * inputs + k]));
            }
            double sum = weights.plain_bias.empty() ? 0 : weights.plain_bias[column];
            double size = std::fabs(sum);
            for (int64_t k = 0; k < inputs; ++k) {
                const double term = double{input.values[row * stride + k]} * weights.plain.values[column * inputs + k];
                sum += term;
                size += std::fabs(term) + apart * std::fabs(input.values[row * stride + k]);
            }
            product.sums.push_back(sum);
            product.sizes.push_back(size);
        }
    }
    return product;
}

void check_packing(ThreadPool& pool, Weights& weights) {
    const int64_t outputs = weights.matrix.num_outputs, inputs = weights.matrix.num_inputs;
    const int64_t first = between(0, outputs - 1), count = between(1, outputs - first);
    const int64_t row_bytes = inputs * (weights.plain.dtype == DType::f32 ? 4 : 2);
    std::vector<unsigned char> rows(static_cast<size_t>(count * row_bytes));
    std::vector<int32_t> ids = {static_cast<int32_t>(first), static_cast<int32_t>(outputs - 1), 0};
    std::vector<float> embedded(ids.size() * static_cast<size_t>(inputs));
    pool.run([&](int thread, int threads) {
        unpack_rows(weights.matrix, first, count, rows.data(), thread, threads);
        embed(weights.matrix, 0, ids.data(), 3, 1.0F, embedded.data(), inputs, thread, threads);
    });
    const bool same = std::memcmp(rows.data(), &weights.plain.bytes[first * row_bytes], rows.size()) == 0;
    expect(same, "unpacked rows", 0, 1);
    for (size_t i = 0; i < ids.size(); ++i) {
        for (int64_t k = 0; k < inputs; ++k) {
            expect_near(embedded[i * inputs + k], weights.plain.values[ids[i] * inputs + k], 0, "packed embedding");
        }
    }
}

// Codes that come with scales and perhaps minimums stay what they are.
void check_codes(ThreadPool& pool) {
    PackedMatrix matrix{};
    matrix.num_outputs = pick({2, 34, 70});
    matrix.num_inputs = pick({1, 33, 128});
    matrix.dtype = static_cast<DType>(between(2, 5));
    matrix.layout = flip() ? kGated : kPlain;
    Aligned<uint32_t> panels(packed_words(matrix));
    matrix.panels = panels.data();
    const bool shifted = matrix.dtype == DType::u4 && flip(), bytes = matrix.dtype == DType::i8;
    const int64_t groups = num_groups(matrix), size = matrix.num_outputs * matrix.num_inputs;
    std::vector<int8_t> codes(static_cast<size_t>(size));
    std::vector<float> scales(static_cast<size_t>(matrix.num_outputs * groups)), minimums = scales;
    for (int8_t& code : codes) {
        const int64_t largest = bytes ? 127 : shifted ? 15 : 7;
        code = static_cast<int8_t>(between(shifted ? 0 : -largest - 1, largest));
        if (matrix.dtype == DType::f4) code = kDoubledE2M1[between(0, 15)];
    }
    for (float& scale : scales) scale = static_cast<float>(pick({-3, 0, 1, 7})) / 64;
    for (float& minimum : minimums) minimum = static_cast<float>(pick({-5, 0, 2})) / 32;
    std::vector<float> rows(codes.size());
    pool.run([&](int thread, int count) {
        kernels().packing.pack_codes(matrix, 0, matrix.num_outputs, codes.data(), scales.data(),
                                     shifted ? minimums.data() : nullptr, thread, count);
    });
    pool.run([&](int thread, int count) { unpack_rows(matrix, 0, matrix.num_outputs, rows.data(), thread, count); });
    for (int64_t i = 0; i < size; ++i) {
        const int64_t group = i / matrix.num_inputs * groups + i % matrix.num_inputs / kGroupInputs;
        const float wanted = scales[group] * static_cast<float>(codes[i]) + (shifted ? minimums[group] : 0);
        expect_near(rows[i], wanted, 0, "weight of a code");
    }
}

float float_at(const uint32_t* word) {
    float number;
    std::memcpy(&number, word, sizeof number);
    return number;
}

int signed_byte(const uint32_t* words, int64_t index) { return reinterpret_cast<const int8_t*>(words)[index]; }

// What quantised input `i` stands for, and in `step` how fine its numbers are.
double quantized_input(const uint32_t* row, const PackedMatrix& matrix, int64_t i, double* step) {
    const int64_t group = i / kGroupInputs, within = i % kGroupInputs, words = input_group_words(matrix.dtype);
    const uint32_t* behind = row + num_groups(matrix) * words;
    const auto power = [](uint32_t bits) {
        return std::ldexp((bits >> 31) != 0 ? -1.0 : 1.0, static_cast<int>(bits >> 23 & 255));
    };
    const bool as_float = current_isa() == Isa::avx2 || current_isa() == Isa::avx512;  // see gemm.h
    const auto scale = [&](const uint32_t* numbers) {
        const double second = matrix.dtype == DType::i8 && !as_float ? power(numbers[kGroupUnits + 2]) : 0.0;
        const double first = as_float ? double{float_at(numbers + kGroupUnits)} : power(numbers[kGroupUnits]);
        return double{float_at(behind)} * kScaleFactor * (first + second);
    };
    const uint32_t* numbers = row + group * words;
    *step = scale(numbers);
    double value = *step * signed_byte(numbers, within);
    for (uint32_t outlier = 0; outlier < behind[1]; ++outlier) {
        const uint32_t* entry = behind + 2 + outlier * outlier_words(matrix.dtype);
        if (entry[0] != group) continue;
        *step = scale(entry + 1);
        value += *step * signed_byte(entry + 1, within);
    }
    return value;
}

}  // namespace

std::vector<uint32_t> quantized(ThreadPool& pool, Stored& input, int64_t stride, int64_t rows,
                                const PackedMatrix& matrix) {
    const int64_t words = quantized_row_words(matrix);
    std::vector<uint32_t> bytes(static_cast<size_t>(rows * words));
    const QuantizeCall call{reinterpret_cast<const float*>(input.data()),
                            stride,
                            rows,
                            matrix.num_inputs,
                            bytes.data(),
                            words,
                            matrix.dtype};
    pool.run([&](int thread, int count) { kernels().gemm.quantize(call, thread, count); });
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < matrix.num_inputs; ++i) {
            double step;
            const double value = quantized_input(&bytes[row * words], matrix, i, &step);
            float& given = input.values[row * stride + i];
            // Of an outlier's remainder the largest number, 128, is cut off.
            expect_near(value, given, 1.01 * std::fabs(step), "quantised input");
            given = static_cast<float>(value);
        }
    }
    return bytes;
}

namespace {

double activated(Activation activation, double x) {
    if (activation == kSilu) return x / (1 + std::exp(-x));
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

// A word of a mask: of no columns, all, about half, or one.
uint32_t mask_word(int64_t kind) {
    const uint32_t any = static_cast<uint32_t>(random_bits());
    return kind == 0 ? 0U : kind == 1 ? ~0U : kind == 2 ? any : 1U << any % 32;
}

// A row that is computed alone, by one thread, has the values that it has among the others.
void check_row_alone(const GemmCall& among, const Stored& output, int64_t row) {
    GemmCall alone = among;
    const size_t item = among.weights.dtype == DType::bf16 ? 2 : 4;
    alone.input = static_cast<const char*>(among.input) + static_cast<size_t>(row * among.input_stride) * item;
    alone.num_rows = 1;
    Stored result = stored(std::vector<float>(static_cast<size_t>(among.output_stride)), among.output_dtype);
    alone.output = result.data();
    ThreadPool one(1);
    one.share_one(ProductWork(1, &alone, 1));
    const int64_t outputs = among.weights.num_outputs;
    const int64_t columns = among.epilogue == kGate ? outputs / 2 : outputs;
    for (int64_t column = 0; column < columns; ++column) {
        const float found = result.at(column), wanted = output.at(row * among.output_stride + column);
        expect(std::memcmp(&found, &wanted, sizeof found) == 0, "a row alone", double{found}, double{wanted});
    }
}

}  // namespace

void check_gemm(ThreadPool& pool) {
    const DType dtype = static_cast<DType>(between(0, 5));
    const bool gated = between(0, 3) == 0;
    // A quantised block has at most 2432 inputs.
    const int64_t inputs = is_quantized(dtype) ? pick({1, 3, 48, 130, 1301, 5000}) : pick({1, 3, 48, 130, 1301});
    const int64_t outputs = gated ? pick({2, 32, 70, 128}) : pick({1, 32, 33, 96, 300});
    const int64_t rows = pick({1, 2, 2, 3, 4, 5, 7, 13, 24, 25, 33, 44, 60, 67, 131});
    const bool extremes = between(0, 3) == 0;  // where products of bytes would saturate
    Weights weights(pool, outputs, inputs, dtype, gated ? kGated : kPlain, flip(), 1.0F, extremes);
    check_placing();
    check_packing(pool, weights);
    check_codes(pool);

    const int64_t stride = inputs + inputs % 2;
    std::vector<float> padded(static_cast<size_t>(rows * stride));
    const std::vector<float> dense = with_zeros(extremes ? extreme(rows * inputs) : normal(rows * inputs), inputs);
    for (int64_t i = 0; i < rows * inputs; ++i) padded[i / inputs * stride + i % inputs] = dense[i];
    if (flip()) padded[between(0, rows - 1) * stride + between(0, inputs - 1)] *= 1000;
    const bool bytewise = is_quantized(dtype);
    Stored input = stored(padded, bytewise ? DType::f32 : dtype);
    std::vector<uint32_t> bytes;
    if (bytewise) bytes = quantized(pool, input, stride, rows, weights.matrix);
    const Product product = expected(input, stride, rows, weights);

    GemmCall call{};
    call.input = bytewise ? static_cast<void*>(bytes.data()) : input.data();
    call.input_stride = bytewise ? quantized_row_words(weights.matrix) : stride;
    call.num_rows = rows;
    call.weights = weights.matrix;
    call.activation = flip() ? kSilu : kGeluTanh;
    call.epilogue = gated ? kGate : static_cast<Epilogue>(pick({kStore, kAdd, kChoose}));
    call.output_dtype = call.epilogue == kAdd || call.epilogue == kChoose ? DType::f32 : any_dtype();
    call.num_choices = call.epilogue == kChoose ? between(0, rows) : 0;
    const int64_t columns = gated ? (outputs / 2 + 15) / 16 * 16 : outputs;
    call.output_stride = columns + between(0, 3);
    const int64_t stored_rows = rows - call.num_choices;
    const std::vector<float> before = call.epilogue == kAdd
                                          ? normal(rows * call.output_stride)
                                          : std::vector<float>(static_cast<size_t>(stored_rows * call.output_stride));
    Stored output = stored(before, call.output_dtype);
    call.output = output.data();
    const int64_t pieces = pool.num_threads() * max_choice_pieces(call.weights, rows, pool.num_threads());
    std::vector<Choice> choices(static_cast<size_t>(pieces * call.num_choices));
    call.choices = choices.data();
    // Of some rows a part of the columns counts, of some of these none.
    std::vector<std::vector<uint32_t>> masks(static_cast<size_t>(call.num_choices));
    std::vector<const uint32_t*> allowed(masks.size());
    for (size_t row = 0; row < masks.size(); ++row) {
        if (flip()) continue;
        const int64_t kind = between(0, 4);
        for (int64_t word = 0; word < (outputs + 31) / 32; ++word) {
            masks[row].push_back(mask_word(kind < 4 ? kind : between(0, 3)));
        }
        allowed[row] = masks[row].data();
    }
    call.allowed = flip() ? allowed.data() : nullptr;
    Aligned<float> scratch(kGemmScratchFloats * pool.num_threads());
    call.scratch = scratch.data();
    pool.reserve(ProductWork::max_chunks(call.weights, rows, pool.num_threads()));
    pool.share_one(ProductWork(pool.num_threads(), &call, 1));

    const double relative = rounding(call.output_dtype) + 1e-6;
    for (int64_t row = call.num_choices; row < rows; ++row) {
        const int64_t to = (row - call.num_choices) * call.output_stride;
        for (int64_t column = 0; column < (gated ? outputs / 2 : outputs); ++column) {
            const int64_t from = row * outputs + column;
            double wanted = product.sums[from], size = product.sizes[from];
            if (call.epilogue == kAdd) wanted += before[to + column];
            if (gated) {
                const double value = product.sums[from + outputs / 2], gate = activated(call.activation, wanted);
                size = 1.2 * size * std::fabs(value) + product.sizes[from + outputs / 2] * std::fabs(gate);
                wanted = gate * value;
            }
            const double tolerance = 2e-6 * size + relative * std::fabs(wanted) + 1e-6;
            expect_near(output.at(to + column), wanted, tolerance, "product");
        }
    }
    if (call.epilogue == kStore || call.epilogue == kGate) check_row_alone(call, output, between(0, rows - 1));
    for (int64_t row = 0; row < call.num_choices; ++row) {
        const Choice best = best_choice(call, row, pool.num_threads());
        const double* sums = &product.sums[row * outputs];
        const uint32_t* mask = call.allowed != nullptr ? call.allowed[row] : nullptr;
        const auto counts = [&](int64_t column) {
            return mask == nullptr || (mask[column / 32] >> column % 32 & 1) != 0;
        };
        int64_t largest = -1;
        for (int64_t column = 0; column < outputs; ++column) {
            if (counts(column) && (largest < 0 || sums[column] > sums[largest])) largest = column;
        }
        expect(best.finite == 1, "finite row", best.finite, 1);
        if (largest < 0) {
            expect(best.value == -HUGE_VALF, "nothing to choose from", best.value, 0);
            continue;
        }
        expect(counts(best.column), "allowed choice", best.column, 0);
        const double tolerance = 2e-6 * product.sizes[row * outputs + largest] + 1e-9;
        expect_near(best.value, sums[largest], tolerance, "largest element");
        expect_near(sums[best.column], sums[largest], 2 * tolerance, "place of the largest element");
    }
}

}  // namespace check
