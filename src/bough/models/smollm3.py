"""SmolLM3, dense."""

from __future__ import annotations

from bough.models.llama import LlamaForCausalLM


class SmolLM3ForCausalLM(LlamaForCausalLM):
    """Llama with some layers that do not rotate queries and keys."""
