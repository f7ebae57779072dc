#include "isa.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace bough {

#define BOUGH_TABLE(isa)                                                             \
    namespace isa {                                                                  \
    extern const AttentionKernels attention_kernels;                                 \
    extern const ElementwiseKernels elementwise_kernels;                             \
    extern const LogprobKernels logprob_kernels;                                     \
    extern const SamplingKernels sampling_kernels;                                   \
    extern const PackingKernels packing_kernels;                                     \
    extern const GemmKernels gemm_kernels;                                           \
    const KernelTable table{attention_kernels, elementwise_kernels, logprob_kernels, \
                            sampling_kernels,  packing_kernels,     gemm_kernels};   \
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
                        avx2::sampling_kernels,  avx2::packing_kernels,     gemm_kernels};
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
#if defined(BOUGH_HAS_amx)
namespace amx {
extern const GemmKernels gemm_kernels;
const KernelTable table{avx512bf16::attention_kernels, avx512bf16::elementwise_kernels, avx512bf16::logprob_kernels,
                        avx512bf16::sampling_kernels,  avx512bf16::packing_kernels,     gemm_kernels};
}  // namespace amx
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
#if defined(BOUGH_HAS_amx)
    &amx::table,
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

// Tile registers are large: Linux saves those of a process only once that has asked for it, and refuses where a thread
// has a stack for signals that is too small for them.
bool may_use_tiles(uint64_t state) {
#if defined(__linux__)
    constexpr uint64_t kTiles = 1U << 17 | 1U << 18;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return (state & kTiles) == kTiles && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    (void)state;
    return false;
#endif
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
    if (!(more & kAvx512Bf16)) return found;
    found |= bit_of(Isa::avx512bf16);
    constexpr uint32_t kAmx = 1U << 22 | 1U << 24 | 1U << 25;  // products of bfloat16, tiles, products of int8
    return (d & kAmx) == kAmx && may_use_tiles(state) ? found | bit_of(Isa::amx) : found;
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
