"""Bough beside llama.cpp, OpenVINO GenAI, transformers, SGLang and vLLM: the same weights and machine, in turns.

    python -m benchmarks.peers [--cells PATTERN …] [--pairs N] [--quick] [--output FILE]

Makes what is missing first: the peers' programs and the models. Results are written after each cell, so that a run that
is cut short counts as far as it came. A cell is called SHAPE/PRECISION/COLUMN, like qwen/int8/decode-8 or
llama/bf16/prefill; the other columns are 4k and 32k (decoding behind a long context), server-1, server and shared (jobs
through servers), first-token, identity (how far greedy outputs agree), fairness-50, fairness-80 and behind-8k (who has
to wait when others come).

SGLang and vLLM are measured in jobs, in bf16, if --sglang and --vllm name the interpreters of their environments, which
``python_servers.py`` tells how to make.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.build import LLAMA_CPP, PACKAGES, ROOT, PeerEnvironment
from benchmarks.peers.cells import BEHIND_LONG, JOBS, SHARES_OF_CAPACITY, Cell, all_cells
from benchmarks.peers.checkpoints import PRECISIONS, Checkpoints, Precision
from benchmarks.peers.engines import ENGINES, Engines
from benchmarks.peers.fairness import measure_waits
from benchmarks.peers.identity import agreeing_tokens, greedy_outputs
from benchmarks.peers.python_servers import PYTHON_SERVERS
from benchmarks.peers.runners import Runner
from benchmarks.peers.serving import measure_first_token, measure_job
from benchmarks.peers.shapes import SHAPES
from benchmarks.peers.table import BOUGH, render, render_remarks
from benchmarks.run_all import machine

from bough.bench.options import write_json
from bough.errors import StartupError

QUICK_PAIRS = 2


def measure_steps(cell: Cell, engines: Engines, runners: Mapping[str, Runner]) -> dict[str, Any]:
    """Prefill or decoding, all engines in turns; at batch 1 the memory's bandwidth in between."""
    # transformers at a long context would take as long as all others together.
    names = [name for name in runners if not (cell.is_long and name == "transformers")]
    rates: dict[str, list[float]] = {name: [] for name in names}
    bandwidth: list[float] = []
    for name in names:
        runners[name].begin(cell)
    for pair in range(cell.pairs):
        first = pair % len(names)
        for name in names[first:] + names[:first]:
            rates[name].append(runners[name].measure(cell))
        # Behind a long context the cache is read, too, and llama.cpp is not measured at the same time.
        if cell.batch == 1 and not cell.is_prefill and not cell.is_long:
            probe = [str(engines.environment.bandwidth_probe), str(engines.threads)]
            bandwidth.append(float(subprocess.check_output(probe, stderr=subprocess.DEVNULL)))
    for name in names:
        runners[name].end(cell)
    return {"rates": rates, "bandwidth": bandwidth}


def measure_identity(engines: Engines, runners: Mapping[str, Runner], precision: Precision) -> dict[str, Any]:
    """How many greedy tokens the peers have in common with Bough, prompt by prompt."""
    outputs = greedy_outputs(engines, runners, precision)
    ours = outputs.pop(BOUGH, None)
    agreeing = {} if ours is None else {peer: agreeing_tokens(ours, theirs) for peer, theirs in outputs.items()}
    return {"rates": {}, "agreeing_tokens": agreeing}


def measure(cell: Cell, engines: Engines, runners: Mapping[str, Runner], precision: Precision) -> dict[str, Any]:
    """The figures of one cell."""
    if cell.kind == "identity":
        return measure_identity(engines, runners, precision)
    if cell.kind == "first-token":
        return measure_first_token(cell, engines, precision) if BOUGH in runners else {"rates": {}}
    if cell.kind in JOBS:
        return measure_job(cell, engines, runners, precision)
    if cell.kind in (*SHARES_OF_CAPACITY, BEHIND_LONG):
        return measure_waits(cell, engines, runners, precision)
    return measure_steps(cell, engines, runners)


def interpreters_of(args: argparse.Namespace) -> dict[str, Path]:
    """The interpreters that the command line names."""
    # Not resolved: a virtual environment's is a link that must be called by its own name.
    return {name: path.absolute() for name in PYTHON_SERVERS if (path := getattr(args, name))}


def cells_of(args: argparse.Namespace, shape: str, precision: Precision) -> list[Cell]:
    """The cells of one model that were asked for."""
    cells = all_cells(shape, precision, args.pairs)
    return [cell for cell in cells if any(fnmatch.fnmatchcase(cell.id, pattern) for pattern in args.cells)]


def run(args: argparse.Namespace, environment: PeerEnvironment, results: dict[str, Any]) -> None:
    """Measure all cells that were asked for; they come into ``results``, which is written after each."""
    for shape in args.shapes:
        checkpoints = Checkpoints(args.directory / "models", shape, environment)
        engines = Engines(environment, checkpoints, args.threads, interpreters_of(args))
        for precision in PRECISIONS:
            cells = cells_of(args, shape, precision)
            while cells:
                for cell, figures in measure_until_failure(cells, engines, args.engines, precision):
                    cells.remove(cell)
                    results["cells"][cell.id] = figures
                    write_json(args.output, results)
                    print(render({cell.id: figures}).splitlines()[-1], flush=True)


def measure_until_failure(
    cells: Sequence[Cell], engines: Engines, names: Sequence[str], precision: Precision
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """The figures of each cell, up to one that fails, which has the reason instead: engines have to be opened anew."""
    with contextlib.ExitStack() as stack:
        runners, refusals = engines.open_all(stack, names, precision)
        facts = {name: runner.facts for name, runner in runners.items()}
        for cell in tuple(cells):
            try:
                figures = measure(cell, engines, runners, precision)
            except StartupError as error:
                print(f"{cell.id}: {error}", file=sys.stderr)
                yield cell, {"rates": {}, "failure": str(error)}
                return
            yield cell, {**figures, "facts": facts, "refusals": refusals}


def make_models(args: argparse.Namespace, environment: PeerEnvironment) -> None:
    """Make the models that are missing."""
    for shape in args.shapes:
        checkpoints = Checkpoints(args.directory / "models", shape, environment)
        for precision in PRECISIONS:
            if "llama.cpp" in args.engines:
                checkpoints.gguf(precision)
            if "openvino" in args.engines:
                checkpoints.openvino(precision)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=ROOT / ".venv-peers", help="where programs and models are")
    parser.add_argument("--shapes", nargs="+", default=["qwen", "llama"], choices=SHAPES)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    for name in PYTHON_SERVERS:
        parser.add_argument(f"--{name}", type=Path, metavar="PYTHON", help=f"interpreter that has {name}: jobs only")
    parser.add_argument("--cells", nargs="+", default=["*"], metavar="PATTERN", help="as in a shell, like '*/int8/*'")
    parser.add_argument("--pairs", type=int, default=7, help="how often everything is measured")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="that compute, of every engine"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at the same time")
    parser.add_argument("--quick", action="store_true", help="a tiny model, twice: shows only that everything works")
    parser.add_argument("--only-make", action="store_true", help="make programs and models, measure nothing")
    parser.add_argument("--output", type=Path, default=Path("results/peers.json"))
    args = parser.parse_args(argv)
    args.directory = args.directory.resolve()
    if args.quick:
        args.shapes, args.pairs = ["tiny"], QUICK_PAIRS
    asked = [cell.id for shape in args.shapes for precision in PRECISIONS for cell in cells_of(args, shape, precision)]
    if not asked:
        parser.error(f"no cell is called {' or '.join(args.cells)}")
    environment = PeerEnvironment(args.directory)
    environment.build(args.jobs)
    make_models(args, environment)
    if args.only_make:
        return 0
    results: dict[str, Any] = {"machine": machine(), "peers": [LLAMA_CPP, *PACKAGES], "cells": {}}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends servers and workers on the way
    try:
        run(args, environment, results)
    finally:
        print(f"\n{render(results['cells'])}\n\n{render_remarks(results['cells'])}\nWritten: {args.output}")
    return int(any("failure" in figures for figures in results["cells"].values()))


if __name__ == "__main__":
    from bough.cli import run_reporting_errors

    sys.exit(run_reporting_errors(main, sys.argv[1:]))
