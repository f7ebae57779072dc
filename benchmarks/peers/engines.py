"""Opening the engines for one model in one precision."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.build import PeerEnvironment
from benchmarks.peers.checkpoints import Checkpoints, Precision
from benchmarks.peers.runners import LlamaRunner, NotSupported, Runner, WorkerRunner

ENGINES = ("bough", "llama.cpp", "openvino", "transformers")


class Engines:
    """What is measured, with one shape's checkpoints.

    Args:
        environment: the peers' programs.
        checkpoints: makes the models that are missing.
        threads: that compute.
        interpreters: name of :data:`PYTHON_SERVERS` to the interpreter of its environment, of those to be measured.
    """

    def __init__(
        self,
        environment: PeerEnvironment,
        checkpoints: Checkpoints,
        threads: int,
        interpreters: Mapping[str, Path] | None = None,
    ) -> None:
        self.environment = environment
        self.checkpoints = checkpoints
        self.threads = threads
        self.interpreters = interpreters or {}

    def open(self, engine: str, precision: Precision) -> Runner:
        """Load a model into an engine.

        Raises:
            NotSupported: if it has no such precision.
        """
        if engine == "llama.cpp":
            return LlamaRunner(self.environment, self.checkpoints.gguf(precision), threads=self.threads)
        return self.open_worker(engine, precision)

    def open_worker(self, engine: str, precision: Precision, **options: Any) -> WorkerRunner:
        """The same for engines that are driven step by step: all but llama.cpp; ``options`` are the engine's own."""
        if engine == "openvino":
            python, model = self.environment.python, self.checkpoints.openvino(precision)
        elif engine == "transformers" and precision != "bf16":
            raise NotSupported("measured in bf16 only")
        else:
            python, model = Path(sys.executable), self.checkpoints.hugging_face()
        vocab_size = self.checkpoints.config["vocab_size"]
        return WorkerRunner(
            python, engine, model, precision, threads=self.threads, vocab_size=vocab_size, options=options
        )

    def open_all(
        self, stack: contextlib.ExitStack, names: Sequence[str], precision: Precision
    ) -> tuple[dict[str, Runner], dict[str, str]]:
        """The engines that take ``precision``, for as long as ``stack`` lives; and what the others say."""
        opened: dict[str, Runner] = {}
        refusals: dict[str, str] = {}
        for name in names:
            try:
                opened[name] = self.open(name, precision)
                stack.callback(opened[name].close)
            except NotSupported as refusal:
                refusals[name] = str(refusal)
        return opened, refusals
