"""What a Mistral's config.json says."""

from __future__ import annotations

from typing import Any, ClassVar

from bough.models.family_reader import FamilyReader


class MistralReader(FamilyReader):
    """Mistral has one window for all layers, unless there is a ``null`` in its place."""

    defaults: ClassVar[dict[str, Any]] = {
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 8,
        "sliding_window": 4096,
    }

    def attention_biases(self) -> tuple[bool, bool]:
        """None."""
        return False, False

    def mlp_bias(self) -> bool:
        """None."""
        return False

    def layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        window = None if self.values.get("sliding_window") is None else self.values.integer("sliding_window")
        return (window,) * num_layers
