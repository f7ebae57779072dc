"""Products with weights that are held as codes: whole numbers of 4 or 8 bits, or 8-bit floating point.

Codes are multiplied as they are, without rounding; scales are applied in float32 to what is summed over the inputs that
share one, in ascending order of groups.

Layout: weights have ``span`` inputs, a power of two, to a scale; scales are ``[groups, num_outputs]``. Two codes of 4
bits share a byte: the low half is an input of the first half of a span, the high half the one ``span / 2`` behind it,
so that both halves of the inputs are read in a row. They are stored with 8 added.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from bough.kernels.triton.float8 import to_float8
from bough.kernels.triton.gemm import tile_of
from bough.kernels.triton.launch import ieee, next_power_of_2, warps_for
from bough.kernels.triton.sorted_rows import SortedRows, expert_tile

FEW_ROWS = 16
"""Up to which a tile holds no more rows; larger ones need not give the same last bits."""

_TILES = {
    FEW_ROWS: {"BLOCK_M": 16, "BLOCK_N": 64, "num_warps": 4, "num_stages": 4},
    64: {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3},
}
"""By the number of rows, up to which each is for. Measured on an H100, as all of these: see docs/performance.md."""
_TILE = {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3}
_FLOAT32_TILE = {"BLOCK_M": 32, "BLOCK_N": 32, "num_warps": 8, "num_stages": 2}
"""Tensor cores do not take float32 as it is: both sides of a product are held in registers."""

_EXPERT_TILES = {
    16: {"BLOCK_M": 16, "BLOCK_N": 64, "num_warps": 4, "num_stages": 4},
    32: {"BLOCK_M": 32, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3},
    64: {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3},
}
"""By the rows of a tile of an expert. Not measured yet."""
_FLOAT32_EXPERT_TILE = {"BLOCK_M": 16, "BLOCK_N": 32, "num_warps": 4, "num_stages": 2}

_SWEEP = 8

_ENOUGH_PROGRAMS = {FEW_ROWS: 256, 64: 128}
"""By the number of rows, as above. Where outputs make fewer, the inner dimension is divided as well, to keep a device
busy."""
_SUMMED = 1024
"""Sums that one program adds up the parts of."""
_FEWEST_GROUPS = 4
"""That a part of the inner dimension has."""

WHOLE_ROW_SPAN = 128
"""Inputs that are summed at a time where a row has a single scale."""

# A byte's halves are put into the last bits of 128, two at a time, and that and 8 are taken away again: many fewer
# instructions than a compiler makes of whole numbers that become bfloat16.
_TO_BFLOAT16 = tl.constexpr(
    """{
    .reg .b32 pair, part, one, less;
    mov.b32 one, 0x3f803f80;
    mov.b32 less, 0xc308c308;
    prmt.b32 pair, $4, 0, 0x4140;
    lop3.b32 part, pair, 0x000f000f, 0x43004300, 0xea;
    fma.rn.bf16x2 $0, part, one, less;
    shr.u32 pair, pair, 4;
    lop3.b32 part, pair, 0x000f000f, 0x43004300, 0xea;
    fma.rn.bf16x2 $2, part, one, less;
    prmt.b32 pair, $4, 0, 0x4342;
    lop3.b32 part, pair, 0x000f000f, 0x43004300, 0xea;
    fma.rn.bf16x2 $1, part, one, less;
    shr.u32 pair, pair, 4;
    lop3.b32 part, pair, 0x000f000f, 0x43004300, 0xea;
    fma.rn.bf16x2 $3, part, one, less;
    }"""
)


@triton.jit
def _halves(pairs, kind: tl.constexpr, FAST: tl.constexpr):
    """The two codes of each byte, as numbers from -8 to 7."""
    if FAST:
        low, high = tl.inline_asm_elementwise(
            _TO_BFLOAT16, "=r,=r,=r,=r,r", [pairs], dtype=(tl.bfloat16, tl.bfloat16), is_pure=True, pack=4
        )
    else:
        low = ((pairs & 15).to(tl.int32) - 8).to(kind)
        high = ((pairs >> 4).to(tl.int32) - 8).to(kind)
    return low, high


@triton.jit(do_not_specialize=["num_rows"])
def _coded_tiles(
    x_ptr,
    x_scales_ptr,
    codes_ptr,
    scales_ptr,
    offsets_ptr,
    bias_ptr,
    out_ptr,
    order_ptr,
    starts_ptr,
    tile_ends_ptr,
    num_rows,
    num_outputs,
    num_inputs,
    x_stride,
    codes_stride,
    PACKED: tl.constexpr,
    FAST: tl.constexpr,
    WHOLE_ROWS: tl.constexpr,
    HAS_X_SCALES: tl.constexpr,
    HAS_OFFSETS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    PRECISION: tl.constexpr,
    IMPRECISE: tl.constexpr,
    SPAN: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SWEEP: tl.constexpr,
    NUM_EXPERTS: tl.constexpr,
    EXPERTS_BLOCK: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    FROM_TOKENS: tl.constexpr,
):
    """Program (tile, part of the inner dimension): the product, transposed.

    So codes are the left operand, which tensor cores take from the registers where they were made numbers of. With
    experts, each tile has the rows of one, and its matrix.
    """
    num_groups = tl.cdiv(num_inputs, SPAN)
    part_groups = tl.cdiv(num_groups, PARTS)
    first_group = tl.program_id(1) * part_groups
    last_group = tl.minimum(first_group + part_groups, num_groups)
    if NUM_EXPERTS == 0:
        outputs, rows = tile_of(num_outputs, num_rows, BLOCK_N, BLOCK_M, SWEEP)
        in_rows, in_outputs = rows < num_rows, outputs < num_outputs
        to_rows = rows
    else:
        tiles_n = tl.cdiv(num_outputs, BLOCK_N)
        expert, rows, to_rows, in_rows = expert_tile(
            tl.program_id(0) // tiles_n,
            order_ptr,
            starts_ptr,
            tile_ends_ptr,
            NUM_EXPERTS,
            EXPERTS_BLOCK,
            PER_TOKEN,
            FROM_TOKENS,
            BLOCK_M,
        )
        last_group = tl.where(expert < NUM_EXPERTS, last_group, 0)
        outputs = (tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
        in_outputs = (outputs < num_outputs) & (expert < NUM_EXPERTS)
        first_output = expert.to(tl.int64) * num_outputs
        codes_ptr += first_output * codes_stride
        scales_ptr += first_output * (1 if WHOLE_ROWS else num_groups)
        offsets_ptr += first_output * num_groups
        bias_ptr += first_output
    HALF: tl.constexpr = SPAN // 2
    half, whole = tl.arange(0, HALF), tl.arange(0, SPAN)
    kind: tl.constexpr = x_ptr.dtype.element_ty
    acc = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    x_at = x_ptr + rows[None, :] * x_stride
    codes_at = codes_ptr + outputs[:, None] * codes_stride
    for group in range(first_group, last_group):
        if PACKED:
            first = group * SPAN + half
            second = first + HALF
            x_first = tl.load(x_at + first[:, None], mask=in_rows[None, :] & (first < num_inputs)[:, None], other=0.0)
            x_second = tl.load(
                x_at + second[:, None], mask=in_rows[None, :] & (second < num_inputs)[:, None], other=0.0
            )
            pairs = tl.load(codes_at + (group * HALF + half)[None, :], mask=in_outputs[:, None], other=0)
            low, high = _halves(pairs, kind, FAST)
            part = tl.dot(low, x_first, input_precision=PRECISION)
            part = tl.dot(high, x_second, part, input_precision=PRECISION)
            if HAS_OFFSETS:
                x_sum = tl.sum(x_first.to(tl.float32), 0) + tl.sum(x_second.to(tl.float32), 0)
        else:
            inner = group * SPAN + whole
            in_inner = inner < num_inputs
            x = tl.load(x_at + inner[:, None], mask=in_rows[None, :] & in_inner[:, None], other=0.0)
            codes = tl.load(codes_at + inner[None, :], mask=in_outputs[:, None] & in_inner[None, :], other=0.0)
            part = tl.dot(codes.to(kind), x, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE)
            if HAS_OFFSETS:
                x_sum = tl.sum(x.to(tl.float32), 0)
        if not WHOLE_ROWS:
            part *= tl.load(scales_ptr + group * num_outputs + outputs, mask=in_outputs, other=0.0)[:, None]
            if HAS_OFFSETS:
                offset = tl.load(offsets_ptr + group * num_outputs + outputs, mask=in_outputs, other=0.0)
                part += offset[:, None] * x_sum[None, :]
            if HAS_X_SCALES:
                part *= tl.load(x_scales_ptr + rows * num_groups + group, mask=in_rows, other=0.0)[None, :]
        acc += part
    if WHOLE_ROWS:
        acc *= tl.load(scales_ptr + outputs, mask=in_outputs, other=0.0)[:, None]
        if HAS_X_SCALES:
            acc *= tl.load(x_scales_ptr + rows, mask=in_rows, other=0.0)[None, :]
    if HAS_BIAS and tl.program_id(1) == 0:
        acc += tl.load(bias_ptr + outputs, mask=in_outputs, other=0.0).to(tl.float32)[:, None]
    out_at = out_ptr + (tl.program_id(1) * num_rows + to_rows[None, :]) * num_outputs + outputs[:, None]
    tl.store(out_at, acc.to(out_ptr.dtype.element_ty), mask=in_rows[None, :] & in_outputs[:, None])


@triton.jit(do_not_specialize=["size"])
def _add_parts(parts_ptr, out_ptr, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(parts_ptr + part * size + at, mask=at < size, other=0.0)
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=at < size)


def _num_parts(num_rows: int, num_outputs: int, groups: int, block_n: int) -> int:
    """Into how many parts the inner dimension is divided: a power of two, the same for all numbers of few rows."""
    enough = next((programs for rows, programs in _ENOUGH_PROGRAMS.items() if num_rows <= rows), 0)
    programs, parts = triton.cdiv(num_outputs, block_n), 1
    while programs * parts < enough and groups // (2 * parts) >= _FEWEST_GROUPS:
        parts *= 2
    return parts


def _tile_for(num_rows: int, dtype: torch.dtype, *, one_tile: bool) -> dict[str, int]:
    if dtype == torch.float32:
        return _FLOAT32_TILE
    return _TILE if one_tile else next((tile for rows, tile in _TILES.items() if num_rows <= rows), _TILE)


class OfExperts(NamedTuple):
    """Products of which each row has the matrix of its expert: see :mod:`bough.kernels.triton.grouped_gemm`."""

    rows: SortedRows
    from_tokens: bool
    out: torch.Tensor

    def tile(self, dtype: torch.dtype) -> dict[str, int]:
        """Return the tile for inputs of a type."""
        return _FLOAT32_EXPERT_TILE if dtype == torch.float32 else _EXPERT_TILES[self.rows.tile_rows]

    @property
    def constants(self) -> dict[str, int]:
        """Numbers that kernels are compiled for."""
        return {**self.rows.constants, "FROM_TOKENS": self.from_tokens}


_NO_EXPERTS = {"NUM_EXPERTS": 0, "EXPERTS_BLOCK": 1, "PER_TOKEN": 1, "FROM_TOKENS": False}


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
    of_experts: OfExperts | None = None,
) -> torch.Tensor:
    (num_rows, num_inputs), num_outputs = x.shape, codes.shape[-2]
    if of_experts is not None:
        out, num_rows = of_experts.out, len(of_experts.out)
        tile, tiles, parts = of_experts.tile(x.dtype), of_experts.rows.most_tiles, 1
    else:
        out = torch.empty(num_rows, num_outputs, dtype=out_dtype, device=x.device)
        tile = _tile_for(num_rows, x.dtype, one_tile=one_tile)
        parts = 1 if one_tile else _num_parts(num_rows, num_outputs, triton.cdiv(num_inputs, span), tile["BLOCK_N"])
        tiles = -(-num_rows // tile["BLOCK_M"])
    sums = out if parts == 1 else out.new_empty(parts, *out.shape, dtype=torch.float32)
    grid = (tiles * triton.cdiv(num_outputs, tile["BLOCK_N"]), parts)
    if not num_rows:
        return out
    _coded_tiles[grid](
        x,
        scales if x_scales is None else x_scales,
        codes,
        scales,
        scales if offsets is None else offsets,
        scales if bias is None else bias,
        sums,
        *((codes, codes, codes) if of_experts is None else of_experts.rows.tensors),
        num_rows,
        num_outputs,
        num_inputs,
        x.stride(0),
        codes.stride(-2),
        PACKED=packed,
        FAST=packed and x.dtype == torch.bfloat16 and not triton.knobs.runtime.interpret,
        # A single group is a whole row, whose scales wait until all is summed.
        WHOLE_ROWS=scales.shape[-2] == 1 and offsets is None,
        HAS_X_SCALES=x_scales is not None,
        HAS_OFFSETS=offsets is not None,
        HAS_BIAS=bias is not None,
        PRECISION=ieee(x.dtype),
        # Tensor cores sum 8-bit products with few bits; half a span at a time, no longer.
        IMPRECISE=span // 2 if x.dtype.itemsize == 1 else 0,
        SPAN=span,
        PARTS=parts,
        SWEEP=_SWEEP,
        **(_NO_EXPERTS if of_experts is None else of_experts.constants),
        **tile,
    )
    if parts > 1:
        _add_parts[(triton.cdiv(out.numel(), _SUMMED),)](sums, out, out.numel(), PARTS=parts, BLOCK=_SUMMED)
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
    of_experts: OfExperts | None = None,
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
        of_experts: how rows are sorted; all weights have a first dimension more then, experts.

    Returns:
        ``[num_rows, num_outputs]``, like ``x``.
    """
    return _launch(
        x,
        None,
        codes,
        scales,
        offsets,
        bias,
        x.dtype,
        span,
        packed=codes.dtype == torch.uint8,
        one_tile=one_tile,
        of_experts=of_experts,
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
    """Activations ``[num_rows, width]`` in 8 bits, the largest of each group as the largest number that there is.

    ``span`` numbers of a row share a scale, a power of two; ``None``: all.

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
    of_experts: OfExperts | None = None,
) -> torch.Tensor:
    """``x Wᵀ + b`` with weights ``scale * code`` and inputs that are quantised alike, on the way.

    Args:
        x: ``[num_rows, num_inputs]``, rows dense.
        codes: float8_e4m3fn ``[num_outputs, num_inputs]``, rows dense.
        scales: float32 ``[groups, num_outputs]``
        span: inputs of a group, of weights as of ``x``: a power of two, at least 64; ``None``: all.
        bias: ``[num_outputs]``
        one_tile: rows are tiled alike however few they are, so that none depends on the others.
        of_experts: as in :func:`integer_linear`.

    Returns:
        ``[num_rows, num_outputs]``, like ``x``.
    """
    quantized, x_scales = quantize_rows(x, span)
    return _launch(
        quantized,
        x_scales,
        codes,
        scales,
        None,
        bias,
        x.dtype,
        WHOLE_ROW_SPAN if span is None else span,
        packed=False,
        one_tile=one_tile,
        of_experts=of_experts,
    )
