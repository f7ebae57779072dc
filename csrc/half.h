// Half precision without instructions for it.
#pragma once

#include <cstdint>
#include <cstring>

namespace bough {

// In an unnamed namespace, like everything inline here: see isa.h.
namespace {

constexpr uint16_t kHalfNan = 0x7e00;

// What infinity and NaN would be is NaN.
inline float from_half(uint16_t half) {
    const uint32_t size = half & 0x7fffU;
    if (size >= 0x7c00) return __builtin_nanf("");
    const uint32_t bits = (half & 0x8000U) << 16 | size << 13;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x * 0x1p112F;  // the difference of the exponents' biases
}

// The nearest one, ties to even; NaN for what is too large.
inline uint16_t to_half(float x) {
    const float shifted = x * 0x1p-112F;
    uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const uint32_t size = bits & 0x7fffffffU;
    const uint32_t half = (size + 0xfffU + ((size >> 13) & 1U)) >> 13;
    return half < 0x7c00 ? static_cast<uint16_t>(bits >> 31 << 15 | half) : kHalfNan;
}

}  // namespace
}  // namespace bough
