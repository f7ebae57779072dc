"""Reader of the config.json of a Qwen1.5 or Qwen2 with mixtures of experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bough.config.model_facts import RoutingFacts
from bough.models.mixture_config import MixtureReader
from bough.models.qwen2_config import Qwen2Reader


class Qwen2MoeReader(MixtureReader, Qwen2Reader):
    """As Qwen2's, with experts in every n-th layer and a gated network beside them."""

    gates_shared = True
    defaults: ClassVar[dict[str, Any]] = {
        **Qwen2Reader.defaults,
        "num_key_value_heads": 16,
        "decoder_sparse_step": 1,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
        "num_experts_per_tok": 4,
    }
    usual_experts: ClassVar[int] = 60
    """Number of experts where the file has none."""

    def attention_biases(self) -> tuple[bool, bool]:
        """On queries, keys and values unless the file says otherwise."""
        return self.values.flag("qkv_bias", True), False

    def has_experts(self, num_layers: int) -> Sequence[bool]:
        step, dense = self.values.integer("decoder_sparse_step"), self.values.get("mlp_only_layers") or []
        if not isinstance(dense, list) or not all(type(layer) is int for layer in dense):
            raise self.values.error("mlp_only_layers", "must be a list of layers", dense)
        return [layer not in dense and (layer + 1) % step == 0 for layer in range(num_layers)]

    def shared_width(self) -> int:
        return self.values.integer("shared_expert_intermediate_size", minimum=0)

    def routing(self) -> RoutingFacts:
        num_experts, per_token = self.expert_counts("num_experts", "num_local_experts", default=self.usual_experts)
        return RoutingFacts(
            num_experts=num_experts,
            experts_per_token=per_token,
            scores="softmax",
            renormalised=self.values.flag("norm_topk_prob"),
        )
