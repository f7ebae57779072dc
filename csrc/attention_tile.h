// Small matrix products and the packing of keys and values for them: the inner parts of attention.cpp.
//
// Both products of attention, queries by keys and weights by values, run over *units* of 32 bits along the dimension
// that is summed: one float32, or two bfloat16 where the instruction set multiplies those directly. The right operand
// is packed in panels of two vectors: [panel][unit][2 * kLanes]. Each element of a product is one chain of additions
// in ascending order, whatever the shape of the tile.
#pragma once

#include "kernels.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

constexpr int kPanel = 2 * kLanes;

// Most rows of a tile: with two vectors per row, the accumulators, one row's factor and two columns fit the registers.
constexpr int kTileRows = kRegisters == 32 ? 12 : 6;

// Cases of a switch over the rows of a tile; those that no tile has are left out where code is compiled for few.
#define BOUGH_UP_TO_6(ROWS) ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#if defined(__AVX2__) && !defined(__AVX512F__)
#define BOUGH_EACH_ROWS(ROWS) BOUGH_UP_TO_6(ROWS)
#else
#define BOUGH_EACH_ROWS(ROWS) BOUGH_UP_TO_6(ROWS) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#endif

// One float32 per unit.
struct FloatUnit {
    static constexpr int kPerUnit = 1;
    using Columns = Vec;
    BOUGH_INLINE Columns load_columns(const Word* p) { return load(reinterpret_cast<const float*>(p)); }
    BOUGH_INLINE Vec multiply_add(uint32_t factor, Columns columns, Vec sum) {
        return fma(splat(float_of(factor)), columns, sum);
    }
};

#if defined(__AVX512BF16__)
// Two bfloat16 per unit.
struct PairUnit {
    static constexpr int kPerUnit = 2;
    using Columns = __m512i;
    BOUGH_INLINE Columns load_columns(const Word* p) { return _mm512_loadu_si512(p); }
    BOUGH_INLINE Vec multiply_add(uint32_t factor, Columns columns, Vec sum) {
        const __m512i factors = _mm512_set1_epi32(static_cast<int>(factor));
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(factors), reinterpret_cast<__m512bh>(columns));
    }
};
using HalfUnit = PairUnit;
#else
using HalfUnit = FloatUnit;  // bfloat16 is widened
#endif

// Rows of the pool that are looked at soon. A product asks for some of them at each step, since many requests at once
// hold up the loads beside them, and memory is idle in between.
struct Upcoming {
    const int32_t* slots = nullptr;  // of the rows
    int64_t count = 0;
    int64_t per_step = 0;
    const char* pool = nullptr;
    int64_t slot_bytes = 0;
    int64_t row_bytes = 0;

    // Inlined always: GCC takes a function that only prefetches for one without effect and removes the call.
    BOUGH_INLINE void fetch(const Upcoming& rows, int64_t step) {
        const int64_t end = at_most((step + 1) * rows.per_step, rows.count);
        for (int64_t i = step * rows.per_step; i < end; ++i) {
            const char* const row = rows.pool + rows.slots[i] * rows.slot_bytes;
            for (int64_t byte = 0; byte < rows.row_bytes; byte += 64) __builtin_prefetch(row + byte, 0, 2);
        }
    }
};

// product[m][j] = sum over u of left(m, u) * right(u, j), for kRows rows and kVectors vectors of columns.
// left(m, u) is left[m * kRowStride + u], or left[u * kRows + m] if kRowStride is 0. The steps of `upcoming` count from
// `first_step`.
template <class Unit, int kRows, int kVectors, int kRowStride>
BOUGH_INLINE void multiply_tile(const Word* left, const Word* right, int64_t num_units, int64_t panel_size,
                                float* product, int64_t product_stride, const Upcoming& upcoming, int64_t first_step) {
    Vec sums[kRows][kVectors];
    BOUGH_UNROLL
    for (int m = 0; m < kRows; ++m) {
        BOUGH_UNROLL
        for (int j = 0; j < kVectors; ++j) sums[m][j] = splat(0.0F);
    }
    for (int64_t u = 0; u < num_units; ++u) {
        Upcoming::fetch(upcoming, first_step + u);
        typename Unit::Columns columns[kVectors];
        BOUGH_UNROLL
        for (int j = 0; j < kVectors; ++j) {
            columns[j] = Unit::load_columns(right + (j / 2) * panel_size + (j % 2) * kLanes);
        }
        BOUGH_UNROLL
        for (int m = 0; m < kRows; ++m) {
            const uint32_t factor = kRowStride == 0 ? left[m] : left[m * kRowStride];
            BOUGH_UNROLL
            for (int j = 0; j < kVectors; ++j) sums[m][j] = Unit::multiply_add(factor, columns[j], sums[m][j]);
        }
        left += kRowStride == 0 ? kRows : 1;
        right += kPanel;
    }
    BOUGH_UNROLL
    for (int m = 0; m < kRows; ++m) {
        BOUGH_UNROLL
        for (int j = 0; j < kVectors; ++j) store(product + m * product_stride + j * kLanes, sums[m][j]);
    }
}

// Tiles that so many vectors of columns are cut into: few rows need more columns to keep the multipliers busy.
BOUGH_INLINE int num_column_tiles(int num_rows, int num_vectors) {
    const int wide = num_rows <= kTileRows / 2 ? num_vectors / 4 : 0;
    return wide + (num_vectors - 4 * wide + 1) / 2;
}

// The same for any number of vectors; panels of the right operand are `panel_size` units apart. The steps of `upcoming`
// are the units of all tiles.
template <class Unit, int kRows, int kRowStride>
static void multiply_rows(const Word* left, const Word* right, int64_t num_units, int64_t panel_size, int num_vectors,
                          float* product, int64_t product_stride, const Upcoming& upcoming) {
    int done = 0;
    int64_t step = 0;
    if constexpr (kRows <= kTileRows / 2) {
        for (; done + 4 <= num_vectors; done += 4, step += num_units) {
            multiply_tile<Unit, kRows, 4, kRowStride>(left, right + done / 2 * panel_size, num_units, panel_size,
                                                      product + done * kLanes, product_stride, upcoming, step);
        }
    }
    for (; done + 2 <= num_vectors; done += 2, step += num_units) {
        multiply_tile<Unit, kRows, 2, kRowStride>(left, right + done / 2 * panel_size, num_units, panel_size,
                                                  product + done * kLanes, product_stride, upcoming, step);
    }
    if (done < num_vectors) {
        multiply_tile<Unit, kRows, 1, kRowStride>(left, right + done / 2 * panel_size, num_units, panel_size,
                                                  product + done * kLanes, product_stride, upcoming, step);
    }
}

template <class Unit, int kRowStride>
BOUGH_INLINE void multiply(int num_rows, const Word* left, const Word* right, int64_t num_units, int64_t panel_size,
                           int num_vectors, float* product, int64_t product_stride, const Upcoming& upcoming = {}) {
#define BOUGH_ROWS(n)                                                                                       \
    case n:                                                                                                 \
        return multiply_rows<Unit, n, kRowStride>(left, right, num_units, panel_size, num_vectors, product, \
                                                  product_stride, upcoming);
    switch (num_rows) {
        BOUGH_EACH_ROWS(BOUGH_ROWS)
        default:
            return;
    }
#undef BOUGH_ROWS
}

// --- values as they are in the pool ------------------------------------------------------------------------------

// How the values of one unit of keys become columns, without packing: from float32 or bfloat16 rows.
struct FloatRows {
    static constexpr int kPerUnit = 1;
    static constexpr int kStep = 1;  // vectors that are read at once
    template <int kVectors>
    BOUGH_INLINE void read(const void* const* rows, int64_t offset, Vec* columns) {
        const float* row = static_cast<const float*>(rows[0]) + offset;
        BOUGH_UNROLL
        for (int j = 0; j < kVectors; ++j) columns[j] = load(row + j * kLanes);
    }
};
struct WidenedRows {
    static constexpr int kPerUnit = 1;
    static constexpr int kStep = 1;
    template <int kVectors>
    BOUGH_INLINE void read(const void* const* rows, int64_t offset, Vec* columns) {
        const uint16_t* row = static_cast<const uint16_t*>(rows[0]) + offset;
        BOUGH_UNROLL
        for (int j = 0; j < kVectors; ++j) columns[j] = load_bf16(row + j * kLanes);
    }
};
#if defined(__AVX512BF16__)
BOUGH_INLINE __m512i interleave_low() {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_or_si512(lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(32)), 16));
}
BOUGH_INLINE __m512i interleave_high() { return _mm512_add_epi16(interleave_low(), _mm512_set1_epi16(16)); }

struct PairRows {
    static constexpr int kPerUnit = 2;
    static constexpr int kStep = 2;
    template <int kVectors>
    BOUGH_INLINE void read(const void* const* rows, int64_t offset, __m512i* columns) {
        const uint16_t* even = static_cast<const uint16_t*>(rows[0]) + offset;
        const uint16_t* odd = static_cast<const uint16_t*>(rows[1]) + offset;
        BOUGH_UNROLL
        for (int j = 0; j < kVectors; j += 2) {
            const __m512i low = _mm512_loadu_si512(even + j * kLanes);
            const __m512i high = _mm512_loadu_si512(odd + j * kLanes);
            columns[j] = _mm512_permutex2var_epi16(low, interleave_low(), high);
            columns[j + 1] = _mm512_permutex2var_epi16(low, interleave_high(), high);
        }
    }
};
#endif

// product[m][j] = sum over u of weights[m * kRowStride + u] * value(u, j), columns from `offset` on.
template <class Unit, class Rows, int kRows, int kVectors, int kRowStride>
BOUGH_INLINE void weigh_rows_tile(const Word* weights, const void* const* rows, int first_unit, int end_unit,
                                  int64_t offset, float* product, int64_t product_stride, const Upcoming& upcoming,
                                  int64_t first_step) {
    Vec sums[kRows][kVectors];
    BOUGH_UNROLL
    for (int m = 0; m < kRows; ++m) {
        BOUGH_UNROLL
        for (int j = 0; j < kVectors; ++j) sums[m][j] = splat(0.0F);
    }
    for (int u = first_unit; u < end_unit; ++u) {
        Upcoming::fetch(upcoming, first_step + u - first_unit);
        typename Unit::Columns columns[kVectors];
        Rows::template read<kVectors>(rows + u * Rows::kPerUnit, offset, columns);
        BOUGH_UNROLL
        for (int m = 0; m < kRows; ++m) {
            BOUGH_UNROLL
            for (int j = 0; j < kVectors; ++j) {
                sums[m][j] = Unit::multiply_add(weights[m * kRowStride + u], columns[j], sums[m][j]);
            }
        }
    }
    BOUGH_UNROLL
    for (int m = 0; m < kRows; ++m) {
        BOUGH_UNROLL
        for (int j = 0; j < kVectors; ++j) store(product + m * product_stride + j * kLanes, sums[m][j]);
    }
}

// Whole vectors (kStep of them at once) only.
template <class Unit, class Rows, int kRows, int kRowStride>
static void weigh_rows(const Word* weights, const void* const* rows, int first_unit, int end_unit, int num_vectors,
                       float* product, int64_t product_stride, const Upcoming& upcoming) {
    const int64_t num_units = end_unit - first_unit;
    int done = 0;
    int64_t step = 0;
    if constexpr (kRows <= kTileRows / 2) {
        for (; done + 4 <= num_vectors; done += 4, step += num_units) {
            weigh_rows_tile<Unit, Rows, kRows, 4, kRowStride>(weights, rows, first_unit, end_unit, done * kLanes,
                                                              product + done * kLanes, product_stride, upcoming, step);
        }
    }
    for (; done + 2 <= num_vectors; done += 2, step += num_units) {
        weigh_rows_tile<Unit, Rows, kRows, 2, kRowStride>(weights, rows, first_unit, end_unit, done * kLanes,
                                                          product + done * kLanes, product_stride, upcoming, step);
    }
    if constexpr (Rows::kStep == 1) {
        if (done < num_vectors) {
            weigh_rows_tile<Unit, Rows, kRows, 1, kRowStride>(weights, rows, first_unit, end_unit, done * kLanes,
                                                              product + done * kLanes, product_stride, upcoming, step);
        }
    }
}

template <class Unit, class Rows, int kRowStride>
BOUGH_INLINE void weigh_values(int num_rows, const Word* weights, const void* const* rows, int first_unit, int end_unit,
                               int num_vectors, float* product, int64_t product_stride, const Upcoming& upcoming) {
#define BOUGH_ROWS(n)                                                                                           \
    case n:                                                                                                     \
        return weigh_rows<Unit, Rows, n, kRowStride>(weights, rows, first_unit, end_unit, num_vectors, product, \
                                                     product_stride, upcoming);
    switch (num_rows) {
        BOUGH_EACH_ROWS(BOUGH_ROWS)
        default:
            return;
    }
#undef BOUGH_ROWS
}

// --- packing -----------------------------------------------------------------------------------------------------

// One row's bytes as units, zeros behind the last element.
template <class Unit>
BOUGH_INLINE void widen_row(const void* row, DType dtype, int64_t size, Word* units) {
    const int64_t num_units = (size + Unit::kPerUnit - 1) / Unit::kPerUnit;
    if constexpr (Unit::kPerUnit == 2) {
        uint16_t* pairs = reinterpret_cast<uint16_t*>(units);
        units[num_units - 1] = 0;
        if (dtype == DType::bf16) {
            std::memcpy(pairs, row, static_cast<size_t>(size) * 2);
        } else {
            const int8_t* bytes = static_cast<const int8_t*>(row);
            int64_t i = 0;
            for (; i + kLanes <= size; i += kLanes) store_bf16(pairs + i, load_i8(bytes + i));
            for (; i < size; ++i) pairs[i] = as_bf16(bytes[i]);
        }
    } else {
        float* floats = reinterpret_cast<float*>(units);
        if (dtype == DType::f32) {
            std::memcpy(floats, row, static_cast<size_t>(size) * 4);
        } else if (dtype == DType::bf16) {
            const uint16_t* halves = static_cast<const uint16_t*>(row);
            int64_t i = 0;
            for (; i + kLanes <= size; i += kLanes) store(floats + i, load_bf16(halves + i));
            for (; i < size; ++i) floats[i] = as_float(halves[i]);
        } else {
            const int8_t* bytes = static_cast<const int8_t*>(row);
            int64_t i = 0;
            for (; i + kLanes <= size; i += kLanes) store(floats + i, load_i8(bytes + i));
            for (; i < size; ++i) floats[i] = bytes[i];
        }
    }
}

#if defined(__AVX512F__)
// 16 units of 16 rows as columns, of which the first `count` units are read and written.
template <bool kWhole>
BOUGH_INLINE void transpose_16(const Word* const* rows, int64_t first, int count, Word* target) {
    __m512i a[16];
    __m512i b[16];
    const __mmask16 mask = static_cast<__mmask16>((1U << count) - 1);
    BOUGH_UNROLL
    for (int i = 0; i < 16; ++i) {
        a[i] = kWhole ? _mm512_loadu_si512(rows[i] + first) : _mm512_maskz_loadu_epi32(mask, rows[i] + first);
    }
    BOUGH_UNROLL
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    BOUGH_UNROLL
    for (int i = 0; i < 16; i += 4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    BOUGH_UNROLL
    for (int i = 0; i < 4; ++i) {
        b[i] = _mm512_shuffle_i32x4(a[i], a[4 + i], 0x88);
        b[4 + i] = _mm512_shuffle_i32x4(a[i], a[4 + i], 0xDD);
        b[8 + i] = _mm512_shuffle_i32x4(a[8 + i], a[12 + i], 0x88);
        b[12 + i] = _mm512_shuffle_i32x4(a[8 + i], a[12 + i], 0xDD);
    }
    BOUGH_UNROLL
    for (int i = 0; i < 4; ++i) {
        a[i] = _mm512_shuffle_i32x4(b[i], b[8 + i], 0x88);
        a[4 + i] = _mm512_shuffle_i32x4(b[4 + i], b[12 + i], 0x88);
        a[8 + i] = _mm512_shuffle_i32x4(b[i], b[8 + i], 0xDD);
        a[12 + i] = _mm512_shuffle_i32x4(b[4 + i], b[12 + i], 0xDD);
    }
    BOUGH_UNROLL
    for (int i = 0; i < 16; ++i) {
        if (kWhole || i < count) _mm512_storeu_si512(target + (first + i) * kPanel, a[i]);
    }
}
#endif

// kLanes rows of `num_units` units as columns: target[u * kPanel + lane] = rows[lane][u].
BOUGH_INLINE void transpose_lanes(const Word* const* rows, int64_t num_units, Word* target) {
    int64_t u = 0;
#if defined(__AVX512F__)
    for (; u + 16 <= num_units; u += 16) transpose_16<true>(rows, u, 16, target);
    if (u < num_units) {
        transpose_16<false>(rows, u, static_cast<int>(num_units - u), target);
        return;
    }
#elif defined(__AVX2__)
    for (; u + 8 <= num_units; u += 8) {
        __m256 a[8];
        __m256 b[8];
        BOUGH_UNROLL
        for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(rows[i] + u));
        BOUGH_UNROLL
        for (int i = 0; i < 8; i += 2) {
            b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
            b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
        }
        BOUGH_UNROLL
        for (int i = 0; i < 8; i += 4) {
            a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
            a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xEE);
            a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
            a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xEE);
        }
        float* out = reinterpret_cast<float*>(target);
        BOUGH_UNROLL
        for (int i = 0; i < 4; ++i) {
            _mm256_storeu_ps(out + (u + i) * kPanel, _mm256_permute2f128_ps(a[i], a[4 + i], 0x20));
            _mm256_storeu_ps(out + (u + 4 + i) * kPanel, _mm256_permute2f128_ps(a[i], a[4 + i], 0x31));
        }
    }
#endif
    for (; u < num_units; ++u) {
        for (int lane = 0; lane < kLanes; ++lane) target[u * kPanel + lane] = rows[lane][u];
    }
}

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
