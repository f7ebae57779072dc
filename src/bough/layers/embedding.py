"""Token embeddings and the language-model head."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.nn import functional

_LARGE_HEAD = 2**24
"""Weights from which on measuring a head is worth its time."""

_PADDED_ROWS = 8
_WORTH_PADDING = 0.85


class VocabEmbedding(nn.Module):
    """Token id to vector.

    Attributes:
        weight: ``[vocab_size, hidden_size]``.
    """

    def __init__(self, vocab_size: int, hidden_size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size, dtype=dtype), requires_grad=False)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """``[num_tokens]`` (int32 or int64) to ``[num_tokens, hidden_size]``."""
        return functional.embedding(input_ids, self.weight)


class LMHead(nn.Module):
    """Hidden state to logits.

    Attributes:
        weight: ``[vocab_size, hidden_size]``; the embedding's own parameter where the checkpoint ties them.
        min_rows: fewer rows than this are padded to it, because that is faster; see :meth:`measure`.
    """

    def __init__(
        self, vocab_size: int, hidden_size: int, dtype: torch.dtype, *, tied_to: VocabEmbedding | None
    ) -> None:
        super().__init__()
        self.weight = (
            tied_to.weight
            if tied_to is not None
            else nn.Parameter(torch.empty(vocab_size, hidden_size, dtype=dtype), requires_grad=False)
        )
        self.min_rows = 1

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """``[num_rows, hidden_size]`` to float32 ``[num_rows, vocab_size]``, contiguous and fresh."""
        missing = self.min_rows - len(hidden_states)
        if missing > 0:
            padded = functional.pad(hidden_states, (0, 0, 0, missing))
            return functional.linear(padded, self.weight)[:-missing].float()
        return functional.linear(hidden_states, self.weight).float()

    @torch.inference_mode()
    def measure(self) -> None:
        """Find out whether this machine multiplies one row by a large matrix slower than several, and remember it.

        Some CPUs have a poor kernel for a single bfloat16 row: 20 ms where eight rows take 12. Small heads and other
        devices are left alone. Changes ``min_rows``.
        """
        if self.weight.device.type != "cpu" or self.weight.numel() < _LARGE_HEAD:
            return
        seconds = {}
        for rows in (1, _PADDED_ROWS):
            states = self.weight.new_zeros(rows, self.weight.shape[1])
            functional.linear(states, self.weight)
            seconds[rows] = min(_timed(states, self.weight) for _ in range(2))
        self.min_rows = _PADDED_ROWS if seconds[_PADDED_ROWS] < _WORTH_PADDING * seconds[1] else 1


def _timed(states: torch.Tensor, weight: torch.Tensor) -> float:
    begin = time.perf_counter()
    functional.linear(states, weight)
    return time.perf_counter() - begin
