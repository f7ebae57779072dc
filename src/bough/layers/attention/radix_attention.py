"""The attention layer of models: where queries, keys and values meet the KV pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from bough.kernels.structures import AttentionShape

if TYPE_CHECKING:
    from bough.kernels.program import Buffer, Program
    from bough.layers.forward_batch import ForwardBatch
    from bough.mem_cache.kv_pool import KVPool


class RadixAttention(nn.Module):
    """Causal attention of a step's new tokens over all tokens of their requests.

    Stores the new tokens' keys and values in the pool and leaves the computation to the batch's backend.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        num_kv_heads: int,
        layer_id: int,
        *,
        scaling: float | None = None,
        sliding_window: int | None = None,
        logit_cap: float | None = None,
        sinks: nn.Parameter | None = None,
    ) -> None:
        """Take no memory.

        Args:
            num_heads: of queries.
            head_dim: width of a head.
            num_kv_heads: of keys and of values.
            layer_id: number of the layer in the KV pool.
            scaling: factor on the scores; ``None``: the inverse root of the width.
            sliding_window: positions that a token sees, itself included; ``None``: all.
            logit_cap: bound of the scaled scores, by a hyperbolic tangent (Gemma 2's soft-cap).
            sinks: ``[num_heads]``, scores that take a share of each head's weight and have no value (gpt-oss).
        """
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.num_kv_heads = num_kv_heads
        self.layer_id = layer_id
        self.scaling = head_dim**-0.5 if scaling is None else scaling
        self.sliding_window = sliding_window
        self.logit_cap = logit_cap
        self.sinks = sinks

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        """Attend from ``q`` ``[num_tokens, num_heads, head_dim]`` to ``[num_tokens, num_heads * head_dim]``.

        ``k`` and ``v`` are ``[num_tokens, num_kv_heads, head_dim]``; the batch's backend computes.
        """
        return batch.attn_backend.forward(q, k, v, self, batch)

    def record(self, program: Program, heads: Buffer, kv_pool: KVPool) -> Buffer:
        """What :meth:`forward` computes, once the keys and values of ``heads`` are in the pool."""
        shape = AttentionShape(
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            window=self.sliding_window or 0,
            scale=self.scaling,
        )
        return program.attend(heads, kv_pool.kernel_layer(self.layer_id), shape)
