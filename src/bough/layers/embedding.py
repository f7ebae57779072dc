"""Token embeddings and the language-model head."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional

from bough.config.sharding import Span
from bough.layers.checkpoint_weight import CheckpointWeight
from bough.layers.linear_method import TORCH, MatrixShape, MethodChoice
from bough.layers.sharding import whole_weight

_LARGE_HEAD = 2**24
"""Weights from which on measuring a head is worth its time."""

_PADDED_ROWS = 8
_WORTH_PADDING = 0.85


class VocabEmbedding(nn.Module):
    """Token id to vector. A table that a head shares is held in whatever way the head needs it.

    Attributes:
        rows: tokens of the table ``[vocab_size, hidden_size]`` that are here.
        method: how they are held.
    """

    def __init__(self, vocab_size: int, hidden_size: int, dtype: torch.dtype, *, method: MethodChoice = TORCH) -> None:
        super().__init__()
        self.rows = method.shard.rows(vocab_size)
        self._inputs, self._collectives = Span.whole(hidden_size), method.collectives
        self.method = method.for_matrix(("embed_tokens",))
        self.method.create_weights(self, MatrixShape(self.rows.size, hidden_size, dtype, table=True))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """``[num_tokens]`` (int32 or int64) to ``[num_tokens, hidden_size]``."""
        if self.rows.is_whole:
            return self.method.embed(self, input_ids)
        places = input_ids - self.rows.start
        vectors = self.method.embed(self, places.clamp(0, self.rows.size - 1))
        is_elsewhere = (places < 0) | (places >= self.rows.size)
        return self._collectives.add_up(vectors.masked_fill_(is_elsewhere.unsqueeze(1), 0.0))

    def checkpoint_weights(self) -> Iterator[tuple[str, CheckpointWeight]]:
        """Name within this module, and what it fills."""
        held = self.method.weight_rows(self, 0, self.rows.size)
        yield "weight", whole_weight(held, self.rows, self._inputs, self._collectives)


class LMHead(nn.Module):
    """Hidden state to logits.

    Attributes:
        rows: tokens that have their logits here, before they are joined.
        holder: the module that has the weights ``[vocab_size, hidden_size]``: the embedding where the checkpoint ties
            them, else this one.
        method: how they are held.
        min_rows: fewer rows than this are padded to it, because that is faster; see :meth:`measure`.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        dtype: torch.dtype,
        *,
        tied_to: VocabEmbedding | None,
        method: MethodChoice = TORCH,
    ) -> None:
        """Share the table, and how it is held, of the embedding that the checkpoint ties the head to, if any."""
        super().__init__()
        self.min_rows = 1
        self.rows = method.shard.rows(vocab_size)
        self._inputs, self._collectives = Span.whole(hidden_size), method.collectives
        self._widths = [] if self.rows.is_whole else [each.size for each in method.shard.rows_of_all(vocab_size)]
        # In a tuple, which keeps the embedding from becoming a part of this module.
        self._holder: tuple[nn.Module] = (self if tied_to is None else tied_to,)
        self.method = method.for_matrix(("lm_head",)) if tied_to is None else tied_to.method
        if tied_to is None:
            self.method.create_weights(self, MatrixShape(self.rows.size, hidden_size, dtype, table=True))

    @property
    def holder(self) -> nn.Module:
        """See the class."""
        return self._holder[0]

    def forward(self, hidden_states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """``[num_rows, hidden_size]`` to float32 ``[num_rows, vocab_size]``: ``out``, or contiguous and fresh."""
        if not self.rows.is_whole:
            own = self.method.compute_logits(self.holder, hidden_states)
            return self._collectives.join_columns(own, self._widths, out)
        missing = self.min_rows - len(hidden_states)
        if missing > 0 and out is None:
            padded = functional.pad(hidden_states, (0, 0, 0, missing))
            return self.method.compute_logits(self.holder, padded)[:-missing]
        return self.method.compute_logits(self.holder, hidden_states, out)

    def checkpoint_weights(self) -> Iterator[tuple[str, CheckpointWeight]]:
        """Name within this module, and what it fills."""
        held = self.method.weight_rows(self.holder, 0, self.rows.size)
        yield "weight", whole_weight(held, self.rows, self._inputs, self._collectives)

    @torch.inference_mode()
    def measure(self) -> None:
        """Find out whether torch multiplies one row by a large matrix slower than several here, and remember it.

        Some CPUs have a poor kernel for a single bfloat16 row: 20 ms where eight rows take 12. Small heads, native
        kernels and other devices are left alone. Changes ``min_rows``.
        """
        if self.method is not TORCH:
            return
        weight = self.holder.get_parameter("weight")
        if weight.device.type != "cpu" or weight.numel() < _LARGE_HEAD:
            return
        seconds = {}
        for rows in (1, _PADDED_ROWS):
            states = weight.new_zeros(rows, weight.shape[1])
            functional.linear(states, weight)
            seconds[rows] = min(_timed(states, weight) for _ in range(2))
        self.min_rows = _PADDED_ROWS if seconds[_PADDED_ROWS] < _WORTH_PADDING * seconds[1] else 1


def _timed(states: torch.Tensor, weight: torch.Tensor) -> float:
    begin = time.perf_counter()
    functional.linear(states, weight)
    return time.perf_counter() - begin
