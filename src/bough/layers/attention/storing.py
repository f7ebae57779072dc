"""What backends for CUDA have in common: Triton's kernels rotate and store, whoever attends afterwards."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch

from bough.kernels.triton.elementwise import rotate_and_store, store_tokens
from bough.layers.attention.base import HeadNorms, RotatingBackend
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.forward_batch import ForwardBatch
from bough.layers.rotary import Rotation


class StoringBackend(RotatingBackend):
    """Stores keys and values by Triton's kernels."""

    @abstractmethod
    def decode(self, q: torch.Tensor, layer: RadixAttention, metadata: Any) -> torch.Tensor:
        """Attend from decode rows ``q`` ``[n, num_heads, head_dim]``: ``[n, num_heads * head_dim]``."""

    @abstractmethod
    def extend(self, q: torch.Tensor, layer: RadixAttention, metadata: Any) -> torch.Tensor:
        """The same from the tokens of the rows that extend."""

    def num_decode_rows(self, batch: ForwardBatch) -> int:
        """How many rows at the front :meth:`decode` computes."""
        return batch.num_decode_rows

    def forward_decode(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """See :class:`AttentionBackend`."""
        return self._attend(q, layer, batch)

    def forward_extend(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """See :class:`AttentionBackend`."""
        return self.extend(q, layer, batch.attn_metadata)

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """See :class:`AttentionBackend`."""
        store_tokens(k, v, batch.out_cache_loc, *self._buffers(layer), kv_scales=self._scales(layer))
        return self._attend(q, layer, batch)

    def rotate_and_attend(
        self, heads: torch.Tensor, rotation: Rotation, norms: HeadNorms, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        """See :class:`RotatingBackend`."""
        q = rotate_and_store(
            heads,
            rotation,
            batch.out_cache_loc,
            *self._buffers(layer),
            q_norm=norms.q_weight,
            k_norm=norms.k_weight,
            eps=norms.eps,
            kv_scales=self._scales(layer),
        )
        return self._attend(q, layer, batch)

    def _attend(self, q: torch.Tensor, layer: RadixAttention, batch: ForwardBatch) -> torch.Tensor:
        metadata, split = batch.attn_metadata, self.num_decode_rows(batch)
        if split == batch.num_tokens:
            return self.decode(q, layer, metadata)
        if split == 0:
            return self.extend(q, layer, metadata)
        return torch.cat((self.decode(q[:split], layer, metadata), self.extend(q[split:], layer, metadata)))

    def _buffers(self, layer: RadixAttention) -> tuple[torch.Tensor, torch.Tensor]:
        return self.kv_pool.get_key_buffer(layer.layer_id), self.kv_pool.get_value_buffer(layer.layer_id)

    def _scales(self, layer: RadixAttention) -> torch.Tensor | None:
        return self.kv_pool.get_layer_scales(layer.layer_id)
