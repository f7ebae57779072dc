"""Decode steps of two versions of Bough, in turns of seconds.

Run with ``python -m benchmarks.step_versions [--before REVISION]`` in a checkout whose package is installed. Memory of
a shared machine may be half as fast a minute later, so that of two runs one after the other little can be said. Here
each version has a process of its own, the revision of git and the working tree, in which all sequences decode greedily,
as under ``bough serve`` but without HTTP; they are told in turns to make some steps, in changing order. The ratio is
the median over the turns, of the time of the median step. Prompts and weights are random and the same for both, so that
their first tokens can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.peers.shapes import SHAPES

ROOT = Path(__file__).resolve().parents[1]
WARM_UP = 8
LEAST_PROMPT_TOKENS = 32
"""Of prompts, in a step beside sequences that decode: on slow machines about so many fit."""


class Version:
    """One version in a process of its own."""

    def __init__(self, tree: Path, arguments: argparse.Namespace, precision: str, running: int) -> None:
        command = [sys.executable, "-m", "benchmarks.step_versions", "--work"]
        command += ["--precisions", precision, "--running", str(running)]
        for name in ("shape", "context", "steps", "turns", "threads"):
            value = getattr(arguments, name)
            command += [] if value is None else [f"--{name}", str(value)]
        environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.facts: dict[str, Any] = self._answer()

    def seconds_of_steps(self) -> float:
        """Make some steps; what the median one took."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer())

    def tokens(self) -> list[list[int]]:
        """What all sequences have got; ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        answer: list[list[int]] = self._answer()
        self._process.wait()
        return answer

    def close(self) -> None:
        """End the process if it still runs."""
        self._process.kill()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a version has ended early: see above")
        return json.loads(line)


def work(arguments: argparse.Namespace) -> None:
    """What a version's process does: a line of JSON for each line that it is sent."""
    import numpy as np

    from bough import LLMEngine

    (precision,), (running,) = arguments.precisions, arguments.running
    # While the last prompts are computed the first sequences go on.
    meanwhile = arguments.context * running // LEAST_PROMPT_TOKENS
    wanted = arguments.context + meanwhile + WARM_UP + arguments.steps * (arguments.turns + 1)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "config.json").write_text(json.dumps(SHAPES[arguments.shape]))
        engine = LLMEngine(
            model_path=directory,
            load_format="dummy",
            random_seed=0,
            quantization="none" if precision == "bf16" else precision,
            dtype="bfloat16",
            skip_tokenizer_init=True,
            max_running_requests=running,
            max_total_tokens=running * (wanted // 64 + 2) * 64,
            cpu_threads=arguments.threads,
            log_level="error",
        )
    rng = np.random.default_rng(0)
    params = {"temperature": 0.0, "max_new_tokens": wanted - arguments.context, "ignore_eos": True}
    for index in range(running):
        prompt = rng.integers(1, 1000, arguments.context).tolist()
        engine.add_request(str(index), input_ids=prompt, sampling_params=params)
    found: dict[str, list[int]] = {}
    decoding = 0
    while decoding < WARM_UP:
        found |= {each.request_id: each.outputs[0].token_ids for each in engine.step()}
        decoding += len(found) == running
    print(json.dumps({"weight_bytes": engine.scheduler.info.weight_bytes}), flush=True)
    for _ in sys.stdin:
        seconds = []
        for _ in range(arguments.steps):
            begin = time.perf_counter()
            engine.step()
            seconds.append(time.perf_counter() - begin)
        if engine.scheduler.requests.num_holding < running:
            raise SystemExit("a sequence has ended: too few tokens were planned for the time that prompts take")
        print(statistics.median(seconds), flush=True)
    # Of the steps that both versions have made: before, prompts may have gone together in other ways.
    print(json.dumps([found[str(index)][:WARM_UP] for index in range(running)]), flush=True)


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A revision of git with its kernels built, which takes a minute or two."""
    with tempfile.TemporaryDirectory() as directory:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True)
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
            tar.extractall(directory, filter="data")
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=directory, check=True, stdout=sys.stderr)
        yield Path(directory)


def compare(trees: tuple[Path, Path], arguments: argparse.Namespace, precision: str, running: int) -> dict[str, object]:
    """Both versions at one number of sequences."""
    with ExitStack() as stack:
        versions = []
        for tree in trees:
            versions.append(Version(tree, arguments, precision, running))
            stack.callback(versions[-1].close)
        seconds: list[list[float]] = [[], []]
        for turn in range(arguments.turns):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                seconds[which].append(versions[which].seconds_of_steps())
        tokens = [version.tokens() for version in versions]
    return {
        "shape": arguments.shape,
        "precision": precision,
        "running": running,
        "context": arguments.context,
        "milliseconds_before": statistics.median(seconds[0]) * 1e3,
        "milliseconds_after": statistics.median(seconds[1]) * 1e3,
        "ratio": statistics.median(before / after for before, after in zip(*seconds, strict=True)),
        "gigabytes_of_weights": versions[1].facts["weight_bytes"] / 1e9,
        "same_tokens": tokens[0] == tokens[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--before", default="HEAD", metavar="REVISION", help="of git (default: the last commit)")
    parser.add_argument("--shape", choices=SHAPES, default="qwen", help="of the weights (default: Qwen2.5-0.5B)")
    parser.add_argument("--precisions", nargs="+", choices=("bf16", "int8", "int4"), default=["bf16", "int8", "int4"])
    parser.add_argument("--running", type=int, nargs="+", default=[1], help="sequences (default 1)")
    parser.add_argument("--context", type=int, default=160, help="tokens of each prompt (default 160)")
    parser.add_argument("--turns", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20, help="in a turn (default 20)")
    parser.add_argument("--threads", type=int, help="default: one per core")
    parser.add_argument("--output", type=Path, help="write the figures to this file as JSON")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments)
        return
    figures = []
    with checkout(arguments.before) as before:
        print(f"{'weights':>7} {'sequences':>9} {'before, ms':>10} {'after, ms':>9} {'ratio':>6}")
        for precision in arguments.precisions:
            for running in arguments.running:
                line = compare((before, ROOT), arguments, precision, running)
                figures.append(line)
                print(
                    f"{precision:>7} {running:>9} {line['milliseconds_before']:>10.2f} "
                    f"{line['milliseconds_after']:>9.2f} {line['ratio']:>6.3f}"
                    f"{'' if line['same_tokens'] else '  other tokens'}",
                    flush=True,
                )
    if arguments.output:
        arguments.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
