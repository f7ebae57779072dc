"""One way to measure every engine: a runner is told which cell is next and then measures it again and again."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from benchmarks.peers import llama_tools
from benchmarks.peers.build import ROOT, PeerEnvironment
from benchmarks.peers.cells import Cell

from bough.errors import StartupError

SLACK_TOKENS = 256
"""More than the steps measured: while the last prompts of a batch are computed, the first sequences go on already."""


class Runner(Protocol):
    """Measures one engine with one model."""

    facts: dict[str, Any]

    def begin(self, cell: Cell) -> None:
        """Make ready for a cell; not measured."""

    def measure(self, cell: Cell) -> float:
        """Measure it once; returns tokens per second."""

    def end(self, cell: Cell) -> None:
        """The cell is over."""

    def close(self) -> None:
        """Free the model."""


class NotSupported(Exception):
    """The engine has no such format; the text is what it says."""


class WorkerRunner:
    """An engine that lives in a process of :mod:`benchmarks.peers.worker`.

    Raises:
        StartupError: if the engine cannot be opened.
    """

    def __init__(
        self,
        python: Path,
        engine: str,
        model: Path,
        precision: str,
        *,
        threads: int,
        vocab_size: int,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        command = [str(python), "-m", "benchmarks.peers.worker", engine, str(model), precision, str(threads)]
        command.append(json.dumps(options or {}))
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, text=True
        )
        self._vocab_size = vocab_size
        self._rng = np.random.default_rng(0)
        self.facts: dict[str, Any] = self._read()

    def begin(self, cell: Cell) -> None:
        """Compute the prompts of a decode cell; warm up."""
        if cell.is_prefill:
            self.measure(cell)
        else:
            prompts = [self._prompt(cell.prompt_tokens) for _ in range(cell.batch)]
            self.ask("start", prompts=prompts, max_tokens=cell.all_steps + SLACK_TOKENS)
            self.ask("decode", steps=2, batch=cell.batch)

    def measure(self, cell: Cell) -> float:
        """See :class:`Runner`. Decoding goes on where it was, so the context grows by the steps of a measurement."""
        if cell.is_prefill:
            seconds: float = self.ask("prefill", prompt=self._prompt(cell.prompt_tokens))["seconds"]
            return cell.prompt_tokens / seconds
        answer = self.ask("decode", steps=cell.steps, batch=cell.batch)
        return float(answer["tokens"] / answer["seconds"])

    def end(self, cell: Cell) -> None:
        """See :class:`Runner`."""
        if not cell.is_prefill:
            self.ask("drop")

    def ask(self, action: str, **arguments: Any) -> dict[str, Any]:
        """Have the worker do something: see :data:`benchmarks.peers.worker.ACTIONS`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([action, arguments]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """See :class:`Runner`."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _prompt(self, length: int) -> list[int]:
        ids: list[int] = self._rng.integers(0, self._vocab_size - 1, length).tolist()
        return ids

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._complaints.seek(0)
            raise StartupError(f"a worker has died: {self._complaints.read()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            self._process.communicate()
            # Not a refusal: an engine that could run and does not must not drop out of what Bough is compared with.
            raise StartupError(f"a worker cannot open its engine: {answer['error']}")
        return answer


class LlamaRunner:
    """llama.cpp's own benchmark programs, one process per measurement."""

    def __init__(self, environment: PeerEnvironment, model: Path, *, threads: int) -> None:
        self._environment = environment
        self._model = model
        self._threads = threads
        self.facts: dict[str, Any] = {"model_bytes": model.stat().st_size, "threads": threads, "kv_type": "float16"}
        self._kept: list[float] = []

    def begin(self, cell: Cell) -> None:
        """A long context is computed once, so all its measurements are made here, and not in turns."""
        self._kept = self._run(cell, cell.pairs) if cell.is_long else []

    def measure(self, cell: Cell) -> float:
        """See :class:`Runner`."""
        return self._kept.pop() if self._kept else self._run(cell, 1)[0]

    def end(self, cell: Cell) -> None:
        """See :class:`Runner`."""

    def close(self) -> None:
        """See :class:`Runner`."""

    def _run(self, cell: Cell, repetitions: int) -> list[float]:
        if cell.is_prefill or cell.is_long:
            command = llama_tools.bench_command(cell, self._model, self._threads, repetitions)
            return llama_tools.parse_bench(self._output("llama-bench", command))
        command = llama_tools.batched_bench_command(cell, self._model, self._threads)
        return [llama_tools.parse_batched_bench(self._output("llama-batched-bench", command))]

    def _output(self, tool: str, arguments: Sequence[str]) -> str:
        command = [str(self._environment.tool(tool)), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StartupError(f"{tool} failed: {done.stderr[-2000:]}")
        return done.stdout
