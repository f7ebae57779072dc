"""Reader of the config.json of a Ministral 3."""

from __future__ import annotations

from typing import Any, ClassVar

from bough.config.checked_values import CheckedValues
from bough.models.mistral_config import MistralReader

_ROPE = {
    "rope_type": "yarn",
    "rope_theta": 1_000_000.0,
    "factor": 16.0,
    "original_max_position_embeddings": 16_384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}


class Ministral3Reader(MistralReader):
    """Ministral 3 stretches rotation by YaRN, and scales queries by their position."""

    defaults: ClassVar[dict[str, Any]] = {
        "max_position_embeddings": 262_144,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-5,
        "rope_parameters": _ROPE,
    }

    def __init__(self, values: CheckedValues, architecture: str) -> None:
        # Null counts as missing: transformers takes its default for both.
        stated = {key: value for key, value in values.entries.items() if key != "rope_parameters" or value is not None}
        super().__init__(values.of(stated), architecture)
