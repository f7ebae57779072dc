"""A model that differs from one of Bough's in what it multiplies its logits with."""

from __future__ import annotations

from typing import Any

from bough.models.qwen3 import Qwen3ForCausalLM


class GardenForCausalLM(Qwen3ForCausalLM):
    """Qwen3 by another name."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.is_from_elsewhere = True
