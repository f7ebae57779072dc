"""Speed beside busy loops: what each engine keeps of its idle speed while other processes want the same cores.

Engines take turns, as in ``benchmarks.peers``, whose programs and models are used: first idle, then beside each number
of busy loops of the same priority. The fair share of T threads beside B loops on C cores is ``T / (T + B)`` of the
machine where the cores are taken, the whole of it where they are not. Reported are tokens per second, medians, and the
part of the fair share of the idle speed that was reached.

    python -m benchmarks.busy [--precision int4] [--loops 1 2 4] [--engines bough llama.cpp openvino] [--output FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers.build import ROOT, PeerEnvironment
from benchmarks.peers.cells import Cell
from benchmarks.peers.checkpoints import PRECISIONS, Checkpoints
from benchmarks.peers.engines import Engines
from benchmarks.peers.runners import Runner
from benchmarks.peers.shapes import SHAPES

from bough.bench.options import write_json

KINDS = (("decode", 1), ("decode", 8), ("prefill", 1))
GOAL = 0.75
"""Part of its fair share that Bough wants to reach."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=ROOT / ".venv-peers", help="where programs and models are")
    parser.add_argument("--shape", default="qwen", choices=SHAPES)
    parser.add_argument("--precision", default="int4", choices=PRECISIONS)
    parser.add_argument("--engines", nargs="+", default=["bough", "llama.cpp", "openvino"])
    parser.add_argument("--loops", type=int, nargs="+", default=[1, 2, 4], help="busy loops beside the engines")
    parser.add_argument("--turns", type=int, default=7, help="how often everything is measured")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of every engine")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args(argv)
    environment = PeerEnvironment(args.directory.resolve())
    checkpoints = Checkpoints(args.directory.resolve() / "models", args.shape, environment)
    rows: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        engines = Engines(environment, checkpoints, args.threads)
        runners, refusals = engines.open_all(stack, args.engines, args.precision)
        for engine, reason in refusals.items():
            print(f"{engine}: {reason}", file=sys.stderr)
        print(f"{'':<10} {'loops':>5} {'engine':<10} {'tokens/s':>9} {'of idle':>8} {'of fair share':>14}")
        for kind, batch in KINDS:
            cell = Cell(args.shape, args.precision, kind, batch, args.turns)
            for row in measure_cell(cell, runners, [0, *args.loops], args.threads):
                rows.append(row)
                print(
                    f"{row['cell']:<10} {row['loops']:5} {row['engine']:<10} {row['tokens_per_second']:9.1f} "
                    f"{row['of_idle']:8.2f} {row['of_fair_share']:14.2f}",
                    flush=True,
                )
    if args.output:
        write_json(args.output, {"goal": GOAL, "threads": args.threads, "rows": rows})
    return 0


def measure_cell(cell: Cell, runners: Mapping[str, Runner], loops: list[int], threads: int) -> Iterator[dict[str, Any]]:
    """The figures of one cell: for each number of loops, in turns of the engines."""
    idle: dict[str, float] = {}
    for count in loops:
        rates: dict[str, list[float]] = {name: [] for name in runners}
        # Begun anew, so that the context is the same beside any number of loops.
        for runner in runners.values():
            runner.begin(cell)
        with busy_loops(count):
            for turn in range(cell.pairs):
                for name in runners if turn % 2 else reversed(list(runners)):
                    rates[name].append(runners[name].measure(cell))
        for runner in runners.values():
            runner.end(cell)
        share = fair_share(threads, count, len(os.sched_getaffinity(0)))
        for name, found in rates.items():
            rate = statistics.median(found)
            of_idle = rate / idle.setdefault(name, rate)
            yield {
                "cell": cell.column,
                "loops": count,
                "engine": name,
                "tokens_per_second": rate,
                "of_idle": of_idle,
                "of_fair_share": of_idle / share,
            }


def fair_share(threads: int, loops: int, cores: int) -> float:
    """Part of the speed of idle cores that ``threads`` threads get beside so many busy loops."""
    idle = min(threads, cores)
    return min(idle, cores * threads / (threads + loops)) / idle


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many processes that do nothing but compute, of this process's priority."""
    loops = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends loops and workers on the way
    sys.exit(main(sys.argv[1:]))
