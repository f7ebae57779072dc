// Instruction sets: which there are, which this machine has, which is in use, and the kernels compiled for each.
//
// Some files are compiled once per instruction set (see setup.py), with BOUGH_ISA set to its name. What these files
// define or instantiate is in an unnamed namespace: of functions with a linkage of their own the linker would keep one
// copy for all, perhaps the one that this machine cannot run.
#pragma once

#include "gemm.h"
#include "kernels.h"
#include "packing.h"

namespace bough {

// Later is better. Each includes all earlier ones, except that sets of AVX-512 need not include avx2vnni.
enum class Isa : int32_t {
    portable = 0,
    avx2 = 1,        // AVX2, FMA, F16C
    avx2vnni = 2,    // int8 dot products of 256 bits (AVX-VNNI)
    avx512 = 3,      // AVX-512 F, BW, DQ, VL
    avx512vnni = 4,  // int8 dot products
    avx512bf16 = 5,  // bfloat16 dot products
    amx = 6,         // products of tiles of bfloat16 and int8
};

constexpr int kNumIsas = 7;

struct KernelTable {
    const AttentionKernels& attention;
    const ElementwiseKernels& elementwise;
    const LogprobKernels& logprobs;
    const SamplingKernels& sampling;
    const PackingKernels& packing;
    const GemmKernels& gemm;
};

// The best set that this machine and its operating system have.
Isa machine_isa();

// The best one of these that this build has: compilers may lack some.
Isa best_isa();

// The set in use: the best one unless a test has chosen another.
Isa current_isa();

// False, changing nothing, if this machine or this build lacks it.
bool set_isa(Isa isa);

// Those of the set in use.
const KernelTable& kernels();

}  // namespace bough
