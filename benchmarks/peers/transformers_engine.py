"""transformers' ``generate``, made to wait between its steps."""

from __future__ import annotations

import queue
import threading
from typing import Any

import torch
import transformers


class _Dropped(Exception):
    """Ends a ``generate`` from inside."""


class _Gate(transformers.LogitsProcessor):
    """Hands the tokens of a step over, and waits until the next one is asked for."""

    def __init__(self) -> None:
        self.tokens: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        self.asked: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        self.tokens.put(scores.argmax(-1).tolist())
        if not self.asked.get():
            raise _Dropped
        return scores


class TransformersEngine:
    """See :class:`benchmarks.peers.worker.StepEngine`; all requests of a batch have prompts of one length."""

    def __init__(self, model: str, threads: int) -> None:
        torch.set_num_threads(threads)
        self._model: Any = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16)
        self._model.generation_config.eos_token_id = None
        self._prompts: list[list[int]] = []
        self._gate = _Gate()
        self._thread: threading.Thread | None = None
        self.facts: dict[str, Any] = {"version": transformers.__version__, "threads": threads, "kv_type": "bfloat16"}

    def add(self, key: int, prompt: list[int], max_tokens: int) -> None:
        """Take a request; only before the first step. ``max_tokens`` is for the caller to keep."""
        del max_tokens
        assert key == len(self._prompts)
        self._prompts.append(prompt)

    def step(self) -> dict[int, list[int]]:
        """Compute one step."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._generate)
            self._thread.start()
        else:
            self._gate.asked.put(True)
        return {key: [token] for key, token in enumerate(self._gate.tokens.get())}

    def drop(self) -> None:
        """End all requests."""
        if self._thread is not None:
            self._gate.asked.put(False)
            self._thread.join()
            self._thread = None
        self._prompts.clear()

    def _generate(self) -> None:
        ids = torch.tensor(self._prompts)
        try:
            self._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=1024,
                logits_processor=transformers.LogitsProcessorList([self._gate]),
                pad_token_id=0,
            )
        except _Dropped:
            return


def open_engine(model: str, precision: str, threads: int) -> TransformersEngine:
    """Load a checkpoint in Hugging Face's format."""
    if precision != "bf16":
        raise ValueError("only bf16")
    return TransformersEngine(model, threads)
