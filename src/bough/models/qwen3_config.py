"""What a Qwen3's config.json says."""

from __future__ import annotations

from typing import Any, ClassVar

from bough.models.family_reader import FamilyReader
from bough.models.qwen2_config import Qwen2Reader


class Qwen3Reader(Qwen2Reader):
    """As Qwen2's, with heads whose width does not follow from others."""

    defaults: ClassVar[dict[str, Any]] = {**Qwen2Reader.defaults, "head_dim": 128}

    def attention_biases(self) -> tuple[bool, bool]:
        """Both, or none."""
        return FamilyReader.attention_biases(self)
