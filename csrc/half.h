// Half precision without instructions for it, and the bits of floats.
#pragma once

#include <cstdint>
#include <cstring>

namespace bough {

// In an unnamed namespace, like everything inline here: see isa.h.
namespace {

inline float float_of(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
inline uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

constexpr uint16_t kHalfNan = 0x7e00;

// What infinity and NaN would be is NaN.
inline float from_half(uint16_t half) {
    const uint32_t size = half & 0x7fffU;
    if (size >= 0x7c00) return __builtin_nanf("");
    return float_of((half & 0x8000U) << 16 | size << 13) * 0x1p112F;  // the difference of the exponents' biases
}

// The nearest one, ties to even; NaN for what is too large.
inline uint16_t to_half(float x) {
    const uint32_t bits = bits_of(x * 0x1p-112F);
    const uint32_t size = bits & 0x7fffffffU;
    const uint32_t half = (size + 0xfffU + ((size >> 13) & 1U)) >> 13;
    return half < 0x7c00 ? static_cast<uint16_t>(bits >> 31 << 15 | half) : kHalfNan;
}

}  // namespace
}  // namespace bough
