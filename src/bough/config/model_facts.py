"""What a family's reader finds out about a model. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from bough.config.rope import RopeParameters


@dataclass(frozen=True, slots=True)
class EncoderParameters:
    """What only encoders have."""

    layer_norm_eps: float
    type_vocab_size: int
    """Kinds of texts that tokens tell apart: two where a model reads pairs."""
    first_position: int
    """Row of the table of positions that a sequence's first token has."""

    @property
    def padding_id(self) -> int | None:
        """Token without a position of its own, which has the row of its id; ``None`` if all tokens count."""
        return self.first_position - 1 if self.first_position else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model as its config.json describes it, whatever it is served for."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_act: str
    """What the feed-forward network's activation is called."""
    attention_bias: bool
    """Whether there are biases in attention, of families that go by the file: some have them, or none, anyway."""
    mlp_bias: bool
    """The same in feed-forward networks."""
    rms_norm_eps: float
    tie_word_embeddings: bool
    rope: RopeParameters
    layer_windows: tuple[int | None, ...]
    """Per layer, how many positions a token sees, itself included; ``None``: all."""
    derived_context_len: int
    """Longest sequence that the model was made for, in tokens."""
    encoder: EncoderParameters | None = None
    """``None`` if the model is no encoder."""

    @property
    def is_encoder(self) -> bool:
        """Whether every token sees every other: nothing is kept from one step for the next."""
        return self.encoder is not None

    @property
    def sliding_window(self) -> int | None:
        """The sliding window of the layers that have one, in tokens; ``None`` if no layer has."""
        windows = [window for window in self.layer_windows if window is not None]
        return max(windows) if windows else None
