"""Qwen2 and Qwen2.5, dense."""

from __future__ import annotations

from bough.models.llama import LlamaForCausalLM


class Qwen2ForCausalLM(LlamaForCausalLM):
    """Llama with biases on queries, keys and values, and optionally a sliding window in some layers."""
