"""Reader of the config.json of a Phi-3, Phi-3.5 or Phi-4."""

from __future__ import annotations

from typing import Any, ClassVar

from bough.config.rope import LONGROPE, RopeParameters, read_rope
from bough.models.mistral_config import MistralReader


class Phi3Reader(MistralReader):
    """Phi-3 has Mistral's windows, and LongRoPE under three names."""

    defaults: ClassVar[dict[str, Any]] = {
        "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
    }

    def rope(self, head_dim: int) -> RopeParameters:
        """Rotation of a part of each head, with factors for short or for long contexts."""
        return read_rope(self.values, head_dim, partial=True, names={"su": LONGROPE, "yarn": LONGROPE})
