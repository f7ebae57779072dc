// What the kernels use of AMX, written in C++: see emulated_avx512.h. By the pseudocode of Intel's Architecture
// Instruction Set Extensions Programming Reference. What a processor would refuse ends the program.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __AMX_TILE__ 1
#define __AMX_BF16__ 1
#define __AMX_INT8__ 1

namespace emulated {

struct Tile {
    int rows, row_bytes;  // 0: there is no such register
    uint8_t bytes[16][64];
};
inline thread_local Tile tiles[8];
inline thread_local bool tiles_are_configured = false;

static inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "an AMX instruction would fault: %s\n", what);
    std::abort();
}

static inline Tile& tile(int index) {
    require(tiles_are_configured, "no configuration");
    require(tiles[index].rows > 0, "no such register");
    return tiles[index];
}

static inline void tile_loadconfig(const void* layout) {
    const uint8_t* bytes = static_cast<const uint8_t*>(layout);
    require(bytes[0] == 1 && bytes[1] == 0, "palette or first row");
    for (int i = 2; i < 16; ++i) require(bytes[i] == 0, "reserved bytes");
    for (int i = 0; i < 16; ++i) {
        uint16_t row_bytes;
        std::memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof row_bytes);
        const int rows = bytes[48 + i];
        require(i < 8 || (rows == 0 && row_bytes == 0), "more than eight registers");
        require(rows <= 16 && row_bytes <= 64 && (rows == 0) == (row_bytes == 0), "rows or bytes of a row");
        if (i < 8) tiles[i] = Tile{rows, row_bytes, {}};
    }
    tiles_are_configured = true;
}
static inline void tile_release() { tiles_are_configured = false; }
static inline void tile_zero(int index) { std::memset(tile(index).bytes, 0, sizeof tile(index).bytes); }

static inline void tile_loadd(int index, const void* from, int64_t stride) {
    Tile& into = tile(index);
    std::memset(into.bytes, 0, sizeof into.bytes);
    for (int row = 0; row < into.rows; ++row) {
        std::memcpy(into.bytes[row], static_cast<const uint8_t*>(from) + row * stride, into.row_bytes);
    }
}
static inline void tile_stored(int index, void* to, int64_t stride) {
    const Tile& from = tile(index);
    for (int row = 0; row < from.rows; ++row) {
        std::memcpy(static_cast<uint8_t*>(to) + row * stride, from.bytes[row], from.row_bytes);
    }
}

// bfloat16 numbers and results that are not normal count as zero.
static inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }
static inline float bf16_at(const uint8_t* row, int element) {
    uint16_t half;
    std::memcpy(&half, row + 2 * element, sizeof half);
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return flushed(x);
}

static inline void require_product(int sum, int left, int right) {
    Tile &into = tile(sum), &a = tile(left), &b = tile(right);
    require(into.rows == a.rows && into.row_bytes == b.row_bytes && a.row_bytes == 4 * b.rows && b.row_bytes % 4 == 0,
            "shapes of a product");
    require(sum != left && sum != right && left != right, "one register twice");
}

static inline void tile_dpbf16ps(int sum, int left, int right) {
    require_product(sum, left, right);
    Tile &into = tile(sum), &a = tile(left), &b = tile(right);
    for (int row = 0; row < a.rows; ++row) {
        for (int column = 0; column < b.row_bytes / 4; ++column) {
            float even = 0.0F, odd = 0.0F, whole;
            for (int k = 0; k < b.rows; ++k) {
                const uint8_t *x = a.bytes[row], *y = b.bytes[k];
                even = flushed(std::fma(bf16_at(x, 2 * k), bf16_at(y, 2 * column), even));
                odd = flushed(std::fma(bf16_at(x, 2 * k + 1), bf16_at(y, 2 * column + 1), odd));
            }
            std::memcpy(&whole, into.bytes[row] + 4 * column, sizeof whole);
            whole = flushed(flushed(whole) + flushed(even + odd));
            std::memcpy(into.bytes[row] + 4 * column, &whole, sizeof whole);
        }
    }
}

// Signed bytes of both.
static inline void tile_dpbssd(int sum, int left, int right) {
    require_product(sum, left, right);
    Tile &into = tile(sum), &a = tile(left), &b = tile(right);
    for (int row = 0; row < a.rows; ++row) {
        for (int column = 0; column < b.row_bytes / 4; ++column) {
            int32_t whole;
            std::memcpy(&whole, into.bytes[row] + 4 * column, sizeof whole);
            for (int k = 0; k < a.row_bytes; ++k) {
                const int weight = static_cast<int8_t>(b.bytes[k / 4][4 * column + k % 4]);
                whole += static_cast<int8_t>(a.bytes[row][k]) * weight;
            }
            std::memcpy(into.bytes[row] + 4 * column, &whole, sizeof whole);
        }
    }
}

}  // namespace emulated

#undef _tile_loadconfig
#define _tile_loadconfig emulated::tile_loadconfig
#undef _tile_release
#define _tile_release emulated::tile_release
#undef _tile_zero
#define _tile_zero emulated::tile_zero
#undef _tile_loadd
#define _tile_loadd emulated::tile_loadd
#undef _tile_stored
#define _tile_stored emulated::tile_stored
#undef _tile_dpbf16ps
#define _tile_dpbf16ps emulated::tile_dpbf16ps
#undef _tile_dpbssd
#define _tile_dpbssd emulated::tile_dpbssd
