// Tiles of bfloat16 products on processors with AMX: 16 rows of inputs times 16 columns in one instruction.
//
// The instructions are those of Intel's Architecture Instruction Set Extensions Programming Reference, chapter on AMX.
// A block of 16 units of a panel is what they want of weights as it is: 16 rows of pairs of inputs, 16 columns each.
// Products of 32 inputs are summed before they are added to an element's sum, in an order of the processor's; blocks
// begin at multiples of 32 inputs, so that neither rows nor threads change a bit.
#pragma once

#include <cstring>

#include "gemm.h"
#include "gemm_tile.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

#if defined(__AMX_BF16__)

constexpr int kRowsAmx = 32;
constexpr int64_t kUnitsAmx = 16;
// Units of a block along the inputs: 32 rows (16 KB) and a panel (16 KB) stay in the first-level cache.
constexpr int64_t kBlockUnitsAmx = 128;
constexpr int kLinesAmx = static_cast<int>(kUnitsAmx * kPanelColumns / 16);  // cache lines of weights of a block

// The compiler's instructions for tiles do not tell it that they read all of this memory.
BOUGH_INLINE void written(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

// What a processor is told of its eight tile registers. Of one that is not set there is none.
class AmxLayout {
public:
    void set(int tile, int rows, int row_bytes) {
        layout_.row_bytes[tile] = static_cast<uint16_t>(row_bytes);
        layout_.rows[tile] = static_cast<uint8_t>(rows);
    }
    void load() const {
        written(&layout_);
        _tile_loadconfig(&layout_);
    }

private:
    struct Layout {
        uint8_t palette = 1;
        uint8_t start_row = 0;
        uint8_t reserved[14] = {};
        uint16_t row_bytes[16] = {};
        uint8_t rows[16] = {};
    };
    static_assert(sizeof(Layout) == 64, "as the processor has it");
    alignas(64) Layout layout_;
};

// Registers for up to kRowsAmx rows: sums of the upper and the lower 16 rows, two each; inputs of both; weights of the
// left and the right 16 columns.
inline void load_shape_amx(int rows) {
    const int upper = rows < 16 ? rows : 16, lower = rows - upper;
    const int rows_of[8] = {upper, upper, lower, lower, upper, lower, 16, 16};
    AmxLayout layout;
    for (int tile = 0; tile < 8; ++tile) {
        if (rows_of[tile] > 0) layout.set(tile, rows_of[tile], 64);
    }
    layout.load();
}

// The next cache lines to ask for, some of them with each block.
struct AmxFetch {
    const char* from = nullptr;
    int lines_per_block = 0;
};

// One block of inputs times one of weights. Strides are in bytes.
BOUGH_INLINE void multiply_block_amx(const uint32_t* input, int64_t input_stride, const uint32_t* weights,
                                     bool has_lower) {
    constexpr int kPanelStride = static_cast<int>(kPanelColumns) * 4;
    _tile_loadd(6, weights, kPanelStride);
    _tile_loadd(7, weights + 16, kPanelStride);
    _tile_loadd(4, input, input_stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (!has_lower) return;
    _tile_loadd(5, input + 4 * input_stride, input_stride);  // 16 rows further on
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}

// `rows` rows times one panel over `units` units: sums [rows][32]. The tile registers have their shape.
inline void multiply_tile_amx(int rows, const uint32_t* input, int64_t input_stride, const uint32_t* panel,
                              int64_t units, float* sums, bool accumulate, AmxFetch fetch) {
    constexpr int kColumns = static_cast<int>(kPanelColumns), kSumsStride = kColumns * 4;
    const bool has_lower = rows > 16;
    float* const lower = sums + 16 * kColumns;
    if (accumulate) {
        _tile_loadd(0, sums, kSumsStride);
        _tile_loadd(1, sums + 16, kSumsStride);
        if (has_lower) {
            _tile_loadd(2, lower, kSumsStride);
            _tile_loadd(3, lower + 16, kSumsStride);
        }
    } else {
        _tile_zero(0);
        _tile_zero(1);
        if (has_lower) {
            _tile_zero(2);
            _tile_zero(3);
        }
    }
    int64_t unit = 0;
    for (; unit + kUnitsAmx <= units; unit += kUnitsAmx) {
        for (int line = 0; line < fetch.lines_per_block; ++line) {
            __builtin_prefetch(fetch.from + line * 64, 0, kAllButFirst);
        }
        fetch.from += fetch.lines_per_block * 64;
        multiply_block_amx(input + unit, input_stride * 4, panel + unit * kColumns, has_lower);
    }
    if (unit < units) {
        alignas(64) uint32_t last_input[kRowsAmx * kUnitsAmx] = {}, last_weights[kUnitsAmx * kColumns] = {};
        const size_t left = static_cast<size_t>(units - unit);
        for (int row = 0; row < rows; ++row) {
            std::memcpy(last_input + row * kUnitsAmx, input + row * input_stride + unit, left * 4);
        }
        std::memcpy(last_weights, panel + unit * kColumns, left * kColumns * 4);
        written(last_input);
        written(last_weights);
        multiply_block_amx(last_input, kUnitsAmx * 4, last_weights, has_lower);
    }
    _tile_stored(0, sums, kSumsStride);
    _tile_stored(1, sums + 16, kSumsStride);
    if (has_lower) {
        _tile_stored(2, lower, kSumsStride);
        _tile_stored(3, lower + 16, kSumsStride);
    }
}

#endif

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
