#include "isa.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bough {

#define BOUGH_TABLE(isa)                               \
    namespace isa {                                    \
    extern const AttentionKernels attention_kernels;   \
    extern const ElementwiseKernels elementwise_kernels; \
    extern const SamplingKernels sampling_kernels;     \
    extern const GemmKernels gemm_kernels;             \
    const KernelTable table{attention_kernels, elementwise_kernels, sampling_kernels, gemm_kernels}; \
    }

BOUGH_TABLE(portable)
#if defined(__x86_64__)
BOUGH_TABLE(avx2)
BOUGH_TABLE(avx512)
BOUGH_TABLE(avx512bf16)
#endif

namespace {

const KernelTable& table_of(Isa isa) {
    switch (isa) {
#if defined(__x86_64__)
        case Isa::avx2:
            return avx2::table;
        case Isa::avx512:
            return avx512::table;
        case Isa::avx512bf16:
            return avx512bf16::table;
#endif
        default:
            return portable::table;
    }
}

#if defined(__x86_64__)
uint64_t saved_register_state() {
    uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<uint64_t>(high) << 32) | low;
}

Isa detect() {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return Isa::portable;
    const uint32_t basic = bit_FMA | bit_F16C | bit_AVX | bit_OSXSAVE;
    if ((c & basic) != basic) return Isa::portable;
    // The operating system must save the registers: 0x6 are XMM and YMM, 0xe0 the mask and ZMM registers.
    const uint64_t state = saved_register_state();
    uint32_t highest_subleaf;
    if ((state & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &highest_subleaf, &b, &c, &d)) return Isa::portable;
    if (!(b & bit_AVX2)) return Isa::portable;
    const uint32_t foundation = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((state & 0xe6) != 0xe6 || (b & foundation) != foundation) return Isa::avx2;
    if (!(c & bit_AVX512VNNI) || highest_subleaf < 1) return Isa::avx512;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return Isa::avx512;
    return (a & bit_AVX512BF16) ? Isa::avx512bf16 : Isa::avx512;
}
#else
Isa detect() { return Isa::portable; }
#endif

std::atomic<Isa>& current() {
    static std::atomic<Isa> isa{best_isa()};
    return isa;
}

}  // namespace

Isa best_isa() {
    static const Isa best = detect();
    return best;
}

Isa current_isa() { return current().load(std::memory_order_relaxed); }

bool set_isa(Isa isa) {
    if (isa < Isa::portable || isa > best_isa()) return false;
    current().store(isa, std::memory_order_relaxed);
    return true;
}

const KernelTable& kernels() { return table_of(current_isa()); }

}  // namespace bough
