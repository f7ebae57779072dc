// Tiles of products of weights of 4 bits and int8 activations, both with a scale for every 32 inputs.
//
// Codes of weights are unsigned, as the dot-product instructions want one side; what 8 too much adds to a column, 8
// times the sum of the group's activations, comes with the activations and starts the sum, negated.
#pragma once

#include "gemm.h"
#include "gemm_tile_int8.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kRowsI4 = 6;
#else
constexpr int kRowsI4 = 2;
#endif

// Products of a group, `start` included once they are complete: four codes from 0 to 15 in each lane with four signed
// inputs, which are the same in all lanes. Pairs of products are summed in 16 bits where only such an instruction is
// there: 8 units of at most 2 * 15 * 127 fit.
BOUGH_INLINE Ints begin_products(int32_t start) {
#if !defined(__AVX512VNNI__) && defined(__AVX2__)
    (void)start;
    return Ints{};
#else
    return start + Ints{};
#endif
}

BOUGH_INLINE Ints add_products(Ints sum, Ints codes, Ints inputs) {
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)codes, (__m512i)inputs);
#elif defined(__AVX512F__)
    return (Ints)_mm512_add_epi16((__m512i)sum, _mm512_maddubs_epi16((__m512i)codes, (__m512i)inputs));
#elif defined(__AVX2__)
    return (Ints)_mm256_add_epi16((__m256i)sum, _mm256_maddubs_epi16((__m256i)codes, (__m256i)inputs));
#else
    for (int byte = 0; byte < 4; ++byte) {
        typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));
        const Ints code = (Ints)(((Bits)codes >> (8 * byte)) & 0xffu);
        const Ints input = (Ints)((Bits)inputs << (24 - 8 * byte)) >> 24;
        sum += code * input;
    }
    return sum;
#endif
}

BOUGH_INLINE Ints complete_products(Ints sum, int32_t start) {
#if defined(__AVX512VNNI__)
    (void)start;
    return sum;
#elif defined(__AVX512F__)
    return (Ints)_mm512_madd_epi16((__m512i)sum, _mm512_set1_epi16(1)) + start;
#elif defined(__AVX2__)
    return (Ints)_mm256_madd_epi16((__m256i)sum, _mm256_set1_epi16(1)) + start;
#else
    (void)start;
    return sum;
#endif
}

// Words of a panel's group whose codes are bytes.
template <DType kType>
constexpr int64_t kUnpackedWords = group_words(kType) - code_words(kType) + kGroupUnits * kPanelColumns;

// Codes of the columns from `column` on, of one unit.
template <bool kUnpacked>
BOUGH_INLINE Ints load_codes(const uint32_t* group, int unit, int column) {
    if constexpr (kUnpacked) return load_ints(group + unit * static_cast<int>(kPanelColumns) + column);
    const Ints pairs = load_ints(group + unit * 16 + column % 16);
    typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));
    return (Ints)(((Bits)pairs >> (column / 16 * 4)) & 0x0f0f0f0fu);
}

template <DType kType>
void unpack_groups(const uint32_t* packed, int64_t groups, uint32_t* unpacked) {
    constexpr int kColumns = static_cast<int>(kPanelColumns);
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    for (int64_t i = 0; i < groups; ++i) {
        for (int unit = 0; unit < kUnits; ++unit) {
            for (int column = 0; column < kColumns; column += kLanes) {
                const Ints codes = load_codes<false>(packed, unit, column);
                std::memcpy(unpacked + unit * kColumns + column, &codes, sizeof codes);
            }
        }
        std::memcpy(unpacked + kUnits * kColumns, packed + code_words(kType),
                    (group_words(kType) - code_words(kType)) * sizeof(uint32_t));
        packed += group_words(kType);
        unpacked += kUnpackedWords<kType>;
    }
}

// kRows rows times one panel over `units` units, a whole number of groups: sums [kRows][32]. `pairs` are those of the
// inputs, rows `input_stride` apart. Prefetches kLines cache lines per group.
template <DType kType, int kRows, int kLines, bool kUnpacked>
__attribute__((noinline)) void multiply_tile_int4(const uint32_t* input, int64_t input_stride, const uint32_t* panel,
                                                  int64_t units, float* sums, bool accumulate, const char* prefetch,
                                                  const float* pairs) {
    constexpr int kVectors = 2;
    constexpr int kColumns = static_cast<int>(kPanelColumns);
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    constexpr int64_t kGroup = kUnpacked ? kUnpackedWords<kType> : group_words(kType);
    constexpr int64_t kCodes = kUnpacked ? kUnits * kColumns : code_words(kType);
    for (int first = 0; first < kColumns; first += kLanes * kVectors) {
        Vec sum[kRows][kVectors];
        for (int row = 0; row < kRows; ++row) {
            for (int v = 0; v < kVectors; ++v) {
                sum[row][v] = accumulate ? load(sums + row * kColumns + first + v * kLanes) : splat(0.0F);
            }
        }
        const uint32_t* group = panel;
        // See multiply_tile.
        const uint32_t* inputs[(kRows + 2) / 3];
        BOUGH_UNROLL for (int i = 0; i < (kRows + 2) / 3; ++i) {
            inputs[i] = input + 3 * i * input_stride;
            asm("" : "+r"(inputs[i]));
        }
        const float* input_pairs = pairs;
        for (int64_t left = units; left > 0; left -= kUnits) {
            if (kLines > 0 && first == 0) {
                BOUGH_UNROLL for (int line = 0; line < kLines; ++line) {
                    __builtin_prefetch(prefetch + line * 64, 0, kRows == 1 ? 3 : 2);
                }
                prefetch += kLines * 64;
            }
            Ints product[kRows][kVectors];
            const auto start_of = [&](int row) __attribute__((always_inline)) {
                int32_t start = 0;
                if (kType == DType::i4) std::memcpy(&start, input_pairs + row * input_stride + 1, sizeof start);
                return start;
            };
            BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) product[row][v] = begin_products(start_of(row));
            }
            BOUGH_UNROLL for (int unit = 0; unit < kUnits; ++unit) {
                Ints columns[kVectors];
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                    columns[v] = load_codes<kUnpacked>(group, unit, first + v * kLanes);
                }
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    const uint32_t four = inputs[row / 3][row % 3 * input_stride + unit];
                    const Ints element = static_cast<int32_t>(four) + Ints{};
                    BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                        product[row][v] = add_products(product[row][v], columns[v], element);
                    }
                }
            }
            const uint16_t* weight_scales = reinterpret_cast<const uint16_t*>(group + kCodes) + first;
            BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                const Vec weight_scale = load_f16(weight_scales + v * kLanes);
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    const float* pair = input_pairs + row * input_stride;
                    const Vec whole = to_float(complete_products(product[row][v], start_of(row)));
                    sum[row][v] = fma(whole, mul(weight_scale, splat(pair[0])), sum[row][v]);
                    if constexpr (kType == DType::u4) {
                        const Vec minimum = load_f16(weight_scales + kColumns + v * kLanes);
                        sum[row][v] = fma(minimum, splat(pair[1]), sum[row][v]);
                    }
                }
            }
            group += kGroup;
            input_pairs += scale_words(kType);
            BOUGH_UNROLL for (int i = 0; i < (kRows + 2) / 3; ++i) inputs[i] += kUnits;
        }
        for (int row = 0; row < kRows; ++row) {
            for (int v = 0; v < kVectors; ++v) store(sums + row * kColumns + first + v * kLanes, sum[row][v]);
        }
    }
}

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
