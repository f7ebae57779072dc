"""Attention by torch operations alone: the reference, on every device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bough.layers.attention.base import AttentionBackend, NewKV
from bough.layers.attention.kv_blocks import (
    BLOCK_TOKENS,
    BlockGroup,
    DecodeBlocks,
    ExtendSegment,
    ExtendTile,
    plan_decode,
    plan_extend,
)
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.attention.softmax_attention import attend, is_fused
from bough.mem_cache.kv_pool import KVPool
from bough.step_plan import IntArray, StepPlan

_WORKSPACE_BYTES = 2 * 2**20
"""Gathered keys at a time, and as much again for values: little enough to stay in the caches until they are used."""


@dataclass(frozen=True, slots=True)
class _DecodeGroup:
    """Device side of a :class:`BlockGroup`."""

    rows: torch.Tensor | None
    """int64 [n]; ``None``: all rows in order"""
    pages: torch.Tensor
    """int64 [n * width / page_size]"""
    num_blocks: int
    width: int
    mask: torch.Tensor | None
    """[n, 1, 1, width], 0 or -inf"""


@dataclass(frozen=True, slots=True)
class _Decode:
    groups: tuple[_DecodeGroup, ...]
    order: torch.Tensor | None
    """int64 [blocks], see :class:`DecodeBlocks`; ``None``: as they are"""
    merge: tuple[torch.Tensor, torch.Tensor] | None
    """counts [rows] and the row of each block [blocks]; ``None``: one block per row"""


@dataclass(frozen=True, slots=True)
class _Segment:
    pages: torch.Tensor
    """int64 [pages], covering ``num_keys`` keys and then padding"""
    num_keys: int
    mask: torch.Tensor | None
    """[num_queries, num_keys], 0 or -inf"""


@dataclass(frozen=True, slots=True)
class _Tile:
    first_token: int
    num_queries: int
    segments: tuple[_Segment, ...]


@dataclass(frozen=True, slots=True)
class TorchNativeMetadata:
    """Preparation of a step that its layers share, by sliding window."""

    decode: dict[int | None, _Decode]
    extend: dict[int | None, tuple[_Tile, ...]]


class TorchNativeBackend(AttentionBackend):
    """Gathers keys and values page by page into bounded scratch memory and attends over them there.

    Decode rows are computed together, whatever their lengths: their keys are cut into blocks, blocks of similar
    width are batched, and a row's partial results are merged by their weights, as in flash-decoding.
    """

    def __init__(self, kv_pool: KVPool, windows: Sequence[int | None]) -> None:
        """Allocate scratch memory."""
        super().__init__(kv_pool)
        self.windows = tuple(windows)
        width = kv_pool.num_kv_heads * kv_pool.head_dim
        self.max_gather_tokens = max(_WORKSPACE_BYTES // (width * kv_pool.dtype.itemsize), 2 * BLOCK_TOKENS)
        self._scratch = torch.empty(2, 0, dtype=kv_pool.dtype, device=kv_pool.device)
        page_shape = (kv_pool.num_slots // kv_pool.page_size, kv_pool.page_size * width)
        layers = range(kv_pool.num_layers)
        self._key_pages = [kv_pool.get_key_buffer(layer).view(page_shape) for layer in layers]
        self._value_pages = [kv_pool.get_value_buffer(layer).view(page_shape) for layer in layers]

    # --- once per step ---

    def init_forward_metadata(self, plan: StepPlan, req_to_token: torch.Tensor) -> TorchNativeMetadata:
        split, req_slots = plan.num_decode_rows, plan.req_slots
        prefix_lens, extend_lens = plan.prefix_lens, plan.extend_lens
        decode: dict[int | None, _Decode] = {}
        extend: dict[int | None, tuple[_Tile, ...]] = {}
        for window in self.windows:
            if split:
                blocks = plan_decode(prefix_lens[:split] + 1, window, self.kv_pool.page_size, self.max_gather_tokens)
                decode[window] = self._to_device(blocks, req_slots[:split], req_to_token)
            if split < len(req_slots):
                tiles = plan_extend(
                    prefix_lens[split:],
                    extend_lens[split:],
                    window,
                    self.kv_pool.page_size,
                    self.max_gather_tokens,
                    cuts_prompts=not is_fused(self.kv_pool.device),
                )
                masks: dict[tuple[int, int, int], torch.Tensor] = {}
                extend[window] = tuple(
                    self._tile_to_device(tile, int(req_slots[split + tile.row]), req_to_token, window, masks)
                    for tile in tiles
                )
        return TorchNativeMetadata(decode, extend)

    def _to_device(self, blocks: DecodeBlocks, req_slots: IntArray, req_to_token: torch.Tensor) -> _Decode:
        groups = tuple(self._group_to_device(group, req_slots, req_to_token) for group in blocks.groups)
        device = self.kv_pool.device
        in_order = bool((blocks.order == np.arange(len(blocks.order))).all())
        order = None if in_order else torch.from_numpy(blocks.order).to(device)
        if len(blocks.order) == len(blocks.counts):
            return _Decode(groups, order, None)
        counts = torch.from_numpy(blocks.counts).to(device)
        return _Decode(groups, order, (counts, torch.repeat_interleave(counts)))

    def _group_to_device(self, group: BlockGroup, req_slots: IntArray, req_to_token: torch.Tensor) -> _DecodeGroup:
        page_size, device = self.kv_pool.page_size, self.kv_pool.device
        num_rows, width = len(req_slots), group.width
        positions = group.starts[:, None] + np.arange(0, width, page_size, dtype=np.int32)
        past_end = positions >= group.ends[:, None]
        flat = req_slots[group.rows][:, None].astype(np.int64) * req_to_token.shape[1] + positions
        flat[past_end] = 0
        pages = torch.take(req_to_token, torch.from_numpy(flat).to(device)).div_(page_size, rounding_mode="floor")
        if past_end.any():
            pages.masked_fill_(torch.from_numpy(past_end).to(device), 0)
        mask = None
        if (group.firsts != group.starts).any() or (group.ends - group.starts != width).any():
            columns = group.starts[:, None] + np.arange(width, dtype=np.int32)
            visible = (columns >= group.firsts[:, None]) & (columns < group.ends[:, None])
            mask = self._additive(torch.from_numpy(visible).to(device))[:, None, None]
        all_rows = len(group.rows) == num_rows and bool((group.rows == np.arange(num_rows)).all())
        rows = None if all_rows else torch.from_numpy(group.rows.astype(np.int64)).to(device)
        return _DecodeGroup(rows, pages.view(-1).long(), len(group.rows), width, mask)

    def _tile_to_device(
        self,
        tile: ExtendTile,
        req_slot: int,
        req_to_token: torch.Tensor,
        window: int | None,
        masks: dict[tuple[int, int, int], torch.Tensor],
    ) -> _Tile:
        def segment_to_device(segment: ExtendSegment) -> _Segment:
            slots = req_to_token[req_slot, segment.start : segment.end : self.kv_pool.page_size]
            pages = slots.div(self.kv_pool.page_size, rounding_mode="floor").long()
            num_keys = segment.end - segment.start
            if not segment.masked:
                return _Segment(pages, num_keys, None)
            offset = tile.first_position - segment.start
            key = (tile.num_queries, num_keys, offset)
            if key not in masks:
                masks[key] = self._causal_mask(*key, window)
            return _Segment(pages, num_keys, masks[key])

        segments = tuple(segment_to_device(segment) for segment in tile.segments)
        return _Tile(tile.first_token, tile.num_queries, segments)

    def _causal_mask(self, num_queries: int, num_keys: int, offset: int, window: int | None) -> torch.Tensor:
        """``[num_queries, num_keys]``: query ``i`` is at key ``i + offset`` and sees what is not after it."""
        device = self.kv_pool.device
        query_positions = torch.arange(offset, offset + num_queries, device=device)[:, None]
        key_positions = torch.arange(num_keys, device=device)
        visible = key_positions <= query_positions
        if window is not None:
            visible &= key_positions > query_positions - window
        return self._additive(visible)

    def _additive(self, visible: torch.Tensor) -> torch.Tensor:
        mask = torch.zeros(visible.shape, dtype=self.kv_pool.dtype, device=self.kv_pool.device)
        return mask.masked_fill_(visible.logical_not_(), float("-inf"))

    # --- once per layer ---

    def forward_decode(self, q: torch.Tensor, layer: RadixAttention, metadata: TorchNativeMetadata) -> torch.Tensor:
        decode = metadata.decode[layer.sliding_window]
        num_rows, num_heads, head_dim = q.shape
        # The query heads of a group attend to the same keys: to the kernel they are queries of one head.
        grouped = q.view(num_rows, layer.num_kv_heads, -1, head_dim)
        outputs, log_sums = [], []
        for group in decode.groups:
            keys, values = self._gather(layer.layer_id, group.pages, group.num_blocks, group.width)
            queries = grouped if group.rows is None else grouped.index_select(0, group.rows)
            output, log_sum = attend(
                queries, keys, values, scale=layer.scaling, mask=group.mask, logit_cap=layer.logit_cap
            )
            outputs.append(output.reshape(-1, num_heads, head_dim))
            log_sums.append(log_sum.reshape(-1, num_heads))
        output = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
        if decode.order is not None:
            output = output.index_select(0, decode.order)
        if decode.merge is not None or layer.sinks is not None:
            log_sum = torch.cat(log_sums)
            if decode.order is not None:
                log_sum = log_sum.index_select(0, decode.order)
            if decode.merge is not None:
                output, log_sum = _merge_blocks(output, log_sum, *decode.merge)
            output = _after_sinks(output, log_sum, layer)
        return output.view(num_rows, -1)

    def forward_extend(
        self, q: torch.Tensor, layer: RadixAttention, metadata: TorchNativeMetadata, new: NewKV | None = None
    ) -> torch.Tensor:
        assert new is not None, "stored by the caller"
        outputs = []
        for tile in metadata.extend[layer.sliding_window]:
            tokens = slice(tile.first_token, tile.first_token + tile.num_queries)
            queries = q[tokens].transpose(0, 1)[None]
            if tile.segments:
                output, log_sum = self._attend_segments(queries, tile.segments, layer)
            else:
                keys, values = (each[tokens].transpose(0, 1)[None] for each in new)
                output, log_sum = attend(
                    queries, keys, values, scale=layer.scaling, causal=True, logit_cap=layer.logit_cap
                )
            output = _after_sinks(output[0].transpose(0, 1), log_sum[0].transpose(0, 1), layer)
            outputs.append(output.reshape(tile.num_queries, -1))
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _attend_segments(
        self, queries: torch.Tensor, segments: tuple[_Segment, ...], layer: RadixAttention
    ) -> tuple[torch.Tensor, torch.Tensor]:
        merged, merged_sum = torch.empty(0), torch.empty(0)
        for index, segment in enumerate(segments):
            width = len(segment.pages) * self.kv_pool.page_size
            keys, values = self._gather(layer.layer_id, segment.pages, 1, width)
            keys, values = keys[:, :, : segment.num_keys], values[:, :, : segment.num_keys]
            output, log_sum = attend(
                queries, keys, values, scale=layer.scaling, mask=segment.mask, logit_cap=layer.logit_cap
            )
            if len(segments) == 1:
                return output, log_sum
            if index == 0:
                merged, merged_sum = output.float(), log_sum
                continue
            total = torch.logaddexp(merged_sum, log_sum)
            merged.mul_((merged_sum - total).exp_()[..., None])
            merged.add_(output * (log_sum - total).exp_()[..., None])
            merged_sum = total
        return merged.to(queries.dtype), merged_sum

    def _gather(
        self, layer_id: int, pages: torch.Tensor, num_blocks: int, width: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of pages, each ``[num_blocks, num_kv_heads, width, head_dim]``, valid until the next call."""
        pool = self.kv_pool
        size = num_blocks * width * pool.num_kv_heads * pool.head_dim
        if self._scratch.shape[1] < size:
            self._scratch = torch.empty(2, size, dtype=pool.dtype, device=pool.device)
        shape = (num_blocks, width, pool.num_kv_heads, pool.head_dim)
        gathered = []
        for scratch, source in zip(
            self._scratch, (self._key_pages[layer_id], self._value_pages[layer_id]), strict=True
        ):
            target = scratch[:size]
            torch.index_select(source, 0, pages, out=target.view(len(pages), -1))
            gathered.append(target.view(shape).transpose(1, 2))
        return gathered[0], gathered[1]


def _after_sinks(output: torch.Tensor, log_sum: torch.Tensor, layer: RadixAttention) -> torch.Tensor:
    """Take away the share of weight that a layer's sinks have, if it has any.

    Args:
        output: ``[rows, num_heads, head_dim]``, as if there were none.
        log_sum: float32 ``[rows, num_heads]``, of the exponentiated scores of all keys.
        layer: has the sinks.
    """
    if layer.sinks is None:
        return output
    share = torch.sigmoid(log_sum - layer.sinks.float())
    return (output * share[..., None]).to(output.dtype)


def _merge_blocks(
    output: torch.Tensor, log_sum: torch.Tensor, counts: torch.Tensor, rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Combine the partial results of each row's blocks.

    Args:
        output: ``[blocks, num_heads, head_dim]``, blocks of a row next to each other.
        log_sum: float32 ``[blocks, num_heads]``
        counts: int64 ``[rows]``, blocks per row.
        rows: int64 ``[blocks]``, the row of each block.

    Returns:
        ``[rows, num_heads, head_dim]`` in the dtype of ``output``, and the logarithms of the sums of all blocks,
        float32 ``[rows, num_heads]``.
    """
    largest = torch.segment_reduce(log_sum, "max", lengths=counts, axis=0)
    weights = (log_sum - largest.index_select(0, rows)).exp_()
    totals = torch.segment_reduce(weights, "sum", lengths=counts, axis=0)
    weighted = torch.segment_reduce(output * weights[..., None], "sum", lengths=counts, axis=0)
    return weighted.div_(totals[..., None]).to(output.dtype), largest + totals.log()
