"""Attention by FlashInfer's kernels, where the package is installed (Ye et al. 2025, "FlashInfer").

Two of its interfaces are used, over keys and values in pages: ``BatchDecodeWithPagedKVCacheWrapper`` and
``BatchPrefillWithPagedKVCacheWrapper``. Both are told a step's lengths and pages once, and run for every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bough.layers.attention.base import NewKV
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.attention.storing import StoringBackend
from bough.mem_cache.kv_pool import KVPool
from bough.sampling.transfer import to_device
from bough.step_plan import IntArray, StepPlan

_WORKSPACE_BYTES = 128 << 20
"""For partial results: what the package recommends."""

_PLAN_BYTES = 8 << 20
"""What a wrapper keeps for itself."""

_LARGEST_PLAIN_GROUP = 2
"""Query heads of a KV head; more are worth the matrix units, which not all numbers of them can do without."""


@dataclass(frozen=True, slots=True)
class FlashInferMetadata:
    """What a step's layers share, by sliding window: what was told the step."""

    decode: dict[int | None, Any]
    extend: dict[int | None, Any]


class FlashInferBackend(StoringBackend):
    """Models in float16 or bfloat16, with heads of 64, 128 or 256 numbers.

    What the package plans with is read by the device later, so steps are waited for (:attr:`can_run_ahead`).
    """

    def __init__(self, kv_pool: KVPool, windows: Sequence[int | None], num_heads: int, *, dtype: torch.dtype) -> None:
        """Allocate scratch memory."""
        from flashinfer import BatchDecodeWithPagedKVCacheWrapper, BatchPrefillWithPagedKVCacheWrapper

        super().__init__(kv_pool)
        self._num_heads, self._dtype = num_heads, dtype
        workspace = torch.zeros(_WORKSPACE_BYTES, dtype=torch.uint8, device=kv_pool.device)
        use_tensor_cores = num_heads // kv_pool.num_kv_heads > _LARGEST_PLAIN_GROUP
        self._decode: dict[int | None, Any] = {}
        self._extend: dict[int | None, Any] = {}
        for window in windows:
            decode = BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD", use_tensor_cores=use_tensor_cores)
            self._decode[window] = decode
            self._extend[window] = BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD")
        pages = (-1, kv_pool.page_size, kv_pool.num_kv_heads, kv_pool.head_dim)
        self._pages = [
            (kv_pool.get_key_buffer(layer).view(pages), kv_pool.get_value_buffer(layer).view(pages))
            for layer in range(kv_pool.num_layers)
        ]

    @staticmethod
    def num_bytes(windows: Sequence[int | None]) -> int:
        """Memory of the device that a backend takes."""
        return _WORKSPACE_BYTES + 2 * len(windows) * _PLAN_BYTES

    def init_forward_metadata(self, plan: StepPlan, req_to_token: torch.Tensor) -> FlashInferMetadata:
        split, lens = plan.num_decode_rows, plan.prefix_lens + plan.extend_lens
        if split:
            paging = self._paging(plan.req_slots[:split], lens[:split], req_to_token)
            for window, wrapper in self._decode.items():
                wrapper.plan(*paging, *self._shape, **self._options(window))
        if split < len(plan.req_slots):
            paging = self._paging(plan.req_slots[split:], lens[split:], req_to_token)
            first_queries = torch.from_numpy(_begins(plan.extend_lens[split:]))
            for window, wrapper in self._extend.items():
                wrapper.plan(first_queries, *paging, *self._shape, causal=True, **self._options(window))
        return FlashInferMetadata(self._decode, self._extend)

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        return self._num_heads, self.kv_pool.num_kv_heads, self.kv_pool.head_dim, self.kv_pool.page_size

    def _options(self, window: int | None) -> dict[str, Any]:
        # Keys before the query's own, where our windows count that as well.
        window_left = -1 if window is None else window - 1
        return {"window_left": window_left, "q_data_type": self._dtype, "kv_data_type": self.kv_pool.dtype}

    def _paging(self, req_slots: IntArray, lens: IntArray, req_to_token: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Where each row's pages begin in the list of all, that list, and how many tokens each last page has.

        The list is made on the device, from the slots of the first tokens of pages; the others are wanted on the host.
        """
        page_size = self.kv_pool.page_size
        counts = -(-lens // page_size)
        first_page = _begins(counts)
        within = np.arange(first_page[-1]) - np.repeat(first_page[:-1], counts)
        places = np.repeat(req_slots.astype(np.int64) * req_to_token.shape[1], counts) + within * page_size
        slots = req_to_token.view(-1).index_select(0, to_device(places, req_to_token.device))
        last_lens = torch.from_numpy((lens - (counts - 1) * page_size).astype(np.int32))
        return torch.from_numpy(first_page), slots.div(page_size, rounding_mode="floor"), last_lens

    def forward_decode(self, q: torch.Tensor, layer: RadixAttention, metadata: FlashInferMetadata) -> torch.Tensor:
        return self._run(metadata.decode[layer.sliding_window], q, layer)

    def forward_extend(
        self, q: torch.Tensor, layer: RadixAttention, metadata: FlashInferMetadata, new: NewKV | None = None
    ) -> torch.Tensor:
        return self._run(metadata.extend[layer.sliding_window], q, layer)

    def _run(self, wrapper: Any, q: torch.Tensor, layer: RadixAttention) -> torch.Tensor:
        assert layer.scaling == layer.head_dim**-0.5, "no model here has another"
        output: torch.Tensor = wrapper.run(q.contiguous(), self._pages[layer.layer_id])
        return output.flatten(1)


def _begins(counts: IntArray) -> IntArray:
    begins = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=begins[1:])
    return begins
