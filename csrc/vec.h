// Vectors of float32, as wide as the instruction set that a file is compiled for, and what the kernels do with them.
//
// Included by files that are compiled once per instruction set. Everything is in an unnamed namespace, so that no
// copy for one instruction set can stand in for that of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "half.h"

#define BOUGH_INLINE static inline __attribute__((always_inline))
#define BOUGH_UNROLL _Pragma("GCC unroll 32")

namespace bough {
namespace BOUGH_ISA {
namespace {

#if defined(__AVX512F__)

using Vec = __m512;
constexpr int kLanes = 16;
constexpr int kRegisters = 32;

BOUGH_INLINE Vec load(const float* p) { return _mm512_loadu_ps(p); }
BOUGH_INLINE void store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
BOUGH_INLINE Vec splat(float x) { return _mm512_set1_ps(x); }
BOUGH_INLINE Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
BOUGH_INLINE Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
BOUGH_INLINE Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
BOUGH_INLINE Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
// a * b + c
BOUGH_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
// The second operand where either is NaN.
BOUGH_INLINE Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
BOUGH_INLINE Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
BOUGH_INLINE Vec round(Vec x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// x where first <= lane < end, else `other`.
BOUGH_INLINE Vec keep_lanes(Vec x, int first, int end, Vec other) {
    const auto below = [](int n) -> uint32_t { return n <= 0 ? 0U : n >= 16 ? 0xFFFFU : (1U << n) - 1; };
    return _mm512_mask_blend_ps(static_cast<__mmask16>(below(end) & ~below(first)), other, x);
}
// x where the lane's bit is set, else `other`; the lowest bit is that of the first lane.
BOUGH_INLINE Vec keep_bits(Vec x, uint64_t bits, Vec other) {
    return _mm512_mask_blend_ps(static_cast<__mmask16>(bits), other, x);
}
// x * 2**n for whole n, gradually to zero
BOUGH_INLINE Vec scale_by_power(Vec x, Vec n) { return _mm512_scalef_ps(x, n); }
BOUGH_INLINE float sum_lanes(Vec x) { return _mm512_reduce_add_ps(x); }
BOUGH_INLINE float max_lanes(Vec x) { return _mm512_reduce_max_ps(x); }
BOUGH_INLINE bool any_not_finite(Vec x) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(__builtin_inff()), _CMP_NLT_UQ) != 0;
}
BOUGH_INLINE Vec absolute(Vec x) { return _mm512_abs_ps(x); }
BOUGH_INLINE Vec load_bf16(const uint16_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
BOUGH_INLINE Vec load_f16(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
BOUGH_INLINE Vec load_i8(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
BOUGH_INLINE void store_bf16(uint16_t* p, Vec x) {
#if defined(__AVX512BF16__)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
#else
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7FC00000));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
#endif
}

#elif defined(__AVX2__)

using Vec = __m256;
constexpr int kLanes = 8;
constexpr int kRegisters = 16;

BOUGH_INLINE Vec load(const float* p) { return _mm256_loadu_ps(p); }
BOUGH_INLINE void store(float* p, Vec x) { _mm256_storeu_ps(p, x); }
BOUGH_INLINE Vec splat(float x) { return _mm256_set1_ps(x); }
BOUGH_INLINE Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
BOUGH_INLINE Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
BOUGH_INLINE Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
BOUGH_INLINE Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
BOUGH_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
BOUGH_INLINE Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
BOUGH_INLINE Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
BOUGH_INLINE Vec round(Vec x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
BOUGH_INLINE Vec keep_lanes(Vec x, int first, int end, Vec other) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i from = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(first - 1));
    const __m256i until = _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane);
    return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(_mm256_and_si256(from, until)));
}
BOUGH_INLINE Vec keep_bits(Vec x, uint64_t bits, Vec other) {
    const __m256i places = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int32_t>(bits & 0xFF)), places);
    return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, places)));
}
// n at least -126 - 24; below -126 the result is zero.
BOUGH_INLINE Vec scale_by_power(Vec x, Vec n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    const __m256i positive = _mm256_max_epi32(exponent, _mm256_setzero_si256());
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(positive, 23)));
}
BOUGH_INLINE float sum_lanes(Vec x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
BOUGH_INLINE float max_lanes(Vec x) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
BOUGH_INLINE Vec absolute(Vec x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x); }
BOUGH_INLINE bool any_not_finite(Vec x) {
    return _mm256_movemask_ps(_mm256_cmp_ps(absolute(x), _mm256_set1_ps(__builtin_inff()), _CMP_NLT_UQ)) != 0;
}
BOUGH_INLINE Vec load_bf16(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
BOUGH_INLINE Vec load_f16(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
BOUGH_INLINE Vec load_i8(const int8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
BOUGH_INLINE void store_bf16(uint16_t* p, Vec x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    rounded = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7FC00000), nan), 16);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}

#else

// Compilers turn these into whatever the architecture has (NEON on arm64).
typedef float Vec __attribute__((vector_size(16)));
typedef int32_t VecBits __attribute__((vector_size(16)));
constexpr int kLanes = 4;
constexpr int kRegisters = 32;

BOUGH_INLINE Vec load(const float* p) {
    Vec x;
    std::memcpy(&x, p, sizeof x);
    return x;
}
BOUGH_INLINE void store(float* p, Vec x) { std::memcpy(p, &x, sizeof x); }
BOUGH_INLINE Vec splat(float x) { return Vec{x, x, x, x}; }
BOUGH_INLINE Vec add(Vec a, Vec b) { return a + b; }
BOUGH_INLINE Vec sub(Vec a, Vec b) { return a - b; }
BOUGH_INLINE Vec mul(Vec a, Vec b) { return a * b; }
BOUGH_INLINE Vec div(Vec a, Vec b) { return a / b; }
BOUGH_INLINE Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
BOUGH_INLINE Vec max(Vec a, Vec b) { return a > b ? a : b; }
BOUGH_INLINE Vec min(Vec a, Vec b) { return a < b ? a : b; }
// Right for |x| below 2**22.
BOUGH_INLINE Vec round(Vec x) {
    const Vec shift = splat(12582912.0F);
    return (x + shift) - shift;
}
BOUGH_INLINE Vec keep_lanes(Vec x, int first, int end, Vec other) {
    const VecBits lane = {0, 1, 2, 3};
    const VecBits inside = (lane >= first) & (lane < end);
    return inside ? x : other;
}
BOUGH_INLINE Vec keep_bits(Vec x, uint64_t bits, Vec other) {
    const VecBits places = {1, 2, 4, 8};
    const int32_t low = static_cast<int32_t>(bits & 0xF);
    const VecBits set = VecBits{low, low, low, low} & places;
    return set != 0 ? x : other;
}
BOUGH_INLINE Vec scale_by_power(Vec x, Vec n) {
    const VecBits exponent = __builtin_convertvector(n, VecBits) + 127;
    const VecBits bits = (exponent > 0 ? exponent : VecBits{0, 0, 0, 0}) << 23;
    Vec power;
    std::memcpy(&power, &bits, sizeof power);
    return x * power;
}
BOUGH_INLINE float sum_lanes(Vec x) { return (x[0] + x[2]) + (x[1] + x[3]); }
BOUGH_INLINE float max_lanes(Vec x) {
    const float a = x[0] > x[2] ? x[0] : x[2];
    const float b = x[1] > x[3] ? x[1] : x[3];
    return a > b ? a : b;
}
BOUGH_INLINE Vec absolute(Vec x) { return x < 0.0F ? -x : x; }
BOUGH_INLINE bool any_not_finite(Vec x) {
    const VecBits finite = absolute(x) < __builtin_inff();
    return (finite[0] & finite[1] & finite[2] & finite[3]) == 0;
}
BOUGH_INLINE Vec load_bf16(const uint16_t* p) {
    const VecBits bits = {p[0] << 16, p[1] << 16, p[2] << 16, p[3] << 16};
    Vec x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
BOUGH_INLINE Vec load_f16(const uint16_t* p) {
    float values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = from_half(p[i]);
    return load(values);
}
BOUGH_INLINE Vec load_i8(const int8_t* p) {
    return Vec{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]), static_cast<float>(p[3])};
}
BOUGH_INLINE void store_bf16(uint16_t* p, Vec x) {
    uint32_t bits[kLanes];
    std::memcpy(bits, &x, sizeof bits);
    for (int i = 0; i < kLanes; ++i) {
        const bool nan = (bits[i] & 0x7FFFFFFFU) > 0x7F800000U;
        p[i] = nan ? 0x7FC0 : static_cast<uint16_t>((bits[i] + 0x7FFF + ((bits[i] >> 16) & 1)) >> 16);
    }
}

#endif

// Whole numbers, as many as there are lanes, and bits of any kind.
typedef int32_t Ints __attribute__((vector_size(kLanes * 4)));
typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));

// 32 bits that may be read as such whatever they were written as: a float, or two bfloat16.
typedef uint32_t Word __attribute__((may_alias));

BOUGH_INLINE Bits load_bits(const uint32_t* from) {
    Bits bits;
    std::memcpy(&bits, from, sizeof bits);
    return bits;
}
BOUGH_INLINE void store_bits(uint32_t* to, Bits bits) { std::memcpy(to, &bits, sizeof bits); }

BOUGH_INLINE Vec to_float(Ints ints) {
#if defined(__AVX512F__)
    return _mm512_cvtepi32_ps((__m512i)ints);
#elif defined(__AVX2__)
    return _mm256_cvtepi32_ps((__m256i)ints);
#else
    return __builtin_convertvector(ints, Vec);
#endif
}
// The nearest whole numbers, even ones in the middle.
BOUGH_INLINE Ints nearest(Vec x) {
#if defined(__AVX512F__)
    return (Ints)_mm512_cvtps_epi32(x);
#elif defined(__AVX2__)
    return (Ints)_mm256_cvtps_epi32(x);
#else
    return __builtin_convertvector(round(x), Ints);
#endif
}
// Of whole numbers from -128 to 127.
BOUGH_INLINE void store_i8(int8_t* p, Ints x) {
#if defined(__AVX512F__)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8((__m512i)x));
#elif defined(__AVX2__)
    const __m256i whole = (__m256i)x;
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
#else
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<int8_t>(x[i]);
#endif
}

// 2**f for f from -0.5 to 0.5, exactly 1 at 0: a minimax fit, of relative error 1.6e-8 but for rounding.
BOUGH_INLINE Vec exp2_fraction(Vec f) {
    Vec p = splat(0x1.41d332p-13F);
    p = fma(p, f, splat(0x1.5f456ap-10F));
    p = fma(p, f, splat(0x1.3b2dbcp-7F));
    p = fma(p, f, splat(0x1.c6aed4p-5F));
    p = fma(p, f, splat(0x1.ebfbdap-3F));
    p = fma(p, f, splat(0x1.62e430p-1F));
    return fma(p, f, splat(1.0F));
}
// 2**x for x <= 0 to about an ulp, exactly 1 at 0, NaN for NaN. Zero below -126.5, with AVX-512 gradually below -126.
BOUGH_INLINE Vec exp2_not_positive(Vec x) {
    const Vec bounded = max(splat(-150.0F), x);
    const Vec n = round(bounded);
    return scale_by_power(exp2_fraction(sub(bounded, n)), n);
}

// e**x for x <= 88, otherwise as above.
BOUGH_INLINE Vec exp_bounded(Vec x) {
    const Vec bounded = max(splat(-104.0F), x);
    const Vec n = round(mul(bounded, splat(0x1.715476p0F)));
    // ln 2 in two pieces, the first of few bits so that n times it is exact
    Vec r = fma(n, splat(-0x1.62e4p-1F), bounded);
    r = fma(n, splat(-0x1.7f7d1cp-20F), r);
    return scale_by_power(exp2_fraction(mul(r, splat(0x1.715476p0F))), n);
}

BOUGH_INLINE float as_float(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

BOUGH_INLINE uint16_t as_bf16(float x) {
    const uint32_t bits = bits_of(x);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return 0x7FC0;
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// Unsigned integers in the order of the floats that they stand for; -0 ties with 0.
BOUGH_INLINE uint32_t order_of(float x) {
    const uint32_t bits = bits_of(x + 0.0F);
    return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
// The inverse.
BOUGH_INLINE float value_of(uint32_t order) {
    return float_of((order & 0x80000000U) != 0 ? order & 0x7FFFFFFFU : ~order);
}

BOUGH_INLINE int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
BOUGH_INLINE int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// One part of `count` things: first and end.
struct Share {
    int64_t first;
    int64_t end;
};
BOUGH_INLINE Share share_of(int64_t count, int part, int num_parts) {
    return {count * part / num_parts, count * (part + 1) / num_parts};
}

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
