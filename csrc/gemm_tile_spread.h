// Tiles for processors with AVX2 alone, which multiply neither pairs of bfloat16 nor, without saturation, bytes. Those
// with AVX-VNNI multiply bytes.
//
// What such products need of the inputs, each word as two, is the same for every panel: it is written once for a group
// of panels, a block of inputs and a tile of rows, or all rows if they are few, so that tiles only broadcast and
// multiply. A word of two bfloat16 becomes two floats; a word of four int8 its even and its odd numbers, as pairs of 16
// bits. What is added, and in which order, is what the other tiles add: the sums are the same to the last bit.
#pragma once

#include "gemm.h"
#include "gemm_tile.h"
#include "gemm_tile_quantized.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

#if defined(__AVXVNNI__)
template <DType kType>
constexpr bool kSpreads = kAvx2Alone && kType == DType::bf16;
#else
template <DType kType>
constexpr bool kSpreads = kAvx2Alone && (kType == DType::bf16 || kType == DType::i8);
#endif

#if defined(__AVX2__) && !defined(__AVX512F__)

// One row reads its inputs once a panel, in one pass.
constexpr int64_t kMinSpreadRows = 2;

// Sums, weights and one input must fit into registers; those of int8 have their sums in memory between groups.
template <DType kType>
constexpr int kRowsSpread = kType == DType::bf16 ? 5 : 4;
constexpr int kMaxRowsSpread = 5;

// Most tiles whose rows are spread out all at once: 95 KB of a block.
constexpr int64_t kFewSpreadTiles = 8;

// Units of a block along the inputs: with the rows of a tile (12 KB at most) it leaves room for weights in the
// first-level cache.
constexpr int64_t kSpreadBlockUnits = 304;

// Words of a group of int8: the even and odd numbers of each unit in turn, then what comes with them.
constexpr int64_t kSpreadGroupWords = 2 * kGroupUnits + input_group_words(DType::i8) - kGroupUnits;

// Words of a row of a block.
template <DType kType>
constexpr int64_t kSpreadStride =
    kType == DType::bf16 ? 2 * kSpreadBlockUnits : kSpreadBlockUnits / kGroupUnits * kSpreadGroupWords;

// `units` units of a row of inputs as tiles read them.
template <DType kType>
void spread_row(const uint32_t* input, int64_t units, uint32_t* output) {
    if constexpr (kType == DType::bf16) {
        for (int64_t unit = 0; unit < units; ++unit) {
            output[2 * unit] = input[unit] << 16;
            output[2 * unit + 1] = input[unit] & 0xffff0000U;
        }
    } else {
        for (int64_t group = 0; group < units / kGroupUnits; ++group) {
            for (int64_t unit = 0; unit < kGroupUnits; ++unit) {
                const uint32_t word = input[unit];
                const auto number = [word](int byte) {
                    return static_cast<uint32_t>(static_cast<int8_t>(word >> (8 * byte)));
                };
                output[2 * unit] = (number(0) & 0xffffU) | number(2) << 16;
                output[2 * unit + 1] = (number(1) & 0xffffU) | number(3) << 16;
            }
            for (int64_t i = kGroupUnits; i < input_group_words(DType::i8); ++i) output[kGroupUnits + i] = input[i];
            input += input_group_words(DType::i8);
            output += kSpreadGroupWords;
        }
    }
}

// What was read before is read again: g++ would unpack both halves of the weights at once, and keep sums on the stack.
BOUGH_INLINE void forget_reads() { asm volatile("" ::: "memory"); }

BOUGH_INLINE Ints splat_ints(uint32_t word) { return static_cast<int32_t>(word) + Ints{}; }

// Weights that will be wanted, of which some are asked for with every unit.
struct Fetch {
    const char* at;
    int64_t bytes_per_unit;

    // `bytes` from `at` on, while a tile of so many units is computed, in two halves of the columns.
    static Fetch evenly(const void* at, int64_t bytes, int64_t units) {
        return {static_cast<const char*>(at), (bytes + 2 * units - 1) / (2 * units)};
    }
    __attribute__((always_inline)) void next() {
        __builtin_prefetch(at, 0, 2);
        at += bytes_per_unit;
    }
};

// kRows rows times one panel over `units` units: sums [kRows][32].
template <int kRows, bool kFetches>
void multiply_spread_bf16(const uint32_t* input, const uint32_t* panel, int64_t units, float* sums, bool accumulate,
                          Fetch fetch) {
    constexpr int kVectors = 2;
    constexpr int kColumns = static_cast<int>(kPanelColumns);
    for (int first = 0; first < kColumns; first += kLanes * kVectors) {
        Vec sum[kRows][kVectors];
        BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
            BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                sum[row][v] = accumulate ? load(sums + row * kColumns + first + v * kLanes) : splat(0.0F);
            }
        }
        const uint32_t* weights = panel + first;
        const uint32_t* inputs = input;
        for (int64_t left = units; left > 0; --left) {
            if constexpr (kFetches) fetch.next();
            BOUGH_UNROLL for (int half = 0; half < 2; ++half) {
                Vec numbers[kVectors];
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                    const Ints pairs = load_ints(weights + v * kLanes);
                    const Ints mask = Ints{} + static_cast<int32_t>(0xffff0000U);
                    numbers[v] = (Vec)(half == 0 ? pairs << 16 : pairs & mask);
                }
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    const Vec element = splat(float_of(inputs[row * kSpreadStride<DType::bf16> + half]));
                    BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) sum[row][v] = fma(numbers[v], element, sum[row][v]);
                }
                forget_reads();
            }
            weights += kColumns;
            inputs += 2;
        }
        BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
            BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                store(sums + row * kColumns + first + v * kLanes, sum[row][v]);
            }
        }
    }
}

// The same of int8, in whole groups; sums are to be multiplied by the rows' factors.
template <int kRows, bool kFetches>
void multiply_spread_i8(const uint32_t* input, const uint32_t* panel, int64_t units, float* sums, bool accumulate,
                        Fetch fetch) {
    constexpr int kVectors = 2;
    constexpr int kColumns = static_cast<int>(kPanelColumns);
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    constexpr int64_t kStride = kSpreadStride<DType::i8>;
    if (!accumulate) {
        for (int i = 0; i < kRows * kColumns; i += kLanes) store(sums + i, splat(0.0F));
    }
    for (int first = 0; first < kColumns; first += kLanes * kVectors) {
        const uint32_t *group = panel, *inputs = input;
        Vec flaws[kVectors] = {};
        for (int64_t left = units; left > 0; left -= kUnits) {
            Ints product[kRows][kVectors];
            BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                const Ints start = splat_ints(inputs[row * kStride + 2 * kUnits + 1]);
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) product[row][v] = start;
            }
            BOUGH_UNROLL for (int unit = 0; unit < kUnits; ++unit) {
                if constexpr (kFetches) fetch.next();
                BOUGH_UNROLL for (int half = 0; half < 2; ++half) {
                    __m256i numbers[kVectors];
                    BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                        const __m256i codes = (__m256i)load_ints(group + unit * kColumns + first + v * kLanes);
                        const __m256i mask = _mm256_set1_epi16(0xff);
                        numbers[v] = half == 0 ? _mm256_and_si256(codes, mask) : _mm256_srli_epi16(codes, 8);
                    }
                    BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                        const __m256i pair = (__m256i)splat_ints(inputs[row * kStride + 2 * unit + half]);
                        BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                            product[row][v] = summed(product[row][v] + (Ints)_mm256_madd_epi16(numbers[v], pair));
                        }
                    }
                    forget_reads();
                }
            }
            const uint16_t* scales = reinterpret_cast<const uint16_t*>(group + code_words(DType::i8)) + first;
            BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                const Vec scale = load_f16(scales + v * kLanes);
                flaws[v] = add(flaws[v], scale);
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    float* at = sums + row * kColumns + first + v * kLanes;
                    const Vec times = times_scale<DType::i8>(scale, inputs + row * kStride + kUnits);
                    store(at, fma(to_float(product[row][v]), times, load(at)));
                }
            }
            group += group_words(DType::i8);
            inputs += kSpreadGroupWords;
        }
        BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
            BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                // NaN if any scale is not finite
                float* at = sums + row * kColumns + first + v * kLanes;
                store(at, fma(flaws[v], splat(0.0F), load(at)));
            }
        }
    }
}

using SpreadKernel = void (*)(const uint32_t*, const uint32_t*, int64_t, float*, bool, Fetch);

template <DType kType, bool kFetches, int kRows>
constexpr SpreadKernel spread_tile() {
    constexpr int kExisting = kRows <= kRowsSpread<kType> ? kRows : 1;
    if constexpr (kType == DType::bf16) {
        return multiply_spread_bf16<kExisting, kFetches>;
    } else {
        return multiply_spread_i8<kExisting, kFetches>;
    }
}

template <DType kType, bool kFetches>
SpreadKernel spread_kernel(int rows) {
    static const SpreadKernel kernels[kMaxRowsSpread] = {
        spread_tile<kType, kFetches, 1>(), spread_tile<kType, kFetches, 2>(), spread_tile<kType, kFetches, 3>(),
        spread_tile<kType, kFetches, 4>(), spread_tile<kType, kFetches, 5>(),
    };
    return kernels[rows - 1];
}

#endif

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
