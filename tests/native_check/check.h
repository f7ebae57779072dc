// What the checks share: random numbers, numbers as they are stored, and counting what fails.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "isa.h"
#include "packing.h"
#include "thread_pool.h"
#include "works.h"

namespace check {

using namespace bough;

inline std::mt19937 random_bits(1);
inline int failures = 0;

inline void expect(bool holds, const char* what, double found, double wanted) {
    if (holds) return;
    if (++failures < 20) std::printf("FAILED %s: %.9g, expected %.9g\n", what, found, wanted);
}

inline void expect_near(double found, double wanted, double tolerance, const char* what) {
    expect(std::fabs(found - wanted) <= tolerance, what, found, wanted);
}

inline int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random_bits)];
}

inline bool flip() { return pick({0, 1}) == 1; }

inline int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_bits);
}

inline std::vector<float> normal(int64_t count, float scale = 1.0F) {
    std::normal_distribution<float> distribution(0.0F, scale);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = distribution(random_bits);
    return values;
}

// All of one size, so that as bytes each is 127 or -127: in half of the cases of one sign.
inline std::vector<float> extreme(int64_t count, float size = 1.0F) {
    const bool mixed = flip();
    if (flip()) size = -size;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = mixed && flip() ? -size : size;
    return values;
}

inline uint16_t to_bf16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

inline float from_bf16(uint16_t half) {
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
}

inline DType any_dtype() { return flip() ? DType::f32 : DType::bf16; }

// Relative error of rounding to a type.
inline double rounding(DType dtype) { return dtype == DType::bf16 ? 1.0 / 256 : 1.0 / 16777216; }

// An element of numbers that are stored as f32 or bf16.
inline double element(const std::vector<unsigned char>& bytes, DType dtype, int64_t index) {
    float value;
    uint16_t half;
    if (dtype == DType::f32) {
        std::memcpy(&value, &bytes[4 * index], 4);
        return value;
    }
    std::memcpy(&half, &bytes[2 * index], 2);
    return from_bf16(half);
}

// Numbers in memory of some type, and what they stood for. No spare bytes: a sanitizer sees each overrun.
struct Stored {
    std::vector<unsigned char> bytes;
    std::vector<float> values;
    DType dtype;
    void* data() { return bytes.data(); }
    double at(int64_t index) const { return element(bytes, dtype, index); }
};

inline Stored stored(std::vector<float> values, DType dtype) {
    Stored result;
    result.dtype = dtype;
    const size_t size = dtype == DType::f32 ? 4 : 2;
    result.bytes.resize(values.size() * size);
    for (size_t i = 0; i < values.size(); ++i) {
        if (dtype == DType::bf16) {
            const uint16_t half = to_bf16(values[i]);
            values[i] = from_bf16(half);
            std::memcpy(&result.bytes[2 * i], &half, 2);
        } else {
            std::memcpy(&result.bytes[4 * i], &values[i], 4);
        }
    }
    result.values = std::move(values);
    return result;
}

inline Stored zeros(int64_t count, DType dtype) {
    return stored(std::vector<float>(static_cast<size_t>(count)), dtype);
}

// Where keys or values [slots * kv_heads, dim] are stored.
struct KVMemory {
    KVMemory(int64_t heads, int64_t dim, DType dtype)
        : bytes(static_cast<size_t>(heads * dim *
                                    (dtype == DType::f32    ? 4
                                     : dtype == DType::bf16 ? 2
                                                            : 1))),
          scales(dtype == DType::i8 ? static_cast<size_t>(heads) : 0),
          dim(dim),
          dtype(dtype) {}
    double at(int64_t head, int64_t d) const {
        const int64_t index = head * dim + d;
        if (dtype == DType::i8) return static_cast<double>(static_cast<int8_t>(bytes[index])) * scales[head];
        return element(bytes, dtype, index);
    }
    double rounding_error(int64_t head) const { return dtype == DType::i8 ? 0.5001 * scales[head] : 0; }

    std::vector<unsigned char> bytes;
    std::vector<float> scales;
    int64_t dim;
    DType dtype;
};

template <class T>
struct Aligned {
    explicit Aligned(int64_t count) : memory(static_cast<size_t>(count) * sizeof(T) + 64) {}
    T* data() {
        const uintptr_t start = reinterpret_cast<uintptr_t>(memory.data());
        return reinterpret_cast<T*>((start + 63) / 64 * 64);
    }
    std::vector<unsigned char> memory;
};

// A packed matrix and its numbers [num_outputs, num_inputs], of a quantised one those that are held, as f32.
struct Weights {
    Weights(ThreadPool& pool, int64_t outputs, int64_t inputs, DType dtype, PanelLayout layout, bool with_bias,
            float scale = 1.0F, bool extremes = false);
    Stored plain;
    std::vector<float> plain_bias;  // empty: none
    std::vector<float> packed_bias;
    PackedMatrix matrix{};
    Aligned<uint32_t> panels;
};

// Rows of f32 as int8 for such weights, and in `input.values` what they then stand for.
std::vector<uint32_t> quantized(ThreadPool& pool, Stored& input, int64_t stride, int64_t rows,
                                const PackedMatrix& matrix);

void check_attention(ThreadPool& pool);
void check_gemm(ThreadPool& pool);
void check_elementwise(ThreadPool& pool);
void check_logprobs(ThreadPool& pool);
void check_sampling(ThreadPool& pool);
void check_program(ThreadPool& pool);
void check_threads();
void check_claims(ThreadPool& pool);
void check_ranks();
void check_experts(ThreadPool& pool);

// Threads lose their cores at random while this exists.
struct Pauses {
    Pauses();
    ~Pauses();
};

}  // namespace check
