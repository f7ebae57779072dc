// Tiles of products of quantised weights and int8 activations, in groups of 32 inputs: for processors that multiply
// bytes without saturation, and portable ones.
//
// Codes of weights are unsigned, as the dot-product instructions want one side; what 8, 12 or 128 too much adds to a
// column, so many times the sum of the group's activations, comes with the activations and starts the sum, negated.
#pragma once

#include "gemm.h"
#include "gemm_tile.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

#if !defined(BOUGH_BYTES_SATURATE)

// Rows of a tile: integer sums, weights and scales must fit into registers. Where these are few, float sums of more
// than two rows are in memory between groups.
#if defined(__AVX512F__)
constexpr int kRowsQuantized = 6;
#elif defined(__AVXVNNI__)
constexpr int kRowsQuantized = 4;
#else
constexpr int kRowsQuantized = 2;
#endif
template <int kRows>
constexpr bool kSumsInRegisters = kRegisters > 16 || kRows <= 2;

BOUGH_INLINE Ints load_ints(const uint32_t* from) { return (Ints)load_bits(from); }

// sum + the products of four unsigned weights in each lane and four signed inputs, which are the same in all lanes
BOUGH_INLINE Ints multiply_add_bytes(Ints sum, Ints weights, Ints inputs) {
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, (__m512i)inputs);
#elif defined(__AVXVNNI__)
    return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)weights, (__m256i)inputs);
#else
    for (int byte = 0; byte < 4; ++byte) {
        const Ints weight = (Ints)(((Bits)weights >> (8 * byte)) & 0xffu);
        const Ints input = (Ints)((Bits)inputs << (24 - 8 * byte)) >> 24;
        // Inputs, and the sum that comes with them, may be those of another operation by now: it may overflow.
        sum = (Ints)((Bits)sum + (Bits)(weight * input));
    }
    return sum;
#endif
}

// Codes of the columns from `column` on, of one unit.
template <DType kType>
BOUGH_INLINE Ints load_codes(const uint32_t* group, int unit, int column) {
    if constexpr (kType == DType::i8) return load_ints(group + unit * kPanelColumns + column);
    const Ints pairs = load_ints(group + unit * 16 + column % 16);
    const Ints codes = (Ints)(((Bits)pairs >> (column / 16 * 4)) & 0x0f0f0f0fu);
    return kType == DType::f4 ? doubled_codes(codes) : codes;
}

// Times a power of two, perhaps negated. What is zero becomes next to nothing; what is not finite is lost.
BOUGH_INLINE Vec times_power(Vec scales, uint32_t power) { return (Vec)((Bits)scales + power); }

// Scales of weights times that of a group of inputs, `numbers`.
template <DType kType>
BOUGH_INLINE Vec times_scale(Vec scales, const uint32_t* numbers) {
    const Vec first = times_power(scales, numbers[kGroupUnits]);
    if constexpr (kType != DType::i8) return first;
    return add(first, times_power(scales, numbers[kGroupUnits + 2]));
}

// kRows rows times one panel over `units` units, a whole number of groups: sums [kRows][32], to be multiplied by the
// rows' factors. Asks for about kLines cache lines per group.
template <DType kType, int kRows, int kLines, bool kZen4>
__attribute__((noinline)) void multiply_tile_quantized(const uint32_t* input, int64_t input_stride,
                                                       const uint32_t* panel, int64_t units, float* sums,
                                                       bool accumulate, const char* prefetch) {
    constexpr int kVectors = column_vectors(kRows);
    constexpr int kColumns = static_cast<int>(kPanelColumns);
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    constexpr bool kInRegisters = kSumsInRegisters<kRows>;
    if (!kInRegisters && !accumulate) {
        for (int i = 0; i < kRows * kColumns; i += kLanes) store(sums + i, splat(0.0F));
    }
    for (int first = 0; first < kColumns; first += kLanes * kVectors) {
        const auto sum_at = [&](int row, int v)
                                __attribute__((always_inline)) { return sums + row * kColumns + first + v * kLanes; };
        Vec sum[kRows][kVectors];
        BOUGH_UNROLL for (int row = 0; kInRegisters && row < kRows; ++row) {
            BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                sum[row][v] = accumulate ? load(sum_at(row, v)) : splat(0.0F);
            }
        }
        const uint32_t* group = panel;
        // A pointer for each row, since there are few; hidden as in multiply_tile.
        const uint32_t* inputs[kRows];
        BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
            inputs[row] = input + row * input_stride;
            asm("" : "+r"(inputs[row]));
        }
        Vec flaws[kVectors] = {};
        for (int64_t left = units; left > 0; left -= kUnits) {
            if (kLines > 0 && first < fetching_passes(kRows) * kLanes * kVectors) {
                constexpr int kNow = (kLines + fetching_passes(kRows) - 1) / fetching_passes(kRows);
                BOUGH_UNROLL for (int line = 0; line < kNow; ++line) {
                    __builtin_prefetch(prefetch + line * 64, 0, kFetchLocality<kType, kLines, kZen4>);
                }
                prefetch += kNow * 64;
            }
            Ints product[kRows][kVectors];
            const auto start_of = [&](int row) __attribute__((always_inline)) {
                return kType == DType::u4 ? 0 : static_cast<int32_t>(inputs[row][kUnits + 1]);
            };
            BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) product[row][v] = start_of(row) + Ints{};
            }
            BOUGH_UNROLL for (int unit = 0; unit < kUnits; ++unit) {
                Ints columns[kVectors];
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                    columns[v] = load_codes<kType>(group, unit, first + v * kLanes);
                }
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    const Ints element = static_cast<int32_t>(inputs[row][unit]) + Ints{};
                    BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                        product[row][v] = multiply_add_bytes(product[row][v], columns[v], element);
                    }
                }
            }
            const uint16_t* weight_scales = reinterpret_cast<const uint16_t*>(group + code_words(kType)) + first;
            const auto scales_at = [&](int v) __attribute__((always_inline)) {
                const Vec scales = load_f16(weight_scales + v * kLanes);
                flaws[v] = add(flaws[v], scales);
                return scales;
            };
            const auto add_group = [&](int row, int v, Vec scales) __attribute__((always_inline)) {
                const Vec whole = to_float(product[row][v]);
                const Vec before = kInRegisters ? sum[row][v] : load(sum_at(row, v));
                Vec after = fma(whole, times_scale<kType>(scales, inputs[row]), before);
                if constexpr (kType == DType::u4) {
                    const Vec minimum = load_f16(weight_scales + kColumns + v * kLanes);
                    after = fma(minimum, splat(float_of(inputs[row][kUnits + 1])), after);
                }
                if constexpr (kInRegisters) {
                    sum[row][v] = after;
                } else {
                    store(sum_at(row, v), after);
                }
            };
            // What comes first is what fewer registers hold: scales of a row's inputs, or of a vector's columns.
            if constexpr (kRegisters > 16) {
                Vec scales[kVectors];
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) scales[v] = scales_at(v);
                BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
                    BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) add_group(row, v, scales[v]);
                }
            } else {
                BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                    const Vec scales = scales_at(v);
                    BOUGH_UNROLL for (int row = 0; row < kRows; ++row) add_group(row, v, scales);
                }
            }
            group += group_words(kType);
            BOUGH_UNROLL for (int row = 0; row < kRows; ++row) inputs[row] += input_group_words(kType);
        }
        BOUGH_UNROLL for (int row = 0; row < kRows; ++row) {
            BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
                // NaN if any scale is not finite
                const Vec complete = kInRegisters ? sum[row][v] : load(sum_at(row, v));
                store(sum_at(row, v), fma(flaws[v], splat(0.0F), complete));
            }
        }
    }
}

// Adds to a row's sums [32] what one of its groups, `numbers`, has with one of a panel.
template <DType kType>
BOUGH_INLINE void multiply_group(const uint32_t* group, const uint32_t* numbers, float* sums) {
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    const uint16_t* scales = reinterpret_cast<const uint16_t*>(group + code_words(kType));
    for (int column = 0; column < kPanelColumns; column += kLanes) {
        Ints product = (kType == DType::u4 ? 0 : static_cast<int32_t>(numbers[kUnits + 1])) + Ints{};
        BOUGH_UNROLL for (int unit = 0; unit < kUnits; ++unit) {
            const Ints element = static_cast<int32_t>(numbers[unit]) + Ints{};
            product = multiply_add_bytes(product, load_codes<kType>(group, unit, column), element);
        }
        const Vec scale = times_scale<kType>(load_f16(scales + column), numbers);
        Vec sum = fma(to_float(product), scale, load(sums + column));
        if constexpr (kType == DType::u4) {
            sum = fma(load_f16(scales + kPanelColumns + column), splat(float_of(numbers[kUnits + 1])), sum);
        }
        store(sums + column, sum);
    }
}

#endif

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
