"""Which runs of keys each query must see, as plain integers: the planning half of the torch_native backend.

A sequence's keys are split into blocks of ``BLOCK_TOKENS`` anchored at position 0. Where a split lies thus depends
neither on how a prompt was chunked nor on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bough.step_plan import IntArray

BLOCK_TOKENS = 512
"""The fused CPU kernel splits keys at the same distance inside a call."""

_MAX_PADDING = 0.25
"""Largest share of a group's width that padding may take, unless the group is small."""

_SMALL_GROUP_TOKENS = 2048
"""Below this many keys the calls of a group cost more than the padding that a finer split would save."""


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """Blocks of about the same width, computed together. A block is one row's keys ``start <= position < end``."""

    rows: IntArray
    """[n], rows of the batch"""
    starts: IntArray
    """[n], multiples of the page size"""
    ends: IntArray
    """[n]"""
    firsts: IntArray
    """[n], first visible position; after ``start`` only where a window cuts a page"""
    width: int
    """Keys per block, padding included; a multiple of the page size."""


@dataclass(frozen=True, slots=True)
class DecodeBlocks:
    """The blocks of all decode rows, in groups."""

    groups: tuple[BlockGroup, ...]
    order: npt.NDArray[np.int64]
    """Where block ``i``, counted by row and then by position, is among the blocks of all groups in sequence."""
    counts: npt.NDArray[np.int64]
    """[num rows], blocks per row, at least 1"""


def plan_decode(seq_lens: IntArray, window: int | None, page_size: int, max_group_tokens: int) -> DecodeBlocks:
    """Split what each decode row sees into blocks and group these by width.

    Args:
        seq_lens: ``[rows]``, tokens of each row with the new one, at least 1.
        window: positions that a token sees, itself included; ``None``: all.
        page_size: tokens per page, a power of two.
        max_group_tokens: most keys of a group, padding included; a group has at least one block.
    """
    ends = seq_lens.astype(np.int64)
    firsts = np.zeros_like(ends) if window is None else np.maximum(ends - window, 0)
    block = max(BLOCK_TOKENS, page_size)
    first_blocks, last_blocks = firsts // block, (ends - 1) // block
    counts = last_blocks - first_blocks + 1
    rows = np.repeat(np.arange(len(ends)), counts)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    block_ids = first_blocks[rows] + offsets
    item_firsts = np.maximum(block_ids * block, firsts[rows])
    item_starts = item_firsts // page_size * page_size
    item_ends = np.minimum((block_ids + 1) * block, ends[rows])
    widths = -(-(item_ends - item_starts) // page_size) * page_size
    by_width = np.argsort(-widths, kind="stable")
    sorted_widths = widths[by_width]
    groups = []
    for begin, end in _cut(sorted_widths, max_group_tokens):
        chosen = by_width[begin:end]
        groups.append(
            BlockGroup(
                rows=rows[chosen].astype(np.int32),
                starts=item_starts[chosen].astype(np.int32),
                ends=item_ends[chosen].astype(np.int32),
                firsts=item_firsts[chosen].astype(np.int32),
                width=int(sorted_widths[begin]),
            )
        )
    order = np.empty(len(rows), dtype=np.int64)
    order[by_width] = np.arange(len(rows))
    return DecodeBlocks(tuple(groups), order, counts)


def _cut(widths: npt.NDArray[np.int64], max_group_tokens: int) -> Iterator[tuple[int, int]]:
    """Ranges of descending ``widths`` that make groups."""
    begin, ascending = 0, -widths
    while begin < len(widths):
        width = int(widths[begin])
        similar = int(np.searchsorted(ascending, -width * (1 - _MAX_PADDING), side="right"))
        small = begin + _SMALL_GROUP_TOKENS // width
        largest = begin + max(max_group_tokens // width, 1)
        end = min(max(similar, small, begin + 1), largest, len(widths))
        yield begin, end
        begin = end


@dataclass(frozen=True, slots=True)
class ExtendSegment:
    """A run of keys that one tile of queries sees: ``start <= position < end``."""

    start: int
    """A multiple of the page size."""
    end: int
    masked: bool
    """True if some of the queries must not see some of the keys."""


@dataclass(frozen=True, slots=True)
class ExtendTile:
    """Some consecutive queries of one extend row, and what they see.

    A tile without segments is a whole prompt without anything before it: causal attention over itself.
    """

    row: int
    first_token: int
    """Index of the first query among the tokens of all extend rows."""
    first_position: int
    """Its position in its sequence."""
    num_queries: int
    segments: tuple[ExtendSegment, ...]


_TILE_QUERIES = 1024
_MIN_TILE_QUERIES = 64
_MAX_MASK_ELEMENTS = 4 * 2**20


def plan_extend(
    prefix_lens: IntArray,
    extend_lens: IntArray,
    window: int | None,
    page_size: int,
    max_segment_tokens: int,
    *,
    cuts_prompts: bool = False,
) -> tuple[ExtendTile, ...]:
    """Split extend rows into tiles of queries, and what each tile sees into segments.

    Args:
        prefix_lens: ``[rows]``, tokens before the new ones.
        extend_lens: ``[rows]``, new tokens.
        window: positions that a token sees, itself included; ``None``: all.
        page_size: tokens per page, a power of two.
        max_segment_tokens: about how many keys a segment may have, at least ``BLOCK_TOKENS``; the last segment of a
            tile may exceed it by a tile.
        cuts_prompts: whether also prompts without anything before them are cut, if they are longer than a tile.
    """
    tiles = []
    first_token = 0
    for row, (prefix_len, extend_len) in enumerate(zip(prefix_lens.tolist(), extend_lens.tolist(), strict=True)):
        tile_queries = _tile_queries(window)
        is_whole = prefix_len == 0 and not (cuts_prompts and extend_len > tile_queries)
        if is_whole and (window is None or extend_len <= window):
            tiles.append(ExtendTile(row, first_token, 0, extend_len, ()))
        else:
            for offset in range(0, extend_len, tile_queries):
                queries = min(tile_queries, extend_len - offset)
                position = prefix_len + offset
                segments = _segments(position, queries, window, page_size, max_segment_tokens)
                tiles.append(ExtendTile(row, first_token + offset, position, queries, segments))
        first_token += extend_len
    return tuple(tiles)


def _tile_queries(window: int | None) -> int:
    if window is None:
        return _TILE_QUERIES
    return min(max(_MAX_MASK_ELEMENTS // (window + 2 * BLOCK_TOKENS), _MIN_TILE_QUERIES), _TILE_QUERIES)


def _segments(
    position: int, queries: int, window: int | None, page_size: int, max_segment_tokens: int
) -> tuple[ExtendSegment, ...]:
    end = position + queries
    block = max(BLOCK_TOKENS, page_size)
    if window is not None:
        # One segment, so that every query sees a key of it: the window bounds its width.
        start = max(position - window + 1, 0) // block * block
        return (ExtendSegment(start, end, masked=True),)
    masked = queries > 1
    if end <= max_segment_tokens and queries * end <= _MAX_MASK_ELEMENTS:
        return (ExtendSegment(0, end, masked),)
    # What all queries see goes without a mask; only the blocks that hold the queries themselves need one.
    stride = max_segment_tokens // block * block
    full = position // block * block
    segments = [ExtendSegment(start, min(start + stride, full), masked=False) for start in range(0, full, stride)]
    return (*segments, ExtendSegment(full, end, masked))
