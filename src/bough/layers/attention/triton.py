"""Attention by Triton kernels: reads keys and values where they are, through the request table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

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
from bough.layers.attention.base import NewKV
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.attention.storing import StoringBackend
from bough.layers.attention.tiles import decode_pieces, extend_tiles, row_groups
from bough.layers.forward_batch import ForwardBatch
from bough.mem_cache.kv_pool import KVPool
from bough.sampling.transfer import all_to_device, to_device
from bough.step_plan import IntArray, StepPlan

_CORES_OF_A_SMALL_DEVICE = 1
"""Where there are no multiprocessors to count: in the interpreter."""


@dataclass(frozen=True, slots=True)
class DecodeTables:
    """The pieces of a step's decode rows, on the device; see :class:`bough.layers.attention.tiles.DecodePieces`."""

    pieces: torch.Tensor
    num_pieces: torch.Tensor
    first_piece: torch.Tensor


@dataclass(frozen=True, slots=True)
class DecodeRows:
    """Decode rows that are computed together. By sliding window: which keys are seen differs."""

    rows: slice
    """Which of the step's"""
    req_slots: torch.Tensor
    """int32 [n]"""
    seq_lens: torch.Tensor
    """int32 [n], the new tokens included"""
    tables: dict[int | None, DecodeTables]


@dataclass(frozen=True, slots=True)
class TritonMetadata:
    """What a step's layers share."""

    req_to_token: torch.Tensor
    decode: tuple[DecodeRows, ...]
    """All decode rows, in order"""
    tiles: torch.Tensor | None
    """int32 [n, 4], of the extend rows; of all rows where one kernel computes them"""


class TritonBackend(StoringBackend):
    """See :mod:`bough.kernels.triton.attention`. Models in float16, bfloat16 or float32, heads of up to 256 numbers.

    Partial results of decode rows are in scratch memory that is taken once: rows whose pieces do not fit into it
    together are computed in groups, which changes no bit.

    Attributes:
        max_pieces: pieces of keys for which there is scratch memory.
        tile_queries: most queries of a tile of prompts.
        one_kernel: decode rows are computed by the kernel of prompts, in tiles of one size for both, so that a token's
            result has the same bits whether it was generated or is part of a prompt.
    """

    reads_neighbours = False
    can_run_ahead = True

    def __init__(
        self,
        kv_pool: KVPool,
        windows: Sequence[int | None],
        num_heads: int,
        *,
        max_pieces: int,
        dtype: torch.dtype | None = None,
        one_kernel: bool = False,
    ) -> None:
        """Allocate scratch memory, for the pieces of the longest sequence at least.

        Raises:
            ValueError: if the heads are too wide.
        """
        super().__init__(kv_pool)
        self.windows = tuple(windows)
        self.num_heads = num_heads
        self.one_kernel = one_kernel
        blocks = extend_blocks(kv_pool.head_dim, dtype or kv_pool.dtype)
        self.tile_queries = SHORT_TILE if one_kernel else blocks.queries
        self.max_pieces = 0 if one_kernel else max_pieces
        self._scratch = DecodeScratch.empty(self.max_pieces, num_heads, kv_pool.head_dim, kv_pool.device)
        cores = _CORES_OF_A_SMALL_DEVICE
        if kv_pool.device.type == "cuda":
            cores = torch.cuda.get_device_properties(kv_pool.device).multi_processor_count
        self._num_programs = max(DECODE_PROGRAMS_PER_CORE * cores // kv_pool.num_kv_heads, 1)

    # --- once per step ---

    def init_forward_metadata(self, plan: StepPlan, req_to_token: torch.Tensor) -> TritonMetadata:
        device, split = self.kv_pool.device, 0 if self.one_kernel else plan.num_decode_rows
        req_slots, prefix_lens, extend_lens = plan.req_slots, plan.prefix_lens, plan.extend_lens
        seq_lens = prefix_lens[:split] + 1
        groups = row_groups(seq_lens, self.max_pieces, SPLIT_KEYS)
        decode = tuple(self._decode_rows(rows, req_slots[rows], seq_lens[rows]) for rows in groups)
        tiles = None
        if split < len(req_slots):
            planned = extend_tiles(req_slots[split:], prefix_lens[split:], extend_lens[split:], self.tile_queries)
            tiles = to_device(planned, device)
        return TritonMetadata(req_to_token, decode, tiles)

    def _decode_rows(self, rows: slice, req_slots: IntArray, seq_lens: IntArray) -> DecodeRows:
        arrays = [req_slots, seq_lens]
        for window in self.windows:
            plan = decode_pieces(seq_lens, window, SPLIT_KEYS)
            arrays += (plan.pieces, plan.num_pieces, plan.first_piece)
        on_device = iter(all_to_device(arrays, self.kv_pool.device))
        slots, lens = next(on_device), next(on_device)
        tables = {window: DecodeTables(*islice(on_device, 3)) for window in self.windows}
        return DecodeRows(rows, slots, lens, tables)

    # --- once per layer ---

    def num_decode_rows(self, batch: ForwardBatch) -> int:
        return 0 if self.one_kernel else batch.num_decode_rows

    def forward_decode(self, q: torch.Tensor, layer: RadixAttention, metadata: TritonMetadata) -> torch.Tensor:
        outputs = [self._decode_group(q[each.rows], layer, metadata, each) for each in metadata.decode]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _decode_group(
        self, q: torch.Tensor, layer: RadixAttention, metadata: TritonMetadata, group: DecodeRows
    ) -> torch.Tensor:
        tables = group.tables[layer.sliding_window]
        return decode_attention(
            q,
            *self._buffers(layer),
            metadata.req_to_token,
            req_slots=group.req_slots,
            seq_lens=group.seq_lens,
            pieces=tables.pieces,
            num_pieces=tables.num_pieces,
            first_piece=tables.first_piece,
            scratch=self._scratch,
            num_programs=self._num_programs,
            scale=layer.scaling,
            window=layer.sliding_window,
            kv_scales=self._scales(layer),
            sinks=layer.sinks,
        )

    def forward_extend(
        self, q: torch.Tensor, layer: RadixAttention, metadata: TritonMetadata, new: NewKV | None = None
    ) -> torch.Tensor:
        assert metadata.tiles is not None, "the step has extend rows"
        return extend_attention(
            q,
            *self._buffers(layer),
            metadata.req_to_token,
            metadata.tiles,
            tile_queries=self.tile_queries,
            scale=layer.scaling,
            window=layer.sliding_window,
            kv_scales=self._scales(layer),
            sinks=layer.sinks,
        )
