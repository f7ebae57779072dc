#include "packing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace bough {
namespace {

float wide(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Where a group of int8 weights of one row is: bytes of input i at bytes[i / 4 * 128 + i % 4].
struct Group {
    int8_t* bytes;
    uint16_t* scale;  // bfloat16
    int16_t* sum;
};

Group group_of(const PackedMatrix& matrix, int64_t row, int64_t group) {
    const int64_t column = packed_column(matrix, row), within = column % kPanelColumns;
    uint32_t* words =
        static_cast<uint32_t*>(matrix.panels) + (column / kPanelColumns * num_groups(matrix) + group) * kGroupWords;
    uint16_t* scales = reinterpret_cast<uint16_t*>(words + kGroupUnits * kPanelColumns);
    return {reinterpret_cast<int8_t*>(words + within), scales + within,
            reinterpret_cast<int16_t*>(scales + kPanelColumns) + within};
}

int8_t& byte_of(const Group& group, int64_t input) { return group.bytes[input / 4 * kPanelColumns * 4 + input % 4]; }

// The scale is rounded up to bfloat16 before it is used, so that rounding it costs no precision.
void quantize_group(const Group& group, const float* weights, int64_t count) {
    float largest = 0.0F;
    bool finite = true;
    for (int64_t i = 0; i < count; ++i) {
        largest = std::max(largest, std::fabs(weights[i]));
        finite &= std::isfinite(weights[i]);
    }
    const float exact = largest / 127.0F;
    uint32_t bits;
    std::memcpy(&bits, &exact, sizeof bits);
    constexpr uint16_t kNan = 0x7fc0;
    *group.scale = finite ? static_cast<uint16_t>((bits + 0xffffu) >> 16) : kNan;
    const float scale = wide(static_cast<uint32_t>(*group.scale) << 16);
    // Zero, too, where the quotient would not be finite.
    const float inverse = finite && scale > 1e-36F ? 1.0F / scale : 0.0F;
    int sum = 0;
    for (int64_t i = 0; i < count; ++i) {
        const float rounded = finite ? std::nearbyint(weights[i] * inverse) : 0.0F;
        const int8_t weight = static_cast<int8_t>(std::min(127.0F, std::max(-127.0F, rounded)));
        byte_of(group, i) = weight;
        sum += weight;
    }
    *group.sum = static_cast<int16_t>(sum);
}

void dequantize_row(const PackedMatrix& matrix, int64_t row, float* values) {
    for (int64_t input = 0; input < matrix.num_inputs; input += kGroupInputs) {
        const Group group = group_of(matrix, row, input / kGroupInputs);
        const float scale = wide(static_cast<uint32_t>(*group.scale) << 16);
        const int64_t count = std::min(matrix.num_inputs - input, kGroupInputs);
        for (int64_t i = 0; i < count; ++i) values[input + i] = scale * static_cast<float>(byte_of(group, i));
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

void pack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const void* rows, int thread,
               int num_threads) {
    if (matrix.dtype == DType::i8) {
        const float* weights = static_cast<const float*>(rows);
        for (int64_t row = num_rows * thread / num_threads; row < num_rows * (thread + 1) / num_threads; ++row) {
            for (int64_t input = 0; input < matrix.num_inputs; input += kGroupInputs) {
                quantize_group(group_of(matrix, first_row + row, input / kGroupInputs),
                               weights + row * matrix.num_inputs + input,
                               std::min(matrix.num_inputs - input, kGroupInputs));
            }
        }
        return;
    }
    const char* source = static_cast<const char*>(rows);
    const int64_t stride = row_bytes(matrix);
    visit_words(matrix, first_row, num_rows, thread, num_threads,
                [=](uint32_t* word, int64_t row, int64_t unit, int64_t bytes) {
                    std::memcpy(word, source + row * stride + unit * 4, bytes);
                });
}

void unpack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, void* rows, int thread,
                 int num_threads) {
    if (matrix.dtype == DType::i8) {
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

void embed(const PackedMatrix& table, const int32_t* ids, int64_t num_tokens, float* output, int64_t output_stride,
           int thread, int num_threads) {
    const int64_t units = num_units(table);
    for (int64_t i = num_tokens * thread / num_threads; i < num_tokens * (thread + 1) / num_threads; ++i) {
        if (table.dtype == DType::i8) {
            dequantize_row(table, ids[i], output + i * output_stride);
            continue;
        }
        const uint32_t* column = column_of(table, ids[i]);
        float* row = output + i * output_stride;
        if (table.dtype == DType::f32) {
            for (int64_t unit = 0; unit < units; ++unit) row[unit] = wide(column[unit * kPanelColumns]);
            continue;
        }
        for (int64_t unit = 0; unit < table.num_inputs / 2; ++unit) {
            const uint32_t pair = column[unit * kPanelColumns];
            row[2 * unit] = wide(pair << 16);
            row[2 * unit + 1] = wide(pair & 0xffff0000u);
        }
        if (table.num_inputs % 2 != 0) row[table.num_inputs - 1] = wide(column[(units - 1) * kPanelColumns] << 16);
    }
}

}  // namespace bough
