"""Mistral, dense."""

from __future__ import annotations

from bough.models.llama import LlamaForCausalLM


class MistralForCausalLM(LlamaForCausalLM):
    """Llama without biases and, in the first generation, with a sliding window in every layer."""
