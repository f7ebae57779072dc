#include "packing.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "half.h"

namespace bough {
namespace {

// Where a group of quantised weights of one row is; see gemm.h.
struct Group {
    const uint8_t* codes;  // of the units' first words
    int64_t unit_bytes;    // from one unit's codes to the next
    int shift;             // of 4 bits within a byte
    float scale, minimum;
};

Group group_of(const PackedMatrix& matrix, int64_t row, int64_t group) {
    const int64_t column = packed_column(matrix, row), within = column % kPanelColumns;
    const int64_t words = group_words(matrix.dtype), codes = code_words(matrix.dtype);
    const uint32_t* start =
        static_cast<const uint32_t*>(matrix.panels) + (column / kPanelColumns * num_groups(matrix) + group) * words;
    const uint16_t* scale = reinterpret_cast<const uint16_t*>(start + codes) + within;
    const bool bytes = matrix.dtype == DType::i8;
    return {reinterpret_cast<const uint8_t*>(start + (bytes ? within : within % 16)), codes / kGroupUnits * 4,
            bytes ? 0 : static_cast<int>(within / 16 * 4), from_half(*scale) / kScaleFactor,
            matrix.dtype == DType::u4 ? from_half(scale[kPanelColumns]) / kScaleFactor : 0.0F};
}

uint8_t byte_of(const Group& group, int64_t input) { return group.codes[input / 4 * group.unit_bytes + input % 4]; }

void dequantize_row(const PackedMatrix& matrix, int64_t row, float* values) {
    const bool bytes = matrix.dtype == DType::i8;
    for (int64_t input = 0; input < matrix.num_inputs; input += kGroupInputs) {
        const Group group = group_of(matrix, row, input / kGroupInputs);
        const int64_t count = std::min(matrix.num_inputs - input, kGroupInputs);
        for (int64_t i = 0; i < count; ++i) {
            const int code = bytes ? byte_of(group, i) : byte_of(group, i) >> group.shift & 15;
            const int number = matrix.dtype == DType::u4   ? code
                               : matrix.dtype == DType::f4 ? kDoubledE2M1[code]
                                                           : code - code_offset(matrix.dtype);
            values[input + i] = group.scale * static_cast<float>(number) + group.minimum;
        }
    }
}

uint32_t* column_of(const PackedMatrix& matrix, int64_t row) {
    const int64_t column = packed_column(matrix, row);
    return static_cast<uint32_t*>(matrix.panels) + column / kPanelColumns * num_units(matrix) * kPanelColumns +
           column % kPanelColumns;
}

int64_t row_bytes(const PackedMatrix& matrix) { return matrix.num_inputs * (matrix.dtype == DType::bf16 ? 2 : 4); }

// Calls `visit(columns, count, row, unit, end_unit, bytes)` for all words of this thread's share of the rows, in blocks
// that stay in the first-level cache on both sides: of `count` rows from `row` on and their columns; `bytes` is 4 but
// for half of the last unit of an odd number of inputs.
template <class Visit>
void visit_blocks(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, int thread, int num_threads,
                  Visit visit) {
    constexpr int64_t kBlockRows = kPanelColumns, kBlockUnits = 16;
    const int64_t bytes = row_bytes(matrix), whole = bytes / 4;
    const int64_t end = num_rows * (thread + 1) / num_threads;
    uint32_t* columns[kBlockRows];
    for (int64_t row = num_rows * thread / num_threads; row < end; row += kBlockRows) {
        const int64_t count = std::min(end - row, kBlockRows);
        for (int64_t i = 0; i < count; ++i) columns[i] = column_of(matrix, first_row + row + i);
        for (int64_t unit = 0; unit < whole; unit += kBlockUnits)
            visit(columns, count, row, unit, std::min(whole, unit + kBlockUnits), int64_t{4});
        if (bytes % 4 != 0) visit(columns, count, row, whole, whole + 1, bytes % 4);
    }
}

typedef uint32_t Four __attribute__((vector_size(16)));

// Turns four units of four rows, `stride` bytes apart, into the same units of four columns that lie side by side.
inline void pack_four(const char* rows, int64_t stride, uint32_t* columns) {
    Four from[4], to[4];
    for (int i = 0; i < 4; ++i) std::memcpy(&from[i], rows + i * stride, sizeof(Four));
    for (int i = 0; i < 4; ++i) to[i] = Four{from[0][i], from[1][i], from[2][i], from[3][i]};
    for (int i = 0; i < 4; ++i) std::memcpy(columns + i * kPanelColumns, &to[i], sizeof(Four));
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
    const char* source = static_cast<const char*>(rows);
    const int64_t stride = row_bytes(matrix);
    visit_blocks(matrix, first_row, num_rows, thread, num_threads,
                 [=](uint32_t* const* columns, int64_t count, int64_t row, int64_t unit, int64_t end, int64_t bytes) {
                     int64_t i = 0, packed = 0;  // the units of these rows that are done
                     if (bytes == 4) packed = (end - unit) / 4 * 4;
                     for (; i + 4 <= count && columns[i + 3] == columns[i] + 3; i += 4) {
                         for (int64_t u = unit; u < unit + packed; u += 4) {
                             pack_four(source + (row + i) * stride + u * 4, stride, columns[i] + u * kPanelColumns);
                         }
                     }
                     const int64_t side_by_side = i;
                     for (i = 0; i < count; ++i) {
                         for (int64_t u = unit + (i < side_by_side ? packed : 0); u < end; ++u)
                             std::memcpy(columns[i] + u * kPanelColumns, source + (row + i) * stride + u * 4, bytes);
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
    visit_blocks(matrix, first_row, num_rows, thread, num_threads,
                 [=](uint32_t* const* columns, int64_t count, int64_t row, int64_t unit, int64_t end, int64_t bytes) {
                     for (int64_t i = 0; i < count; ++i) {
                         for (int64_t u = unit; u < end; ++u)
                             std::memcpy(target + (row + i) * stride + u * 4, columns[i] + u * kPanelColumns, bytes);
                     }
                 });
}

// The largest of numbers without their highest bit.
template <class Number>
static uint32_t largest_of(const char* numbers, int64_t count) {
    Number largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        Number bits;
        std::memcpy(&bits, numbers + i * sizeof bits, sizeof bits);
        largest = std::max<Number>(largest, bits & std::numeric_limits<Number>::max());
    }
    return static_cast<uint32_t>(largest);
}

uint32_t largest_magnitude(const FloatRows& rows, int thread, int num_threads) {
    const char* const numbers = static_cast<const char*>(rows.numbers);
    const int64_t count = rows.num_rows * rows.size, end = count * (thread + 1) / num_threads;
    uint32_t largest = 0;
    for (int64_t i = count * thread / num_threads, here; i < end; i += here) {
        here = std::min(rows.size - i % rows.size, end - i);
        const char* const from = numbers + (i / rows.size * rows.stride + i % rows.size) * rows.bytes;
        largest =
            std::max(largest, rows.bytes == 2 ? largest_of<int16_t>(from, here) : largest_of<int32_t>(from, here));
    }
    return largest;
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
