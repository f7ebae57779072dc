"""From the states of a sequence's tokens to one vector.

The poolings are those of Reimers and Gurevych, Sentence-BERT (2019), section 3, and the last token's state.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from bough.config.pooling import PoolingMethod


def pool(method: PoolingMethod, hidden_states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Pool sequences that lie one after the other: ``[num_tokens, hidden_size]`` to float32 ``[R, hidden_size]``.

    ``lengths``, int64 ``[R]`` on the same device, are at least 1; their sum is ``num_tokens``.
    """
    if method == "cls":
        return hidden_states.index_select(0, lengths.cumsum(0) - lengths).float()
    if method == "last":
        return hidden_states.index_select(0, lengths.cumsum(0) - 1).float()
    return torch.segment_reduce(hidden_states.float(), method, lengths=lengths, axis=0)


def shorten(vectors: torch.Tensor, dimensions: int | None, *, normalize: bool) -> torch.Tensor:
    """The first ``dimensions`` numbers of each vector ``[R, width]``, all if ``None``; then scaled to length 1.

    Keeping a part of a vector is meant for models trained for it (Kusupati et al., Matryoshka Representation Learning,
    2022).
    """
    kept = vectors if dimensions is None else vectors[:, :dimensions]
    return functional.normalize(kept, dim=-1) if normalize else kept


class ChunkPooler:
    """Pools prompts that are computed in several steps.

    What the last token has to say needs no memory. For the others, the pool so far is kept per request slot.

    Attributes:
        state: float32 ``[max_running_requests, hidden_size]``: first state, sum or maximum so far; empty for ``last``.
    """

    def __init__(
        self, method: PoolingMethod, max_running_requests: int, hidden_size: int, device: torch.device
    ) -> None:
        self.method = method
        rows = 0 if method == "last" else max_running_requests
        self.state = torch.zeros(rows, hidden_size, device=device)

    def add(
        self,
        hidden_states: torch.Tensor,
        lengths: torch.Tensor,
        req_slots: torch.Tensor,
        prefix_lens: torch.Tensor,
    ) -> torch.Tensor:
        """Take in the next tokens of some prompts.

        Args:
            hidden_states: ``[num_tokens, hidden_size]``, prompt after prompt.
            lengths: int64 ``[R]``, new tokens of each prompt.
            req_slots: int64 ``[R]``, all different.
            prefix_lens: int64 ``[R]``, tokens of each that came before; 0 begins anew.

        Returns:
            float32 ``[R, hidden_size]``, pooled over all tokens so far.
        """
        pooled = pool(self.method, hidden_states, lengths)
        if self.method == "last":
            return pooled
        is_first = (prefix_lens == 0)[:, None]
        before = self.state.index_select(0, req_slots)
        if self.method == "cls":
            pooled = torch.where(is_first, pooled, before)
        elif self.method == "max":
            pooled = torch.where(is_first, pooled, torch.maximum(pooled, before))
        else:
            pooled = pooled * lengths[:, None] + torch.where(is_first, 0.0, before)
        self.state.index_copy_(0, req_slots, pooled)
        return pooled / (prefix_lens + lengths)[:, None] if self.method == "mean" else pooled
