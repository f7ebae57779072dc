"""What backends for CUDA have in common: Triton's kernels rotate and store, whoever attends afterwards."""

from __future__ import annotations

import torch

from bough.kernels.triton.elementwise import rotate_and_store, store_tokens
from bough.layers.attention.base import HeadNorms, RotatingBackend
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.forward_batch import ForwardBatch
from bough.layers.rotary import Rotation


class StoringBackend(RotatingBackend):
    """Stores keys and values by Triton's kernels."""

    def store(self, k: torch.Tensor, v: torch.Tensor, layer: RadixAttention, batch: ForwardBatch) -> None:
        store_tokens(k, v, batch.out_cache_loc, *self._buffers(layer), kv_scales=self._scales(layer))

    def rotate_and_attend(
        self, heads: torch.Tensor, rotation: Rotation, norms: HeadNorms, layer: RadixAttention, batch: ForwardBatch
    ) -> torch.Tensor:
        q = rotate_and_store(
            heads,
            rotation,
            batch.out_cache_loc,
            *self._buffers(layer),
            q_norm=norms.q_weight,
            k_norm=norms.k_weight,
            eps=norms.eps,
            norm_offset=norms.offset,
            kv_scales=self._scales(layer),
        )
        return self.attend(q, layer, batch)

    def _buffers(self, layer: RadixAttention) -> tuple[torch.Tensor, torch.Tensor]:
        return self.kv_pool.get_key_buffer(layer.layer_id), self.kv_pool.get_value_buffer(layer.layer_id)

    def _scales(self, layer: RadixAttention) -> torch.Tensor | None:
        return self.kv_pool.get_layer_scales(layer.layer_id)
