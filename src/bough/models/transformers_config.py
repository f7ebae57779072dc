"""Sizes that the config.json of every decoder-only model of transformers has, whatever its family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bough.config.architectures import UNSUPPORTED_MODEL
from bough.config.checked_values import CheckedValues
from bough.config.model_facts import AttentionFacts, DenseFacts, LayerFacts
from bough.errors import ConfigError
from bough.models.family_reader import FamilyReader

if TYPE_CHECKING:
    from bough.config.model_config import ModelConfig

_OTHER_NAMES = {
    "hidden_size": ("n_embd", "d_model"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "max_position_embeddings": ("n_positions", "n_ctx"),
}
"""Entries of older families for the same."""


def refusal(config: ModelConfig, reason: str) -> ConfigError:
    """The error about a model that transformers could compute and Bough cannot serve."""
    message = f"{config.architecture} of transformers cannot be served: {reason}"
    return ConfigError(message, param="model_impl", code=UNSUPPORTED_MODEL)


class TransformersReader(FamilyReader):
    """Reads a model that transformers computes.

    Heads, their width and windows are first guesses, for what is shown before the model is loaded: the worker puts what
    a dry run of the model's code finds in their place, see :func:`bough.models.transformers_facts.complete`.
    """

    def __init__(self, values: CheckedValues, architecture: str) -> None:
        entries = {key: value for key, value in values.entries.items() if value is not None}
        renamed = {key: entries[other] for key, others in _OTHER_NAMES.items() for other in others if other in entries}
        super().__init__(values.of({**renamed, **entries}), architecture)

    def attention(self, hidden_size: int) -> AttentionFacts:
        """Heads, without rotation, which the model's own code applies."""
        num_heads = self.values.integer("num_attention_heads")
        num_kv_heads = self.values.integer("num_key_value_heads", num_heads)
        head_dim = self.values.integer("head_dim", max(hidden_size // num_heads, 1))
        self.check_matrix("num_attention_heads", num_heads * head_dim, hidden_size, times="head_dim and hidden_size")
        return AttentionFacts(num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, rope=None)

    def feed_forward(self, hidden_size: int) -> DenseFacts:
        """Width of the network, which only bounds the memory of activations."""
        width = self.values.integer("intermediate_size", 4 * hidden_size)
        self.check_matrix("intermediate_size", width, hidden_size)
        return DenseFacts(width=width, activation="")

    def layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        """No windows, as entries for them differ by family."""
        return (None,) * num_layers

    def context_len(self, layers: Sequence[LayerFacts]) -> int:
        """Longest sequence that the model was made for, in tokens."""
        return self.values.integer("max_position_embeddings")
