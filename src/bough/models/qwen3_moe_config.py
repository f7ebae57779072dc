"""Reader of the config.json of a Qwen3 with mixtures of experts."""

from __future__ import annotations

from typing import Any, ClassVar

from bough.models.mixture_config import MixtureReader
from bough.models.qwen2_moe_config import Qwen2MoeReader
from bough.models.qwen3_config import Qwen3Reader


class Qwen3MoeReader(Qwen2MoeReader):
    """As Qwen2's, with Qwen3's attention and nothing beside the experts."""

    gates_shared = False
    defaults: ClassVar[dict[str, Any]] = {
        **Qwen3Reader.defaults,
        "head_dim": None,
        "num_key_value_heads": 4,
        "decoder_sparse_step": 1,
        "moe_intermediate_size": 768,
        "num_experts_per_tok": 8,
    }
    usual_experts = 128

    def attention_biases(self) -> tuple[bool, bool]:
        """Both, or none."""
        return MixtureReader.attention_biases(self)

    def shared_width(self) -> int:
        return 0
