"""Reader of the config.json of a Qwen3 with mixtures of experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bough.config.model_facts import RoutingFacts
from bough.models.mixture_config import MixtureReader
from bough.models.qwen3_config import Qwen3Reader


class Qwen3MoeReader(MixtureReader, Qwen3Reader):
    """As Qwen3's, with experts in every so manieth layer."""

    defaults: ClassVar[dict[str, Any]] = {
        **Qwen3Reader.defaults,
        "head_dim": None,
        "num_key_value_heads": 4,
        "decoder_sparse_step": 1,
        "moe_intermediate_size": 768,
        "num_experts_per_tok": 8,
    }

    def has_experts(self, num_layers: int) -> Sequence[bool]:
        step, dense = self.values.integer("decoder_sparse_step"), self.values.get("mlp_only_layers") or []
        if not isinstance(dense, list) or not all(type(layer) is int for layer in dense):
            raise self.values.error("mlp_only_layers", "must be a list of layers", dense)
        return [layer not in dense and (layer + 1) % step == 0 for layer in range(num_layers)]

    def routing(self) -> RoutingFacts:
        num_experts, per_token = self.expert_counts("num_experts", "num_local_experts", default=128)
        return RoutingFacts(
            num_experts=num_experts,
            experts_per_token=per_token,
            scores="softmax",
            renormalised=self.values.flag("norm_topk_prob"),
        )
