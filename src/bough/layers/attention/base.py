"""What a backend of attention must offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from bough.mem_cache.kv_pool import KVPool
from bough.step_plan import IntArray

if TYPE_CHECKING:
    from bough.layers.attention.radix_attention import RadixAttention
    from bough.layers.forward_batch import ForwardBatch
    from bough.layers.rotary import Rotation


class HeadNorms(NamedTuple):
    """Root mean square norms of single heads, for those families that have them."""

    q_weight: torch.Tensor | None = None
    k_weight: torch.Tensor | None = None
    eps: float = 0.0


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
    def init_forward_metadata(
        self,
        num_decode_rows: int,
        req_slots: IntArray,
        prefix_lens: IntArray,
        extend_lens: IntArray,
        req_to_token: torch.Tensor,
    ) -> Any:
        """Work out, once per step, everything that all layers need and that depends on the step's shape only.

        Args:
            num_decode_rows: rows at the front that add one token each.
            req_slots: ``[R]``
            prefix_lens: ``[R]``, tokens in the pool already.
            extend_lens: ``[R]``, new tokens.
            req_to_token: int32 ``[max_running_requests, max_len]``, new tokens entered.

        Returns:
            What the batch carries as ``attn_metadata`` to this backend's forward functions; not changed by them.
        """

    @abstractmethod
    def forward_decode(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """Attend from the decode rows.

        Args:
            q: ``[num_decode_rows, num_heads, head_dim]``
            k: ``[num_decode_rows, num_kv_heads, head_dim]``, in the pool already.
            v: like ``k``
            layer: heads, scale, window and layer number.
            batch: the step.

        Returns:
            ``[num_decode_rows, num_heads * head_dim]``
        """

    @abstractmethod
    def forward_extend(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """Attend from the extend rows: like :meth:`forward_decode`, with the tokens of all extend rows in a row."""

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """Store ``k`` and ``v`` in the pool, then attend from all tokens.

        Shapes as in :class:`RadixAttention`. Mutates the pool at ``batch.out_cache_loc``.
        """
        self.kv_pool.set_kv_buffer(layer.layer_id, batch.out_cache_loc, k, v)
        split = batch.num_decode_rows
        if split == batch.num_tokens:
            return self.forward_decode(q, k, v, layer, batch)
        if split == 0:
            return self.forward_extend(q, k, v, layer, batch)
        decoded = self.forward_decode(q[:split], k[:split], v[:split], layer, batch)
        return torch.cat((decoded, self.forward_extend(q[split:], k[split:], v[split:], layer, batch)))


class RotatingBackend(AttentionBackend):
    """A backend that also does what lies between a block's first product and attention."""

    @abstractmethod
    def rotate_and_attend(
        self, heads: torch.Tensor, rotation: Rotation, norms: HeadNorms, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """Normalise and rotate queries and keys, store keys and values, attend.

        Args:
            heads: ``[num_tokens, num_heads + 2 * num_kv_heads, head_dim]``: queries, keys, values.
            rotation: of the tokens.
            norms: to be applied to queries and keys first.
            layer: heads, scale, window and layer number.
            batch: the step.

        Returns:
            ``[num_tokens, num_heads * head_dim]``
        """
