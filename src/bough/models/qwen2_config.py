"""What a Qwen2's or Qwen2.5's config.json says."""

from __future__ import annotations

from typing import Any, ClassVar

from bough.models.family_reader import FamilyReader


class Qwen2Reader(FamilyReader):
    """Qwen2 has windows if asked for, by default in the layers from the 29th on."""

    defaults: ClassVar[dict[str, Any]] = {
        "max_position_embeddings": 32_768,
        "num_key_value_heads": 32,
        "sliding_window": 4096,
        "max_window_layers": 28,
    }

    def attention_biases(self) -> tuple[bool, bool]:
        """On queries, keys and values."""
        return True, False

    def mlp_bias(self) -> bool:
        """None."""
        return False
