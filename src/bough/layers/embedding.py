"""Token embeddings and the language-model head."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


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

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """``[num_rows, hidden_size]`` to float32 ``[num_rows, vocab_size]``, contiguous and fresh."""
        return functional.linear(hidden_states, self.weight).float()
