"""Matrix products of two versions of the native kernels, in turns of one process.

Run with ``python benchmarks/gemm_versions.py [--before REVISION]`` in a checkout. On a shared machine a processor's
speed changes from second to second, by more than most changes of a kernel matter: of two runs one after the other
little can be said. Here ``csrc/gemm.cpp`` of a revision of git and that of the working tree are compiled with the
package's flags, and one thread computes the same product with the one and the other, once or as often as fits into
4 ms, in changing order. The ratio is the median over these pairs. Results are compared bit by bit. By default the
weights, 30 MB of int4 and 108 MB of bfloat16, come mostly from memory; with few ``--outputs`` they stay in a cache.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path

import numpy as np

from bough.kernels.library import best_isa
from bough.kernels.structures import DType

ROOT = Path(__file__).resolve().parents[1]
DTYPES = {"float32": DType.F32, "bfloat16": DType.BF16, "int8": DType.I8, "int4": DType.I4, "uint4": DType.U4}
SLICE_SECONDS = 0.004
MIN_TURNS = 5


def shared_flags(sources: Path) -> dict[str, list[str]]:
    """The assignments of ``flags.mk``."""
    lines = (sources / "flags.mk").read_text(encoding="utf-8").splitlines()
    assignments = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): words.split() for name, words in assignments}


def compile_version(sources: Path, library: Path, isa: str, level: str = "-O3") -> ctypes.CDLL:
    """The kernels of ``sources`` for one instruction set, optimised to that level, and what measures them."""
    flags = shared_flags(sources)
    if isa != "portable" and f"ISA_{isa}" not in flags:
        raise SystemExit(f"{sources} has no kernels for {isa}: choose another --isa")
    of_isa = [*flags.get(f"ISA_{isa}", []), f"-DBOUGH_ISA={isa}"]
    files = [sources / "gemm.cpp", Path(__file__).with_suffix(".cpp"), "-o", library]
    options = [level, *flags["FLAGS"], *of_isa, f"-I{sources}", "-w", "-shared", "-fPIC"]
    subprocess.run([os.environ.get("CXX", "c++"), *options, *files], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.new_product.restype = ctypes.c_void_p
    loaded.new_product.argtypes = [ctypes.c_int32, *[ctypes.c_int64] * 3]
    loaded.operations_per_second.restype = ctypes.c_double
    loaded.operations_per_second.argtypes = [ctypes.c_void_p, ctypes.c_double]
    loaded.results.restype = ctypes.POINTER(ctypes.c_float)
    loaded.results.argtypes = [ctypes.c_void_p]
    return loaded


def measure(
    versions: list[ctypes.CDLL], dtype: str, rows: int, outputs: int, inputs: int, seconds: float
) -> dict[str, object]:
    """Both versions of one product."""
    products = [version.new_product(DTYPES[dtype], rows, outputs, inputs) for version in versions]
    rates: list[list[float]] = [[], []]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or len(rates[0]) < MIN_TURNS:
        for which in (0, 1) if len(rates[0]) % 2 == 0 else (1, 0):
            rates[which].append(versions[which].operations_per_second(products[which], SLICE_SECONDS))
    bits = [
        np.ctypeslib.as_array(version.results(product), (rows, outputs)).tobytes()
        for version, product in zip(versions, products, strict=True)
    ]
    return {
        "dtype": dtype,
        "rows": rows,
        "outputs": outputs,
        "inputs": inputs,
        "gigaflops_before": statistics.median(rates[0]) / 1e9,
        "gigaflops_after": statistics.median(rates[1]) / 1e9,
        "ratio": statistics.median(after / before for before, after in zip(*rates, strict=True)),
        "same_bits": bits[0] == bits[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--before", default="HEAD", metavar="REVISION", help="of git (default: the last commit)")
    parser.add_argument("--isa", default=best_isa().name.lower(), help="instruction set (default: the best here)")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["bfloat16", "int8", "int4"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--outputs", type=int, default=60_000)
    parser.add_argument("--inputs", type=int, default=896)
    parser.add_argument("--seconds", type=float, default=2.0, help="per line (default 2)")
    parser.add_argument("--output", type=Path, help="write the figures to this file as JSON")
    args = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as directory:
        before = Path(directory, "before")
        archive = subprocess.run(["git", "archive", args.before, "csrc"], cwd=ROOT, check=True, capture_output=True)
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
            tar.extractall(before, filter="data")
        versions = [
            compile_version(sources, Path(directory, name), args.isa)
            for sources, name in ((before / "csrc", "before.so"), (ROOT / "csrc", "after.so"))
        ]
        print(f"{args.isa}, one thread, {args.outputs} x {args.inputs}")
        print(f"{'weights':>9} {'rows':>5} {'before':>7} {'after':>7} {'ratio':>6}")
        for dtype in args.dtypes:
            for rows in args.rows:
                line = measure(versions, dtype, rows, args.outputs, args.inputs, args.seconds)
                figures.append(line)
                print(
                    f"{dtype:>9} {rows:>5} {line['gigaflops_before']:>7.1f} {line['gigaflops_after']:>7.1f} "
                    f"{line['ratio']:>6.2f}{'' if line['same_bits'] else '  other bits'}",
                    flush=True,
                )
    if args.output:
        args.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
