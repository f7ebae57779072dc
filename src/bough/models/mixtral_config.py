"""Reader of the config.json of a Mixtral."""

from __future__ import annotations

from typing import Any, ClassVar

from bough.config.model_facts import RoutingFacts
from bough.models.mistral_config import MistralReader
from bough.models.mixture_config import MixtureReader


class MixtralReader(MixtureReader, MistralReader):
    """As Mistral's, without a window unless there is one, and with experts in every layer."""

    width_key = "intermediate_size"
    defaults: ClassVar[dict[str, Any]] = {
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1_000_000.0,
        "num_experts_per_tok": 2,
    }

    def routing(self) -> RoutingFacts:
        num_experts, per_token = self.expert_counts("num_local_experts", default=8)
        return RoutingFacts(num_experts=num_experts, experts_per_token=per_token, scores="softmax", renormalised=True)
