// Which processor this is, where one reads memory in a way of its own.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bough {
// In an unnamed namespace, like everything inline here: see isa.h.
namespace {

// Whether this is a Zen 4, for code that only processors with AVX-512 run: a Zen 3 is of the same family.
inline bool is_zen4() {
#if defined(BOUGH_EMULATES_AVX512)
    return true;  // a check of the kernels, of those that few machines have
#elif defined(__x86_64__)
    static const bool found = [] {
        uint32_t a, vendor, c, d;
        if (!__get_cpuid(0, &a, &vendor, &c, &d) || vendor != signature_AMD_ebx) return false;
        if (!__get_cpuid(1, &a, &vendor, &c, &d)) return false;
        return (a >> 8 & 0xf) + (a >> 20 & 0xff) == 0x19;
    }();
    return found;
#else
    return false;
#endif
}

}  // namespace
}  // namespace bough
