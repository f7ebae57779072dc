"""Entries of a Gemma 3's config.json, or of its text_config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from bough.config.model_facts import AttentionFacts, LayerFacts
from bough.config.rope import RopeParameters, read_rope
from bough.models.family_reader import FamilyReader

_FULL, _SLIDING = "full_attention", "sliding_attention"
_PATTERN = 6
"""Of so many layers the last one sees everything, where the file does not say."""


class Gemma3Reader(FamilyReader):
    """Five layers in six have a window, and a rotation of their own."""

    defaults: ClassVar[dict[str, Any]] = {
        "vocab_size": 262_208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131_072,
        "query_pre_attn_scalar": 256,
        "sliding_window": 4096,
        "tie_word_embeddings": True,
    }
    activations: ClassVar[tuple[str, ...]] = ("gelu_pytorch_tanh",)
    activation_key = "hidden_activation"

    def check_direction(self) -> None:
        """Refuse attention to later tokens and soft-caps, which no published Gemma 3 has."""
        super().check_direction()
        for key in ("use_bidirectional_attention", "attn_logit_softcapping", "final_logit_softcapping"):
            if self.values.get(key):
                raise self.values.refusal(f"{self.architecture} with {key} is not supported")

    def attention(self, hidden_size: int) -> AttentionFacts:
        """Attention with a factor on the scores that the file says."""
        scalar = self.values.number("query_pre_attn_scalar", 256.0, minimum=1e-6)
        return replace(super().attention(hidden_size), scaling=scalar**-0.5)

    def mixers(self, attention: AttentionFacts, num_layers: int) -> Sequence[AttentionFacts]:
        """Layers with a window are rotated by the local base."""
        local = self._rope(_SLIDING, attention.head_dim)
        windows = self.layer_windows(num_layers)
        kinds = {window: replace(attention, window=window, rope=local) for window in windows if window is not None}
        return [attention if window is None else kinds[window] for window in windows]

    def rope(self, head_dim: int) -> RopeParameters | None:
        """Rotation of layers that see everything."""
        return self._rope(_FULL, head_dim)

    def _rope(self, kind: str, head_dim: int) -> RopeParameters:
        values = self.values
        stored = values.get("rope_parameters") or {}
        if not isinstance(stored, dict) or not stored.keys() <= {_FULL, _SLIDING}:
            raise values.error("rope_parameters", f"must be an object with {_FULL} and {_SLIDING}", stored)
        key, default = ("rope_theta", 1e6) if kind == _FULL else ("rope_local_base_freq", 1e4)
        entries = {
            **values.entries,
            "rope_theta": values.number(key, default),
            "rope_scaling": values.get("rope_scaling") if kind == _FULL else None,
            "rope_parameters": stored.get(kind),
        }
        return read_rope(values.of(entries), head_dim)

    def context_len(self, layers: Sequence[LayerFacts]) -> int:
        """The file's number of positions has the stretch of the rotation in it."""
        return self.values.integer("max_position_embeddings")

    def layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        """Windows by the kinds of layers, or by a pattern."""
        values = self.values
        known = {_SLIDING: values.integer("sliding_window"), _FULL: None}
        if values.get("layer_types") is not None:
            return tuple(known[word] for word in values.words("layer_types", known, num_layers))
        pattern = values.integer("sliding_window_pattern", _PATTERN)
        return tuple(known[_SLIDING if (layer + 1) % pattern else _FULL] for layer in range(num_layers))
