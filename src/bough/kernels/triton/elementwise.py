"""What lies between matrix products: norms, rotation, storing keys and values, activations, looking tokens up.

Each reads its inputs once and rounds once, at the end; what is between is float32.
"""

from __future__ import annotations

from typing import Literal

import torch
import triton
import triton.language as tl

from bough.kernels.triton.float8 import to_float8
from bough.kernels.triton.launch import next_power_of_2, warps_for

Gate = Literal["silu", "gelu", "gelu_tanh", "clamped_swish"]

_COLUMNS = 1024
"""Numbers that one program of an activation, or of a look-up, handles."""

_SWISH_SLOPE, _SWISH_BOUND = tl.constexpr(1.702), tl.constexpr(7.0)

_HEADS = 8
"""Heads that one program rotates: one each would be so little that starting programs takes longer."""


@triton.jit
def _rms_norm_rows(
    x_ptr,
    delta_ptr,
    weight_ptr,
    out_ptr,
    x_stride,
    delta_stride,
    eps,
    offset,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_DELTA: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < WIDTH
    x_at = x_ptr + row * x_stride + columns
    x = tl.load(x_at, mask=inside, other=0.0).to(tl.float32)
    if HAS_DELTA:
        x += tl.load(delta_ptr + row * delta_stride + columns, mask=inside, other=0.0).to(tl.float32)
        rounded = x.to(x_ptr.dtype.element_ty)
        tl.store(x_at, rounded, mask=inside)
        # The norm is that of the stream as the next layer finds it.
        x = rounded.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(x * x) / WIDTH + eps)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32) + offset
    tl.store(out_ptr + row * WIDTH + columns, (x * inverse * weight).to(out_ptr.dtype.element_ty), mask=inside)


def rms_norm(
    x: torch.Tensor, weight: torch.Tensor, eps: float, delta: torch.Tensor | None = None, *, offset: float = 0.0
) -> torch.Tensor:
    """``x += delta``, if there is one, then the root mean square norm of ``x`` (Zhang and Sennrich 2019), contiguous.

    ``x`` and ``delta`` are ``[num_rows, width]``, rows dense; ``weight`` is ``[width]``.
    """
    num_rows, width = x.shape
    out = torch.empty(num_rows, width, dtype=x.dtype, device=x.device)
    if num_rows:
        _rms_norm_rows[(num_rows,)](
            x,
            x if delta is None else delta,
            weight,
            out,
            x.stride(0),
            0 if delta is None else delta.stride(0),
            eps,
            offset,
            WIDTH=width,
            BLOCK=next_power_of_2(width),
            HAS_DELTA=delta is not None,
            num_warps=warps_for(width),
        )
    return out


@triton.jit
def _stored(x, scale_ptr, kind: tl.constexpr, HAS_SCALE: tl.constexpr):
    """What a KV pool of ``kind`` holds of ``x``."""
    if HAS_SCALE:
        x = to_float8(x.to(tl.float32) / tl.load(scale_ptr), kind)
    return x.to(kind)


@triton.jit
def _rotate_and_store_heads(
    heads_ptr,
    cos_ptr,
    sin_ptr,
    slots_ptr,
    keys_ptr,
    values_ptr,
    q_norm_ptr,
    k_norm_ptr,
    q_out_ptr,
    kv_scales_ptr,
    eps,
    norm_offset,
    heads_stride,
    slot_stride,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_NORM: tl.constexpr,
    HAS_KV_SCALES: tl.constexpr,
):
    """Program (token, some heads of one kind): first those of queries, then of keys, then of values.

    Both halves of its heads are in tiles [HEADS, BLOCK].
    """
    QUERY_BLOCKS: tl.constexpr = (NUM_HEADS + HEADS - 1) // HEADS
    KEY_BLOCKS: tl.constexpr = (NUM_KV_HEADS + HEADS - 1) // HEADS
    token = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    is_query, is_value = block < QUERY_BLOCKS, block >= QUERY_BLOCKS + KEY_BLOCKS
    before = tl.where(is_query, 0, NUM_HEADS + tl.where(is_value, NUM_KV_HEADS, 0))
    of_kind = block - tl.where(is_query, 0, QUERY_BLOCKS + tl.where(is_value, KEY_BLOCKS, 0))
    heads = of_kind * HEADS + tl.arange(0, HEADS)[:, None]
    columns = tl.arange(0, BLOCK)
    in_half = columns < HALF
    inside = (heads < tl.where(is_query, NUM_HEADS, NUM_KV_HEADS)) & in_half[None, :]
    head_dim = 2 * HALF
    source = heads_ptr + token * heads_stride + (before + heads) * head_dim + columns[None, :]
    low = tl.load(source, mask=inside, other=0.0)
    high = tl.load(source + HALF, mask=inside, other=0.0)
    if not is_value:
        kind = heads_ptr.dtype.element_ty
        x, y = low.to(tl.float32), high.to(tl.float32)
        if HAS_NORM:
            weight_at = (q_norm_ptr if is_query else k_norm_ptr) + columns
            inverse = tl.rsqrt((tl.sum(x * x, 1) + tl.sum(y * y, 1)) / head_dim + eps)[:, None]
            x *= inverse * (tl.load(weight_at, mask=in_half, other=0.0).to(tl.float32) + norm_offset)[None, :]
            y *= inverse * (tl.load(weight_at + HALF, mask=in_half, other=0.0).to(tl.float32) + norm_offset)[None, :]
        angles = token * head_dim + columns
        cos = tl.load(cos_ptr + angles, mask=in_half, other=0.0).to(tl.float32)[None, :]
        # The table's second half has the sine's own sign.
        sin = tl.load(sin_ptr + angles + HALF, mask=in_half, other=0.0).to(tl.float32)[None, :]
        low = (x * cos - y * sin).to(kind)
        high = (y * cos + x * sin).to(kind)
    at = heads * head_dim + columns[None, :]
    if is_query:
        target = q_out_ptr + token * NUM_HEADS * head_dim + at
        tl.store(target, low, mask=inside)
        tl.store(target + HALF, high, mask=inside)
    else:
        slot = tl.load(slots_ptr + token).to(tl.int64)
        kept = inside & (slot >= 0)
        place = (values_ptr if is_value else keys_ptr) + slot * slot_stride + at
        scale_ptr = kv_scales_ptr + tl.where(is_value, 1, 0)
        tl.store(place, _stored(low, scale_ptr, keys_ptr.dtype.element_ty, HAS_KV_SCALES), mask=kept)
        tl.store(place + HALF, _stored(high, scale_ptr, keys_ptr.dtype.element_ty, HAS_KV_SCALES), mask=kept)


def rotate_and_store(
    heads: torch.Tensor,
    rotation: tuple[torch.Tensor, torch.Tensor],
    slots: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    *,
    q_norm: torch.Tensor | None = None,
    k_norm: torch.Tensor | None = None,
    eps: float = 0.0,
    norm_offset: float = 0.0,
    kv_scales: torch.Tensor | None = None,
) -> torch.Tensor:
    """Normalise the heads of queries and keys, if there are weights for that, rotate them, and store keys and values.

    Args:
        heads: ``[T, num_heads + 2 * num_kv_heads, head_dim]``: queries, keys, values; dense but for the first stride.
        rotation: cosines and signed sines, each ``[T, 1, head_dim]``, contiguous; see :mod:`bough.layers.rotary`.
        slots: int32 or int64 ``[T]``, where keys and values go; nowhere where negative.
        keys: ``[num_slots, num_kv_heads, head_dim]``, written at ``slots``.
        values: like ``keys``
        q_norm: ``[head_dim]``
        k_norm: like ``q_norm``; both or neither.
        norm_offset: added to both.
        kv_scales: float32 ``[2]`` for pools of 8-bit floating point: what their keys and values are multiplied by when
            they are read. What is too large is stored as the largest number that there is.

    Returns:
        The queries, ``[T, num_heads, head_dim]``, contiguous.
    """
    num_tokens, all_heads, head_dim = heads.shape
    num_kv_heads = keys.shape[1]
    num_heads = all_heads - 2 * num_kv_heads
    queries = torch.empty(num_tokens, num_heads, head_dim, dtype=heads.dtype, device=heads.device)
    if num_tokens:
        cos, sin = rotation
        block = next_power_of_2(head_dim // 2)
        blocks = triton.cdiv(num_heads, _HEADS) + 2 * triton.cdiv(num_kv_heads, _HEADS)
        _rotate_and_store_heads[(num_tokens, blocks)](
            heads,
            cos,
            sin,
            slots,
            keys,
            values,
            heads if q_norm is None else q_norm,
            heads if k_norm is None else k_norm,
            queries,
            slots if kv_scales is None else kv_scales,
            eps,
            norm_offset,
            heads.stride(0),
            keys.stride(0),
            NUM_HEADS=num_heads,
            NUM_KV_HEADS=num_kv_heads,
            HALF=head_dim // 2,
            HEADS=_HEADS,
            BLOCK=block,
            HAS_NORM=q_norm is not None,
            HAS_KV_SCALES=kv_scales is not None,
            num_warps=max(_HEADS * block // 256, 1),
        )
    return queries


@triton.jit
def _store_tokens(
    k_ptr,
    v_ptr,
    slots_ptr,
    keys_ptr,
    values_ptr,
    kv_scales_ptr,
    k_stride,
    v_stride,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_KV_SCALES: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    slot = tl.load(slots_ptr + token).to(tl.int64)
    kept = (columns < WIDTH) & (slot >= 0)
    kind: tl.constexpr = keys_ptr.dtype.element_ty
    key = tl.load(k_ptr + token * k_stride + columns, mask=kept, other=0.0)
    value = tl.load(v_ptr + token * v_stride + columns, mask=kept, other=0.0)
    at = slot * WIDTH + columns
    tl.store(keys_ptr + at, _stored(key, kv_scales_ptr, kind, HAS_KV_SCALES), mask=kept)
    tl.store(values_ptr + at, _stored(value, kv_scales_ptr + 1, kind, HAS_KV_SCALES), mask=kept)


def store_tokens(
    k: torch.Tensor,
    v: torch.Tensor,
    slots: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    *,
    kv_scales: torch.Tensor | None = None,
) -> None:
    """Store keys and values ``[T, num_kv_heads, head_dim]``; arguments as of :func:`rotate_and_store`."""
    num_tokens, width = len(k), k[0].numel()
    _store_tokens[(num_tokens,)](
        k,
        v,
        slots,
        keys,
        values,
        slots if kv_scales is None else kv_scales,
        k.stride(0),
        v.stride(0),
        WIDTH=width,
        BLOCK=next_power_of_2(width),
        HAS_KV_SCALES=kv_scales is not None,
        num_warps=warps_for(width),
    )


@triton.jit
def _gate_and_mul(x_ptr, out_ptr, x_stride, width, GATE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    source = x_ptr + row * x_stride + columns
    gate = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(source + width, mask=inside, other=0.0).to(tl.float32)
    if GATE == "silu":
        gate = gate * tl.sigmoid(gate)
    elif GATE == "gelu":
        gate = 0.5 * gate * (1.0 + tl.erf(gate * 0.7071067811865476))
    elif GATE == "clamped_swish":
        # By default the bounds would take the place of what is not a number, and hide it.
        gate = tl.minimum(gate, _SWISH_BOUND, propagate_nan=tl.PropagateNan.ALL)
        gate = gate * tl.sigmoid(gate * _SWISH_SLOPE)
        value = tl.maximum(value, -_SWISH_BOUND, propagate_nan=tl.PropagateNan.ALL)
        value = tl.minimum(value, _SWISH_BOUND, propagate_nan=tl.PropagateNan.ALL) + 1.0
    else:
        # 0.5 (1 + tanh z) is the logistic function of 2 z; z = sqrt(2 / pi) (x + 0.044715 x³).
        gate = gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate))
    tl.store(out_ptr + row * width + columns, (gate * value).to(out_ptr.dtype.element_ty), mask=inside)


def gate_and_mul(x: torch.Tensor, gate: Gate = "silu") -> torch.Tensor:
    """``act(gate) * value`` of ``[num_rows, 2 * width]`` with the gates first; returns ``[num_rows, width]``.

    ``gelu`` is exact, ``gelu_tanh`` its approximation by the hyperbolic tangent (Hendrycks and Gimpel 2016);
    ``clamped_swish`` also changes the values (see :data:`bough.config.model_facts.CLAMPED_SWISH`).
    """
    num_rows, width = x.shape[0], x.shape[1] // 2
    out = torch.empty(num_rows, width, dtype=x.dtype, device=x.device)
    if num_rows:
        grid = (num_rows, triton.cdiv(width, _COLUMNS))
        _gate_and_mul[grid](x, out, x.stride(0), width, GATE=gate, BLOCK=_COLUMNS, num_warps=4)
    return out


@triton.jit
def _gather_rows(table_ptr, ids_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    source = table_ptr + tl.load(ids_ptr + row).to(tl.int64) * width + columns
    tl.store(out_ptr + row * width + columns, tl.load(source, mask=inside, other=0.0), mask=inside)


def gather_rows(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Rows ``ids`` (int32 or int64 ``[n]``) of ``table`` ``[vocab_size, width]``, contiguous: ``[n, width]``."""
    width = table.shape[1]
    out = torch.empty(len(ids), width, dtype=table.dtype, device=table.device)
    if len(ids):
        grid = (len(ids), triton.cdiv(width, _COLUMNS))
        _gather_rows[grid](table, ids, out, width, BLOCK=_COLUMNS, num_warps=4)
    return out


@triton.jit
def _enter_tokens(
    req_slots_ptr,
    positions_ptr,
    out_slots_ptr,
    last_token_ptr,
    table_ptr,
    input_ids_ptr,
    table_stride,
    LOOKS_UP: tl.constexpr,
):
    token = tl.program_id(0)
    req_slot = tl.load(req_slots_ptr + token).to(tl.int64)
    slot = tl.load(out_slots_ptr + token)
    is_real = slot >= 0
    tl.store(table_ptr + req_slot * table_stride + tl.load(positions_ptr + token), slot.to(tl.int32), mask=is_real)
    if LOOKS_UP:
        tl.store(input_ids_ptr + token, tl.load(last_token_ptr + req_slot, mask=is_real, other=0))


def enter_decode_rows(
    req_slots: torch.Tensor,
    positions: torch.Tensor,
    out_slots: torch.Tensor,
    last_token: torch.Tensor,
    req_to_token: torch.Tensor,
    input_ids: torch.Tensor,
) -> None:
    """What begins a step of decode rows: :func:`enter_tokens`, and looking each token up.

    Args:
        req_slots: int32 or int64 ``[R]``
        positions: likewise, of the new tokens.
        out_slots: likewise, KV slots of the new tokens; negative: the row is padding and gets token 0.
        last_token: int64 ``[requests]``
        req_to_token: int32 ``[requests, max_len]``, written.
        input_ids: int64 ``[R]``, written.
    """
    _enter_tokens[(len(req_slots),)](
        req_slots,
        positions,
        out_slots,
        last_token,
        req_to_token,
        input_ids,
        req_to_token.stride(0),
        LOOKS_UP=True,
        num_warps=1,
    )


def enter_tokens(
    req_slots: torch.Tensor, positions: torch.Tensor, out_slots: torch.Tensor, req_to_token: torch.Tensor
) -> None:
    """Enter the slots of new tokens into the table of requests.

    Args:
        req_slots: int32 or int64 ``[T]``, the request of each token.
        positions: likewise, of the tokens in their sequences.
        out_slots: likewise, their KV slots; negative: the token is padding.
        req_to_token: int32 ``[requests, max_len]``, written.
    """
    _enter_tokens[(len(req_slots),)](
        req_slots,
        positions,
        out_slots,
        req_slots,
        req_to_token,
        req_slots,
        req_to_token.stride(0),
        LOOKS_UP=False,
        num_warps=1,
    )
