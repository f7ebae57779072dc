// What tiles of all types of weights share: how wide they are, and how they ask for the weights that come next.
#pragma once

#include "gemm.h"
#include "processor.h"
#include "vec.h"

// Instructions that multiply bytes saturate, and there are no others.
#if defined(__AVX2__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
#define BOUGH_BYTES_SATURATE 1
#endif

namespace bough {
namespace BOUGH_ISA {
namespace {

// Constants below were measured on a Zen 3 for processors with AVX2 alone, on a Xeon with AMX for Intel's with AVX-512,
// on a Zen 4 and a Zen 5 for the others.
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr bool kAvx2Alone = true;
#else
constexpr bool kAvx2Alone = false;
#endif
#if defined(BOUGH_BYTES_SATURATE)
constexpr bool kBytesSaturate = true;
#else
constexpr bool kBytesSaturate = false;
#endif

// Vectors of columns that a tile of so many rows computes at once. Those of a whole panel keep multipliers busy where
// there is one row, and let its weights arrive in one go.
constexpr int column_vectors(int rows) { return kAvx2Alone && rows == 1 ? 4 : 2; }
// How often such a tile runs along the panel, each time over some of its columns, and asks for weights meanwhile.
constexpr int fetching_passes(int rows) {
    return kAvx2Alone ? static_cast<int>(kPanelColumns) / (kLanes * column_vectors(rows)) : 1;
}

// Units that a tile multiplies between two fetches of weights, and the cache lines that their own weights take.
constexpr int kUnroll = 4;
template <DType kType>
constexpr int64_t kUnitsPerFetch = is_quantized(kType) ? kGroupUnits : kUnroll;
template <DType kType>
constexpr int kLinesPerFetch =
    is_quantized(kType) ? static_cast<int>(group_words(kType)) / 16 : kUnroll * static_cast<int>(kPanelColumns) / 16;

// How far ahead a tile that is the only one asks for its weights, and for which caches tiles ask, as __builtin_prefetch
// has it. A tile that is the only one (it asks for as much as it reads) reads its weights once in a step: in other
// caches than the first they would take the place of what Python needs between two steps. Weights that several tiles
// read come into all caches: on a Zen 5 that was faster than into the second alone, though they do not fit into the
// first.
//
// The first-level cache of a Zen 4 has few requests under way, so that all tiles ask for the second there: steps of 8
// sequences became 1.7 times as fast in int8, 1.2 times in bfloat16 and int4. A Zen 4 itself fetches ahead within a
// page: a tile of one or two rows waits for memory alone, and need only tell it of the next page a little before.
// Larger ones were faster asking far ahead, with 4 bits from two rows on.
//
// Intel's processors have fewer requests still, so that weights come half as fast, and slow down where the address
// asked for has the place in a page of the one that is read. With AVX-512, those with AVX512-BF16 and no AMX are AMD's,
// but for a few; the others are Intel's.
constexpr int kFirstCache = 0, kAllButFirst = 2, kAllCaches = 3;
#if defined(__AVX512F__) && (!defined(__AVX512BF16__) || defined(__AMX_BF16__))
constexpr int64_t kAheadBytes = 3072;
template <DType, int, bool>
constexpr int kFetchLocality = kAllButFirst;
constexpr bool kMayBeZen4 = false;
#else
constexpr int64_t kAheadBytes = kAvx2Alone ? 8192 : 4096;
template <DType kType, int kLines, bool kZen4>
constexpr int kFetchLocality = kAvx2Alone || kZen4               ? kAllButFirst
                               : kLines != kLinesPerFetch<kType> ? kAllCaches
                                                                 : kFirstCache;
constexpr bool kMayBeZen4 = kLanes == 16;
#endif

constexpr int64_t kAheadBytesOfWaiting = 1536, kAheadBytesOfOthers = 6144;  // of a Zen 4

// Codes of f4, one to a byte, as whole numbers that products take: twice what they stand for, and 12 more.
BOUGH_INLINE Ints doubled_codes(Ints codes) {
#if defined(__AVX512F__)
    const __m128i table = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return (Ints)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), (__m512i)codes);
#elif defined(__AVX2__)
    const __m128i table = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return (Ints)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), (__m256i)codes);
#else
    uint8_t bytes[sizeof codes];
    std::memcpy(bytes, &codes, sizeof bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(kDoubledE2M1[byte & 15] + code_offset(DType::f4));
    std::memcpy(&codes, bytes, sizeof bytes);
    return codes;
#endif
}

// How far ahead a tile of so many rows asks that is the only one.
template <DType kType>
int64_t ahead_bytes(int rows) {
    constexpr int kWaitingRows = has_4_bits(kType) ? 1 : 2;
    if constexpr (kMayBeZen4) {
        if (is_zen4()) return rows <= kWaitingRows ? kAheadBytesOfWaiting : kAheadBytesOfOthers;
    }
    return kAheadBytes;
}

// Weights that will be wanted, of which some are asked for again and again: what comes evenly comes in time.
struct Asking {
    const char* at;
    int64_t step;  // bytes

    __attribute__((always_inline)) void next() {
        __builtin_prefetch(at, 0, kAllButFirst);
        at += step;
    }
};

// The weights that a tile is to ask for, of those that come next.
struct NextWeights {
    const char* at;
    int64_t bytes;

    Asking in(int64_t times) const { return {at, (bytes + times - 1) / times}; }
};

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
