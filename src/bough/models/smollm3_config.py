"""Reader of the config.json of a SmolLM3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from bough.config.model_facts import AttentionFacts
from bough.models.family_reader import FamilyReader


class SmolLM3Reader(FamilyReader):
    """SmolLM3 rotates in three layers of four, unless the file lists others (NoPE, Kazemnejad et al. 2023)."""

    defaults: ClassVar[dict[str, Any]] = {
        "max_position_embeddings": 32_768,
        "num_key_value_heads": 4,
        "rope_theta": 2_000_000.0,
        "tie_word_embeddings": True,
    }

    def mixers(self, attention: AttentionFacts, num_layers: int) -> Sequence[AttentionFacts]:
        """Attention of each layer, in some without rotation."""
        pairs = zip(super().mixers(attention, num_layers), self.rotating_layers(num_layers), strict=True)
        return [mixer if rotates else replace(mixer, rope=None) for mixer, rotates in pairs]

    def layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        """Windows of the layers that the file lists, or of those that do not rotate."""
        values = self.values
        is_listed = values.get("layer_types") is not None
        if is_listed or values.get("sliding_window") is None or not values.flag("use_sliding_window"):
            return super().layer_windows(num_layers)
        window = values.integer("sliding_window")
        return tuple(None if rotates else window for rotates in self.rotating_layers(num_layers))

    def rotating_layers(self, num_layers: int) -> list[bool]:
        """Layers that rotate: in ``no_rope_layers``, despite its name, those with a 1."""
        listed = self.values.get("no_rope_layers")
        if listed is None:
            interval = self.values.integer("no_rope_layer_interval", 4)
            return [(layer + 1) % interval != 0 for layer in range(num_layers)]
        if not isinstance(listed, list) or len(listed) < num_layers or any(each not in (0, 1) for each in listed):
            raise self.values.error("no_rope_layers", f"must list 0 or 1 for each of {num_layers} layers", listed)
        return [each == 1 for each in listed[:num_layers]]
