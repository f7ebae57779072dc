// What tiles of all types of weights share: how wide they are, and how they ask for the weights that come next.
#pragma once

#include "gemm.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

// Constants below were measured on a Zen 3 for processors with AVX2 alone, on a Zen 4 for the others.
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr bool kAvx2Alone = true;
#else
constexpr bool kAvx2Alone = false;
#endif

// Vectors of columns that a tile of so many rows computes at once. Those of a whole panel keep multipliers busy where
// there is one row, and let its weights arrive in one go.
constexpr int column_vectors(int rows) { return kAvx2Alone && rows == 1 ? 4 : 2; }
// How often such a tile runs along the panel, each time over some of its columns, and asks for weights meanwhile.
constexpr int fetching_passes(int rows) {
    return kAvx2Alone ? static_cast<int>(kPanelColumns) / (kLanes * column_vectors(rows)) : 1;
}

// How far ahead the weights of a single row are asked for, and for which cache: 0 is the first level only. A step reads
// them once, and would drive what Python needs between two steps out of the others.
constexpr int64_t kAheadBytes = kAvx2Alone ? 8192 : 4096;
constexpr int kNearest = kAvx2Alone ? 2 : 0;

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
