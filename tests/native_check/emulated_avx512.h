// What the kernels use of AVX-512, VNNI and BF16, written with AVX2, so that their loops run on machines that have none
// of it. Included before everything else, in files compiled for AVX2. By Intel's Intrinsics Guide.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1
#if defined(BOUGH_EMULATES_VNNI)
#define __AVX512VNNI__ 1
#endif
#if defined(BOUGH_EMULATES_BF16)
#define __AVX512BF16__ 1
#endif

namespace emulated {

template <class To, class From>
static inline To bits(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

template <class T, int kCount>
struct Lanes {
    T at[kCount];
    T& operator[](int i) { return at[i]; }
};
template <class T>
using Whole = Lanes<T, 64 / static_cast<int>(sizeof(T))>;

// The two halves of a register, for instructions that treat 128 bits by themselves, or each lane.
template <class Half>
struct Halves {
    Half low, high;
};
using Ints = Halves<__m256i>;
using Floats = Halves<__m256>;

template <class Result, class Function, class... Whole>
static inline Result by_halves(Function function, const Whole&... x) {
    using Low = decltype(function(x.low...));
    return bits<Result>(Halves<Low>{function(x.low...), function(x.high...)});
}

#define BOUGH_FLOATS(name, ...) by_halves<__m512>([](auto... x) { return name(x...); }, __VA_ARGS__)
#define BOUGH_INTS(name, ...) by_halves<__m512i>([](auto... x) { return name(x...); }, __VA_ARGS__)

static inline Floats halves(__m512 x) { return bits<Floats>(x); }
static inline Ints halves(__m512i x) { return bits<Ints>(x); }

static inline __m512i loadu_si512(const void* p) {
    __m512i x;
    std::memcpy(&x, p, sizeof x);
    return x;
}
static inline void storeu_si512(void* p, __m512i x) { std::memcpy(p, &x, sizeof x); }
static inline __m512 loadu_ps(const void* p) { return bits<__m512>(loadu_si512(p)); }
static inline void storeu_ps(void* p, __m512 x) { std::memcpy(p, &x, sizeof x); }
static inline __m512i maskz_loadu_epi32(uint16_t mask, const void* p) {
    Whole<int32_t> x{};
    // Lanes that are masked are not read: they may lie behind the end of the memory.
    for (int i = 0; i < 16; ++i) {
        if (mask >> i & 1) std::memcpy(&x[i], static_cast<const char*>(p) + 4 * i, 4);
    }
    return bits<__m512i>(x);
}

static inline __m512 set1_ps(float x) { return bits<__m512>(Floats{_mm256_set1_ps(x), _mm256_set1_ps(x)}); }
static inline __m512i set1_epi32(int x) { return bits<__m512i>(Ints{_mm256_set1_epi32(x), _mm256_set1_epi32(x)}); }
static inline __m512i set1_epi16(short x) { return bits<__m512i>(Ints{_mm256_set1_epi16(x), _mm256_set1_epi16(x)}); }
template <class... T>
static inline __m512i set_epi32(T... from_the_last) {
    const Lanes<int32_t, 16> given{{from_the_last...}};
    Whole<int32_t> x;
    for (int i = 0; i < 16; ++i) x[i] = given.at[15 - i];
    return bits<__m512i>(x);
}
static inline __m512 castsi512_ps(__m512i x) { return bits<__m512>(x); }
static inline __m512i castps_si512(__m512 x) { return bits<__m512i>(x); }

static inline __m512 add_ps(__m512 a, __m512 b) { return BOUGH_FLOATS(_mm256_add_ps, halves(a), halves(b)); }
static inline __m512 sub_ps(__m512 a, __m512 b) { return BOUGH_FLOATS(_mm256_sub_ps, halves(a), halves(b)); }
static inline __m512 mul_ps(__m512 a, __m512 b) { return BOUGH_FLOATS(_mm256_mul_ps, halves(a), halves(b)); }
static inline __m512 div_ps(__m512 a, __m512 b) { return BOUGH_FLOATS(_mm256_div_ps, halves(a), halves(b)); }
static inline __m512 max_ps(__m512 a, __m512 b) { return BOUGH_FLOATS(_mm256_max_ps, halves(a), halves(b)); }
static inline __m512 min_ps(__m512 a, __m512 b) { return BOUGH_FLOATS(_mm256_min_ps, halves(a), halves(b)); }
static inline __m512 fmadd_ps(__m512 a, __m512 b, __m512 c) {
    return BOUGH_FLOATS(_mm256_fmadd_ps, halves(a), halves(b), halves(c));
}
static inline __m512 abs_ps(__m512 x) {
    return by_halves<__m512>([](__m256 half) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), half); }, halves(x));
}
static inline __m512 round_to_whole(__m512 x) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return by_halves<__m512>([](__m256 half) { return _mm256_round_ps(half, kNearest); }, halves(x));
}
// a * 2**floor(b)
static inline __m512 scalef_ps(__m512 a, __m512 b) {
    auto x = bits<Whole<float>>(a), n = bits<Whole<float>>(b);
    for (int i = 0; i < 16; ++i) {
        const float bounded = std::fmin(std::fmax(std::floor(n[i]), -400.0F), 400.0F);
        if (!std::isnan(x[i])) x[i] = std::isnan(n[i]) ? n[i] : std::ldexp(x[i], static_cast<int>(bounded));
    }
    return bits<__m512>(x);
}
static inline float reduce_add_ps(__m512 x) {
    const Floats half = halves(x);
    const __m256 eight = _mm256_add_ps(half.high, half.low);
    const __m128 four = _mm_add_ps(_mm256_extractf128_ps(eight, 1), _mm256_castps256_ps128(eight));
    const __m128 two = _mm_add_ps(four, _mm_shuffle_ps(four, four, 0x4E));
    return two[0] + two[1];
}
static inline float reduce_max_ps(__m512 x) {
    const Floats half = halves(x);
    const __m256 eight = _mm256_max_ps(half.high, half.low);
    const __m128 four = _mm_max_ps(_mm256_extractf128_ps(eight, 1), _mm256_castps256_ps128(eight));
    const __m128 two = _mm_max_ps(four, _mm_shuffle_ps(four, four, 0x4E));
    return two[0] > two[1] ? two[0] : two[1];
}

template <int kPredicate>
static inline uint16_t cmp_ps_mask(__m512 a, __m512 b) {
    const Floats x = halves(a), y = halves(b);
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(x.low, y.low, kPredicate));
    return static_cast<uint16_t>(low | _mm256_movemask_ps(_mm256_cmp_ps(x.high, y.high, kPredicate)) << 8);
}
static inline __m512i mask_mov_epi32(__m512i otherwise, uint16_t mask, __m512i x) {
    auto result = bits<Whole<int32_t>>(otherwise), given = bits<Whole<int32_t>>(x);
    for (int i = 0; i < 16; ++i) {
        if (mask >> i & 1) result[i] = given[i];
    }
    return bits<__m512i>(result);
}
static inline __m512 mask_blend_ps(uint16_t mask, __m512 a, __m512 b) {
    return castsi512_ps(mask_mov_epi32(castps_si512(a), mask, castps_si512(b)));
}

static inline __m512 cvtepi32_ps(__m512i x) { return BOUGH_FLOATS(_mm256_cvtepi32_ps, halves(x)); }
static inline __m512i cvtps_epi32(__m512 x) { return BOUGH_INTS(_mm256_cvtps_epi32, halves(x)); }
static inline __m512 cvtph_ps(__m256i x) { return BOUGH_FLOATS(_mm256_cvtph_ps, bits<Halves<__m128i>>(x)); }
static inline __m512i cvtepu16_epi32(__m256i x) { return BOUGH_INTS(_mm256_cvtepu16_epi32, bits<Halves<__m128i>>(x)); }
static inline __m512i cvtepi8_epi32(__m128i x) {
    return bits<__m512i>(Ints{_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8))});
}
template <class To, class Narrow>
static inline Narrow narrow(__m512i x) {
    Lanes<To, 16> result;
    auto wide = bits<Whole<int32_t>>(x);
    for (int i = 0; i < 16; ++i) result[i] = static_cast<To>(wide[i]);
    return bits<Narrow>(result);
}
static inline __m128i cvtepi32_epi8(__m512i x) { return narrow<int8_t, __m128i>(x); }
static inline __m256i cvtepi32_epi16(__m512i x) { return narrow<int16_t, __m256i>(x); }

static inline __m512i add_epi32(__m512i a, __m512i b) { return BOUGH_INTS(_mm256_add_epi32, halves(a), halves(b)); }
static inline __m512i add_epi16(__m512i a, __m512i b) { return BOUGH_INTS(_mm256_add_epi16, halves(a), halves(b)); }
static inline __m512i and_si512(__m512i a, __m512i b) { return BOUGH_INTS(_mm256_and_si256, halves(a), halves(b)); }
static inline __m512i or_si512(__m512i a, __m512i b) { return BOUGH_INTS(_mm256_or_si256, halves(a), halves(b)); }
static inline __m512i madd_epi16(__m512i a, __m512i b) { return BOUGH_INTS(_mm256_madd_epi16, halves(a), halves(b)); }
static inline __m512i maddubs_epi16(__m512i a, __m512i b) {
    return BOUGH_INTS(_mm256_maddubs_epi16, halves(a), halves(b));
}
static inline __m512i unpacklo_epi32(__m512i a, __m512i b) {
    return BOUGH_INTS(_mm256_unpacklo_epi32, halves(a), halves(b));
}
static inline __m512i unpackhi_epi32(__m512i a, __m512i b) {
    return BOUGH_INTS(_mm256_unpackhi_epi32, halves(a), halves(b));
}
static inline __m512 unpacklo_ps(__m512 a, __m512 b) { return BOUGH_FLOATS(_mm256_unpacklo_ps, halves(a), halves(b)); }
static inline __m512 unpackhi_ps(__m512 a, __m512 b) { return BOUGH_FLOATS(_mm256_unpackhi_ps, halves(a), halves(b)); }
static inline __m512i unpacklo_epi64(__m512i a, __m512i b) {
    return BOUGH_INTS(_mm256_unpacklo_epi64, halves(a), halves(b));
}
static inline __m512i unpackhi_epi64(__m512i a, __m512i b) {
    return BOUGH_INTS(_mm256_unpackhi_epi64, halves(a), halves(b));
}
template <int kBits>
static inline __m512i srli_epi32(__m512i x) {
    return by_halves<__m512i>([](__m256i half) { return _mm256_srli_epi32(half, kBits); }, halves(x));
}
template <int kBits>
static inline __m512i slli_epi32(__m512i x) {
    return by_halves<__m512i>([](__m256i half) { return _mm256_slli_epi32(half, kBits); }, halves(x));
}
template <int kBits>
static inline __m512i srli_epi16(__m512i x) {
    return by_halves<__m512i>([](__m256i half) { return _mm256_srli_epi16(half, kBits); }, halves(x));
}
template <int kBits>
static inline __m512i slli_epi16(__m512i x) {
    return by_halves<__m512i>([](__m256i half) { return _mm256_slli_epi16(half, kBits); }, halves(x));
}
template <int kBits>
static inline __m512i srai_epi16(__m512i x) {
    return by_halves<__m512i>([](__m256i half) { return _mm256_srai_epi16(half, kBits); }, halves(x));
}
// Two quarters of `a`, then two of `b`, each chosen by two bits.
template <int kChoice>
static inline __m512i shuffle_i32x4(__m512i a, __m512i b) {
    auto from_a = bits<Whole<__m128i>>(a), from_b = bits<Whole<__m128i>>(b);
    return bits<__m512i>(Whole<__m128i>{
        {from_a[kChoice & 3], from_a[kChoice >> 2 & 3], from_b[kChoice >> 4 & 3], from_b[kChoice >> 6 & 3]}});
}
static inline __m512i permutexvar_epi32(__m512i index, __m512i x) {
    auto chosen = bits<Whole<int32_t>>(index), given = bits<Whole<int32_t>>(x);
    for (int i = 0; i < 16; ++i) chosen[i] = given[chosen[i] & 15];
    return bits<__m512i>(chosen);
}
static inline __m512i permutex2var_epi16(__m512i a, __m512i index, __m512i b) {
    auto from_a = bits<Whole<int16_t>>(a), from_b = bits<Whole<int16_t>>(b), at = bits<Whole<int16_t>>(index);
    Whole<int16_t> result;
    for (int i = 0; i < 32; ++i) result[i] = (at[i] & 32 ? from_b : from_a)[at[i] & 31];
    return bits<__m512i>(result);
}

static inline __m512i broadcast_i32x4(__m128i x) {
    Whole<int32_t> result;
    auto four = bits<Lanes<int32_t, 4>>(x);
    for (int i = 0; i < 16; ++i) result[i] = four[i % 4];
    return bits<__m512i>(result);
}
// Within each 16 bytes.
static inline __m512i shuffle_epi8(__m512i table, __m512i indices) {
    Whole<uint8_t> result;
    auto entries = bits<Whole<uint8_t>>(table);
    auto at = bits<Whole<uint8_t>>(indices);
    for (int i = 0; i < 64; ++i) result[i] = at[i] < 128 ? entries[i / 16 * 16 + at[i] % 16] : 0;
    return bits<__m512i>(result);
}
static inline __m512i dpbusd_epi32(__m512i sum, __m512i unsigned_bytes, __m512i signed_bytes) {
    auto result = bits<Whole<int32_t>>(sum);
    auto a = bits<Whole<uint8_t>>(unsigned_bytes);
    auto b = bits<Whole<int8_t>>(signed_bytes);
    for (int i = 0; i < 64; ++i) result[i / 4] += a[i] * b[i];
    return bits<__m512i>(result);
}
static inline float of_bf16(uint16_t half) {
    const float x = bits<float>(static_cast<uint32_t>(half) << 16);
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}
static inline float without_subnormal(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}
// The odd elements first, each product and sum rounded once.
template <class Pairs>
static inline __m512 dpbf16_ps(__m512 sum, Pairs a, Pairs b) {
    auto result = bits<Whole<float>>(sum);
    auto x = bits<Whole<uint16_t>>(a), y = bits<Whole<uint16_t>>(b);
    for (int i = 0; i < 16; ++i) {
        for (const int at : {2 * i + 1, 2 * i}) {
            result[i] = without_subnormal(std::fma(of_bf16(x[at]), of_bf16(y[at]), without_subnormal(result[i])));
        }
    }
    return bits<__m512>(result);
}
// To the nearest, in ties to even; subnormal numbers become zero.
static inline __m256i cvtneps_pbh(__m512 x) {
    Lanes<uint16_t, 16> result;
    auto given = bits<Whole<float>>(x);
    for (int i = 0; i < 16; ++i) {
        const uint32_t whole = bits<uint32_t>(without_subnormal(given[i]));
        result[i] = std::isnan(given[i]) ? static_cast<uint16_t>(whole >> 16 | 0x40)
                                         : static_cast<uint16_t>((whole + 0x7FFF + (whole >> 16 & 1)) >> 16);
    }
    return bits<__m256i>(result);
}

#undef BOUGH_FLOATS
#undef BOUGH_INTS

}  // namespace emulated

#define _mm512_loadu_si512(p) emulated::loadu_si512(p)
#define _mm512_load_si512(p) emulated::loadu_si512(p)
#define _mm512_storeu_si512(p, x) emulated::storeu_si512(p, x)
#define _mm512_loadu_ps(p) emulated::loadu_ps(p)
#define _mm512_storeu_ps(p, x) emulated::storeu_ps(p, x)
#define _mm512_maskz_loadu_epi32(mask, p) emulated::maskz_loadu_epi32(mask, p)
#define _mm512_set1_ps(x) emulated::set1_ps(x)
#define _mm512_set1_epi32(x) emulated::set1_epi32(x)
#define _mm512_set1_epi16(x) emulated::set1_epi16(x)
#define _mm512_set_epi32(...) emulated::set_epi32(__VA_ARGS__)
#define _mm512_castsi512_ps(x) emulated::castsi512_ps(x)
#define _mm512_castps_si512(x) emulated::castps_si512(x)
#define _mm512_add_ps(a, b) emulated::add_ps(a, b)
#define _mm512_sub_ps(a, b) emulated::sub_ps(a, b)
#define _mm512_mul_ps(a, b) emulated::mul_ps(a, b)
#define _mm512_div_ps(a, b) emulated::div_ps(a, b)
#define _mm512_max_ps(a, b) emulated::max_ps(a, b)
#define _mm512_min_ps(a, b) emulated::min_ps(a, b)
#define _mm512_fmadd_ps(a, b, c) emulated::fmadd_ps(a, b, c)
#define _mm512_abs_ps(x) emulated::abs_ps(x)
#undef _mm512_roundscale_ps
#define _mm512_roundscale_ps(x, how) emulated::round_to_whole(x)
#define _mm512_scalef_ps(a, b) emulated::scalef_ps(a, b)
#define _mm512_reduce_add_ps(x) emulated::reduce_add_ps(x)
#define _mm512_reduce_max_ps(x) emulated::reduce_max_ps(x)
#undef _mm512_cmp_ps_mask
#define _mm512_cmp_ps_mask(a, b, predicate) emulated::cmp_ps_mask<predicate>(a, b)
#define _mm512_mask_mov_epi32(otherwise, mask, x) emulated::mask_mov_epi32(otherwise, mask, x)
#define _mm512_mask_blend_ps(mask, a, b) emulated::mask_blend_ps(mask, a, b)
#define _mm512_cvtepi32_ps(x) emulated::cvtepi32_ps(x)
#define _mm512_cvtps_epi32(x) emulated::cvtps_epi32(x)
#define _mm512_cvtph_ps(x) emulated::cvtph_ps(x)
#define _mm512_cvtepu16_epi32(x) emulated::cvtepu16_epi32(x)
#define _mm512_cvtepi8_epi32(x) emulated::cvtepi8_epi32(x)
#define _mm512_cvtepi32_epi8(x) emulated::cvtepi32_epi8(x)
#define _mm512_cvtepi32_epi16(x) emulated::cvtepi32_epi16(x)
#define _mm512_add_epi32(a, b) emulated::add_epi32(a, b)
#define _mm512_add_epi16(a, b) emulated::add_epi16(a, b)
#define _mm512_and_si512(a, b) emulated::and_si512(a, b)
#define _mm512_or_si512(a, b) emulated::or_si512(a, b)
#define _mm512_madd_epi16(a, b) emulated::madd_epi16(a, b)
#define _mm512_maddubs_epi16(a, b) emulated::maddubs_epi16(a, b)
#define _mm512_broadcast_i32x4(x) emulated::broadcast_i32x4(x)
#define _mm512_shuffle_epi8(a, b) emulated::shuffle_epi8(a, b)
#define _mm512_unpacklo_epi32(a, b) emulated::unpacklo_epi32(a, b)
#define _mm512_unpackhi_epi32(a, b) emulated::unpackhi_epi32(a, b)
#define _mm512_unpacklo_ps(a, b) emulated::unpacklo_ps(a, b)
#define _mm512_unpackhi_ps(a, b) emulated::unpackhi_ps(a, b)
#define _mm512_unpacklo_epi64(a, b) emulated::unpacklo_epi64(a, b)
#define _mm512_unpackhi_epi64(a, b) emulated::unpackhi_epi64(a, b)
#undef _mm512_srli_epi32
#define _mm512_srli_epi32(x, n) emulated::srli_epi32<n>(x)
#undef _mm512_slli_epi32
#define _mm512_slli_epi32(x, n) emulated::slli_epi32<n>(x)
#undef _mm512_srli_epi16
#define _mm512_srli_epi16(x, n) emulated::srli_epi16<n>(x)
#undef _mm512_slli_epi16
#define _mm512_slli_epi16(x, n) emulated::slli_epi16<n>(x)
#undef _mm512_srai_epi16
#define _mm512_srai_epi16(x, n) emulated::srai_epi16<n>(x)
#undef _mm512_shuffle_i32x4
#define _mm512_shuffle_i32x4(a, b, choice) emulated::shuffle_i32x4<choice>(a, b)
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4(a, b, choice) \
    emulated::castsi512_ps(emulated::shuffle_i32x4<choice>(emulated::castps_si512(a), emulated::castps_si512(b)))
#define _mm512_permutexvar_epi32(index, x) emulated::permutexvar_epi32(index, x)
#define _mm512_permutex2var_epi16(a, index, b) emulated::permutex2var_epi16(a, index, b)
#define _mm512_dpbusd_epi32(sum, a, b) emulated::dpbusd_epi32(sum, a, b)
#define _mm512_dpbf16_ps(sum, a, b) emulated::dpbf16_ps(sum, a, b)
#define _mm512_cvtneps_pbh(x) emulated::cvtneps_pbh(x)
