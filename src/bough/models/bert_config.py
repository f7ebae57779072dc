"""What a BERT's config.json says."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from bough.config.model_facts import EncoderParameters, LayerFacts, ModelFacts
from bough.config.pooling import PoolingMethod
from bough.config.rope import read_rope
from bough.models.family_reader import FamilyReader

_DEFAULT_LAYER_NORM_EPS = 1e-12
_DEFAULT_TYPE_VOCAB_SIZE = 2


class BertReader(FamilyReader):
    """BERT sees every token from every other, and looks positions up in a table."""

    defaults: ClassVar[dict[str, Any]] = {"max_position_embeddings": 512}
    activations: ClassVar[tuple[str, ...]] = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish")
    usual_pooling: ClassVar[PoolingMethod] = "cls"

    def read(self) -> ModelFacts:
        facts, values = super().read(), self.values
        rows = self.num_positions()
        encoder = EncoderParameters(
            layer_norm_eps=values.number("layer_norm_eps", _DEFAULT_LAYER_NORM_EPS),
            type_vocab_size=values.integer("type_vocab_size", _DEFAULT_TYPE_VOCAB_SIZE),
            num_positions=rows,
            first_position=self.first_position(),
        )
        self.check_matrix("max_position_embeddings", rows, facts.hidden_size)
        self.check_matrix("type_vocab_size", encoder.type_vocab_size, facts.hidden_size)
        values.choice("position_embedding_type", ("absolute",), "absolute")
        if rows <= encoder.first_position:
            raise values.error("max_position_embeddings", "must leave a position for a token", rows)
        return dataclasses.replace(facts, encoder=encoder)

    def num_positions(self) -> int:
        """Rows of the table of positions."""
        return self.values.integer("max_position_embeddings")

    def context_len(self, layers: Sequence[LayerFacts]) -> int:
        """Positions that tokens may have."""
        return self.num_positions() - self.first_position()

    def first_position(self) -> int:
        """Row of the table of positions that a sequence's first token has."""
        return 0

    def check_direction(self) -> None:
        """Refuse attention to earlier tokens only."""
        if self.values.flag("is_decoder"):
            raise self.values.refusal(
                f"{self.architecture} with is_decoder true attends to earlier tokens only, which is not supported"
            )

    def attention_biases(self) -> tuple[bool, bool]:
        """Everywhere."""
        return True, True

    def mlp_bias(self) -> bool:
        """Everywhere."""
        return True

    def head_dim(self, hidden_size: int, num_heads: int) -> int:
        """The heads share the states out among them, whatever else the file says."""
        return self.share_of_head(hidden_size, num_heads)

    def rope(self, head_dim: int) -> None:
        """Check the file's entries about rotation, which encoders do not use."""
        read_rope(self.values, head_dim)

    def layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        """None."""
        return (None,) * num_layers
