#include "packing.h"

#include <algorithm>
#include <cstring>

namespace bough {
namespace {

float wide(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
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

int64_t packed_words(const PackedMatrix& matrix) { return num_panels(matrix) * num_units(matrix) * kPanelColumns; }

int64_t packed_column(const PackedMatrix& matrix, int64_t row) {
    if (matrix.layout == kPlain) return row;
    constexpr int64_t half = kPanelColumns / 2;
    const int64_t gates = matrix.num_outputs / 2;
    const int64_t place = row < gates ? row : row - gates;
    return place / half * kPanelColumns + place % half + (row < gates ? 0 : half);
}

void pack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const void* rows, int thread,
               int num_threads) {
    const char* source = static_cast<const char*>(rows);
    const int64_t stride = row_bytes(matrix);
    visit_words(matrix, first_row, num_rows, thread, num_threads,
                [=](uint32_t* word, int64_t row, int64_t unit, int64_t bytes) {
                    std::memcpy(word, source + row * stride + unit * 4, bytes);
                });
}

void unpack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, void* rows, int thread,
                 int num_threads) {
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
