"""Bough as an engine that is driven step by step: the scheduler, worker and kernels of ``bough serve``."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.cells import BATCHES

from bough import LLMEngine, __version__
from bough.kernels.library import load_library

MAX_TOTAL_TOKENS = 65_536
"""Room for 32 sequences, or for one of 32k."""

BYTES_PER_WEIGHT = {"bf16": 2.0, "int8": 34 / 32, "int4": 18 / 32}
"""With the scale of each 32."""


class BoughEngine:
    """See :class:`benchmarks.peers.worker.StepEngine`."""

    def __init__(self, model: str, precision: str, threads: int) -> None:
        quantization: dict[str, Any] = {} if precision == "bf16" else {"quantization": precision}
        self._engine = LLMEngine(
            model_path=model,
            dtype="bfloat16",
            skip_tokenizer_init=True,
            max_total_tokens=MAX_TOTAL_TOKENS,
            max_running_requests=max(BATCHES),
            cpu_threads=threads,
            log_level="error",
            **quantization,
        )
        self._known: dict[str, int] = {}
        self.facts: dict[str, Any] = {
            "version": __version__,
            "threads": threads,
            "kv_type": "bfloat16",
            "weight_bytes": self._engine.scheduler.info.weight_bytes
            - BYTES_PER_WEIGHT[precision] * self._engine.model_config.idle_parameters(),
        }

    def add(self, key: int, prompt: list[int], max_tokens: int) -> None:
        """Take a request."""
        params = {"temperature": 0.0, "max_new_tokens": max_tokens, "ignore_eos": True}
        self._engine.add_request(str(key), input_ids=prompt, sampling_params=params)
        self._known[str(key)] = 0

    def step(self) -> dict[int, list[int]]:
        """Compute one step."""
        news = {}
        for request in self._engine.step():
            tokens = request.outputs[0].token_ids[self._known[request.request_id] :]
            self._known[request.request_id] += len(tokens)
            if tokens:
                news[int(request.request_id)] = tokens
        return news

    def drop(self) -> None:
        """End all requests."""
        for key in self._known:
            self._engine.abort_request(key)
        while self._engine.has_unfinished_requests():
            self._engine.step()
        self._known.clear()


def open_engine(model: str, precision: str, threads: int) -> BoughEngine:
    """Load a checkpoint in Hugging Face's format.

    Raises:
        LibraryMissing: without the native kernels; nobody wants the figures of the way around them.
    """
    load_library()
    return BoughEngine(model, precision, threads)
