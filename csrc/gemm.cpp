// Matrix products for one instruction set.
#include "gemm.h"

#include <cmath>
#include <cstring>

#include "gemm_chunks.h"
#include "gemm_epilogue.h"
#include "gemm_inputs.h"
#include "gemm_tile.h"
#include "gemm_tile_amx.h"
#include "gemm_tile_amx_quantized.h"
#include "gemm_tile_pairs.h"
#include "gemm_tile_quantized.h"
#include "gemm_tile_spread.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

// Rows of a tile: as many as leave the accumulators in registers.
#if defined(__AVX512F__)
constexpr int kRowsF32 = 12, kRowsBF16 = 12;
#elif defined(__AVX2__)
constexpr int kRowsF32 = 6, kRowsBF16 = 4;
#else
constexpr int kRowsF32 = 4, kRowsBF16 = 4;
#endif

BOUGH_INLINE Bits splat_bits(uint32_t word) { return word + Bits{}; }

// One unit of one row times one vector of columns.
template <DType kType>
BOUGH_INLINE Vec multiply_add(Vec sum, Bits weights, Bits input) {
    if constexpr (kType == DType::f32) {
        return sum + reinterpret_cast<Vec>(weights) * reinterpret_cast<Vec>(input);
    } else {
#if defined(__AVX512BF16__)
        return _mm512_dpbf16_ps(sum, (__m512bh)weights, (__m512bh)input);
#else
        const Bits high = Bits{} + 0xffff0000u;
        sum = fma(reinterpret_cast<Vec>(weights << 16), reinterpret_cast<Vec>(input << 16), sum);
        return fma(reinterpret_cast<Vec>(weights & high), reinterpret_cast<Vec>(input & high), sum);
#endif
    }
}

// kRows rows times one panel over `units` units: sums [kRows][32]. Asks for about kLines cache lines per kUnroll
// units.
template <DType kType, int kRows, int kLines, bool kZen4>
__attribute__((noinline)) void multiply_tile(const uint32_t* input, int64_t input_stride, const uint32_t* panel,
                                             int64_t units, float* sums, bool accumulate, const char* prefetch) {
    constexpr int kVectors = column_vectors(kRows);
    for (int first = 0; first < kColumns; first += kLanes * kVectors) {
        Vec sum[kRows][kVectors];
#pragma GCC unroll 16
        for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) {
                sum[row][v] = accumulate ? load(sums + row * kColumns + first + v * kLanes) : splat(0.0F);
            }
        }
        const uint32_t* weights = panel + first;
        // Every third row gets a pointer of its own, the two behind it are reached by the stride. Hidden from the
        // optimiser, which would otherwise keep twelve pointers, most of them on the stack.
        const Word* inputs[(kRows + 2) / 3];
#pragma GCC unroll 4
        for (int i = 0; i < (kRows + 2) / 3; ++i) {
            inputs[i] = input + 3 * i * input_stride;
            asm("" : "+r"(inputs[i]));
        }
        auto multiply_unit = [&](int unit) __attribute__((always_inline)) {
            Bits columns[kVectors];
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) columns[v] = load_bits(weights + unit * kColumns + v * kLanes);
#pragma GCC unroll 16
            for (int row = 0; row < kRows; ++row) {
                const Bits element = splat_bits(inputs[row / 3][row % 3 * input_stride + unit]);
#pragma GCC unroll 4
                for (int v = 0; v < kVectors; ++v) sum[row][v] = multiply_add<kType>(sum[row][v], columns[v], element);
            }
        };
        int64_t left = units;
        for (; left >= kUnroll; left -= kUnroll) {
            if (kLines > 0 && first < fetching_passes(kRows) * kLanes * kVectors) {
                constexpr int kNow = (kLines + fetching_passes(kRows) - 1) / fetching_passes(kRows);
#pragma GCC unroll 8
                for (int line = 0; line < kNow; ++line) {
                    __builtin_prefetch(prefetch + line * 64, 0, kFetchLocality<kType, kLines, kZen4>);
                }
                prefetch += kNow * 64;
            }
#pragma GCC unroll 4
            for (int unit = 0; unit < kUnroll; ++unit) multiply_unit(unit);
            weights += kUnroll * kColumns;
#pragma GCC unroll 4
            for (const Word*& each : inputs) each += kUnroll;
        }
        for (; left > 0; --left) {
            multiply_unit(0);
            weights += kColumns;
#pragma GCC unroll 4
            for (const Word*& each : inputs) ++each;
        }
#pragma GCC unroll 16
        for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) store(sums + row * kColumns + first + v * kLanes, sum[row][v]);
        }
    }
}

using TileKernel = void (*)(const uint32_t*, int64_t, const uint32_t*, int64_t, float*, bool, const char*);

// Several rows have tiles of another kind where 1 is said here.
template <DType kType>
constexpr int kTileRows = kSpreads<kType> || (kBytesSaturate && is_quantized(kType)) ? 1
                          : kType == DType::f32                                      ? kRowsF32
                          : kType == DType::bf16                                     ? kRowsBF16
                                                                                     : kRowsQuantized;

template <DType kType, int kRows, int kLines, bool kZen4>
constexpr TileKernel tile() {
    // Nobody asks for larger tiles than there are, nor of several tiles for one of fewer than half of the rows: the
    // largest stands in their place.
    constexpr bool kAlone = kLines == kLinesPerFetch<kType>;
    constexpr bool kWanted = kRows <= kTileRows<kType> && (kAlone || 2 * kRows >= kTileRows<kType>);
    constexpr int kExisting = kWanted ? kRows : kTileRows<kType>;
    if constexpr (is_quantized(kType)) {
#if defined(BOUGH_BYTES_SATURATE)
        return multiply_row_pairs<kType, kLines>;
#else
        return multiply_tile_quantized<kType, kExisting, kLines, kZen4>;
#endif
    } else {
        return multiply_tile<kType, kExisting, kLines, kZen4>;
    }
}

template <DType kType, int kLines, bool kZen4>
TileKernel tile_kernel_of(int rows) {
    static const TileKernel kernels[kMaxTileRows] = {
        tile<kType, 1, kLines, kZen4>(),  tile<kType, 2, kLines, kZen4>(),  tile<kType, 3, kLines, kZen4>(),
        tile<kType, 4, kLines, kZen4>(),  tile<kType, 5, kLines, kZen4>(),  tile<kType, 6, kLines, kZen4>(),
        tile<kType, 7, kLines, kZen4>(),  tile<kType, 8, kLines, kZen4>(),  tile<kType, 9, kLines, kZen4>(),
        tile<kType, 10, kLines, kZen4>(), tile<kType, 11, kLines, kZen4>(), tile<kType, 12, kLines, kZen4>(),
    };
    return kernels[rows - 1];
}

template <DType kType, int kLines>
TileKernel tile_kernel(int rows) {
    if constexpr (kMayBeZen4 && kLines > 0) {
        if (is_zen4()) return tile_kernel_of<kType, kLines, true>(rows);
    }
    return tile_kernel_of<kType, kLines, false>(rows);
}

// --- how the work is cut -----------------------------------------------------------------------------------------

// Units of blocks of about equal size, at most `most`, each of whole steps.
int64_t balanced_units(int64_t units, int64_t most, int64_t step) {
    const int64_t num_blocks = at_least((units + most - 1) / most, 1);
    const int64_t balanced = (units + num_blocks - 1) / num_blocks;
    return at_least((balanced + step - 1) / step, 1) * step;
}

// Most tiles for which panels are the outer loop and the next panel is fetched by software meanwhile.
constexpr int64_t kFewTiles = kAvx2Alone ? 8 : 6;

struct Cut {
    const GemmCall& call;
    const uint32_t* input;
    int64_t input_stride;  // in words
    int64_t units;
    int64_t block_units;
    int64_t first_row;
    int64_t num_rows;
    int64_t num_tiles;
    int64_t first_panel;
    int64_t end_panel;
    const uint32_t* after;  // weights that are multiplied after the last panel and not in a cache yet; null: none
    float* scratch;

    // Of a panel and the rows from `row` on: [rows][32].
    float* sums(int64_t panel, int64_t row) const {
        return scratch + ((panel - first_panel) * num_rows + row - first_row) * kColumns;
    }
    int64_t tile_begin(int64_t tile) const { return first_row + num_rows * tile / num_tiles; }
    int64_t block_end(int64_t unit) const { return at_most(units, unit + block_units); }
    const uint32_t* weights(int64_t panel, int64_t unit) const {
        const int64_t words = panel * panel_words(call.weights, units) + panel_words(call.weights, unit);
        return static_cast<const uint32_t*>(call.weights.panels) + words;
    }
    // What is multiplied after a block of a panel, of a group of these.
    const uint32_t* weights_after(int64_t panel, int64_t unit, int64_t first, int64_t end) const {
        if (panel + 1 < end) return weights(panel + 1, unit);
        return block_end(unit) < units ? weights(first, block_end(unit)) : weights(end, 0);
    }
    const uint32_t* inputs(int64_t row, int64_t unit) const {
        const DType type = call.weights.dtype;
        const int64_t word = is_quantized(type) ? unit / kGroupUnits * input_group_words(type) : unit;
        return input + row * input_stride + word;
    }
};

// Read by one instruction: what is bounded must not be read again.
BOUGH_INLINE int64_t read_once(const uint32_t* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

// What a row's outliers add to its sums [32]. `outliers` is where the row has their number, `panel` its first group.
// Both numbers are bounded, since inputs may be those of another operation by now.
template <DType kType>
void add_outliers(const uint32_t* outliers, const uint32_t* panel, int64_t num_groups, float* sums) {
    const int64_t count = at_most(read_once(outliers++), kMaxOutliers);
    for (int64_t i = 0; i < count; ++i, outliers += outlier_words(kType)) {
        const int64_t group = at_most(read_once(outliers), num_groups - 1);
        multiply_group<kType>(panel + group * group_words(kType), outliers + 1, sums);
    }
}

// A tile whose sums are complete.
template <DType kType>
void finish_sums(const Cut& cut, int64_t panel, int64_t first_row, int rows, float* sums) {
    if constexpr (is_quantized(kType)) {
        for (int row = 0; row < rows; ++row) {
            const uint32_t* behind = cut.inputs(first_row + row, cut.units);
            float* at = sums + row * kColumns;
            add_outliers<kType>(behind + 1, cut.weights(panel, 0), cut.units / kGroupUnits, at);
            const Vec factor = splat(float_of(behind[0]));
            for (int i = 0; i < kColumns; i += kLanes) store(at + i, mul(load(at + i), factor));
        }
    }
    finish_tile(cut.call, panel, rows, sums);
}

template <DType kType, int kLines>
void multiply_few_tiles(const Cut& cut) {
    for (int64_t panel = cut.first_panel; panel < cut.end_panel; ++panel) {
        for (int64_t unit = 0; unit < cut.units; unit += cut.block_units) {
            const int64_t end = cut.block_end(unit);
            const uint32_t* weights = cut.weights(panel, unit);
            for (int64_t tile = 0; tile < cut.num_tiles; ++tile) {
                const int64_t begin = cut.tile_begin(tile);
                const int rows = static_cast<int>(cut.tile_begin(tile + 1) - begin);
                float* at = cut.sums(panel, begin);
                const TileKernel kernel = tile_kernel<kType, kLines>(rows);
                // One tile that reads its weights once is some way behind what it asks for; others share in asking for
                // the next block.
                const char* ahead = reinterpret_cast<const char*>(weights) + ahead_bytes<kType>(rows);
                if (cut.num_tiles > 1 || fetching_passes(rows) > 1) {
                    const int64_t lines = tile * ((end - unit) / kUnitsPerFetch<kType>)*kLines;
                    ahead = reinterpret_cast<const char*>(cut.weights(panel, end)) + lines * 64;
                }
                kernel(cut.inputs(begin, unit), cut.input_stride, weights, end - unit, at, unit > 0, ahead);
                if (end == cut.units) finish_sums<kType>(cut, panel, begin, rows, at);
            }
        }
    }
}

// Groups of panels that stay in the second-level cache, in each of them blocks along the inputs, and in each of these
// the tiles. `begin_tile(tile, rows, unit, end)` returns what multiplies the rows from one unit to another, called with
// a panel's weights, those that stand in its place in the next block, or else in the next group (null: none), sums, and
// whether these are there already.
template <DType kType, typename BeginTile>
BOUGH_INLINE void multiply_in_groups(const Cut& cut, const BeginTile& begin_tile) {
    const int64_t block_words = panel_words(cut.call.weights, cut.block_units);
    const int64_t panel_size = panel_words(cut.call.weights, cut.units);
    const int64_t group = at_least(kGroupBytes / (block_words * 4), 1);
    for (int64_t first = cut.first_panel; first < cut.end_panel; first += group) {
        const int64_t end_panel = at_most(first + group, cut.end_panel);
        for (int64_t unit = 0; unit < cut.units; unit += cut.block_units) {
            const int64_t end = cut.block_end(unit);
            for (int64_t tile = 0; tile < cut.num_tiles; ++tile) {
                const int64_t begin = cut.tile_begin(tile);
                const int rows = static_cast<int>(cut.tile_begin(tile + 1) - begin);
                const auto multiply_panel = begin_tile(tile, rows, unit, end);
                for (int64_t panel = first; panel < end_panel; ++panel) {
                    float* sums = cut.sums(panel, begin);
                    const uint32_t* next = end < cut.units                 ? cut.weights(panel, end)
                                           : panel + group < cut.end_panel ? cut.weights(panel + group, 0)
                                           : cut.after != nullptr          ? cut.after + (panel - first) * panel_size
                                                                           : nullptr;
                    multiply_panel(cut.weights(panel, unit), next, sums, unit > 0);
                    if (end == cut.units) finish_sums<kType>(cut, panel, begin, rows, sums);
                }
            }
        }
    }
}

// The first tiles of a group ask for the weights of the next one, kLines cache lines per fetch, until there are no
// more.
template <DType kType, int kLines>
void multiply_many_tiles(const Cut& cut) {
    constexpr int64_t kFetchingTiles = (kLinesPerFetch<kType> + kLines - 1) / kLines;
    multiply_in_groups<kType>(cut, [&](int64_t tile, int rows, int64_t unit, int64_t end) {
        const TileKernel plain = tile_kernel<kType, 0>(rows), fetching = tile_kernel<kType, kLines>(rows);
        const uint32_t* input = cut.inputs(cut.tile_begin(tile), unit);
        const int64_t units = end - unit;
        const int64_t ahead = tile < kFetchingTiles ? tile * (units / kUnitsPerFetch<kType>)*kLines * 64 : -1;
        return [&cut, plain, fetching, input, units, ahead](const uint32_t* weights, const uint32_t* next, float* sums,
                                                            bool accumulate) {
            if (next == nullptr || ahead < 0) {
                plain(input, cut.input_stride, weights, units, sums, accumulate, nullptr);
            } else {
                const char* from = reinterpret_cast<const char*>(next) + ahead;
                fetching(input, cut.input_stride, weights, units, sums, accumulate, from);
            }
        };
    });
}

// Panels of such a group.
constexpr int64_t kBlockPanels = 8;

// Groups of panels, in each of them blocks along the inputs, and in each of these all tiles of a panel before the next
// panel: weights are read once, and those that come next asked for meanwhile. `begin_block(unit, units)` comes before
// the panels of each block. `multiply_tile(tile, rows, unit, units, weights, sums, share)` multiplies a tile's rows
// with a panel of the block, and asks for its share of what comes next.
template <DType kType, typename BeginBlock, typename MultiplyTile>
BOUGH_INLINE void multiply_in_blocks(const Cut& cut, const BeginBlock& begin_block, const MultiplyTile& multiply_tile) {
    const bool one_block = cut.units <= cut.block_units;
    const int64_t group = one_block ? cut.end_panel - cut.first_panel : kBlockPanels;
    for (int64_t first = cut.first_panel; first < cut.end_panel; first += group) {
        const int64_t end_panel = at_most(first + group, cut.end_panel);
        for (int64_t unit = 0; unit < cut.units; unit += cut.block_units) {
            const int64_t end = cut.block_end(unit), units = end - unit;
            const int64_t bytes = panel_words(cut.call.weights, units) * 4;
            begin_block(unit, units);
            for (int64_t panel = first; panel < end_panel; ++panel) {
                const uint32_t* weights = cut.weights(panel, unit);
                const char* next = reinterpret_cast<const char*>(cut.weights_after(panel, unit, first, end_panel));
                for (int64_t tile = 0; tile < cut.num_tiles; ++tile) {
                    const int64_t begin = cut.tile_begin(tile);
                    const int rows = static_cast<int>(cut.tile_begin(tile + 1) - begin);
                    float* at = cut.sums(panel, begin);
                    const NextWeights share{next + bytes * tile / cut.num_tiles, bytes / cut.num_tiles};
                    multiply_tile(tile, rows, unit, units, weights, at, share);
                    if (end == cut.units) finish_sums<kType>(cut, panel, begin, rows, at);
                }
            }
        }
    }
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// Few enough rows that all of them are spread out at once.
void multiply_few_spread(const Cut& cut) {
    alignas(64) uint32_t spread[kFewSpreadTiles * kRowsSpread * kSpreadStride];
    multiply_in_blocks<DType::bf16>(
        cut,
        [&](int64_t unit, int64_t units) {
            for (int64_t row = 0; row < cut.num_rows; ++row) {
                spread_row(cut.inputs(cut.first_row + row, unit), units, spread + row * kSpreadStride);
            }
        },
        [&](int64_t tile, int rows, int64_t unit, int64_t units, const uint32_t* weights, float* sums,
            NextWeights share) {
            const uint32_t* input = spread + (cut.tile_begin(tile) - cut.first_row) * kSpreadStride;
            // The kernel reads the panel twice, once for each half of the columns.
            spread_kernel<true>(rows)(input, weights, units, sums, unit > 0, share.in(2 * units));
        });
}

void multiply_spread(Cut& cut) {
    cut.num_tiles = (cut.num_rows + kRowsSpread - 1) / kRowsSpread;
    cut.block_units = balanced_units(cut.units, kSpreadBlockUnits, 1);
    if (cut.num_tiles <= kFewSpreadTiles) return multiply_few_spread(cut);
    alignas(64) uint32_t spread[kRowsSpread * kSpreadStride];
    multiply_in_groups<DType::bf16>(cut, [&](int64_t tile, int rows, int64_t unit, int64_t end) {
        const int64_t begin = cut.tile_begin(tile);
        for (int row = 0; row < rows; ++row) {
            spread_row(cut.inputs(begin + row, unit), end - unit, spread + row * kSpreadStride);
        }
        const SpreadKernel kernel = spread_kernel<false>(rows);
        return [&spread, kernel, units = end - unit](const uint32_t* weights, const uint32_t*, float* sums,
                                                     bool accumulate) {
            kernel(spread, weights, units, sums, accumulate, Asking{});
        };
    });
}
#endif

#if defined(BOUGH_BYTES_SATURATE)
// The first tile takes a block's codes apart for all.
template <DType kType>
void multiply_pairs_by_blocks(const Cut& cut) {
    alignas(64) uint32_t unpacked[kUnpackedWords<kType>];
    multiply_in_blocks<kType>(
        cut, [](int64_t, int64_t) {},
        [&](int64_t tile, int rows, int64_t unit, int64_t units, const uint32_t* weights, float* sums,
            NextWeights share) {
            const PairsKernel kernel = cut.num_tiles == 1 ? pairs_kernel<kType, Codes::kPacked>(rows)
                                       : tile == 0        ? pairs_kernel<kType, Codes::kUnpacking>(rows)
                                                          : pairs_kernel<kType, Codes::kUnpacked>(rows);
            kernel(cut.inputs(cut.tile_begin(tile), unit), cut.input_stride, weights, units, sums, unit > 0, unpacked,
                   share.in(asking_times<kType>(units, cut.num_tiles)));
        });
}
#endif

#if defined(__AMX_BF16__)
void multiply_amx(Cut& cut) {
    cut.num_tiles = (cut.num_rows + kRowsAmx - 1) / kRowsAmx;
    cut.block_units = cut.num_tiles == 1 ? cut.units : balanced_units(cut.units, kBlockUnitsAmx, kUnitsAmx);
    const int lines = static_cast<int>((kLinesAmx + cut.num_tiles - 1) / cut.num_tiles);
    int shape_rows = 0;
    multiply_in_groups<DType::bf16>(cut, [&](int64_t tile, int rows, int64_t unit, int64_t end) {
        if (rows != shape_rows) load_shape_amx(rows);
        shape_rows = rows;
        const uint32_t* input = cut.inputs(cut.tile_begin(tile), unit);
        const bool fetches = tile * lines < kLinesAmx;
        const int64_t ahead = tile * lines * ((end - unit) / kUnitsAmx) * 64;
        return [&cut, input, rows, units = end - unit, lines, fetches, ahead](
                   const uint32_t* weights, const uint32_t* next, float* sums, bool accumulate) {
            AmxFetch fetch;
            // A single tile is some way behind what it asks for; others share in asking for the next block.
            if (cut.num_tiles == 1) next = weights + kAheadBytes / 4;
            if (next != nullptr && fetches) fetch = {reinterpret_cast<const char*>(next) + ahead, lines};
            multiply_tile_amx(rows, input, cut.input_stride, weights, units, sums, accumulate, fetch);
        };
    });
    _tile_release();
}

// Fewer rows are faster without AMX, to the same bits.
template <DType kType>
constexpr int64_t kLeastRowsAmx = kType == DType::i8 ? 44 : 24;

template <DType kType>
void multiply_quantized_amx(Cut& cut) {
    cut.num_tiles = (cut.num_rows + kMaxStrips * kStripRows - 1) / (kMaxStrips * kStripRows);
    const int64_t most_rows = (cut.num_rows + cut.num_tiles - 1) / cut.num_tiles;
    const int64_t strips = (most_rows + kStripRows - 1) / kStripRows;
    const int strip_rows = strip_rows_for(static_cast<int>((most_rows + strips - 1) / strips));
    cut.block_units =
        balanced_units(cut.units, kMaxStripGroups / strips / kFour * kFour * kGroupUnits, kFour * kGroupUnits);
    constexpr int kLines = static_cast<int>(group_words(kType)) / 16;
    const int lines = static_cast<int>((kLines + cut.num_tiles - 1) / cut.num_tiles);
    const StripKernel kernel = strip_kernel<kType>(strip_rows);
    AmxInputs inputs;
    load_strip_shape(strip_rows);
    multiply_in_groups<kType>(cut, [&](int64_t tile, int rows, int64_t unit, int64_t end) {
        const AmxBlock block{rows, (rows + strip_rows - 1) / strip_rows, static_cast<int>((end - unit) / kGroupUnits)};
        arrange_inputs<kType>(cut.inputs(cut.tile_begin(tile), unit), cut.input_stride, block, inputs);
        written(&inputs);
        const bool fetches = tile * lines < kLines;
        const int64_t ahead = tile * lines * block.groups * 64;
        return [&inputs, kernel, block, lines, fetches, ahead](const uint32_t* weights, const uint32_t* next,
                                                               float* sums, bool accumulate) {
            const bool asks = next != nullptr && fetches;
            multiply_panel_amx<kType>(kernel, inputs, block, weights, sums, accumulate,
                                      reinterpret_cast<const char*>(asks ? next : weights) + (asks ? ahead : 0),
                                      asks ? lines : 0);
        };
    });
    _tile_release();
}
#endif

template <DType kType>
void multiply_tiles(Cut& cut) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    if constexpr (kSpreads<kType>) {
        if (cut.num_rows >= kMinSpreadRows) return multiply_spread(cut);
    }
#endif
#if defined(BOUGH_BYTES_SATURATE)
    if constexpr (is_quantized(kType)) {
        if (cut.num_rows > 1) {
            cut.num_tiles = (cut.num_rows + kRowsQuantized - 1) / kRowsQuantized;
            cut.block_units = balanced_units(cut.units, kBlockGroups<kType> * kGroupUnits, kGroupUnits);
            return multiply_pairs_by_blocks<kType>(cut);
        }
    }
#endif
    cut.num_tiles = (cut.num_rows + kTileRows<kType> - 1) / kTileRows<kType>;
    cut.block_units = cut.num_tiles == 1 ? cut.units : balanced_units(cut.units, kBlockUnits, kGroupUnits);
    constexpr int kAll = kLinesPerFetch<kType>;  // shared by the tiles
    switch (cut.num_tiles) {
        case 1:
            return multiply_few_tiles<kType, kAll>(cut);
        case 2:
            return multiply_few_tiles<kType, (kAll + 1) / 2>(cut);
        case 3:
            return multiply_few_tiles<kType, (kAll + 2) / 3>(cut);
        default:
            // Elsewhere as many rows that are not quantised are faster in groups.
            if constexpr (kAvx2Alone || is_quantized(kType)) {
                if (cut.num_tiles <= kFewTiles) return multiply_few_tiles<kType, (kAll + 3) / 4>(cut);
            }
            // Tiles that run along a panel several times ask for as many lines each time.
            constexpr int kLeast = fetching_passes(kTileRows<kType>), kMany = (kAll / 4 + kLeast) / kLeast * kLeast;
            if (cut.num_tiles < kAll) return multiply_many_tiles<kType, kMany>(cut);
            return multiply_many_tiles<kType, kLeast>(cut);
    }
}

template <DType kType>
void multiply(Cut& cut) {
#if defined(__AMX_BF16__)
    if constexpr (kType == DType::bf16) return multiply_amx(cut);
    if constexpr (is_quantized(kType)) {
        if (cut.num_rows >= kLeastRowsAmx<kType>) return multiply_quantized_amx<kType>(cut);
    }
#endif
    multiply_tiles<kType>(cut);
}

void compute(const GemmCall& call, const GemmShare& share, int64_t chunk, float* scratch) {
    const Rectangle at = chunk_of(share, chunk);
    Cut cut{call,
            static_cast<const uint32_t*>(call.input),
            call.weights.dtype == DType::bf16 ? call.input_stride / 2 : call.input_stride,
            num_units(call.weights),
            0,
            at.first_row,
            at.end_row - at.first_row,
            0,
            at.first_panel,
            at.end_panel,
            nullptr,
            scratch};
    if (at.end_row < share.end_row) {
        // The same panels are next; those of long rows have left the cache.
        if (cut.units > kBlockUnits) cut.after = cut.weights(at.first_panel, 0);
    } else if (at.end_panel < share.end_panel) {
        cut.after = cut.weights(at.end_panel, 0);
    }
    switch (call.weights.dtype) {
        case DType::bf16:
            return multiply<DType::bf16>(cut);
        case DType::i8:
            return multiply<DType::i8>(cut);
        case DType::i4:
            return multiply<DType::i4>(cut);
        case DType::u4:
            return multiply<DType::u4>(cut);
        case DType::f4:
            return multiply<DType::f4>(cut);
        default:
            return multiply<DType::f32>(cut);
    }
}

void commit(const GemmCall& call, const GemmShare& share, int64_t chunk, float* scratch, Choice* choices) {
    const Rectangle at = chunk_of(share, chunk);
    const int64_t rows = at.end_row - at.first_row;
    for (int64_t row = 0; row < rows; ++row) {
        const float* sums = scratch + row * kColumns;
        if (call.epilogue == kChoose && at.first_row + row < call.num_choices) {
            choices[at.first_row + row] = {-HUGE_VALF, 0, 1};
        }
        for (int64_t panel = at.first_panel; panel < at.end_panel; ++panel, sums += rows * kColumns) {
            commit_row(call, choices, panel, at.first_row + row, sums);
        }
    }
}

}  // namespace

const GemmKernels gemm_kernels = {share_of_thread, compute, commit, quantize};

}  // namespace BOUGH_ISA
}  // namespace bough
