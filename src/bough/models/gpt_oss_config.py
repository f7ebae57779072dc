"""Reader of the config.json of a gpt-oss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from bough.config.model_facts import CLAMPED_SWISH, SWISH_BOUND, SWISH_SLOPE, AttentionFacts, ExpertFacts, RoutingFacts
from bough.config.rope import RopeParameters, read_rope
from bough.models.mixture_config import MixtureReader

_FULL, _SLIDING = "full_attention", "sliding_attention"
_YARN = {
    "rope_type": "yarn",
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
"""Rotation where the file has none."""


class GptOssReader(MixtureReader):
    """Experts in every layer, sinks in every head, biases throughout, and a window in every other layer."""

    width_key = "intermediate_size"
    defaults: ClassVar[dict[str, Any]] = {
        "vocab_size": 201_088,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_hidden_layers": 36,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "max_position_embeddings": 131_072,
        "rms_norm_eps": 1e-5,
        "rope_theta": 150_000.0,
        "sliding_window": 128,
        "num_experts_per_tok": 4,
        "attention_bias": True,
    }

    def attention(self, hidden_size: int) -> AttentionFacts:
        """Attention with sinks."""
        return replace(super().attention(hidden_size), sinks=True)

    def mlp_bias(self) -> bool:
        """Biases in all experts."""
        return True

    def experts(self, hidden_size: int) -> ExpertFacts:
        """Experts with the family's activation, of which the file states the parameters."""
        for key, value in (("swiglu_alpha", SWISH_SLOPE), ("swiglu_limit", SWISH_BOUND)):
            if (stated := self.values.number(key, value)) != value:
                raise self.values.error(key, f"must be {value}", stated)
        return replace(super().experts(hidden_size), activation=CLAMPED_SWISH)

    def routing(self) -> RoutingFacts:
        num_experts, per_token = self.expert_counts("num_local_experts", "num_experts", default=128)
        return RoutingFacts(
            num_experts=num_experts, experts_per_token=per_token, scores="softmax", renormalised=True, bias=True
        )

    def rope(self, head_dim: int) -> RopeParameters | None:
        """YaRN, unless the file has another rotation."""
        values = self.values
        has_rope = values.get("rope_parameters") or values.get("rope_scaling")
        return read_rope(values if has_rope else values.of({**values.entries, "rope_scaling": _YARN}), head_dim)

    def layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        """Windows by the kinds of layers, or in every other layer from the first on."""
        values = self.values
        window = None if values.get("sliding_window") is None else values.integer("sliding_window")
        known = {_SLIDING: window, _FULL: None}
        if values.get("layer_types") is not None:
            return tuple(known[word] for word in values.words("layer_types", known, num_layers))
        return tuple(known[_FULL if layer % 2 else _SLIDING] for layer in range(num_layers))
