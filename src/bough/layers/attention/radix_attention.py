"""The attention layer of models: how queries meet the keys and values of the KV pool."""

from __future__ import annotations

import torch

from bough.config.sharding import Span
from bough.kernels.structures import AttentionShape


class RadixAttention:
    """Causal attention of a step's new tokens over all tokens of their requests.

    Attributes:
        num_heads: of queries.
        head_dim: width of a head.
        num_kv_heads: of keys, and of values.
        layer_id: layer of the pool.
        scaling: factor on the scores, by default ``head_dim ** -0.5``.
        sliding_window: positions that a token sees, itself included; ``None``: all.
        logit_cap: bound of the scaled scores, by a hyperbolic tangent (Gemma 2's soft-cap).
        sinks: ``[num_heads]``, scores that take a share of each head's weight and have no value (gpt-oss); float32 in
            Bough's own families.
        queries: heads of queries that are here.
        query_scale: ``beta`` and ``period`` of queries that are multiplied, as in Llama 4, by
            ``1 + beta * log(1 + position // period)``.
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
        sinks: torch.Tensor | None = None,
        query_scale: tuple[float, int] | None = None,
        queries: Span | None = None,
    ) -> None:
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.num_kv_heads = num_kv_heads
        self.layer_id = layer_id
        self.scaling = head_dim**-0.5 if scaling is None else scaling
        self.sliding_window = sliding_window
        self.logit_cap = logit_cap
        self.sinks = sinks
        self.query_scale = query_scale
        self.queries = Span.whole(num_heads) if queries is None else queries

    @property
    def shape(self) -> AttentionShape:
        """The layer as native kernels take it."""
        return AttentionShape(
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            window=self.sliding_window or 0,
            scale=self.scaling,
        )
