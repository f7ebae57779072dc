"""Phi-3, Phi-3.5 and Phi-4, dense, of the sizes that are called mini and medium."""

from __future__ import annotations

from bough.models.llama import LlamaForCausalLM


class Phi3ForCausalLM(LlamaForCausalLM):
    """Llama without biases, optionally with a sliding window and with a part of each head rotated."""
