"""Matrix products of a language model on the native kernels, beside torch's and their own speed in a cache.

Run with ``python benchmarks/native_linears.py [--weights bfloat16] [--threads N] [--output FILE]``. The shapes are one
block's linear layers (``--hidden-size``, ``--intermediate-size``), each over several weights in turn so that none
stays in a cache. In the same run are measured: how fast the weights can be read, and how fast products are whose
operands stay in the second-level cache. A product can be no faster than the slower of its reading at the former and
its arithmetic at the latter speed; ``own_share`` is that time as a share of the time taken: the share of its own
in-cache speed that Bough keeps, not of what the machine could do. Everything is measured in turn; figures are medians.
Of int8 and int4 the inputs' quantisation is part of it; torch multiplies bfloat16.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional

from bough.kernels.library import best_isa, load_library
from bough.kernels.packed_weights import PackedWeights, WeightFormat
from bough.kernels.thread_pool import ThreadPool

COPY_BYTES = 256 << 20
"""Weights of one shape together: more than any cache holds."""

CACHED_SHAPE = (512, 512, 384)
"""Outputs, inputs and rows of a product that stays in the second-level cache of two threads."""


def pack(threads: ThreadPool, weight: torch.Tensor, weights: str) -> PackedWeights:
    stored: WeightFormat = "int8" if weights == "int8" else "int4" if weights == "int4" else "native"
    packed = PackedWeights(threads, *weight.shape, weight.dtype, bias=False, gated=False, stored=stored)
    packed.write(0, weight)
    return packed


def seconds_in_turn(candidates: dict[str, Callable[[int], object]], budget: float) -> dict[str, float]:
    """Median seconds of each candidate, called with 0, 1, 2, … until the budget is spent."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    deadline = time.perf_counter() + budget
    call = 0
    while time.perf_counter() < deadline or call < 5:
        for name, candidate in candidates.items():
            begin = time.perf_counter()
            candidate(call)
            seconds[name].append(time.perf_counter() - begin)
        call += 1
    return {name: statistics.median(times) for name, times in seconds.items()}


def torch_dtype(weights: str) -> torch.dtype:
    return torch.float32 if weights == "float32" else torch.bfloat16


def operations_per_second(threads: ThreadPool, kind: str) -> float:
    outputs, inputs, rows = CACHED_SHAPE
    weights = pack(threads, torch.randn(outputs, inputs).to(torch_dtype(kind)), kind)
    x = input_of(kind, rows, inputs)
    times = []
    for _ in range(200):
        begin = time.perf_counter()
        weights.multiply(x, torch.float32)
        times.append(time.perf_counter() - begin)
    return 2 * outputs * inputs * rows / statistics.median(times)


def input_of(kind: str, rows: int, inputs: int) -> torch.Tensor:
    return torch.randn(rows, inputs).to(torch.bfloat16 if kind == "bfloat16" else torch.float32)


def measure(
    threads: ThreadPool, shape: tuple[int, int], rows: int, kind: str, peak: float, budget: float
) -> dict[str, float]:
    outputs, inputs = shape
    dtype = torch_dtype(kind)
    weight = torch.randn(outputs, inputs).mul_(0.05).to(dtype)
    weight_bytes = pack(threads, weight, kind).panels.nbytes
    copies = max(COPY_BYTES // weight_bytes, 2)
    plain = [weight.clone() for _ in range(copies)]
    packed = [pack(threads, weight, kind) for weight in plain]
    x = input_of(kind, rows, inputs)
    plain_x = x.to(dtype)
    library, all_read = load_library(), ctypes.c_int64()
    median = seconds_in_turn(
        {
            "read": lambda call: library.bough_read(
                threads.handle,
                packed[(call + copies // 2) % copies].panels.data_ptr(),
                weight_bytes,
                ctypes.byref(all_read),
            ),
            "bough": lambda call: packed[call % copies].multiply(x, x.dtype),
            "torch": lambda call: functional.linear(plain_x, plain[call % copies]),
        },
        budget,
    )
    operations = 2 * outputs * inputs * rows
    bound = max(median["read"], operations / peak)
    return {
        "outputs": outputs,
        "inputs": inputs,
        "rows": rows,
        "ms": median["bough"] * 1e3,
        "gigaflops": operations / median["bough"] / 1e9,
        "gigabytes_per_second": weight_bytes / median["bough"] / 1e9,
        "own_share": bound / median["bough"],
        "times_faster_than_torch": median["torch"] / median["bough"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, help="write the figures to this file as JSON")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds per line (default 0.5)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--weights", choices=["bfloat16", "float32", "int8", "int4"], default="bfloat16")
    parser.add_argument("--hidden-size", type=int, default=896)
    parser.add_argument("--intermediate-size", type=int, default=4864)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 32, 512])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    threads = ThreadPool(args.threads)
    hidden, intermediate = args.hidden_size, args.intermediate_size
    peak = operations_per_second(threads, args.weights)
    print(f"{best_isa().name}, {args.threads} threads, {args.weights}; products in cache: {peak / 1e9:.0f} GFLOP/s")
    print(f"{'outputs':>8} {'inputs':>7} {'rows':>5} {'ms':>8} {'GFLOP/s':>8} {'GB/s':>6} {'share':>6} {'torch':>7}")
    figures = []
    for shape in ((hidden, hidden), (2 * intermediate, hidden), (hidden, intermediate)):
        for rows in args.rows:
            line = measure(threads, shape, rows, args.weights, peak, args.budget)
            figures.append(line)
            print(
                f"{shape[0]:>8} {shape[1]:>7} {rows:>5} {line['ms']:>8.3f} {line['gigaflops']:>8.0f} "
                f"{line['gigabytes_per_second']:>6.1f} {line['own_share']:>6.2f} "
                f"{line['times_faster_than_torch']:>6.1f}x",
                flush=True,
            )
    if args.output:
        environment = {"isa": best_isa().name, "threads": args.threads, "weights": args.weights}
        environment["torch"] = torch.__version__
        environment["gigaflops_in_cache"] = peak / 1e9
        args.output.write_text(json.dumps({"environment": environment, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
