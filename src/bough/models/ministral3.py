"""Ministral 3, dense."""

from __future__ import annotations

from bough.models.llama import LlamaForCausalLM


class Ministral3ForCausalLM(LlamaForCausalLM):
    """Llama without biases, with queries that grow with their position."""
