#include "packing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "half.h"

namespace bough {
namespace {

// Where a group of quantised weights of one row is; see gemm.h.
struct Group {
    uint8_t* codes;      // of the units' first words
    int64_t unit_bytes;  // from one unit's codes to the next
    int shift;           // of 4 bits within a byte
    uint16_t* scale;     // times kScaleFactor, in half precision
    uint16_t* minimum;   // u4: like the scale
};

Group group_of(const PackedMatrix& matrix, int64_t row, int64_t group) {
    const int64_t column = packed_column(matrix, row), within = column % kPanelColumns;
    const int64_t words = group_words(matrix.dtype), codes = code_words(matrix.dtype);
    uint32_t* start =
        static_cast<uint32_t*>(matrix.panels) + (column / kPanelColumns * num_groups(matrix) + group) * words;
    uint16_t* scale = reinterpret_cast<uint16_t*>(start + codes) + within;
    const bool bytes = matrix.dtype == DType::i8;
    return {reinterpret_cast<uint8_t*>(start + (bytes ? within : within % 16)), codes / kGroupUnits * 4,
            bytes ? 0 : static_cast<int>(within / 16 * 4), scale, scale + kPanelColumns};
}

uint8_t& byte_of(const Group& group, int64_t input) { return group.codes[input / 4 * group.unit_bytes + input % 4]; }

// A code of 4 bits, without its sign.
void set_code(const Group& group, int64_t input, int code) {
    uint8_t& byte = byte_of(group, input);
    byte = static_cast<uint8_t>((byte & (0xf0 >> group.shift)) | (code & 15) << group.shift);
}

// The code of E2M1 that stands for half of a whole number, one of those that some code stands for.
int e2m1_of(int doubled) {
    constexpr int8_t kCodes[13] = {0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 7, 7};
    return kCodes[std::min(std::abs(doubled), 12)] | (doubled < 0 ? 8 : 0);
}

void write_codes(DType dtype, const Group& group, const int8_t* codes, int64_t count, float scale) {
    *group.scale = to_half(scale * kScaleFactor);
    for (int64_t i = 0; i < count; ++i) {
        if (dtype == DType::i8) {
            byte_of(group, i) = static_cast<uint8_t>(codes[i] + 128);
        } else if (dtype == DType::f4) {
            set_code(group, i, e2m1_of(codes[i]));
        } else {
            set_code(group, i, codes[i] + 8);
        }
    }
    if (dtype == DType::u4) *group.minimum = to_half(-8.0F * scale * kScaleFactor);
}

void write_codes(const Group& group, const int8_t* codes, int64_t count, float scale, float minimum) {
    *group.scale = to_half(scale * kScaleFactor);
    *group.minimum = to_half(minimum * kScaleFactor);
    for (int64_t i = 0; i < count; ++i) set_code(group, i, codes[i]);
}

typedef float Four __attribute__((vector_size(16)));
constexpr int kFours = kGroupInputs / 4;

float sum_of(Four x) { return (x[0] + x[2]) + (x[1] + x[3]); }

// Codes from -`most` - 1 to `most` and the scale with which they come nearest to `weights`, by squared error: the
// largest weight becomes one of several numbers near the end of the range, the others are rounded accordingly, and the
// best scale for what came out follows by least squares. Returns the scale.
float search_codes(const float* weights, float extreme, const float (&ends)[9], float most, int8_t* codes) {
    Four numbers[kFours];
    std::memcpy(numbers, weights, sizeof numbers);
    float best = 0.0F, scale = 0.0F;
    Four best_codes[kFours] = {};
    for (const float end : ends) {
        const float inverse = -end / extreme;
        Four steps[kFours], products = {}, squares = {};
        for (int i = 0; i < kFours; ++i) {
            // Rounds to a whole number, ties to even.
            constexpr float kShift = 12582912.0F;
            const Four whole = (numbers[i] * inverse + kShift) - kShift, least = Four{} - most - 1.0F;
            const Four at_least = whole > least ? whole : least;
            steps[i] = at_least < most ? at_least : Four{} + most;
            products += numbers[i] * steps[i];
            squares += steps[i] * steps[i];
        }
        // What the squared error is smaller by than that of zeros.
        const float product = sum_of(products), square = sum_of(squares), gain = product / square * product;
        if (gain > best) {
            best = gain;
            scale = product / square;
            std::memcpy(best_codes, steps, sizeof steps);
        }
    }
    for (int i = 0; i < kGroupInputs; ++i) codes[i] = static_cast<int8_t>(best_codes[i / 4][i % 4]);
    return scale;
}

void quantize_group(DType dtype, const Group& group, const float* weights, int64_t count) {
    float extreme = 0.0F, low = weights[0], high = weights[0], numbers[kGroupInputs] = {};
    bool finite = true;
    for (int64_t i = 0; i < count; ++i) {
        finite &= std::isfinite(weights[i]);
        if (std::fabs(weights[i]) > std::fabs(extreme)) extreme = weights[i];
        low = std::min(low, weights[i]);
        high = std::max(high, weights[i]);
        numbers[i] = weights[i];
    }
    int8_t codes[kGroupInputs] = {};
    if (!finite) return write_codes(dtype, group, codes, count, __builtin_nanf(""));
    if (dtype == DType::u4) {
        const float scale = (high - low) / 15.0F;
        // Of numbers too small for a scale nothing is left.
        const float inverse = to_half(scale * kScaleFactor) != 0 ? 15.0F / (high - low) : 0.0F;
        for (int64_t i = 0; i < count; ++i)
            codes[i] = static_cast<int8_t>(std::nearbyint((weights[i] - low) * inverse));
        return write_codes(group, codes, count, scale, low);
    }
    const float largest = std::fabs(extreme);
    if (to_half(largest / 127.0F * kScaleFactor) == 0) return write_codes(dtype, group, codes, count, 0.0F);
    constexpr float kEndsI4[] = {8.0F, 7.0F, 7.25F, 7.5F, 7.75F, 8.25F, 8.5F, 8.75F, 9.0F};
    constexpr float kEndsI8[] = {127.0F, 128.0F, 127.5F, 126.25F, 125.5F, 124.75F, 124.0F, 123.25F, 122.5F};
    const bool bytes = dtype == DType::i8;
    const float scale = search_codes(numbers, extreme, bytes ? kEndsI8 : kEndsI4, bytes ? 127.0F : 7.0F, codes);
    write_codes(dtype, group, codes, count, scale);
}

void dequantize_row(const PackedMatrix& matrix, int64_t row, float* values) {
    const bool bytes = matrix.dtype == DType::i8;
    for (int64_t input = 0; input < matrix.num_inputs; input += kGroupInputs) {
        const Group group = group_of(matrix, row, input / kGroupInputs);
        const float scale = from_half(*group.scale) / kScaleFactor;
        const float minimum = matrix.dtype == DType::u4 ? from_half(*group.minimum) / kScaleFactor : 0.0F;
        const int64_t count = std::min(matrix.num_inputs - input, kGroupInputs);
        for (int64_t i = 0; i < count; ++i) {
            const int code = bytes ? byte_of(group, i) : byte_of(group, i) >> group.shift & 15;
            const int number = matrix.dtype == DType::u4   ? code
                               : matrix.dtype == DType::f4 ? kDoubledE2M1[code]
                                                           : code - code_offset(matrix.dtype);
            values[input + i] = scale * static_cast<float>(number) + minimum;
        }
    }
}

// Calls `visit(row, input, group)` for every group of quantised weights of this thread's share of the rows. Columns of
// one panel share bytes, so each panel is one thread's.
template <class Visit>
void visit_groups(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, int thread, int num_threads,
                  Visit visit) {
    for (int64_t row = 0; row < num_rows; ++row) {
        if (packed_column(matrix, first_row + row) / kPanelColumns % num_threads != thread) continue;
        for (int64_t group = 0; group < num_groups(matrix); ++group)
            visit(row, group, group_of(matrix, first_row + row, group));
    }
}

uint32_t* column_of(const PackedMatrix& matrix, int64_t row) {
    const int64_t column = packed_column(matrix, row);
    return static_cast<uint32_t*>(matrix.panels) + column / kPanelColumns * num_units(matrix) * kPanelColumns +
           column % kPanelColumns;
}

int64_t row_bytes(const PackedMatrix& matrix) { return matrix.num_inputs * (matrix.dtype == DType::bf16 ? 2 : 4); }

// Calls `visit(word, row, unit, bytes)` for every word of this thread's share of the rows, in blocks that stay in the
// first-level cache on both sides; `bytes` is 4 but for half of the last unit of an odd number of inputs.
template <class Visit>
void visit_words(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, int thread, int num_threads,
                 Visit visit) {
    constexpr int64_t kBlockRows = kPanelColumns, kBlockUnits = 16;
    const int64_t bytes = row_bytes(matrix), whole = bytes / 4;
    const int64_t end = num_rows * (thread + 1) / num_threads;
    uint32_t* columns[kBlockRows];
    for (int64_t row = num_rows * thread / num_threads; row < end; row += kBlockRows) {
        const int64_t count = std::min(end - row, kBlockRows);
        for (int64_t i = 0; i < count; ++i) columns[i] = column_of(matrix, first_row + row + i);
        for (int64_t unit = 0; unit < whole; unit += kBlockUnits) {
            const int64_t end_unit = std::min(whole, unit + kBlockUnits);
            for (int64_t i = 0; i < count; ++i) {
                for (int64_t u = unit; u < end_unit; ++u) visit(columns[i] + u * kPanelColumns, row + i, u, int64_t{4});
            }
        }
        if (bytes % 4 == 0) continue;
        for (int64_t i = 0; i < count; ++i) visit(columns[i] + whole * kPanelColumns, row + i, whole, bytes % 4);
    }
}

}  // namespace

int64_t packed_words(const PackedMatrix& matrix) { return num_panels(matrix) * panel_words(matrix, num_units(matrix)); }

int64_t packed_column(const PackedMatrix& matrix, int64_t row) {
    if (matrix.layout == kPlain) return row;
    constexpr int64_t half = kPanelColumns / 2;
    const int64_t gates = matrix.num_outputs / 2;
    const int64_t place = row < gates ? row : row - gates;
    return place / half * kPanelColumns + place % half + (row < gates ? 0 : half);
}

void place_panels(const PackedMatrix& matrix, int thread, int num_threads) {
    constexpr int64_t page_words = 4096 / sizeof(uint32_t);
    const int64_t panels = num_panels(matrix), words = panel_words(matrix, num_units(matrix));
    volatile uint32_t* memory = static_cast<uint32_t*>(matrix.panels);
    const int64_t end = panels * (thread + 1) / num_threads * words;
    for (int64_t word = panels * thread / num_threads * words; word < end; word += page_words) {
        memory[word] = memory[word];
    }
}

void pack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const void* rows, int thread,
               int num_threads) {
    if (is_quantized(matrix.dtype)) {
        const float* weights = static_cast<const float*>(rows);
        visit_groups(matrix, first_row, num_rows, thread, num_threads, [&](int64_t row, int64_t index, Group group) {
            const int64_t input = index * kGroupInputs;
            quantize_group(matrix.dtype, group, weights + row * matrix.num_inputs + input,
                           std::min(matrix.num_inputs - input, kGroupInputs));
        });
        return;
    }
    const char* source = static_cast<const char*>(rows);
    const int64_t stride = row_bytes(matrix);
    visit_words(matrix, first_row, num_rows, thread, num_threads,
                [=](uint32_t* word, int64_t row, int64_t unit, int64_t bytes) {
                    std::memcpy(word, source + row * stride + unit * 4, bytes);
                });
}

void pack_codes(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const int8_t* codes,
                const float* scales, const float* minimums, int thread, int num_threads) {
    const int64_t groups = num_groups(matrix);
    visit_groups(matrix, first_row, num_rows, thread, num_threads, [&](int64_t row, int64_t index, Group group) {
        const int64_t input = index * kGroupInputs, count = std::min(matrix.num_inputs - input, kGroupInputs);
        const int8_t* from = codes + row * matrix.num_inputs + input;
        const float scale = scales[row * groups + index];
        if (minimums != nullptr) {
            write_codes(group, from, count, scale, minimums[row * groups + index]);
        } else {
            write_codes(matrix.dtype, group, from, count, scale);
        }
    });
}

void unpack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, void* rows, int thread,
                 int num_threads) {
    if (is_quantized(matrix.dtype)) {
        float* weights = static_cast<float*>(rows);
        for (int64_t row = num_rows * thread / num_threads; row < num_rows * (thread + 1) / num_threads; ++row) {
            dequantize_row(matrix, first_row + row, weights + row * matrix.num_inputs);
        }
        return;
    }
    char* target = static_cast<char*>(rows);
    const int64_t stride = row_bytes(matrix);
    visit_words(matrix, first_row, num_rows, thread, num_threads,
                [=](const uint32_t* word, int64_t row, int64_t unit, int64_t bytes) {
                    std::memcpy(target + row * stride + unit * 4, word, bytes);
                });
}

static void read_row(const PackedMatrix& table, int32_t id, float* row) {
    if (is_quantized(table.dtype)) {
        dequantize_row(table, id, row);
        return;
    }
    const int64_t units = num_units(table);
    const uint32_t* column = column_of(table, id);
    if (table.dtype == DType::f32) {
        for (int64_t unit = 0; unit < units; ++unit) row[unit] = float_of(column[unit * kPanelColumns]);
        return;
    }
    for (int64_t unit = 0; unit < table.num_inputs / 2; ++unit) {
        const uint32_t pair = column[unit * kPanelColumns];
        row[2 * unit] = float_of(pair << 16);
        row[2 * unit + 1] = float_of(pair & 0xffff0000u);
    }
    if (table.num_inputs % 2 != 0) row[table.num_inputs - 1] = float_of(column[(units - 1) * kPanelColumns] << 16);
}

void embed(const PackedMatrix& table, int64_t first_id, const int32_t* ids, int64_t num_tokens, float scale,
           float* output, int64_t output_stride, int thread, int num_threads) {
    for (int64_t i = num_tokens * thread / num_threads; i < num_tokens * (thread + 1) / num_threads; ++i) {
        const int32_t id = static_cast<int32_t>(ids[i] - first_id);
        if (id < 0 || id >= table.num_outputs) continue;
        float* row = output + i * output_stride;
        read_row(table, id, row);
        if (scale == 1.0F) continue;
        for (int64_t k = 0; k < table.num_inputs; ++k) row[k] *= scale;
    }
}

}  // namespace bough
