"""Attention sinks: a learned score for each head that takes a share of its weight (OpenAI 2025, gpt-oss)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from bough.config.sharding import Span
from bough.layers.checkpoint_weight import CheckpointWeight, TensorWeight
from bough.layers.collectives import Collectives
from bough.layers.sharding import whole_weight


class Sinks(nn.Module):
    """The sinks of a layer's query heads, or of those of them that are here.

    Attributes:
        scores: float32 ``[num_heads]``
    """

    def __init__(self, heads: Span, collectives: Collectives) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.empty(heads.size, dtype=torch.float32), requires_grad=False)
        self._heads, self._collectives = heads, collectives

    def checkpoint_weights(self) -> Iterator[tuple[str, CheckpointWeight]]:
        """Yield the name within the parent module, and what it fills."""
        yield "sinks", whole_weight(TensorWeight(self.scores.data), self._heads, None, self._collectives)
