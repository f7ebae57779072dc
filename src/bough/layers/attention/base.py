"""Interface of attention backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from bough.layers.norm import rms_norm
from bough.mem_cache.kv_pool import KVPool
from bough.step_plan import StepPlan

if TYPE_CHECKING:
    from bough.layers.attention.radix_attention import RadixAttention
    from bough.layers.forward_batch import ForwardBatch
    from bough.layers.rotary import Rotation


NewKV = tuple[torch.Tensor, torch.Tensor]
"""Keys and values of new tokens, each ``[num_tokens, num_kv_heads, head_dim]``."""


class HeadNorms(NamedTuple):
    """Root mean square norms of single heads, for those families that have them."""

    q_weight: torch.Tensor | None = None
    k_weight: torch.Tensor | None = None
    eps: float = 0.0
    offset: float = 0.0
    """Added to the weights"""

    def apply(self, heads: torch.Tensor, num_heads: int) -> torch.Tensor:
        """Normalise queries and keys ``[num_tokens, num_heads + num_kv_heads, head_dim]``, queries first."""
        if self.q_weight is None or self.k_weight is None:
            return heads
        weights = ((heads[:, :num_heads], self.q_weight), (heads[:, num_heads:], self.k_weight))
        return torch.cat([rms_norm(part, weight, self.eps, self.offset) for part, weight in weights], dim=1)


class AttentionBackend(ABC):
    """Computes attention over the KV pool.

    The tokens of a batch come decode rows first, one token each, then extend rows. A backend keeps no state between
    batches other than scratch memory; one batch at a time is computed.

    Attributes:
        reads_neighbours: whether keys and values of others on a page are multiplied by zero, which what is not finite
            survives; if not, they are not read.
        can_run_ahead: whether a step may be given to the device before the last one is done: nothing on the host that
            the device still reads is written by :meth:`init_forward_metadata`.
    """

    reads_neighbours = True
    can_run_ahead = False

    def __init__(self, kv_pool: KVPool) -> None:
        self.kv_pool = kv_pool

    @abstractmethod
    def init_forward_metadata(self, plan: StepPlan, req_to_token: torch.Tensor) -> Any:
        """Work out, once per step, everything that all layers need and that depends on the step's shape only.

        Forward functions get the result as ``metadata``, and do not change it. ``req_to_token`` is int32
        ``[max_running_requests, max_len]``, new tokens entered.
        """

    @abstractmethod
    def forward_decode(self, q: torch.Tensor, layer: RadixAttention, metadata: Any) -> torch.Tensor:
        """Attend from the decode rows ``[n, num_heads, head_dim]`` to ``[n, num_heads * head_dim]``."""

    @abstractmethod
    def forward_extend(
        self, q: torch.Tensor, layer: RadixAttention, metadata: Any, new: NewKV | None = None
    ) -> torch.Tensor:
        """Attend from the extend rows: like :meth:`forward_decode`, with the tokens of all extend rows in a row.

        Keys and values of these tokens are in the pool, and in ``new`` unless the backend has stored them itself.
        """

    def num_decode_rows(self, batch: ForwardBatch) -> int:
        """Number of rows at the front that :meth:`forward_decode` computes."""
        return batch.num_decode_rows

    def store(self, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch) -> None:
        """Write ``k`` and ``v`` into the pool at ``batch.out_cache_loc``."""
        self.kv_pool.set_kv_buffer(layer.layer_id, batch.out_cache_loc, k, v)

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """Store ``k`` and ``v`` in the pool, then attend from all tokens. Shapes as in :class:`RadixAttention`."""
        self.store(k, v, layer, batch)
        return self.attend(q, layer, batch, (k, v))

    def attend(
        self, q: torch.Tensor, layer: RadixAttention, batch: ForwardBatch, new: NewKV | None = None
    ) -> torch.Tensor:
        """Attend from all tokens, whose keys and values are in the pool."""
        metadata, split = batch.attn_metadata, self.num_decode_rows(batch)
        if split == batch.num_tokens:
            return self.forward_decode(q, layer, metadata)
        if split == 0:
            return self.forward_extend(q, layer, metadata, new)
        decoded = self.forward_decode(q[:split], layer, metadata)
        new = None if new is None else (new[0][split:], new[1][split:])
        return torch.cat((decoded, self.forward_extend(q[split:], layer, metadata, new)))


class RotatingBackend(AttentionBackend):
    """A backend that also does what lies between a block's first product and attention."""

    @abstractmethod
    def rotate_and_attend(
        self, heads: torch.Tensor, rotation: Rotation, norms: HeadNorms, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """Normalise and rotate queries and keys, store keys and values, attend.

        ``heads`` ``[num_tokens, num_heads + 2 * num_kv_heads, head_dim]`` are queries, keys, values; returns
        ``[num_tokens, num_heads * head_dim]``.
        """
