"""Attention by Triton kernels: reads keys and values where they are, through the request table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bough.kernels.triton.attention import (
    DECODE_PROGRAMS_PER_CORE,
    SHORT_TILE,
    DecodeScratch,
    decode_attention,
    extend_attention,
    extend_blocks,
)
from bough.kernels.triton.available import SPLIT_KEYS
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.attention.storing import StoringBackend
from bough.layers.attention.tiles import decode_pieces, extend_tiles
from bough.mem_cache.kv_pool import KVPool
from bough.model_executor.forward_batch import ForwardBatch
from bough.sampling.transfer import all_to_device, to_device
from bough.step_plan import IntArray

_CORES_OF_A_SMALL_DEVICE = 1
"""Where there are no multiprocessors to count: in the interpreter."""


@dataclass(frozen=True, slots=True)
class DecodeTables:
    """The pieces of a step's decode rows, on the device; see :class:`bough.layers.attention.tiles.DecodePieces`."""

    pieces: torch.Tensor
    num_pieces: torch.Tensor
    first_piece: torch.Tensor


@dataclass(frozen=True, slots=True)
class TritonMetadata:
    """What a step's layers share. By sliding window: which keys are seen differs."""

    req_to_token: torch.Tensor
    req_slots: torch.Tensor
    """int32 or int64 [decode rows]"""
    seq_lens: torch.Tensor
    """int32 [decode rows], the new tokens included"""
    decode: dict[int | None, DecodeTables]
    scratch: DecodeScratch | None
    tiles: torch.Tensor | None
    """int32 [n, 4], of the extend rows; of all rows where one kernel computes them"""


class TritonBackend(StoringBackend):
    """See :mod:`bough.kernels.triton.attention`. Models in float16, bfloat16 or float32, heads of up to 256 numbers.

    Attributes:
        one_kernel: decode rows are computed by the kernel of prompts, in tiles of one size for both, so that a token's
            result has the same bits whether it was generated or is part of a prompt.
    """

    reads_neighbours = False

    def __init__(
        self,
        kv_pool: KVPool,
        windows: Sequence[int | None],
        num_heads: int,
        *,
        dtype: torch.dtype | None = None,
        one_kernel: bool = False,
    ) -> None:
        """Allocate nothing yet: scratch memory for partial results grows with the longest step.

        Args:
            kv_pool: where keys and values are.
            windows: the sliding window of each layer.
            num_heads: of queries.
            dtype: of queries; ``None``: that of the pool.
            one_kernel: see the class.

        Raises:
            ValueError: if the heads are too wide.
        """
        super().__init__(kv_pool)
        self.windows = tuple(dict.fromkeys(windows))
        self.num_heads = num_heads
        self.one_kernel = one_kernel
        blocks = extend_blocks(kv_pool.head_dim, dtype or kv_pool.dtype)
        self._tile_queries = SHORT_TILE if one_kernel else blocks.queries
        self._scratch = DecodeScratch.empty(0, num_heads, kv_pool.head_dim, kv_pool.device)
        cores = _CORES_OF_A_SMALL_DEVICE
        if kv_pool.device.type == "cuda":
            cores = torch.cuda.get_device_properties(kv_pool.device).multi_processor_count
        self._num_programs = max(DECODE_PROGRAMS_PER_CORE * cores // kv_pool.num_kv_heads, 1)

    # --- once per step ---

    def init_forward_metadata(
        self,
        num_decode_rows: int,
        req_slots: IntArray,
        prefix_lens: IntArray,
        extend_lens: IntArray,
        req_to_token: torch.Tensor,
    ) -> TritonMetadata:
        """See :class:`AttentionBackend`."""
        device, split = self.kv_pool.device, 0 if self.one_kernel else num_decode_rows
        seq_lens = prefix_lens[:split] + 1
        decode: dict[int | None, DecodeTables] = {}
        scratch = None
        if split:
            plans = {window: decode_pieces(seq_lens, window, SPLIT_KEYS) for window in self.windows}
            scratch = self.scratch_for(max(len(plan.pieces) for plan in plans.values()))
            decode = {
                window: DecodeTables(*all_to_device((plan.pieces, plan.num_pieces, plan.first_piece), device))
                for window, plan in plans.items()
            }
        tiles = None
        if split < len(req_slots):
            planned = extend_tiles(req_slots[split:], prefix_lens[split:], extend_lens[split:], self._tile_queries)
            tiles = to_device(planned, device)
        return TritonMetadata(
            req_to_token=req_to_token,
            req_slots=to_device(np.ascontiguousarray(req_slots[:split]), device),
            seq_lens=to_device(seq_lens, device),
            decode=decode,
            scratch=scratch,
            tiles=tiles,
        )

    def scratch_for(self, num_pieces: int) -> DecodeScratch:
        """Memory for partial results of so many pieces, or more: the same until a longer step needs more."""
        if len(self._scratch.outputs) < num_pieces:
            room = max(num_pieces, 2 * len(self._scratch.outputs))
            pool = self.kv_pool
            self._scratch = DecodeScratch.empty(room, self.num_heads, pool.head_dim, pool.device)
        return self._scratch

    # --- once per layer ---

    def num_decode_rows(self, batch: ForwardBatch) -> int:
        """See :class:`StoringBackend`."""
        return 0 if self.one_kernel else batch.num_decode_rows

    def decode(self, q: torch.Tensor, layer: RadixAttention, metadata: TritonMetadata) -> torch.Tensor:
        """See :class:`StoringBackend`."""
        assert metadata.scratch is not None, "the step has decode rows"
        tables = metadata.decode[layer.sliding_window]
        return decode_attention(
            q,
            *self._buffers(layer),
            metadata.req_to_token,
            req_slots=metadata.req_slots,
            seq_lens=metadata.seq_lens,
            pieces=tables.pieces,
            num_pieces=tables.num_pieces,
            first_piece=tables.first_piece,
            scratch=metadata.scratch,
            num_programs=self._num_programs,
            scale=layer.scaling,
            window=layer.sliding_window,
            kv_scales=self._scales(layer),
        )

    def extend(self, q: torch.Tensor, layer: RadixAttention, metadata: TritonMetadata) -> torch.Tensor:
        """See :class:`StoringBackend`."""
        assert metadata.tiles is not None, "the step has extend rows"
        return extend_attention(
            q,
            *self._buffers(layer),
            metadata.req_to_token,
            metadata.tiles,
            tile_queries=self._tile_queries,
            scale=layer.scaling,
            window=layer.sliding_window,
            kv_scales=self._scales(layer),
        )
