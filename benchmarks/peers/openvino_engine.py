"""OpenVINO GenAI's ``ContinuousBatchingPipeline``, driven step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
import openvino_genai

CACHE_GIB = 2
MAX_BATCHED_TOKENS = 2048
"""Its default of 256 cuts prompts into pieces, which costs it prefill speed."""


class OpenVINOEngine:
    """See :class:`benchmarks.peers.worker.StepEngine`."""

    def __init__(self, model: str, threads: int, max_batched_tokens: int) -> None:
        config = openvino_genai.SchedulerConfig()
        config.cache_size = CACHE_GIB
        config.max_num_batched_tokens = max_batched_tokens
        config.enable_prefix_caching = True
        # The hint is what makes it fastest on processors with bfloat16, whatever the weights are.
        properties = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": threads}
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(model, config, "CPU", properties)
        self._handles: dict[int, openvino_genai.GenerationHandle] = {}
        self._serial = 0
        kv_type = openvino.Core().get_property("CPU", "KV_CACHE_PRECISION").get_type_name()
        self.facts: dict[str, Any] = {"version": openvino_genai.__version__, "threads": threads, "kv_type": kv_type}

    def add(self, key: int, prompt: list[int], max_tokens: int) -> None:
        """Take a request."""
        config = openvino_genai.GenerationConfig(max_new_tokens=max_tokens, ignore_eos=True, do_sample=False)
        ids = openvino.Tensor(np.array([prompt], dtype=np.int64))
        self._serial += 1
        self._handles[key] = self._pipeline.add_request(self._serial, ids, config)

    def step(self) -> dict[int, list[int]]:
        """Compute one step."""
        self._pipeline.step()
        news = {}
        for key, handle in self._handles.items():
            if handle.can_read():
                (output,) = handle.read().values()
                news[key] = list(output.generated_ids)
        return news

    def drop(self) -> None:
        """End all requests."""
        for handle in self._handles.values():
            handle.cancel()
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        self._handles.clear()


def open_engine(
    model: str, precision: str, threads: int, max_batched_tokens: int = MAX_BATCHED_TOKENS
) -> OpenVINOEngine:
    """Load a model that was exported with weights in ``precision``."""
    del precision  # is in the model
    return OpenVINOEngine(model, threads, max_batched_tokens)
