// Tiles of products of quantised weights for processors that multiply bytes with saturation alone: AVX2, and AVX-512
// without VNNI.
//
// Codes are taken in halves of four bits, whose products with int8 cannot saturate, and add up in 16 bits by pairs: 8
// units of at most 2 * 15 * 128 fit, and what exceeds 16 bits on the way wraps and comes back. A word of weights is two
// such halves: of 4 bits those of two columns, of i8 the lower and the upper half of one column's codes. Halves of f4
// are numbers up to 24, of which 12 are taken away: at most 12 is left of each, which fits as well.
//
// The first of several tiles leaves the halves of a block's codes in a buffer for the others. What is added, and in
// which order, is the same in all tiles: so are the sums, to the last bit.
#pragma once

#include "gemm.h"
#include "gemm_tile.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

#if defined(BOUGH_BYTES_SATURATE)

// Sums of both halves, codes and an input must fit into 16 registers.
constexpr int kRowsQuantized = 4;

// Vectors of words that a unit of a panel has, and vectors of columns in each.
template <DType kType>
constexpr int kWordVectors = static_cast<int>(code_words(kType) / kGroupUnits) / kLanes;
template <DType kType>
constexpr int kColumnsOfWord = kType == DType::i8 ? 1 : 2;

// The first column of a vector of words, or with `half` 1 of its second vector of columns.
constexpr int column_of(int word, int half) { return word * kLanes + half * 16; }

#if defined(__AVX512F__)
BOUGH_INLINE Ints add_int16s(Ints a, Ints b) { return (Ints)_mm512_add_epi16((__m512i)a, (__m512i)b); }
BOUGH_INLINE Ints multiply_bytes(Ints codes, Ints inputs) {
    return (Ints)_mm512_maddubs_epi16((__m512i)codes, (__m512i)inputs);
}
BOUGH_INLINE Ints sum_pairs(Ints a, int16_t times) {
    return (Ints)_mm512_madd_epi16((__m512i)a, _mm512_set1_epi16(times));
}
#else
BOUGH_INLINE Ints add_int16s(Ints a, Ints b) { return (Ints)_mm256_add_epi16((__m256i)a, (__m256i)b); }
BOUGH_INLINE Ints multiply_bytes(Ints codes, Ints inputs) {
    return (Ints)_mm256_maddubs_epi16((__m256i)codes, (__m256i)inputs);
}
BOUGH_INLINE Ints sum_pairs(Ints a, int16_t times) {
    return (Ints)_mm256_madd_epi16((__m256i)a, _mm256_set1_epi16(times));
}
#endif

// A sum that is there before the next product is: else g++ computes the products of all units first, to add them in an
// order of its own, and keeps most of them on the stack.
BOUGH_INLINE Ints summed(Ints sum) {
#if !defined(__AVX512F__)
    asm("" : "+x"(sum));
#endif
    return sum;
}

// Both halves of codes, and of their products.
struct Halves {
    Ints at[2];
};

template <DType kType>
BOUGH_INLINE Halves halves_of(const uint32_t* words) {
    const Bits codes = load_bits(words);
    const Ints low = (Ints)(codes & 0x0f0f0f0fU), high = (Ints)((codes >> 4) & 0x0f0f0f0fU);
    if constexpr (kType == DType::f4) return {{doubled_codes(low), doubled_codes(high)}};
    return {{low, high}};
}

// Start values of the products of a row's group: the negated contribution of the codes' offset.
template <DType kType>
BOUGH_INLINE Halves begin_products(const uint32_t* group) {
    const Ints start = kType == DType::u4 ? Ints{} : static_cast<int32_t>(group[kGroupUnits + 1]) + Ints{};
    return {{kType == DType::i8 ? Ints{} : start, start}};
}

BOUGH_INLINE void add_products(Halves& sums, const Halves& codes, uint32_t input) {
    const Ints inputs = static_cast<int32_t>(input) + Ints{};
    BOUGH_UNROLL for (int half = 0; half < 2; ++half) {
        sums.at[half] = summed(add_int16s(sums.at[half], multiply_bytes(codes.at[half], inputs)));
    }
}

template <DType kType>
BOUGH_INLINE Ints complete_products(const Halves& sums, int half) {
    if constexpr (kType == DType::i8) return sum_pairs(sums.at[0], 1) + sum_pairs(sums.at[1], 16);
    return sum_pairs(sums.at[half], 1);
}

// Adds a group's products to the sums of a vector of columns, given the scales, and with u4 the minimums, of these.
template <DType kType>
BOUGH_INLINE void add_group(float* sums, Ints products, const uint32_t* group, Vec scales, Vec minimums) {
    const Vec scale = mul(scales, splat(float_of(group[kGroupUnits])));
    Vec after = fma(to_float(products), scale, load(sums));
    if constexpr (kType == DType::u4) after = fma(minimums, splat(float_of(group[kGroupUnits + 1])), after);
    store(sums, after);
}

// Adds to a row's sums [32] what one of its groups, `numbers`, has with one of a panel.
template <DType kType>
BOUGH_INLINE void multiply_group(const uint32_t* group, const uint32_t* numbers, float* sums) {
    const uint16_t* of_columns = reinterpret_cast<const uint16_t*>(group + code_words(kType));
    for (int word = 0; word < kWordVectors<kType>; ++word) {
        Halves products = begin_products<kType>(numbers);
        BOUGH_UNROLL for (int unit = 0; unit < static_cast<int>(kGroupUnits); ++unit) {
            const uint32_t* words = group + (unit * kWordVectors<kType> + word) * kLanes;
            add_products(products, halves_of<kType>(words), numbers[unit]);
        }
        for (int half = 0; half < kColumnsOfWord<kType>; ++half) {
            const int column = column_of(word, half);
            const Vec scales = load_f16(of_columns + column);
            const Vec minimums = kType == DType::u4 ? load_f16(of_columns + kPanelColumns + column) : Vec{};
            add_group<kType>(sums + column, complete_products<kType>(products, half), numbers, scales, minimums);
        }
    }
}

// Where a tile finds the halves of codes: in the panel; there, but it leaves them in a buffer; in that buffer.
enum class Codes { kPacked, kUnpacking, kUnpacked };

// Groups of a block, whose halves take 32 KB, in order as tiles read them: [vectors of words][units][2][lanes]. Larger
// blocks, of which fewer sums are added up in memory, are as fast; of half the size they lost 2 to 5 %.
template <DType kType>
constexpr int64_t kBlockGroups = kType == DType::i8 ? 16 : 32;
template <DType kType>
constexpr int64_t kUnpackedWords = kBlockGroups<kType> * code_words(kType) * 2;

// kRows rows times one panel over `units` units, a whole number of groups: sums [kRows][32], to be multiplied by the
// rows' factors. `fetch(unit, w)` is called for each unit of a group and each of the vectors of words that are worked
// off at once.
template <DType kType, int kRows, Codes kCodes, typename Fetch>
BOUGH_INLINE void multiply_pairs(const uint32_t* input, int64_t input_stride, const uint32_t* panel, int64_t units,
                                 float* sums, bool accumulate, uint32_t* unpacked, Fetch fetch) {
    // Few rows compute as much of the panel at once as there are registers for: its weights arrive in fewer passes.
    constexpr int kMostWords = kCodes != Codes::kPacked || kRows > 2 ? 1 : kRows == 2 ? 2 : kWordVectors<kType>;
    constexpr int kWords = kMostWords < kWordVectors<kType> ? kMostWords : kWordVectors<kType>;
    static_assert(kWordVectors<kType> % kWords == 0, "each pass has as many");
    constexpr int kColumns = static_cast<int>(kPanelColumns);
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    if (!accumulate) {
        for (int i = 0; i < kRows * kColumns; i += kLanes) store(sums + i, splat(0.0F));
    }
    for (int first = 0; first < kWordVectors<kType>; first += kWords) {
        const uint32_t *group = panel, *inputs[kRows];
        BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
            inputs[row] = input + row * input_stride;
            asm("" : "+r"(inputs[row]));
        }
        Vec flaws[kWords][kColumnsOfWord<kType>] = {};
        for (int64_t left = units; left > 0; left -= kUnits) {
            Halves products[kRows][kWords];
            BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                BOUGH_UNROLL for (int w = 0; w < kWords; ++w) products[row][w] = begin_products<kType>(inputs[row]);
            }
            BOUGH_UNROLL for (int unit = 0; unit < kUnits; ++unit) {
                BOUGH_UNROLL for (int w = 0; w < kWords; ++w) {
                    fetch(unit, w);
                    Halves codes;
                    if constexpr (kCodes == Codes::kUnpacked) {
                        codes = {{(Ints)load_bits(unpacked), (Ints)load_bits(unpacked + kLanes)}};
                    } else {
                        codes = halves_of<kType>(group + (unit * kWordVectors<kType> + first + w) * kLanes);
                    }
                    if constexpr (kCodes == Codes::kUnpacking) {
                        store_bits(unpacked, (Bits)codes.at[0]);
                        store_bits(unpacked + kLanes, (Bits)codes.at[1]);
                    }
                    unpacked += kCodes == Codes::kPacked ? 0 : 2 * kLanes;
                    BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                        add_products(products[row][w], codes, inputs[row][unit]);
                    }
                }
            }
            const uint16_t* of_columns = reinterpret_cast<const uint16_t*>(group + code_words(kType));
            BOUGH_UNROLL for (int w = 0; w < kWords; ++w) {
                BOUGH_UNROLL for (int half = 0; half < kColumnsOfWord<kType>; ++half) {
                    const int column = column_of(first + w, half);
                    const Vec scales = load_f16(of_columns + column);
                    const Vec minimums = kType == DType::u4 ? load_f16(of_columns + kColumns + column) : Vec{};
                    flaws[w][half] = add(flaws[w][half], scales);
                    BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                        const Ints complete = complete_products<kType>(products[row][w], half);
                        add_group<kType>(sums + row * kColumns + column, complete, inputs[row], scales, minimums);
                    }
                }
            }
            group += group_words(kType);
            BOUGH_UNROLL for (int row = 0; row < kRows; ++row) inputs[row] += input_group_words(kType);
        }
        BOUGH_UNROLL for (int w = 0; w < kWords; ++w) {
            BOUGH_UNROLL for (int half = 0; half < kColumnsOfWord<kType>; ++half) {
                for (int row = 0; row < kRows; ++row) {
                    // NaN if any scale is not finite
                    float* at = sums + row * kColumns + column_of(first + w, half);
                    store(at, fma(flaws[w][half], splat(0.0F), load(at)));
                }
            }
        }
    }
}

// A single row, which asks for about kLines cache lines per group.
template <DType kType, int kLines>
__attribute__((noinline)) void multiply_row_pairs(const uint32_t* input, int64_t input_stride, const uint32_t* panel,
                                                  int64_t units, float* sums, bool accumulate, const char* prefetch) {
    const auto fetch = [&](int unit, int w) __attribute__((always_inline)) {
        if (unit > 0 || w > 0) return;
        BOUGH_UNROLL for (int line = 0; line < kLines; ++line) {
            __builtin_prefetch(prefetch + line * 64, 0, kFetchLocality<kType, kLines, false>);
        }
        prefetch += kLines * 64;
    };
    multiply_pairs<kType, 1, Codes::kPacked>(input, input_stride, panel, units, sums, accumulate, nullptr, fetch);
}

// How often a tile asks while it multiplies so many units: of several tiles each asks half as often.
template <DType kType>
int64_t asking_times(int64_t units, int64_t tiles) {
    return units * kWordVectors<kType> / (tiles == 1 ? 1 : 2);
}

// A tile of two to four rows.
template <DType kType, int kRows, Codes kCodes>
__attribute__((noinline)) void multiply_tile_pairs(const uint32_t* input, int64_t input_stride, const uint32_t* panel,
                                                   int64_t units, float* sums, bool accumulate, uint32_t* unpacked,
                                                   Asking asking) {
    const auto fetch = [&](int unit, int) __attribute__((always_inline)) {
        if (kCodes != Codes::kPacked && unit % 2 > 0) return;
        asking.next();
    };
    multiply_pairs<kType, kRows, kCodes>(input, input_stride, panel, units, sums, accumulate, unpacked, fetch);
}

using PairsKernel = void (*)(const uint32_t*, int64_t, const uint32_t*, int64_t, float*, bool, uint32_t*, Asking);

template <DType kType, Codes kCodes>
PairsKernel pairs_kernel(int rows) {
    static constexpr PairsKernel kernels[kRowsQuantized - 1] = {
        multiply_tile_pairs<kType, 2, kCodes>,
        multiply_tile_pairs<kType, 3, kCodes>,
        multiply_tile_pairs<kType, 4, kCodes>,
    };
    return kernels[rows - 2];
}

#endif

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
