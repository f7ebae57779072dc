#include "isa.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bough {

#define BOUGH_TABLE(isa)                                                                                              \
    namespace isa {                                                                                                   \
    extern const AttentionKernels attention_kernels;                                                                  \
    extern const ElementwiseKernels elementwise_kernels;                                                              \
    extern const LogprobKernels logprob_kernels;                                                                      \
    extern const SamplingKernels sampling_kernels;                                                                    \
    extern const GemmKernels gemm_kernels;                                                                            \
    const KernelTable table{attention_kernels, elementwise_kernels, logprob_kernels, sampling_kernels, gemm_kernels}; \
    }

// The build says which it has: a compiler may lack some.
BOUGH_TABLE(portable)
#if defined(BOUGH_HAS_avx2)
BOUGH_TABLE(avx2)
#endif
#if defined(BOUGH_HAS_avx512)
BOUGH_TABLE(avx512)
#endif
#if defined(BOUGH_HAS_avx512vnni)
BOUGH_TABLE(avx512vnni)
#endif
#if defined(BOUGH_HAS_avx512bf16)
BOUGH_TABLE(avx512bf16)
#endif

namespace {

// Null: not in this build.
constexpr const KernelTable* tables[kNumIsas] = {
    &portable::table,
#if defined(BOUGH_HAS_avx2)
    &avx2::table,
#else
    nullptr,
#endif
#if defined(BOUGH_HAS_avx512)
    &avx512::table,
#else
    nullptr,
#endif
#if defined(BOUGH_HAS_avx512vnni)
    &avx512vnni::table,
#else
    nullptr,
#endif
#if defined(BOUGH_HAS_avx512bf16)
    &avx512bf16::table,
#else
    nullptr,
#endif
};

#if defined(BOUGH_EMULATES_AVX512)
// A check of the kernels, in which functions stand for instructions that the machine may not have.
Isa detect() { return Isa::avx512bf16; }
#elif defined(__x86_64__)
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
    if (!(c & bit_AVX512VNNI)) return Isa::avx512;
    if (highest_subleaf < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d)) return Isa::avx512vnni;
    return (a & bit_AVX512BF16) ? Isa::avx512bf16 : Isa::avx512vnni;
}
#else
Isa detect() { return Isa::portable; }
#endif

std::atomic<Isa>& current() {
    static std::atomic<Isa> isa{best_isa()};
    return isa;
}

}  // namespace

Isa machine_isa() {
    static const Isa best = detect();
    return best;
}

Isa best_isa() {
    int isa = static_cast<int>(machine_isa());
    while (tables[isa] == nullptr) --isa;
    return static_cast<Isa>(isa);
}

Isa current_isa() { return current().load(std::memory_order_relaxed); }

bool set_isa(Isa isa) {
    if (isa < Isa::portable || isa > machine_isa() || tables[static_cast<int>(isa)] == nullptr) return false;
    current().store(isa, std::memory_order_relaxed);
    return true;
}

const KernelTable& kernels() { return *tables[static_cast<int>(current_isa())]; }

}  // namespace bough
