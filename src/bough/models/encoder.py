"""What encoders have in common: a step's sequences in, the states of all their tokens out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch

from bough.layers.attention.bidirectional import LengthGroup
from bough.models.base import Model


@dataclass(frozen=True, slots=True)
class EncoderBatch:
    """``R`` whole sequences with ``T`` tokens together, the shortest first. Never changed."""

    input_ids: torch.Tensor
    """int64 [T]"""
    positions: torch.Tensor
    """int64 [T], rows of the table of positions"""
    token_types: torch.Tensor
    """int64 [T], 0 for the first text of a pair and 1 for the second"""
    groups: tuple[LengthGroup, ...]
    """The sequences by length."""


class Encoder(Model):
    """A bidirectional model whose tokens' states are pooled into one vector per sequence."""

    @abstractmethod
    def forward(self, batch: EncoderBatch) -> torch.Tensor:
        """Hidden states of all tokens, ``[num_tokens, hidden_size]``."""

    def project(self, pooled: torch.Tensor) -> torch.Tensor:
        """Apply what follows the pooling, if anything: float32 ``[R, hidden_size]`` to float32 ``[R, dim]``."""
        return pooled
