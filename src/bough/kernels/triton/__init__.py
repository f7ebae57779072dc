"""Kernels written in Triton, for CUDA devices; each has a plain torch counterpart that says what it computes.

Triton is imported by the modules of this package and by nothing else of Bough: a CPU installation has no need of it.
Sums are in float32 (sampling: in integers), in an order that depends on the element alone: not on the number of rows,
and not on how a sequence came in. Offsets into tables that grow with memory are 64 bits wide.

Block sizes come from small tables in the modules, chosen by head size or width alone, so that nothing is tuned or
compiled anew while requests are served.
"""
