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
// read come into all caches, which was faster than into the second alone, though they do not fit into the first.
//
// Few rows wait for memory alone, and the first-level cache of a Zen 4 has few requests under way: into the second int8
// came 1.2 times as fast, most of it by the processor's own prefetching, which needs to be told of the next page but a
// little ahead. Rows that have more to compute are slower so, to 0.7. A Zen 5 has a larger first cache, and was
// measured without this alone.
//
// Intel's processors have fewer requests still, so that weights come half as fast, and slow down where the address
// asked for has the place in a page of the one that is read. With AVX-512, those with AVX512-BF16 and no AMX are AMD's,
// but for a few; the others are Intel's.
constexpr int kFirstCache = 0, kAllButFirst = 2, kAllCaches = 3;
#if defined(__AVX512F__) && (!defined(__AVX512BF16__) || defined(__AMX_BF16__))
constexpr int64_t kAheadBytes = 3072;
template <DType, int, bool>
constexpr int kFetchLocality = kAllButFirst;
template <DType>
constexpr int kMostRowsOfZen4 = 0;
#else
constexpr int64_t kAheadBytes = kAvx2Alone ? 8192 : 4096;
template <DType kType, int kLines, bool kZen4>
constexpr int kFetchLocality = kLines != kLinesPerFetch<kType> && !kAvx2Alone ? kAllCaches
                               : kAvx2Alone || kZen4                          ? kAllButFirst
                                                                              : kFirstCache;
// Most rows of the tiles that a Zen 4 has of its own.
template <DType kType>
constexpr int kMostRowsOfZen4 = kLanes < 16                                ? 0
                                : kType == DType::i4 || kType == DType::u4 ? 1
                                                                           : 4;
#endif
constexpr int64_t kAheadBytesOfZen4 = 1536;

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
