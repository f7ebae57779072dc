# How these sources are compiled: read by setup.py and by tests/native_check/Makefile, so assignments of plain words only.

# Nobody looks at errno or floating-point exceptions; sums may be contracted into fused multiply-adds, which makes them
# more exact, but never reordered. The warnings are false alarms of g++ 12 in its own intrinsics.
FLAGS = -std=c++17 -pthread -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-uninitialized -Wno-maybe-uninitialized

# Files that are compiled once for each instruction set, with its name as BOUGH_ISA; all others once.
# PER_ISA_<set>, where it is given, lists those of a set instead.
PER_ISA = attention elementwise gemm logprobs sampling weight_codes
PER_ISA_avx2vnni = gemm
PER_ISA_amx = gemm

# Flags that a file has beside these. Codes of weights are the same with all instruction sets.
FLAGS_weight_codes = -ffp-contract=off

# Instruction sets beside "portable", in ascending order, and the flags of each. Which one runs is decided when the
# library is loaded.
X86_ISAS = avx2 avx2vnni avx512 avx512vnni avx512bf16 amx
ISA_avx2 = -mavx2 -mfma -mf16c
ISA_avx2vnni = -mavx2 -mfma -mf16c -mavxvnni
ISA_avx512 = -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
ISA_avx512vnni = -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 -mavx512vnni
ISA_avx512bf16 = -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 -mavx512bf16 -mavx512vnni
ISA_amx = -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 -mavx512bf16 -mavx512vnni -mamx-tile -mamx-bf16 -mamx-int8
