"""Outputs of an engine without processes: the reference for what a server says, without the time that one takes."""

from __future__ import annotations

from typing import Any

from bough import LLMEngine
from bough.entrypoints.llm_engine import CompletionOutput


def output_of(prompt: str, sampling_params: dict[str, Any], **options: Any) -> CompletionOutput:
    """Run one request, with its logprobs, in an engine of these options."""
    with LLMEngine(cpu_threads=1, max_total_tokens=8192, **options) as engine:
        engine.add_request("r", prompt, sampling_params, return_logprob=True)
        while engine.has_unfinished_requests():
            for request in engine.step():
                (output,) = request.outputs
    return output
