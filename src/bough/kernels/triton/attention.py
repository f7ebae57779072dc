"""Attention over a KV pool addressed by slot: one kernel for decode rows, split over the keys, one for prompts.

Both read keys and values through ``req_to_token``, token by token, so pages may be of any size. Softmax is computed on
the way (Milakov and Gimelshein 2018); the decode kernel leaves partial results of fixed pieces of ``SPLIT_KEYS`` keys,
anchored at position 0, which a second kernel merges in ascending order (flash-decoding, Dao et al. 2023). A query's
result thus depends on its own sequence only.

Exponentials are to the base 2: ``scale`` is multiplied by log2(e) beforehand. The running maximum is one of scores that
are not scaled yet, so that scaling and subtracting it are one instruction.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from bough.kernels.triton.available import SPLIT_KEYS
from bough.kernels.triton.float8 import widened
from bough.kernels.triton.launch import ieee, next_power_of_2

_LOG2_E = 1.4426950408889634
_SMALLEST_DOT = 16
"""``tl.dot`` takes no fewer rows."""

SHORT_TILE = _SMALLEST_DOT
"""Queries of a tile that serves prompts and single tokens alike."""

DECODE_PROGRAMS_PER_CORE = 4
"""Programs that share the pieces of a step, per multiprocessor and at most: enough to hide the latency of loads."""


class BlockSizes(NamedTuple):
    """How a kernel cuts its work."""

    queries: int
    keys: int
    warps: int
    stages: int


# Measured on an H100: see docs/performance.md. Looking up where a token's keys are takes two stages before these can be
# loaded; with three, little would be loaded while the block before is computed.
_EXTEND_BLOCKS = {
    64: BlockSizes(128, 64, 4, 5),
    128: BlockSizes(128, 64, 4, 4),
    256: BlockSizes(64, 32, 8, 2),
}
_FLOAT32_EXTEND_BLOCKS = {
    64: BlockSizes(64, 32, 8, 2),
    128: BlockSizes(32, 32, 8, 2),
    256: BlockSizes(32, 16, 8, 2),
}
"""Tensor cores do not take float32 as it is: both sides of a product are held in registers."""
_DECODE_BLOCKS = {
    64: BlockSizes(_SMALLEST_DOT, 128, 2, 3),
    128: BlockSizes(_SMALLEST_DOT, 64, 2, 3),
    256: BlockSizes(_SMALLEST_DOT, 32, 2, 3),
}
_FLOAT32_DECODE_BLOCKS = {
    64: BlockSizes(_SMALLEST_DOT, 64, 4, 2),
    256: BlockSizes(_SMALLEST_DOT, 32, 4, 2),
}


def extend_blocks(head_dim: int, dtype: torch.dtype) -> BlockSizes:
    """How prompts are cut; ``queries`` is what a tile of a metadata holds at most.

    Raises:
        ValueError: if heads are wider than the kernels can hold.
    """
    return _of_width(_FLOAT32_EXTEND_BLOCKS if dtype == torch.float32 else _EXTEND_BLOCKS, head_dim)


def _of_width(table: dict[int, BlockSizes], head_dim: int) -> BlockSizes:
    for width, blocks in table.items():
        if head_dim <= width:
            return blocks
    raise ValueError(f"heads of {head_dim} numbers are wider than the kernels' {max(table)}")


@triton.jit
def _capped(scores, cap):
    """Scores in units of log2, bounded smoothly by ``cap``, which is in the same units: cap * tanh(scores / cap)."""
    # exp(-2x) overflows to infinity for very negative x, which gives -1, as it should.
    doubled = tl.exp2(scores * (-2.0 * 1.4426950408889634 / cap))
    return cap * (2.0 / (1.0 + doubled) - 1.0)


@triton.jit
def _attend_block(
    q,
    k_ptr,
    v_ptr,
    table,
    positions,
    stored,
    visible,
    head,
    dims,
    slot_stride,
    largest,
    total,
    acc,
    scale,
    cap,
    HEAD_DIM: tl.constexpr,
    MASKED: tl.constexpr,
    HAS_CAP: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One step of the running softmax: queries [M, D] meet the tokens at positions [N], as far as visible [M, N].

    Of keys and values, those of KV head ``head`` are read of tokens that are ``stored`` [N]. Unless ``MASKED``, all are
    stored and visible.
    """
    in_head = dims < HEAD_DIM
    if MASKED:
        slots = tl.load(table + positions, mask=stored, other=0).to(tl.int64)
        at = slots * slot_stride + head * HEAD_DIM
        keys = tl.load(k_ptr + at[None, :] + dims[:, None], mask=stored[None, :] & in_head[:, None], other=0.0)
        values = tl.load(v_ptr + at[:, None] + dims[None, :], mask=stored[:, None] & in_head[None, :], other=0.0)
    else:
        slots = tl.load(table + positions).to(tl.int64)
        at = slots * slot_stride + head * HEAD_DIM
        keys = tl.load(k_ptr + at[None, :] + dims[:, None], mask=in_head[:, None], other=0.0)
        values = tl.load(v_ptr + at[:, None] + dims[None, :], mask=in_head[None, :], other=0.0)
    keys, values = widened(keys, q.dtype), widened(values, q.dtype)
    scores = tl.dot(q, keys, input_precision=PRECISION)
    if HAS_CAP:
        scores = _capped(scores * scale, cap)
        scale = 1.0
    if MASKED:
        scores = tl.where(visible, scores, float("-inf"))
    new_largest = tl.maximum(largest, tl.max(scores, 1))
    # Where nothing was visible so far, the difference of two infinities would not be a number.
    reference = tl.where(new_largest == float("-inf"), 0.0, new_largest) if MASKED else new_largest
    weights = tl.exp2(scores * scale - (reference * scale)[:, None])
    # Exactly 1 where the maximum stays: how many blocks a query sees nothing of, which depends on its tile, must not
    # matter. The difference of two products, one of them rounded before, would not be 0.
    shrink = tl.exp2((largest - reference) * scale)
    total = total * shrink + tl.sum(weights, 1)
    acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None], input_precision=PRECISION)
    return new_largest, total, acc


@triton.jit
def _decode_pieces(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    req_slots_ptr,
    seq_lens_ptr,
    pieces_ptr,
    num_pieces_ptr,
    partial_ptr,
    log_sum_ptr,
    kv_scales_ptr,
    scale,
    cap,
    window,
    q_row_stride,
    table_stride,
    slot_stride,
    NUM_KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    SPLIT: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    HAS_CAP: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
    HAS_KV_SCALES: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Program (i, kv_head) takes the pieces i, i + programs, …: each is (row, first key)."""
    kv_head = tl.program_id(1)
    group = tl.arange(0, BLOCK_G)
    dims = tl.arange(0, BLOCK_D)
    in_group, in_head = group < GROUP, dims < HEAD_DIM
    heads = kv_head * GROUP + group
    num_heads = NUM_KV_HEADS * GROUP
    num_pieces = tl.load(num_pieces_ptr)
    value_scale = 1.0
    if HAS_KV_SCALES:
        scale *= tl.load(kv_scales_ptr)
        value_scale = tl.load(kv_scales_ptr + 1)
    for piece in range(tl.program_id(0), num_pieces, tl.num_programs(0)):
        row = tl.load(pieces_ptr + 2 * piece).to(tl.int64)
        first = tl.load(pieces_ptr + 2 * piece + 1)
        length = tl.load(seq_lens_ptr + row)
        table = table_ptr + tl.load(req_slots_ptr + row).to(tl.int64) * table_stride
        q_at = q_ptr + row * q_row_stride + heads[:, None] * HEAD_DIM + dims[None, :]
        q = tl.load(q_at, mask=in_group[:, None] & in_head[None, :], other=0.0)
        largest = tl.full([BLOCK_G], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK_G], tl.float32)
        acc = tl.zeros([BLOCK_G, BLOCK_D], tl.float32)
        for start in range(first, tl.minimum(first + SPLIT, length), BLOCK_N):
            positions = start + tl.arange(0, BLOCK_N)
            visible = positions < length
            if HAS_WINDOW:
                visible = visible & (positions >= length - window)
            largest, total, acc = _attend_block(
                q,
                k_ptr,
                v_ptr,
                table,
                positions,
                visible,
                visible[None, :],
                kv_head,
                dims,
                slot_stride,
                largest,
                total,
                acc,
                scale,
                cap,
                HEAD_DIM,
                True,
                HAS_CAP,
                PRECISION,
            )
        if not HAS_CAP:
            largest *= scale
        out = (piece * num_heads + heads).to(tl.int64)
        tl.store(
            partial_ptr + out[:, None] * HEAD_DIM + dims[None, :],
            acc / total[:, None] * value_scale,
            mask=in_group[:, None] & in_head[None, :],
        )
        tl.store(log_sum_ptr + out, largest + tl.log2(total), mask=in_group)


@triton.jit
def _merge_pieces(
    partial_ptr,
    log_sum_ptr,
    first_piece_ptr,
    sinks_ptr,
    out_ptr,
    NUM_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_D: tl.constexpr,
    HAS_SINKS: tl.constexpr,
):
    """Program (row, head): the row's pieces in ascending order; zeros for a row that has none."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    dims = tl.arange(0, BLOCK_D)
    in_head = dims < HEAD_DIM
    largest = float("-inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], tl.float32)
    for piece in range(tl.load(first_piece_ptr + row), tl.load(first_piece_ptr + row + 1)):
        at = (piece * NUM_HEADS + head).to(tl.int64)
        log_sum = tl.load(log_sum_ptr + at)
        new_largest = tl.maximum(largest, log_sum)
        shrink = tl.exp2(largest - new_largest)
        weight = tl.exp2(log_sum - new_largest)
        partial = tl.load(partial_ptr + at * HEAD_DIM + dims, mask=in_head, other=0.0)
        acc = acc * shrink + partial * weight
        total = total * shrink + weight
        largest = new_largest
    if HAS_SINKS:
        # Without keys, or below a far larger sink, the total becomes infinite, and the output zero.
        total += tl.exp2(tl.load(sinks_ptr + head).to(tl.float32) * 1.4426950408889634 - largest)
    acc = acc / tl.where(total > 0.0, total, 1.0)
    out = out_ptr + (row * NUM_HEADS + head) * HEAD_DIM + dims
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=in_head)


@triton.jit
def _extend_tiles(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    tiles_ptr,
    out_ptr,
    kv_scales_ptr,
    sinks_ptr,
    scale,
    cap,
    window,
    q_row_stride,
    table_stride,
    slot_stride,
    NUM_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    HAS_CAP: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
    HAS_KV_SCALES: tl.constexpr,
    HAS_SINKS: tl.constexpr,
    ALL_MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """A program per tile and head: a tile is (request slot, first token, tokens, position of the first token).

    Heads that share keys are computed at about the same time, and find these in the cache.
    """
    tile = tiles_ptr + 4 * (tl.program_id(0) // NUM_HEADS)
    head = tl.program_id(0) % NUM_HEADS
    table = table_ptr + tl.load(tile).to(tl.int64) * table_stride
    first_token = tl.load(tile + 1).to(tl.int64)
    num_queries = tl.load(tile + 2)
    first_position = tl.load(tile + 3)
    queries = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    in_tile, in_head = queries < num_queries, dims < HEAD_DIM
    tokens = first_token + queries
    q_at = q_ptr + tokens[:, None] * q_row_stride + head * HEAD_DIM + dims[None, :]
    q = tl.load(q_at, mask=in_tile[:, None] & in_head[None, :], other=0.0)
    query_positions = first_position + queries
    end = first_position + num_queries
    if HAS_KV_SCALES:
        scale *= tl.load(kv_scales_ptr)
    begin = 0
    if HAS_WINDOW:
        # Blocks stay anchored at position 0; those before the first query's window are left out.
        begin = tl.maximum(first_position - window + 1, 0) // BLOCK_N * BLOCK_N
    largest = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    whole = begin
    if not ALL_MASKED:
        # Tokens before the first query are visible to all of them: that needs no comparing.
        whole = tl.where(num_queries > 0, (first_position + 1) // BLOCK_N * BLOCK_N, 0)
    for start in range(begin, whole, BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        largest, total, acc = _attend_block(
            q,
            k_ptr,
            v_ptr,
            table,
            positions,
            True,
            True,
            head // GROUP,
            dims,
            slot_stride,
            largest,
            total,
            acc,
            scale,
            cap,
            HEAD_DIM,
            False,
            HAS_CAP,
            PRECISION,
        )
    for start in range(whole, end, BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        stored = positions < end
        visible = positions[None, :] <= query_positions[:, None]
        if HAS_WINDOW:
            visible = visible & (positions[None, :] > query_positions[:, None] - window)
        largest, total, acc = _attend_block(
            q,
            k_ptr,
            v_ptr,
            table,
            positions,
            stored,
            visible & stored[None, :],
            head // GROUP,
            dims,
            slot_stride,
            largest,
            total,
            acc,
            scale,
            cap,
            HEAD_DIM,
            True,
            HAS_CAP,
            PRECISION,
        )
    if HAS_SINKS:
        reference = largest if HAS_CAP else largest * scale
        total += tl.exp2(tl.load(sinks_ptr + head).to(tl.float32) * 1.4426950408889634 - reference)
    # Only queries behind the tile's end can have seen nothing.
    acc = acc / tl.where(total > 0.0, total, 1.0)[:, None]
    if HAS_KV_SCALES:
        acc *= tl.load(kv_scales_ptr + 1)
    out = out_ptr + (tokens[:, None] * NUM_HEADS + head) * HEAD_DIM + dims[None, :]
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=in_tile[:, None] & in_head[None, :])


class DecodeScratch(NamedTuple):
    """Partial results of ``n`` pieces, in float32."""

    outputs: torch.Tensor
    """[n, num_heads, head_dim]"""
    log_sums: torch.Tensor
    """[n, num_heads], of exponentiated scores, to the base 2"""

    @classmethod
    def empty(cls, num_pieces: int, num_heads: int, head_dim: int, device: torch.device) -> DecodeScratch:
        """Memory for so many pieces."""
        outputs = torch.empty(num_pieces, num_heads, head_dim, dtype=torch.float32, device=device)
        return cls(outputs, torch.empty(num_pieces, num_heads, dtype=torch.float32, device=device))


def decode_attention(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    req_to_token: torch.Tensor,
    *,
    req_slots: torch.Tensor,
    seq_lens: torch.Tensor,
    pieces: torch.Tensor,
    num_pieces: torch.Tensor,
    first_piece: torch.Tensor,
    scratch: DecodeScratch,
    num_programs: int,
    scale: float,
    window: int | None = None,
    cap: float = 0.0,
    kv_scales: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend from the newest token of each row to all tokens of its sequence.

    Args:
        q: ``[R, num_heads, head_dim]``, dense but for the first stride.
        keys: ``[num_slots, num_kv_heads, head_dim]``, those of the newest tokens included.
        values: like ``keys``
        req_to_token: int32 ``[requests, max_len]``, the slot of each token.
        req_slots: int32 or int64 ``[R]``, the rows' requests.
        seq_lens: int32 ``[R]``, tokens of each sequence.
        pieces: int32 ``[n, 2]``, (row, first key) in the order of rows and keys; first keys are multiples of
            ``SPLIT_KEYS``. A piece must have a visible key.
        num_pieces: int32 ``[1]``, how many of them count.
        first_piece: int32 ``[R + 1]``, where each row's pieces begin, and their end.
        scratch: room for all pieces.
        num_programs: that share the pieces of a KV head.
        scale: positive factor on the scores.
        window: most keys that are seen, the newest ones.
        cap: scores become ``cap * tanh(score / cap)``; 0: they stay.
        kv_scales: float32 ``[2]``, what stored keys and stored values are to be multiplied by; ``None``: they stay.
        sinks: float32 ``[num_heads]``, scores that take a share of each head's weight and have no value.

    Returns:
        ``[R, num_heads * head_dim]``; zeros for a row without pieces.
    """
    num_rows, num_heads, head_dim = q.shape
    num_kv_heads = keys.shape[1]
    group = num_heads // num_kv_heads
    blocks = _of_width(_FLOAT32_DECODE_BLOCKS if q.dtype == torch.float32 else _DECODE_BLOCKS, head_dim)
    block_d = max(next_power_of_2(head_dim), _SMALLEST_DOT)
    out = torch.empty(num_rows, num_heads * head_dim, dtype=q.dtype, device=q.device)
    _decode_pieces[(num_programs, num_kv_heads)](
        q,
        keys,
        values,
        req_to_token,
        req_slots,
        seq_lens,
        pieces,
        num_pieces,
        scratch.outputs,
        scratch.log_sums,
        seq_lens if kv_scales is None else kv_scales,
        scale * _LOG2_E,
        cap * _LOG2_E,
        window or 0,
        q.stride(0),
        req_to_token.stride(0),
        keys.stride(0),
        NUM_KV_HEADS=num_kv_heads,
        GROUP=group,
        HEAD_DIM=head_dim,
        SPLIT=SPLIT_KEYS,
        BLOCK_G=max(next_power_of_2(group), _SMALLEST_DOT),
        BLOCK_N=blocks.keys,
        BLOCK_D=block_d,
        HAS_CAP=cap > 0.0,
        HAS_WINDOW=window is not None,
        HAS_KV_SCALES=kv_scales is not None,
        PRECISION=ieee(q.dtype),
        num_warps=blocks.warps,
        num_stages=blocks.stages,
    )
    _merge_pieces[(num_rows, num_heads)](
        scratch.outputs,
        scratch.log_sums,
        first_piece,
        first_piece if sinks is None else sinks,
        out,
        NUM_HEADS=num_heads,
        HEAD_DIM=head_dim,
        BLOCK_D=block_d,
        HAS_SINKS=sinks is not None,
        num_warps=1,
    )
    return out


def extend_attention(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    req_to_token: torch.Tensor,
    tiles: torch.Tensor,
    *,
    tile_queries: int | None = None,
    scale: float,
    window: int | None = None,
    cap: float = 0.0,
    kv_scales: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend causally from runs of new tokens to all tokens of their sequences up to themselves.

    Args:
        q: ``[T, num_heads, head_dim]``, dense but for the first stride.
        keys: ``[num_slots, num_kv_heads, head_dim]``, those of the new tokens included.
        values: like ``keys``
        req_to_token: int32 ``[requests, max_len]``, the slot of each token.
        tiles: int32 ``[n, 4]``: request slot, first row of ``q``, number of rows (at most ``extend_blocks().queries``)
            and the position of the first; every row of ``q`` in exactly one. A tile of no rows is nothing.
        tile_queries: most queries of a tile, a power of two; results depend on it. ``None``: that number.
        scale: positive factor on the scores.
        window: most keys that are seen, the newest ones.
        cap: as of :func:`decode_attention`.
        kv_scales: likewise.
        sinks: likewise.

    Returns:
        ``[T, num_heads * head_dim]``
    """
    num_tokens, num_heads, head_dim = q.shape
    blocks = extend_blocks(head_dim, q.dtype)
    if tile_queries is not None:
        blocks = blocks._replace(queries=tile_queries)
    out = torch.empty(num_tokens, num_heads * head_dim, dtype=q.dtype, device=q.device)
    _extend_tiles[(tiles.shape[0] * num_heads,)](
        q,
        keys,
        values,
        req_to_token,
        tiles,
        out,
        tiles if kv_scales is None else kv_scales,
        tiles if sinks is None else sinks,
        scale * _LOG2_E,
        cap * _LOG2_E,
        window or 0,
        q.stride(0),
        req_to_token.stride(0),
        keys.stride(0),
        NUM_HEADS=num_heads,
        GROUP=num_heads // keys.shape[1],
        HEAD_DIM=head_dim,
        BLOCK_M=blocks.queries,
        BLOCK_N=blocks.keys,
        BLOCK_D=max(next_power_of_2(head_dim), _SMALLEST_DOT),
        HAS_CAP=cap > 0.0,
        HAS_WINDOW=window is not None,
        HAS_KV_SCALES=kv_scales is not None,
        HAS_SINKS=sinks is not None,
        # Whether a token is before the first query of its tile depends on how prompts are cut. Two loops may round
        # differently, so tiles that promise the same bits however that is have one.
        ALL_MASKED=window is not None or blocks.queries <= SHORT_TILE,
        PRECISION=ieee(q.dtype),
        num_warps=blocks.warps,
        num_stages=blocks.stages,
    )
    return out
