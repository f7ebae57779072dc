#include "packing.h"

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
    const int64_t units = num_units(matrix), bytes = row_bytes(matrix), whole = bytes / 4;
    const char* source = static_cast<const char*>(rows);
    for (int64_t row = num_rows * thread / num_threads; row < num_rows * (thread + 1) / num_threads; ++row) {
        uint32_t* column = column_of(matrix, first_row + row);
        for (int64_t unit = 0; unit < whole; ++unit) {
            std::memcpy(column + unit * kPanelColumns, source + row * bytes + unit * 4, 4);
        }
        if (whole < units) std::memcpy(column + whole * kPanelColumns, source + row * bytes + whole * 4, bytes % 4);
    }
}

void unpack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, void* rows, int thread,
                 int num_threads) {
    const int64_t units = num_units(matrix), bytes = row_bytes(matrix), whole = bytes / 4;
    char* target = static_cast<char*>(rows);
    for (int64_t row = num_rows * thread / num_threads; row < num_rows * (thread + 1) / num_threads; ++row) {
        const uint32_t* column = column_of(matrix, first_row + row);
        for (int64_t unit = 0; unit < whole; ++unit) {
            std::memcpy(target + row * bytes + unit * 4, column + unit * kPanelColumns, 4);
        }
        if (whole < units) std::memcpy(target + row * bytes + whole * 4, column + whole * kPanelColumns, bytes % 4);
    }
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
