// Tiles of bfloat16 for processors with AVX2 alone, which do not multiply pairs of them.
//
// What such products need of the inputs, each word as two floats, is the same for every panel: it is written once for a
// group of panels, a block of inputs and a tile of rows, or all rows if they are few, so that tiles only broadcast and
// multiply. What is added, and in which order, is what the other tiles add: the sums are the same to the last bit.
#pragma once

#include "gemm.h"
#include "gemm_tile.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

template <DType kType>
constexpr bool kSpreads = kAvx2Alone && kType == DType::bf16;

#if defined(__AVX2__) && !defined(__AVX512F__)

// One row reads its inputs once a panel, in one pass.
constexpr int64_t kMinSpreadRows = 2;

// Sums, weights and one input must fit into registers.
constexpr int kRowsSpread = 5;

// Most tiles whose rows are spread out all at once: 95 KB of a block.
constexpr int64_t kFewSpreadTiles = 8;

// Units of a block along the inputs: with the rows of a tile (12 KB at most) it leaves room for weights in the
// first-level cache.
constexpr int64_t kSpreadBlockUnits = 304;

// Words of a row of a block.
constexpr int64_t kSpreadStride = 2 * kSpreadBlockUnits;

// `units` units of a row of inputs as tiles read them.
inline void spread_row(const Word* input, int64_t units, uint32_t* output) {
    for (int64_t unit = 0; unit < units; ++unit) {
        output[2 * unit] = input[unit] << 16;
        output[2 * unit + 1] = input[unit] & 0xffff0000U;
    }
}

// What was read before is read again: g++ would unpack both halves of the weights at once, and keep sums on the stack.
BOUGH_INLINE void forget_reads() { asm volatile("" ::: "memory"); }

// kRows rows times one panel over `units` units: sums [kRows][32].
template <int kRows, bool kFetches>
void multiply_spread_bf16(const uint32_t* input, const uint32_t* panel, int64_t units, float* sums, bool accumulate,
                          Asking asking) {
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
            if constexpr (kFetches) asking.next();
            BOUGH_UNROLL for (int half = 0; half < 2; ++half) {
                Vec numbers[kVectors];
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                    const Ints pairs = (Ints)load_bits(weights + v * kLanes);
                    const Ints mask = Ints{} + static_cast<int32_t>(0xffff0000U);
                    numbers[v] = (Vec)(half == 0 ? pairs << 16 : pairs & mask);
                }
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    const Vec element = splat(float_of(inputs[row * kSpreadStride + half]));
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

using SpreadKernel = void (*)(const uint32_t*, const uint32_t*, int64_t, float*, bool, Asking);

template <bool kFetches>
SpreadKernel spread_kernel(int rows) {
    static constexpr SpreadKernel kernels[kRowsSpread] = {
        multiply_spread_bf16<1, kFetches>, multiply_spread_bf16<2, kFetches>, multiply_spread_bf16<3, kFetches>,
        multiply_spread_bf16<4, kFetches>, multiply_spread_bf16<5, kFetches>,
    };
    return kernels[rows - 1];
}

#endif

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
