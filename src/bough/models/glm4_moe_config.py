"""Reader of the config.json of a GLM-4.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bough.config.model_facts import RoutingFacts
from bough.config.rope import RopeParameters, read_rope
from bough.models.mixture_config import MixtureReader

_ROTATED = "partial_rotary_factor"
_USUALLY_ROTATED = 0.5


class Glm4MoeReader(MixtureReader):
    """Sigmoid scores with corrections, groups of experts, a network beside them, and dense layers before them."""

    defaults: ClassVar[dict[str, Any]] = {
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-5,
        "moe_intermediate_size": 1408,
        "num_experts_per_tok": 8,
        "n_shared_experts": 1,
        "routed_scaling_factor": 1.0,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "norm_topk_prob": True,
        "use_qk_norm": False,
    }

    def attention_biases(self) -> tuple[bool, bool]:
        """On queries, keys and values, if anywhere."""
        return self.values.flag("attention_bias"), False

    def mlp_bias(self) -> bool:
        """None."""
        return False

    def rope(self, head_dim: int) -> RopeParameters:
        """Rotation of a part of each head: of a half unless the file says more."""
        places = [self.values.entries, self.values.get("rope_parameters"), self.values.get("rope_scaling")]
        states_it = any(isinstance(place, dict) and place.get(_ROTATED) is not None for place in places)
        entries = {} if states_it else {_ROTATED: _USUALLY_ROTATED}
        return read_rope(self.values.of({**self.values.entries, **entries}), head_dim, partial=True)

    def has_experts(self, num_layers: int) -> Sequence[bool]:
        first = self.values.integer("first_k_dense_replace", minimum=0)
        return [layer >= first for layer in range(num_layers)]

    def shared_width(self) -> int:
        return self.values.integer("moe_intermediate_size") * self.values.integer("n_shared_experts", minimum=0)

    def routing(self) -> RoutingFacts:
        values = self.values
        num_experts, per_token = self.expert_counts("n_routed_experts", "num_local_experts", default=128)
        groups = values.integer("n_group", maximum=num_experts)
        if num_experts % groups:
            raise values.error("n_group", f"must divide the {num_experts} experts", groups)
        kept = values.integer("topk_group", maximum=groups)
        if kept * (num_experts // groups) < per_token:
            raise values.error("topk_group", f"must leave {per_token} experts", kept)
        return RoutingFacts(
            num_experts=num_experts,
            experts_per_token=per_token,
            scores="sigmoid",
            renormalised=values.flag("norm_topk_prob"),
            scaling=values.number("routed_scaling_factor", 1.0),
            is_corrected=True,
            num_groups=groups,
            groups_per_token=kept,
        )
