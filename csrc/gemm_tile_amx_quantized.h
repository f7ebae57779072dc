// Tiles of quantised products on processors with AMX: 16 rows of int8 inputs times 16 columns of a group of weights in
// one instruction.
//
// The instruction sums the products of a group of 32 inputs as whole numbers; scales and sums over groups are floats
// and the same operations in the same order as those of gemm_tile_quantized.h, so that both give equal bits, and which
// of them computes a row may depend on how many rows there are. Of i8 scales of inputs are multiplied here, not added
// to exponents: weights' scales have 11 significant bits and those of inputs 5, so that such a product is exact, too.
//
// Where instructions for tiles are near, the processor computes with floats in one of its two vector units only, as
// the multipliers of the other one are those of the tiles: what is done to each product decides how fast this is.
#pragma once

#include "gemm.h"
#include "gemm_tile.h"
#include "gemm_tile_amx.h"
#include "gemm_tile_quantized.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

#if defined(__AMX_INT8__)

// Rows of a strip, whose sums over groups are in registers for 16 columns, and the most strips of a tile: these share
// in the work of making the processor's tiles out of weights.
constexpr int kStripRows = 16, kMaxStrips = 4;
constexpr int kHalfColumns = 16;
// Groups are worked off by fours, filled up with zeros; so many of weights are made into tiles at once, so that they
// stay in the first-level cache with a strip's inputs (5 KB).
constexpr int kFour = 4, kChunkGroups = 8;
// Strips times groups of a block along the inputs.
constexpr int kMaxStripGroups = 160;

constexpr int kTileWords = kHalfColumns * static_cast<int>(kGroupUnits);  // of weights
constexpr int kStripWords = kStripRows * static_cast<int>(kGroupUnits);   // of inputs
constexpr int kSumWords = kStripRows * kHalfColumns;

constexpr int whole_fours(int groups) { return (groups + kFour - 1) / kFour * kFour; }

// Inputs of up to kMaxStrips strips over a block of groups, as the tiles take them. Rows that a strip lacks are zeros.
struct AmxInputs {
    alignas(64) uint32_t numbers[kMaxStripGroups * kStripWords];  // [strip][group][row][unit]
    // [strip][group][row], of i8 floats, of others what is added to exponents.
    alignas(64) uint32_t scales[kMaxStripGroups * kStripRows];
    alignas(64) float totals[kMaxStripGroups * kStripRows];  // u4: what minimums are multiplied by
};

// A chunk of weights.
struct AmxWeights {
    alignas(64) uint32_t codes[2 * kChunkGroups * kTileWords];    // signed, [half][group][unit][column]
    alignas(64) float scales[2 * kChunkGroups * kHalfColumns];    // [half][group][column]
    alignas(64) float minimums[2 * kChunkGroups * kHalfColumns];  // u4
};

// Which rows and groups: `strips` strips, as evenly as they can be.
struct AmxBlock {
    int rows;
    int strips;
    int groups;
    int strip_begin(int strip) const { return rows * strip / strips; }
    // Where a strip has its inputs of a group.
    int place(int strip, int group) const { return strip * whole_fours(groups) + group; }
};

// The processor's tile registers: four of sums, two of inputs, two of weights.
inline void load_strip_shape(int strip_rows) {
    AmxLayout layout;
    for (int tile = 0; tile < 6; ++tile)
        layout.set(tile, strip_rows, tile < 4 ? 64 : 4 * static_cast<int>(kGroupUnits));
    for (int tile = 6; tile < 8; ++tile) layout.set(tile, static_cast<int>(kGroupUnits), 64);
    layout.load();
}

template <DType kType>
void arrange_inputs(const uint32_t* input, int64_t input_stride, const AmxBlock& block, AmxInputs& into) {
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    constexpr uint32_t kOne = 0x3f800000U;  // what is added to exponents is a power of two once it is added to this
    for (int strip = 0; strip < block.strips; ++strip) {
        const int begin = block.strip_begin(strip), rows = block.strip_begin(strip + 1) - begin;
        for (int row = 0; row < kStripRows; ++row) {
            const uint32_t* from = input + (begin + row) * input_stride;
            for (int group = 0; group < whole_fours(block.groups); ++group, from += input_group_words(kType)) {
                const int at = block.place(strip, group) * kStripRows + row;
                if (row >= rows || group >= block.groups) {
                    std::memset(into.numbers + at * kUnits, 0, kUnits * sizeof *from);
                    into.scales[at] = 0;
                    into.totals[at] = 0.0F;
                    continue;
                }
                std::memcpy(into.numbers + at * kUnits, from, kUnits * sizeof *from);
                if constexpr (kType == DType::i8) {
                    into.scales[at] = bits_of(float_of(from[kUnits] + kOne) + float_of(from[kUnits + 2] + kOne));
                } else {
                    into.scales[at] = from[kUnits];
                }
                if constexpr (kType == DType::u4) into.totals[at] = float_of(from[kUnits + 1]);
            }
        }
    }
}

typedef int8_t Bytes __attribute__((vector_size(64)));

// What times_power makes of zero is the least power of two times the power: here that comes of a product, unless the
// processor was told to take denormal numbers for zero, which nothing here does.
BOUGH_INLINE Vec without_zeros(Vec scales) {
    const Bits bits = (Bits)scales;
    return (Vec)(bits | ((Bits)(bits << 1 == 0) & 0x00400000U));
}

// Makes tiles of `groups` groups of a panel, and asks for `lines` cache lines for each of them.
template <DType kType>
inline void arrange_weights(const uint32_t* group, int groups, AmxWeights& into, Vec (&flaws)[2], const char* next,
                            int lines) {
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    const int all = whole_fours(groups);
    for (int i = 0; i < groups; ++i, group += group_words(kType)) {
        for (int line = 0; line < lines; ++line) __builtin_prefetch(next + line * 64, 0, kAllButFirst);
        next += lines * 64;
        const uint16_t* scales = reinterpret_cast<const uint16_t*>(group + code_words(kType));
        BOUGH_UNROLL for (int half = 0; half < 2; ++half) {
            const int at = half * all + i;
            BOUGH_UNROLL for (int unit = 0; unit < kUnits; ++unit) {
                Ints own = load_codes<kType>(group, unit, half * kHalfColumns);
                if constexpr (kType == DType::i8) own = (Ints)((Bits)own ^ 0x80808080U);
                if constexpr (kType == DType::i4 || kType == DType::f4)
                    own = (Ints)((Bytes)own - static_cast<int8_t>(code_offset(kType)));
                store_bits(into.codes + at * kTileWords + unit * kHalfColumns, (Bits)own);
            }
            const Vec own = load_f16(scales + half * kHalfColumns);
            flaws[half] = add(flaws[half], own);
            store(into.scales + at * kHalfColumns, kType == DType::i8 ? without_zeros(own) : own);
            if constexpr (kType == DType::u4) {
                store(into.minimums + at * kHalfColumns, load_f16(scales + kPanelColumns + half * kHalfColumns));
            }
        }
    }
    for (int half = 0; half < 2; ++half) {
        const int at = half * all + groups, missing = all - groups;
        std::memset(into.codes + at * kTileWords, 0, missing * kTileWords * sizeof *into.codes);
        std::memset(into.scales + at * kHalfColumns, 0, missing * kHalfColumns * sizeof *into.scales);
        std::memset(into.minimums + at * kHalfColumns, 0, missing * kHalfColumns * sizeof *into.minimums);
    }
}

// A vector for each row, by name rather than in an array: what stores a tile may write any memory that has an address,
// and g++ keeps arrays there.
template <int kCount>
struct RowVectors {
    Vec first;
    RowVectors<kCount - 1> others;
};
template <>
struct RowVectors<0> {};

// Calls `visit(vector, row)` for each row.
template <int kRow = 0, int kCount, class Visit>
BOUGH_INLINE void for_rows(RowVectors<kCount>& vectors, const Visit& visit) {
    if constexpr (kCount > 0) {
        visit(vectors.first, kRow);
        for_rows<kRow + 1>(vectors.others, visit);
    }
}

// Else g++ moves the arithmetic behind the next instructions for tiles, and keeps what it needs in memory.
BOUGH_INLINE void stay(Vec& x) {
#if defined(BOUGH_EMULATES_AVX512)
    asm volatile("" : "+m"(x));
#else
    asm volatile("" : "+v"(x));
#endif
}

// Products of one group, [rows of the tile registers][16].
#define BOUGH_MULTIPLY_GROUP(sum_tile, input_tile, weight_tile, inputs, weights, products) \
    _tile_zero(sum_tile);                                                                  \
    _tile_loadd(input_tile, inputs, kStripWords / kStripRows * 4);                         \
    _tile_loadd(weight_tile, weights, 64);                                                 \
    _tile_dpbssd(sum_tile, input_tile, weight_tile);                                       \
    _tile_stored(sum_tile, products, 64);                                                  \
    written(products)

// A strip of up to kStrip rows times a panel over a chunk of groups: sums [rows][32]. `first` is the place of its
// inputs.
template <DType kType, int kStrip>
__attribute__((noinline)) void multiply_strip(const AmxInputs& inputs, int first, const AmxWeights& weights, int groups,
                                              int rows, float* sums, bool accumulate) {
    alignas(64) uint32_t products[kFour][kSumWords];
    const uint32_t *numbers = inputs.numbers + first * kStripWords, *scales = inputs.scales + first * kStripRows;
    const float* totals = inputs.totals + first * kStripRows;
    const int end = 2 * groups;
    // Each group is multiplied two groups before its products are added up; `step` counts those of both halves.
#define BOUGH_BEGIN_GROUP(step, slot, input_tile, weight_tile)                                     \
    if ((step) < end) {                                                                            \
        BOUGH_MULTIPLY_GROUP(slot, input_tile, weight_tile,                                        \
                             numbers + ((step) < groups ? (step) : (step) - groups) * kStripWords, \
                             weights.codes + (step) * kTileWords, products[slot]);                 \
    }
    BOUGH_BEGIN_GROUP(0, 0, 4, 6)
    BOUGH_BEGIN_GROUP(1, 1, 5, 7)
    for (int half = 0; half < 2; ++half, sums += kHalfColumns) {
        RowVectors<kStrip> all_rows;
        for_rows(all_rows, [&](Vec& sum, int row) __attribute__((always_inline)) {
            sum = accumulate && row < rows ? load(sums + row * kPanelColumns) : splat(0.0F);
        });
        const auto add_group = [&](int group, const uint32_t* product) __attribute__((always_inline)) {
            const int place = half * groups + group;
            const Vec scale = load(weights.scales + place * kHalfColumns);
            for_rows(all_rows, [&](Vec& sum, int row) __attribute__((always_inline)) {
                const Vec whole = to_float(load_ints(product + row * kHalfColumns));
                const uint32_t own = scales[group * kStripRows + row];
                sum = fma(whole, kType == DType::i8 ? mul(scale, splat(float_of(own))) : times_power(scale, own), sum);
                stay(sum);
            });
            if constexpr (kType == DType::u4) {
                const Vec minimum = load(weights.minimums + place * kHalfColumns);
                for_rows(all_rows, [&](Vec& sum, int row) __attribute__((always_inline)) {
                    sum = fma(minimum, splat(totals[group * kStripRows + row]), sum);
                    stay(sum);
                });
            }
        };
        for (int group = 0; group < groups; group += kFour) {
            const int step = half * groups + group;
            BOUGH_BEGIN_GROUP(step + 2, 2, 4, 6)
            add_group(group, products[0]);
            BOUGH_BEGIN_GROUP(step + 3, 3, 5, 7)
            add_group(group + 1, products[1]);
            BOUGH_BEGIN_GROUP(step + 4, 0, 4, 6)
            add_group(group + 2, products[2]);
            BOUGH_BEGIN_GROUP(step + 5, 1, 5, 7)
            add_group(group + 3, products[3]);
        }
        for_rows(all_rows, [&](Vec& sum, int row) __attribute__((always_inline)) {
            if (row < rows) store(sums + row * kPanelColumns, sum);
        });
    }
#undef BOUGH_BEGIN_GROUP
}

using StripKernel = void (*)(const AmxInputs&, int, const AmxWeights&, int, int, float*, bool);

// Rows that strips of at most so many rows are made for; fewer than 12 there are of few rows only.
constexpr int strip_rows_for(int rows) { return rows <= 12 ? 12 : kStripRows; }

template <DType kType>
StripKernel strip_kernel(int strip_rows) {
    return strip_rows == 12 ? multiply_strip<kType, 12> : multiply_strip<kType, kStripRows>;
}

// A tile's rows times one panel over a block of groups: sums [rows][32], to be multiplied by the rows' factors.
template <DType kType>
void multiply_panel_amx(StripKernel kernel, const AmxInputs& inputs, const AmxBlock& block, const uint32_t* panel,
                        float* sums, bool accumulate, const char* next, int lines) {
    constexpr int kColumns = static_cast<int>(kPanelColumns);
    AmxWeights weights;
    Vec flaws[2] = {};
    for (int first = 0; first < block.groups; first += kChunkGroups) {
        const int groups = block.groups - first < kChunkGroups ? block.groups - first : kChunkGroups;
        arrange_weights<kType>(panel + first * group_words(kType), groups, weights, flaws, next + first * lines * 64,
                               lines);
        written(&weights);
        for (int strip = 0; strip < block.strips; ++strip) {
            const int begin = block.strip_begin(strip), rows = block.strip_begin(strip + 1) - begin;
            kernel(inputs, block.place(strip, first), weights, whole_fours(groups), rows, sums + begin * kColumns,
                   accumulate || first > 0);
        }
    }
    for (int row = 0; row < block.rows; ++row) {
        for (int half = 0; half < 2; ++half) {
            float* at = sums + row * kColumns + half * kHalfColumns;
            store(at, fma(flaws[half], splat(0.0F), load(at)));  // NaN if any scale is not finite
        }
    }
}

#endif

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
