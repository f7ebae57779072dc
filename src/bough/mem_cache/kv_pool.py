"""Keys and values of all cached tokens, on the device."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch

from bough.config.model_facts import KVLayout
from bough.kernels.host_memory import give_back, huge_pages
from bough.kernels.structures import DType, KVLayer

_KERNEL_DTYPES = {torch.float32: DType.F32, torch.bfloat16: DType.BF16, torch.int8: DType.I8}
_SCALE_DTYPE = torch.float32

FLOAT8_DTYPES = (torch.float8_e4m3fn, torch.float8_e5m2)


class KVPool:
    """One key and one value buffer per layer, addressed by slot.

    Of int8, every head of a token's keys, and of its values, has a scale: it stands for whole numbers times that. Only
    native kernels store and read it so. Of 8-bit floating point, all keys of a layer have one, and all values, 1
    unless a checkpoint says otherwise; only Triton's kernels store and read it so.

    The first page is reserved: it stays zero, and padding reads it. Slots that an allocator may hand out are
    ``range(page_size, num_slots)``.

    Attributes:
        num_slots: all slots, those of the reserved page included.
        page_size: slots per page; a page's slots are neighbours and belong to one run of a sequence.
        layout: what is kept of each token.
        experts: int16 ``[num_slots, routed layers, experts of a token]``, ascending; ``None`` if they are not kept.
    """

    def __init__(
        self,
        *,
        max_total_tokens: int,
        page_size: int,
        layout: KVLayout,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        if max_total_tokens < page_size or max_total_tokens % page_size:
            raise ValueError(f"{max_total_tokens} tokens are not a whole number of pages of {page_size}")
        self.max_total_tokens = max_total_tokens
        self.page_size = page_size
        self.num_slots = max_total_tokens + page_size
        self.num_layers = num_layers = layout.num_layers
        self.num_kv_heads = num_kv_heads = layout.num_kv_heads
        self.head_dim = layout.head_dim
        self.dtype = dtype
        self.device = device
        # [layers, 2 (K and V), slots, kv_heads, head_dim]
        self._buffer = _zeros((num_layers, 2, self.num_slots, num_kv_heads, layout.head_dim), dtype, device)
        self._keys = [self._buffer[layer, 0] for layer in range(num_layers)]
        self._values = [self._buffer[layer, 1] for layer in range(num_layers)]
        # [layers, 2, slots, kv_heads]
        self._scales: torch.Tensor | None = None
        if dtype == torch.int8:
            self._scales = _zeros((num_layers, 2, self.num_slots, num_kv_heads), _SCALE_DTYPE, device)
        self.layout = layout
        # [slots, routed layers, experts of a token]
        self.experts: torch.Tensor | None = None
        if layout.routed_layers:
            kept = (self.num_slots, len(layout.routed_layers), layout.experts_per_token)
            self.experts = _zeros(kept, torch.int16, device)
        # [layers, 2]
        self._layer_scales: torch.Tensor | None = None
        if dtype in FLOAT8_DTYPES:
            # 16 bytes apart: kernels are compiled once more for addresses that are not multiples of that.
            self._layer_scales = torch.ones(num_layers, 4, dtype=_SCALE_DTYPE, device=device)[:, :2]

    @property
    def num_bytes(self) -> int:
        """Memory of all buffers, in bytes."""
        return sum(buffer.nbytes for buffer in self._by_slot())

    def _by_slot(self) -> list[torch.Tensor]:
        return [each for each in (self._buffer, self._scales, self.experts) if each is not None]

    def touch(self) -> None:
        """Make the system commit all of the pool's memory now, so that it cannot be missing later. Zeroes the pool."""
        for buffer in self._by_slot():
            buffer.zero_()

    def give_back(self) -> None:
        """Give the memory of a pool on the host back to the system; :meth:`touch` takes it again. Addresses stay.

        Raises:
            OSError: if the system refuses.
        """
        for buffer in self._by_slot():
            give_back(buffer)

    def read_experts(self, slots: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the experts that have computed some tokens, ``[len(slots), num_layers, experts of a token]``, zeros in
        layers without experts.

        Raises:
            ValueError: if they are not kept.
        """
        if self.experts is None:
            raise ValueError("the experts of tokens are not kept")
        kept = self.experts[torch.from_numpy(slots.astype(np.int64)).to(self.device)].cpu().numpy()
        found = np.zeros((len(slots), self.num_layers, self.layout.experts_per_token), dtype=np.int32)
        found[:, list(self.layout.routed_layers)] = kept
        return found

    def get_key_buffer(self, layer_id: int) -> torch.Tensor:
        """Keys of a layer: ``[num_slots, num_kv_heads, head_dim]``, the pool's own memory."""
        return self._keys[layer_id]

    def get_value_buffer(self, layer_id: int) -> torch.Tensor:
        """Values of a layer: ``[num_slots, num_kv_heads, head_dim]``, the pool's own memory."""
        return self._values[layer_id]

    def get_layer_scales(self, layer_id: int) -> torch.Tensor | None:
        """Factors of the keys and the values of a layer: float32 ``[2]``; ``None`` if there are none."""
        return None if self._layer_scales is None else self._layer_scales[layer_id]

    def set_layer_scales(self, scales: Mapping[int, tuple[float, float]]) -> None:
        """Give the layers of a pool of 8-bit floating point the scales that they were calibrated with.

        Those of layers that the model does not have are left out.
        """
        assert self._layer_scales is not None, "other pools have none"
        for layer_id in range(self.num_layers):
            if layer_id in scales:
                self._layer_scales[layer_id] = torch.tensor(scales[layer_id], dtype=_SCALE_DTYPE)

    def kernel_layer(self, layer_id: int) -> KVLayer:
        """A layer's memory as native kernels take it; raises ``KeyError`` if they do not know the pool's dtype."""
        return KVLayer(
            keys=self._keys[layer_id].data_ptr(),
            values=self._values[layer_id].data_ptr(),
            key_scales=None if self._scales is None else self._scales[layer_id, 0].data_ptr(),
            value_scales=None if self._scales is None else self._scales[layer_id, 1].data_ptr(),
            dtype=_KERNEL_DTYPES[self.dtype],
        )

    def set_kv_buffer(self, layer_id: int, slots: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """Store keys and values ``[num_tokens, num_kv_heads, head_dim]`` of new tokens at int64 ``slots``
        ``[num_tokens]``, each at most once; raises ``TypeError`` if the pool is of another dtype."""
        if k.dtype != self.dtype:
            raise TypeError(f"the pool holds {self.dtype}, not {k.dtype}")
        self._keys[layer_id].index_copy_(0, slots, k)
        self._values[layer_id].index_copy_(0, slots, v)

    def scrub(self, slots: torch.Tensor) -> None:
        """Replace what is not a number, or infinite, by zeros in all layers at ``slots`` (int64 ``[n]``).

        Padding multiplies neighbours on a page by a weight of zero, which does not silence a NaN.
        """
        if self._layer_scales is not None:
            return  # what is not finite is not stored
        buffers = (*self._keys, *self._values) if self._scales is None else self._scales.flatten(0, 1)
        for buffer in buffers:
            buffer[slots] = torch.nan_to_num(buffer[slots], nan=0.0, posinf=0.0, neginf=0.0)


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of zeros; on a CPU not committed yet, and on huge pages where the system has them."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    return huge_pages(math.prod(shape) * dtype.itemsize).view(dtype).view(shape)


def kv_bytes_per_token(layout: KVLayout, dtype: torch.dtype) -> int:
    """Memory of what is kept of one token, all layers together, in bytes."""
    scale_bytes = _SCALE_DTYPE.itemsize if dtype == torch.int8 else 0
    experts = torch.int16.itemsize * len(layout.routed_layers) * layout.experts_per_token
    return 2 * layout.num_layers * layout.num_kv_heads * (layout.head_dim * dtype.itemsize + scale_bytes) + experts
