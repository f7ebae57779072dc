// Tiles of products of int8 weights and activations, both with a scale for every 32 inputs.
//
// Codes of weights are stored with 128 added, which makes them unsigned as the dot-product instructions want one side;
// what that adds, 128 times the sum of the group's activations, comes with these and starts the sum, negated.
#pragma once

#include "gemm.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

typedef int32_t Ints __attribute__((vector_size(kLanes * 4)));

// Rows of a tile, and vectors of columns that are worked on together: integer sums, float sums, weights and scales
// must fit into registers.
#if defined(__AVX512F__)
constexpr int kRowsI8 = 6;
#else
constexpr int kRowsI8 = 2;
#endif

BOUGH_INLINE Ints load_ints(const uint32_t* from) {
    Ints ints;
    std::memcpy(&ints, from, sizeof ints);
    return ints;
}

BOUGH_INLINE Vec to_float(Ints ints) {
#if defined(__AVX512F__)
    return _mm512_cvtepi32_ps((__m512i)ints);
#elif defined(__AVX2__)
    return _mm256_cvtepi32_ps((__m256i)ints);
#else
    return __builtin_convertvector(ints, Vec);
#endif
}

// sum + the products of four unsigned weights in each lane and four signed inputs, which are the same in all lanes
BOUGH_INLINE Ints multiply_add_bytes(Ints sum, Ints weights, Ints inputs) {
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, (__m512i)inputs);
#elif defined(__AVX512F__)
    // As 16-bit numbers: the instruction that multiplies bytes saturates.
    const __m512i w = (__m512i)weights, a = (__m512i)inputs;
    const __m512i even =
        _mm512_madd_epi16(_mm512_and_si512(w, _mm512_set1_epi16(0xff)), _mm512_srai_epi16(_mm512_slli_epi16(a, 8), 8));
    const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(w, 8), _mm512_srai_epi16(a, 8));
    return sum + (Ints)even + (Ints)odd;
#elif defined(__AVX2__)
    const __m256i w = (__m256i)weights, a = (__m256i)inputs;
    const __m256i even =
        _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(0xff)), _mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(a, 8));
    return sum + (Ints)even + (Ints)odd;
#else
    for (int byte = 0; byte < 4; ++byte) {
        typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));
        const Ints weight = (Ints)(((Bits)weights >> (8 * byte)) & 0xffu);
        const Ints input = (Ints)((Bits)inputs << (24 - 8 * byte)) >> 24;
        sum += weight * input;
    }
    return sum;
#endif
}

// kRows rows times one panel over `units` units, a whole number of groups: sums [kRows][32]. Prefetches kLines cache
// lines per group.
template <int kRows, int kLines>
__attribute__((noinline)) void multiply_tile_int8(const uint32_t* input, int64_t input_stride, const uint32_t* panel,
                                                  int64_t units, float* sums, bool accumulate, const char* prefetch) {
    constexpr int kVectors = 2;
    constexpr int kColumns = static_cast<int>(kPanelColumns);
    constexpr int kUnits = static_cast<int>(kGroupUnits);
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
        for (int64_t left = units; left > 0; left -= kUnits) {
            if (kLines > 0 && first == 0) {
                BOUGH_UNROLL for (int line = 0; line < kLines; ++line) {
                    __builtin_prefetch(prefetch + line * 64, 0, kRows == 1 ? 3 : 2);
                }
                prefetch += kLines * 64;
            }
            Ints product[kRows][kVectors];
            const auto input_of = [&](int row) __attribute__((always_inline)) {
                return inputs[row / 3] + row % 3 * input_stride;
            };
            BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                const int32_t start = static_cast<int32_t>(input_of(row)[kUnits + 1]);
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) product[row][v] = start + Ints{};
            }
            BOUGH_UNROLL for (int unit = 0; unit < kUnits; ++unit) {
                Ints columns[kVectors];
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                    columns[v] = load_ints(group + unit * kColumns + first + v * kLanes);
                }
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    const Ints element = static_cast<int32_t>(input_of(row)[unit]) + Ints{};
                    BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                        product[row][v] = multiply_add_bytes(product[row][v], columns[v], element);
                    }
                }
            }
            const uint16_t* weight_scales = reinterpret_cast<const uint16_t*>(group + kUnits * kColumns) + first;
            BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                const Vec weight_scale = load_f16(weight_scales + v * kLanes);
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    const Vec scale = mul(weight_scale, splat(float_of(input_of(row)[kUnits])));
                    sum[row][v] = fma(to_float(product[row][v]), scale, sum[row][v]);
                }
            }
            group += group_words(DType::i8);
            BOUGH_UNROLL for (int i = 0; i < (kRows + 2) / 3; ++i) inputs[i] += kInputGroupWords;
        }
        for (int row = 0; row < kRows; ++row) {
            for (int v = 0; v < kVectors; ++v) store(sums + row * kColumns + first + v * kLanes, sum[row][v]);
        }
    }
}

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
