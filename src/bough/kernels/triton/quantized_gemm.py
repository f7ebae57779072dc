"""Products with weights that are held as codes: whole numbers of 4 or 8 bits, or 8-bit floating point.

Codes are multiplied as they are, without rounding; scales are applied in float32 to what is summed over the inputs that
share one, in ascending order of groups.

Layout: weights have ``span`` inputs, a power of two, to a scale; scales are ``[groups, num_outputs]``. Two codes of 4
bits share a byte: the low half is an input of the first half of a span, the high half the one ``span / 2`` behind it,
so that both halves of the inputs are read in a row. They are stored with 8 added.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from bough.kernels.triton.float8 import to_float8
from bough.kernels.triton.gemm import tile_of
from bough.kernels.triton.launch import ieee, next_power_of_2, warps_for

FEW_ROWS = 16
"""Up to which a tile holds no more rows; it need not give the same last bits as the larger one."""

_FEW_ROWS_TILE = {"BLOCK_M": 16, "BLOCK_N": 32, "SWEEP": 1, "num_warps": 4, "num_stages": 6}
_LONG_SPAN_STAGES = 3
"""Of such a tile where a span is longer than 128 inputs: more would not fit into shared memory everywhere."""
_TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "SWEEP": 8, "num_warps": 4, "num_stages": 3}
_FLOAT32_TILE = {"BLOCK_M": 32, "BLOCK_N": 32, "SWEEP": 8, "num_warps": 8, "num_stages": 2}
"""Tensor cores do not take float32 as it is: both sides of a product are held in registers."""

WHOLE_ROW_SPAN = 128
"""Inputs that are summed at a time where a row has a single scale."""


@triton.jit(do_not_specialize=["num_rows"])
def _coded_tiles(
    x_ptr,
    x_scales_ptr,
    codes_ptr,
    scales_ptr,
    offsets_ptr,
    bias_ptr,
    out_ptr,
    num_rows,
    num_outputs,
    num_inputs,
    x_stride,
    codes_stride,
    PACKED: tl.constexpr,
    WHOLE_ROWS: tl.constexpr,
    HAS_X_SCALES: tl.constexpr,
    HAS_OFFSETS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    PRECISION: tl.constexpr,
    IMPRECISE: tl.constexpr,
    SPAN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SWEEP: tl.constexpr,
):
    rows, outputs = tile_of(num_rows, num_outputs, BLOCK_M, BLOCK_N, SWEEP)
    in_rows, in_outputs = rows < num_rows, outputs < num_outputs
    num_groups = tl.cdiv(num_inputs, SPAN)
    HALF: tl.constexpr = SPAN // 2
    half = tl.arange(0, HALF)
    kind: tl.constexpr = x_ptr.dtype.element_ty
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    if not WHOLE_ROWS:
        scale = tl.load(scales_ptr + outputs, mask=in_outputs, other=0.0)
        if HAS_OFFSETS:
            offset = tl.load(offsets_ptr + outputs, mask=in_outputs, other=0.0)
        if HAS_X_SCALES:
            x_scale = tl.load(x_scales_ptr + rows * num_groups, mask=in_rows, other=0.0)
    for group in range(num_groups):
        if not WHOLE_ROWS:
            # Those of the next group, so that nobody waits for them: a compiler that pipelines the loop's operands does
            # not do so with what is needed after the products.
            is_last = group + 1 >= num_groups
            next_at = (group + 1) * num_outputs + outputs
            next_scale = tl.load(scales_ptr + next_at, mask=in_outputs & ~is_last, other=0.0)
            if HAS_OFFSETS:
                next_offset = tl.load(offsets_ptr + next_at, mask=in_outputs & ~is_last, other=0.0)
            if HAS_X_SCALES:
                next_x_at = rows * num_groups + group + 1
                next_x_scale = tl.load(x_scales_ptr + next_x_at, mask=in_rows & ~is_last, other=0.0)
        first = group * SPAN + half
        second = first + HALF
        x_at = x_ptr + rows[:, None] * x_stride
        x_first = tl.load(x_at + first[None, :], mask=in_rows[:, None] & (first < num_inputs)[None, :], other=0.0)
        x_second = tl.load(x_at + second[None, :], mask=in_rows[:, None] & (second < num_inputs)[None, :], other=0.0)
        codes_at = codes_ptr + outputs[None, :] * codes_stride
        if PACKED:
            pairs = tl.load(codes_at + (group * HALF + half)[:, None], mask=in_outputs[None, :], other=0).to(tl.int32)
            low, high = (pairs & 15) - 8, (pairs >> 4) - 8
        else:
            in_first = in_outputs[None, :] & (first < num_inputs)[:, None]
            in_second = in_outputs[None, :] & (second < num_inputs)[:, None]
            low = tl.load(codes_at + first[:, None], mask=in_first, other=0.0)
            high = tl.load(codes_at + second[:, None], mask=in_second, other=0.0)
        part = tl.dot(x_first, low.to(kind), input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE)
        part = tl.dot(x_second, high.to(kind), part, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE)
        if not WHOLE_ROWS:
            part *= scale[None, :]
            scale = next_scale
            if HAS_OFFSETS:
                x_sum = tl.sum(x_first.to(tl.float32), 1) + tl.sum(x_second.to(tl.float32), 1)
                part += x_sum[:, None] * offset[None, :]
                offset = next_offset
            if HAS_X_SCALES:
                part *= x_scale[:, None]
                x_scale = next_x_scale
        acc += part
    if WHOLE_ROWS:
        acc *= tl.load(scales_ptr + outputs, mask=in_outputs, other=0.0)[None, :]
        if HAS_X_SCALES:
            acc *= tl.load(x_scales_ptr + rows, mask=in_rows, other=0.0)[:, None]
    if HAS_BIAS:
        acc += tl.load(bias_ptr + outputs, mask=in_outputs, other=0.0).to(tl.float32)[None, :]
    out_at = out_ptr + rows[:, None] * num_outputs + outputs[None, :]
    tl.store(out_at, acc.to(out_ptr.dtype.element_ty), mask=in_rows[:, None] & in_outputs[None, :])


def _launch(
    x: torch.Tensor,
    x_scales: torch.Tensor | None,
    codes: torch.Tensor,
    scales: torch.Tensor,
    offsets: torch.Tensor | None,
    bias: torch.Tensor | None,
    out_dtype: torch.dtype,
    span: int,
    *,
    packed: bool,
    one_tile: bool,
) -> torch.Tensor:
    (num_rows, num_inputs), num_outputs = x.shape, len(codes)
    out = torch.empty(num_rows, num_outputs, dtype=out_dtype, device=x.device)
    tile = _FLOAT32_TILE if x.dtype == torch.float32 else _TILE
    if num_rows <= FEW_ROWS and not one_tile:
        tile = _FEW_ROWS_TILE if span <= WHOLE_ROW_SPAN else _FEW_ROWS_TILE | {"num_stages": _LONG_SPAN_STAGES}
    if num_rows:
        grid = (triton.cdiv(num_rows, tile["BLOCK_M"]) * triton.cdiv(num_outputs, tile["BLOCK_N"]),)
        _coded_tiles[grid](
            x,
            scales if x_scales is None else x_scales,
            codes,
            scales,
            scales if offsets is None else offsets,
            scales if bias is None else bias,
            out,
            num_rows,
            num_outputs,
            num_inputs,
            x.stride(0),
            codes.stride(0),
            PACKED=packed,
            # A single group is a whole row, whose scales wait until all is summed.
            WHOLE_ROWS=len(scales) == 1 and offsets is None,
            HAS_X_SCALES=x_scales is not None,
            HAS_OFFSETS=offsets is not None,
            HAS_BIAS=bias is not None,
            PRECISION=ieee(x.dtype),
            # Tensor cores sum 8-bit products with few bits; half a span at a time, no longer.
            IMPRECISE=span // 2 if x.dtype.itemsize == 1 else 0,
            SPAN=span,
            **tile,
        )
    return out


def integer_linear(
    x: torch.Tensor,
    codes: torch.Tensor,
    scales: torch.Tensor,
    *,
    span: int,
    offsets: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    one_tile: bool = False,
) -> torch.Tensor:
    """``x Wᵀ + b`` with weights ``scale * code + offset``.

    Args:
        x: ``[num_rows, num_inputs]``, rows dense: float16, bfloat16 or float32.
        codes: uint8 ``[num_outputs, groups * span / 2]``, two to a byte as the module says; or int8
            ``[num_outputs, num_inputs]``.
        scales: float32 ``[groups, num_outputs]``
        span: inputs of a group, a power of two, at least 32; the last group may be shorter.
        offsets: like scales.
        bias: ``[num_outputs]``
        one_tile: rows are tiled alike however few they are, so that none depends on the others.

    Returns:
        ``[num_rows, num_outputs]``, like ``x``.
    """
    return _launch(
        x, None, codes, scales, offsets, bias, x.dtype, span, packed=codes.dtype == torch.uint8, one_tile=one_tile
    )


@triton.jit
def _quantize_groups(
    x_ptr, codes_ptr, scales_ptr, x_stride, width, LARGEST: tl.constexpr, SPAN: tl.constexpr, BLOCK: tl.constexpr
):
    """Program (row, group)."""
    row = tl.program_id(0).to(tl.int64)
    within = tl.arange(0, BLOCK)
    columns = tl.program_id(1) * SPAN + within
    inside = (within < SPAN) & (columns < width)
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    # A row of zeros has a scale too.
    scale = tl.maximum(tl.max(tl.abs(x)), 1e-30) / LARGEST
    codes = to_float8(x / scale, codes_ptr.dtype.element_ty)
    tl.store(codes_ptr + row * width + columns, codes, mask=inside)
    tl.store(scales_ptr + row * tl.num_programs(1) + tl.program_id(1), scale)


def quantize_rows(x: torch.Tensor, span: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Activations in 8 bits, the largest of each group as the largest number that there is.

    Args:
        x: ``[num_rows, width]``, rows dense.
        span: numbers of a row that share a scale, a power of two; ``None``: all.

    Returns:
        float8_e4m3fn ``[num_rows, width]``, and float32 scales ``[num_rows, groups]``.
    """
    num_rows, width = x.shape
    span = width if span is None else span
    codes = torch.empty(num_rows, width, dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty(num_rows, triton.cdiv(width, span), dtype=torch.float32, device=x.device)
    if num_rows:
        block = next_power_of_2(span)
        _quantize_groups[tuple(scales.shape)](
            x,
            codes,
            scales,
            x.stride(0),
            width,
            LARGEST=torch.finfo(codes.dtype).max,
            SPAN=span,
            BLOCK=block,
            num_warps=warps_for(block),
        )
    return codes, scales


def float8_linear(
    x: torch.Tensor,
    codes: torch.Tensor,
    scales: torch.Tensor,
    *,
    span: int | None = None,
    bias: torch.Tensor | None = None,
    one_tile: bool = False,
) -> torch.Tensor:
    """``x Wᵀ + b`` with weights ``scale * code`` and inputs that are quantised alike, on the way.

    Args:
        x: ``[num_rows, num_inputs]``, rows dense.
        codes: float8_e4m3fn ``[num_outputs, num_inputs]``, rows dense.
        scales: float32 ``[groups, num_outputs]``
        span: inputs of a group, of weights as of ``x``: a power of two, at least 64; ``None``: all.
        bias: ``[num_outputs]``
        one_tile: rows are tiled alike however few they are, so that none depends on the others.

    Returns:
        ``[num_rows, num_outputs]``, like ``x``.
    """
    quantized, x_scales = quantize_rows(x, span)
    span = WHOLE_ROW_SPAN if span is None else span
    return _launch(quantized, x_scales, codes, scales, None, bias, x.dtype, span, packed=False, one_tile=one_tile)
