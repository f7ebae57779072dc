// What the kernels use of AVX-VNNI, written with AVX2: see emulated_avx512.h. By Intel's Intrinsics Guide.
#pragma once

#include <immintrin.h>

#define __AVXVNNI__ 1

namespace emulated {

// As products of 16-bit numbers, of which pairs are added in 32 bits.
static inline __m256i dpbusd_avx_epi32(__m256i sum, __m256i unsigned_bytes, __m256i signed_bytes) {
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(unsigned_bytes, _mm256_set1_epi16(0xff)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(signed_bytes, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(unsigned_bytes, 8), _mm256_srai_epi16(signed_bytes, 8));
    return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}

}  // namespace emulated

#define _mm256_dpbusd_avx_epi32 emulated::dpbusd_avx_epi32
