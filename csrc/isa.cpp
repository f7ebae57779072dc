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
#if defined(BOUGH_HAS_avx2vnni)
namespace avx2vnni {
extern const GemmKernels gemm_kernels;
// Only products differ.
const KernelTable table{avx2::attention_kernels, avx2::elementwise_kernels, avx2::logprob_kernels,
                        avx2::sampling_kernels, gemm_kernels};
}  // namespace avx2vnni
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
#if defined(BOUGH_HAS_avx2vnni)
    &avx2vnni::table,
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

constexpr uint32_t bit_of(Isa isa) { return 1U << static_cast<int>(isa); }

// The sets that the machine has, a bit for each.
#if defined(BOUGH_EMULATES_AVX512)
// A check of the kernels, in which functions stand for instructions that the machine may not have.
uint32_t detect() { return (1U << kNumIsas) - 1; }
#elif defined(__x86_64__)
uint64_t saved_register_state() {
    uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<uint64_t>(high) << 32) | low;
}

uint32_t detect() {
    uint32_t found = bit_of(Isa::portable);
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return found;
    const uint32_t basic = bit_FMA | bit_F16C | bit_AVX | bit_OSXSAVE;
    if ((c & basic) != basic) return found;
    // The operating system must save the registers: 0x6 are XMM and YMM, 0xe0 the mask and ZMM registers.
    const uint64_t state = saved_register_state();
    uint32_t highest_subleaf;
    if ((state & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &highest_subleaf, &b, &c, &d)) return found;
    if (!(b & bit_AVX2)) return found;
    found |= bit_of(Isa::avx2);
    uint32_t more = 0, unused;
    if (highest_subleaf >= 1) __get_cpuid_count(7, 1, &more, &unused, &unused, &unused);
    constexpr uint32_t kAvxVnni = 1U << 4, kAvx512Bf16 = 1U << 5;  // not named by all compilers
    if (more & kAvxVnni) found |= bit_of(Isa::avx2vnni);
    const uint32_t foundation = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((state & 0xe6) != 0xe6 || (b & foundation) != foundation) return found;
    found |= bit_of(Isa::avx512);
    if (!(c & bit_AVX512VNNI)) return found;
    found |= bit_of(Isa::avx512vnni);
    return (more & kAvx512Bf16) ? found | bit_of(Isa::avx512bf16) : found;
}
#else
uint32_t detect() { return bit_of(Isa::portable); }
#endif

bool machine_has(int isa) {
    static const uint32_t found = detect();
    return (found >> isa & 1) != 0;
}

std::atomic<Isa>& current() {
    static std::atomic<Isa> isa{best_isa()};
    return isa;
}

}  // namespace

Isa machine_isa() {
    int isa = kNumIsas - 1;
    while (!machine_has(isa)) --isa;
    return static_cast<Isa>(isa);
}

Isa best_isa() {
    int isa = kNumIsas - 1;
    while (!machine_has(isa) || tables[isa] == nullptr) --isa;
    return static_cast<Isa>(isa);
}

Isa current_isa() { return current().load(std::memory_order_relaxed); }

bool set_isa(Isa isa) {
    const int index = static_cast<int>(isa);
    if (index < 0 || index >= kNumIsas || !machine_has(index) || tables[index] == nullptr) return false;
    current().store(isa, std::memory_order_relaxed);
    return true;
}

const KernelTable& kernels() { return *tables[static_cast<int>(current_isa())]; }

}  // namespace bough
