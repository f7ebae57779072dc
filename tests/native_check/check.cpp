// The native kernels against double precision, without Python: what runs under sanitizers and under an emulator of
// another architecture. Every instruction set that the machine has, one and three threads.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "isa.h"
#include "packing.h"
#include "thread_pool.h"

using namespace bough;

namespace {

std::mt19937 random_bits(1);
int failures = 0;

void expect(bool holds, const char* what, double found, double wanted) {
    if (holds) return;
    if (++failures < 20) std::printf("FAILED %s: %.9g, expected %.9g\n", what, found, wanted);
}

void expect_near(double found, double wanted, double tolerance, const char* what) {
    expect(std::fabs(found - wanted) <= tolerance, what, found, wanted);
}

int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random_bits)];
}

int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_bits); }

std::vector<float> normal(int64_t count, float scale = 1.0F) {
    std::normal_distribution<float> distribution(0.0F, scale);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = distribution(random_bits);
    return values;
}

uint16_t to_bf16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float from_bf16(uint16_t half) {
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
}

// Numbers in memory of some type, and what they stand for. No spare bytes: a sanitizer sees each overrun.
struct Stored {
    std::vector<unsigned char> bytes;
    std::vector<float> values;
    void* data() { return bytes.data(); }
};

Stored stored(std::vector<float> values, DType dtype) {
    Stored result;
    const size_t size = dtype == DType::f32 ? 4 : 2;
    result.bytes.resize(values.size() * size);
    for (size_t i = 0; i < values.size(); ++i) {
        if (dtype == DType::bf16) {
            const uint16_t half = to_bf16(values[i]);
            values[i] = from_bf16(half);
            std::memcpy(&result.bytes[2 * i], &half, 2);
        } else {
            std::memcpy(&result.bytes[4 * i], &values[i], 4);
        }
    }
    result.values = std::move(values);
    return result;
}

template <class T>
struct Aligned {
    explicit Aligned(int64_t count) : memory(static_cast<size_t>(count) * sizeof(T) + 64) {}
    T* data() {
        const uintptr_t start = reinterpret_cast<uintptr_t>(memory.data());
        return reinterpret_cast<T*>((start + 63) / 64 * 64);
    }
    std::vector<unsigned char> memory;
};

// --- attention ---------------------------------------------------------------------------------------------------

void check_attention(ThreadPool& pool) {
    const int32_t kv_heads = static_cast<int32_t>(between(1, 3));
    const int32_t group = static_cast<int32_t>(pick({1, 2, 4, 7, 13}));
    const int32_t dim = static_cast<int32_t>(pick({1, 8, 33, 37, 64, 80}));
    const int32_t page = static_cast<int32_t>(pick({1, 16}));
    const int32_t window = static_cast<int32_t>(pick({0, 0, 1, 100}));
    const int32_t heads = kv_heads * group;
    const int64_t num_rows = between(1, 4);
    std::vector<int32_t> prefix, extend, first, req_slots;
    int64_t tokens = 0, longest = 0, slots_used = page;
    for (int64_t row = 0; row < num_rows; ++row) {
        prefix.push_back(static_cast<int32_t>(pick({0, 1, 255, 256, 300, 700})));
        extend.push_back(static_cast<int32_t>(pick({1, 1, 2, 30})));
        first.push_back(static_cast<int32_t>(tokens));
        req_slots.push_back(static_cast<int32_t>(num_rows - 1 - row));
        tokens += extend.back();
        longest = std::max<int64_t>(longest, prefix.back() + extend.back());
    }
    std::vector<int32_t> table(static_cast<size_t>(num_rows * longest));
    for (int64_t row = 0; row < num_rows; ++row) {
        const int64_t length = prefix[row] + extend[row];
        for (int64_t i = 0; i < length; ++i) table[req_slots[row] * longest + i] = static_cast<int32_t>(slots_used++);
        slots_used = (slots_used + page - 1) / page * page;
    }
    const DType dtype = pick({0, 1}) == 0 ? DType::f32 : DType::bf16;
    Stored keys = stored(normal(slots_used * kv_heads * dim), dtype);
    Stored values = stored(normal(slots_used * kv_heads * dim), dtype);
    std::vector<float> queries = normal(tokens * heads * dim);
    std::vector<float> output(queries.size());
    const int threads = pool.num_threads();
    AttentionCall call{};
    call.shape = {heads, kv_heads, dim, page, window, 1.0F / std::sqrt(static_cast<float>(dim))};
    call.rows = {static_cast<int32_t>(num_rows), req_slots.data(), prefix.data(), extend.data(), first.data(),
                 table.data(), longest};
    call.kv = {keys.data(), values.data(), nullptr, nullptr, dtype};
    call.queries = queries.data();
    call.query_stride = heads * dim;
    call.output = output.data();
    call.output_stride = heads * dim;
    const size_t plan_bytes = attention_plan_bytes(call.shape, num_rows, tokens, longest, threads);
    Aligned<unsigned char> plan(static_cast<int64_t>(plan_bytes));
    Aligned<unsigned char> scratch(static_cast<int64_t>(attention_scratch_bytes(call.shape, longest, threads)));
    AttentionPlan* const made = reinterpret_cast<AttentionPlan*>(plan.data());
    expect(attention_plan(made, plan_bytes, call.shape, call.rows, longest, threads), "attention plan", 0, 1);
    call.plan = made;
    call.scratch = scratch.data();
    pool.run([&](int thread, int count) {
        kernels().attention.attention(call, thread, count);
        pool.barrier();
        if (attention_needs_merge(made)) kernels().attention.merge(call, thread, count);
    });
    const double tolerance = dtype == DType::bf16 && current_isa() == Isa::avx512bf16 ? 0.03 : 1e-5;
    for (int64_t row = 0; row < num_rows; ++row) {
        for (int64_t q = 0; q < extend[row]; ++q) {
            const int64_t position = prefix[row] + q;
            const int64_t begin = window > 0 ? std::max<int64_t>(position - window + 1, 0) : 0;
            for (int64_t head = 0; head < heads; ++head) {
                const int64_t at = (first[row] + q) * heads * dim + head * dim;
                std::vector<double> scores, sums(static_cast<size_t>(dim));
                double largest = -1e300, total = 0;
                const auto place = [&](int64_t key) {
                    return (int64_t{table[req_slots[row] * longest + key]} * kv_heads + head / group) * dim;
                };
                for (int64_t key = begin; key <= position; ++key) {
                    double score = 0;
                    for (int64_t d = 0; d < dim; ++d) score += double{queries[at + d]} * keys.values[place(key) + d];
                    scores.push_back(score * call.shape.scale);
                    largest = std::max(largest, scores.back());
                }
                for (int64_t key = begin; key <= position; ++key) {
                    const double weight = std::exp(scores[key - begin] - largest);
                    total += weight;
                    for (int64_t d = 0; d < dim; ++d) sums[d] += weight * values.values[place(key) + d];
                }
                for (int64_t d = 0; d < dim; ++d) {
                    expect_near(output[at + d], sums[d] / total, tolerance, "attention");
                }
            }
        }
    }
}

// --- matrix products ---------------------------------------------------------------------------------------------

void check_gemm(ThreadPool& pool) {
    const int64_t inputs = pick({1, 3, 48, 130, 1301}), outputs = pick({1, 32, 33, 96}), rows = pick({1, 2, 7, 13, 25});
    const DType dtype = pick({0, 1}) == 0 ? DType::f32 : DType::bf16;
    Stored weights = stored(normal(outputs * inputs), dtype);
    const int64_t stride = inputs + inputs % 2;
    std::vector<float> padded(static_cast<size_t>(rows * stride));
    const std::vector<float> dense = normal(rows * inputs);
    for (int64_t i = 0; i < rows * inputs; ++i) padded[i / inputs * stride + i % inputs] = dense[i];
    Stored input = stored(padded, dtype);
    PackedMatrix matrix{};
    matrix.num_outputs = outputs;
    matrix.num_inputs = inputs;
    matrix.dtype = dtype;
    matrix.layout = kPlain;
    Aligned<uint32_t> panels(packed_words(matrix));
    matrix.panels = panels.data();
    std::vector<float> scratch(static_cast<size_t>(gemm_scratch_floats(rows) * pool.num_threads()));
    const int64_t columns = (outputs + 31) / 32 * 32;
    std::vector<float> wide(static_cast<size_t>(rows * columns));
    GemmCall call{};
    call.input = input.data();
    call.input_stride = stride;
    call.num_rows = rows;
    call.weights = matrix;
    call.epilogue = kStore;
    call.output = wide.data();
    call.output_stride = columns;
    call.output_dtype = DType::f32;
    call.scratch = scratch.data();
    pool.run([&](int thread, int count) {
        pack_rows(matrix, 0, outputs, weights.data(), thread, count);
        pool.barrier();
        kernels().gemm.gemm(call, thread, count);
    });
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < outputs; ++column) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < inputs; ++k) {
                const double term = double{input.values[row * stride + k]} * weights.values[column * inputs + k];
                sum += term;
                size += std::fabs(term);
            }
            expect_near(wide[row * columns + column], sum, 1e-6 * size + 1e-9, "product");
        }
    }
}

// --- element-wise ------------------------------------------------------------------------------------------------

void check_norm_and_rotation(ThreadPool& pool) {
    const int32_t dim = static_cast<int32_t>(pick({8, 34, 64, 96})), half = dim / 2, heads = 3, kv_heads = 2;
    const int64_t tokens = between(1, 6), width = (heads + 2 * kv_heads) * dim;
    Stored weight = stored(normal(dim), DType::bf16);
    std::vector<float> qkv = normal(tokens * width);
    const std::vector<float> given = qkv;
    std::vector<float> inv_freq(half), cos_sin(static_cast<size_t>(tokens * 2 * half));
    for (int32_t i = 0; i < half; ++i) inv_freq[i] = std::pow(1e4F, -static_cast<float>(i) / static_cast<float>(half));
    std::vector<int32_t> positions, slots;
    for (int64_t i = 0; i < tokens; ++i) {
        positions.push_back(static_cast<int32_t>(between(0, 1000000)));
        slots.push_back(static_cast<int32_t>(tokens - 1 - i));
    }
    std::vector<float> keys(static_cast<size_t>(tokens * kv_heads * dim)), values(keys.size());
    RotaryTableCall table{inv_freq.data(), half, 1.0F, positions.data(), tokens, cos_sin.data()};
    RotaryStoreCall store{};
    store.qkv = qkv.data();
    store.qkv_stride = width;
    store.num_tokens = tokens;
    store.num_heads = heads;
    store.num_kv_heads = kv_heads;
    store.head_dim = dim;
    store.half_dim = half;
    store.cos_sin = cos_sin.data();
    store.q_norm = store.k_norm = weight.data();
    store.norm_dtype = DType::bf16;
    store.eps = 1e-6F;
    store.out_slots = slots.data();
    store.kv = {keys.data(), values.data(), nullptr, nullptr, DType::f32};
    pool.run([&](int thread, int count) {
        kernels().elementwise.rotary_table(table, thread, count);
        pool.barrier();
        kernels().elementwise.rotary_store(store, thread, count);
    });
    for (int64_t token = 0; token < tokens; ++token) {
        for (int64_t head = 0; head < heads + 2 * kv_heads; ++head) {
            const float* x = &given[token * width + head * dim];
            const int64_t kv_head = (head - heads) % kv_heads;
            const bool is_value = head >= heads + kv_heads;
            const float* found = head < heads ? &qkv[token * width + head * dim]
                                              : &(is_value ? values : keys)[(slots[token] * kv_heads + kv_head) * dim];
            double squares = 0;
            for (int32_t i = 0; i < dim; ++i) squares += double{x[i]} * x[i];
            const double factor = 1 / std::sqrt(squares / dim + 1e-6);
            for (int32_t i = 0; i < half; ++i) {
                const float angle = static_cast<float>(positions[token]) * inv_freq[i];
                const double c = std::cos(double{angle}), s = std::sin(double{angle});
                const double a = x[i] * factor * weight.values[i], b = x[half + i] * factor * weight.values[half + i];
                expect_near(found[i], is_value ? x[i] : a * c - b * s, 1e-5, "rotation, first half");
                expect_near(found[half + i], is_value ? x[half + i] : b * c + a * s, 1e-5, "rotation, second half");
            }
        }
    }
    const int64_t size = pick({1, 17, 896}), rows = between(1, 5);
    const std::vector<float> x = normal(rows * size);
    Stored norm_weight = stored(normal(size), DType::f32);
    std::vector<float> output(x.size());
    std::vector<uint8_t> finite(static_cast<size_t>(rows));
    NormCall norm{x.data(), size, nullptr, norm_weight.data(), DType::f32, 0.0F, 1e-6F, output.data(),
                  size, DType::f32, rows, size};
    FiniteCall check{x.data(), size, nullptr, finite.data(), rows, size};
    pool.run([&](int thread, int count) {
        kernels().elementwise.rms_norm(norm, thread, count);
        kernels().elementwise.rows_finite(check, thread, count);
    });
    for (int64_t row = 0; row < rows; ++row) {
        double squares = 0;
        for (int64_t i = 0; i < size; ++i) squares += double{x[row * size + i]} * x[row * size + i];
        for (int64_t i = 0; i < size; ++i) {
            const double wanted = x[row * size + i] / std::sqrt(squares / size + 1e-6) * norm_weight.values[i];
            expect_near(output[row * size + i], wanted, 1e-6 + 1e-6 * std::fabs(wanted), "norm");
        }
        expect(finite[row] == 1, "finite", finite[row], 1);
    }
}

// --- sampling ----------------------------------------------------------------------------------------------------

// Evenly spaced uniform numbers must draw each kept token as often as its share says, in ascending order of id.
void check_sampling(ThreadPool& pool) {
    const int64_t vocab = pick({5, 64, 100, 1000, 5003}), draws = 1000;
    const std::vector<float> row = normal(vocab, 2.0F);
    const double top_k = pick({0, 1}) != 0 ? static_cast<double>(between(1, 50)) : std::numeric_limits<double>::infinity();
    const double top_p = pick({0, 1}) != 0 ? 0.7 : std::numeric_limits<double>::infinity();
    const float inverse_temperature = 1.25F;
    std::vector<float> logits;
    std::vector<SampleRow> rows;
    for (int64_t i = 0; i < draws; ++i) {
        logits.insert(logits.end(), row.begin(), row.end());
        SampleRow sample{};
        sample.logits_row = i;
        sample.random = 1;
        sample.inverse_temperature = inverse_temperature;
        sample.uniform = (static_cast<double>(i) + 0.5) / static_cast<double>(draws);
        sample.top_p = top_p;
        sample.top_k = top_k;
        sample.log_min_p = -std::numeric_limits<float>::infinity();
        sample.repetition_penalty = 1.0F;
        rows.push_back(sample);
    }
    std::vector<int64_t> tokens(draws);
    std::vector<uint8_t> finite(draws);
    Aligned<unsigned char> scratch(static_cast<int64_t>(sample_scratch_bytes(vocab, pool.num_threads())));
    SampleCall call{logits.data(), vocab, vocab, rows.data(), draws, tokens.data(), finite.data(), scratch.data()};
    pool.run([&](int thread, int count) { kernels().sampling.sample(call, thread, count); });

    std::vector<int64_t> order(vocab);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
    std::vector<double> share(vocab);
    double total = 0, kept = 0;
    for (int64_t token = 0; token < vocab; ++token) total += std::exp((row[token] - row[order[0]]) * 1.25);
    for (int64_t i = 0; i < vocab && static_cast<double>(i) < top_k && kept < top_p * total; ++i) {
        share[order[i]] = std::exp((row[order[i]] - row[order[0]]) * 1.25);
        kept += share[order[i]];
    }
    std::vector<double> found(vocab);
    for (int64_t i = 0; i < draws; ++i) {
        found[tokens[i]] += 1;
        expect(finite[i] == 1 && (i == 0 || tokens[i] >= tokens[i - 1]), "order of draws", double(tokens[i]), 0);
    }
    for (int64_t token = 0; token < vocab; ++token) {
        const double wanted = share[token] / kept * static_cast<double>(draws);
        expect(std::fabs(found[token] - wanted) <= 1.01, "share of a token", found[token], wanted);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
    for (int isa = 0; isa < kNumIsas; ++isa) {
        if (!set_isa(static_cast<Isa>(isa))) continue;
        for (const int threads : {1, 3}) {
            ThreadPool pool(threads);
            for (int round = 0; round < rounds; ++round) {
                check_attention(pool);
                check_gemm(pool);
                check_norm_and_rotation(pool);
                if (round % 4 == 0) check_sampling(pool);
            }
        }
        std::printf("instruction set %d: %s\n", isa, failures == 0 ? "ok" : "failed");
        std::fflush(stdout);
    }
    return failures == 0 ? 0 : 1;
}
