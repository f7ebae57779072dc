"""A matrix product whose every element is summed in one order, whatever the other rows are: batch-invariant.

Libraries choose their tiles, and whether to split the inner dimension, by the number of rows, and so the last bits of
a row depend on its neighbours (He et al. 2025, "Defeating nondeterminism in LLM inference"). Here one tile serves all
numbers of rows, and each element has one accumulator that goes over the inner dimension in ascending order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from bough.kernels.triton.launch import ieee

_TILE = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "SWEEP": 8}
_FLOAT32_TILE = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32, "SWEEP": 8}


@triton.jit
def tile_of(num_rows, num_outputs, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SWEEP: tl.constexpr):
    """The rows ``[BLOCK_M]`` and outputs ``[BLOCK_N]`` of this program, int64; the last ones may be beyond the end.

    Tiles go down SWEEP rows of tiles before they go right, so that what neighbours read is still in the cache.
    """
    tiles_m, tiles_n = tl.cdiv(num_rows, BLOCK_M), tl.cdiv(num_outputs, BLOCK_N)
    program = tl.program_id(0)
    first_m = program // (SWEEP * tiles_n) * SWEEP
    sweep = tl.minimum(tiles_m - first_m, SWEEP)
    within = program % (SWEEP * tiles_n)
    rows = ((first_m + within % sweep) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    outputs = (within // sweep * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    return rows, outputs


@triton.jit(do_not_specialize=["num_rows"])
def _linear_tiles(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    num_rows,
    num_outputs,
    num_inputs,
    x_stride,
    weight_stride,
    HAS_BIAS: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SWEEP: tl.constexpr,
):
    rows, outputs = tile_of(num_rows, num_outputs, BLOCK_M, BLOCK_N, SWEEP)
    in_rows, in_outputs = rows < num_rows, outputs < num_outputs
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, num_inputs, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        in_inner = inner < num_inputs
        x_at = x_ptr + rows[:, None] * x_stride + inner[None, :]
        weight_at = weight_ptr + outputs[None, :] * weight_stride + inner[:, None]
        x = tl.load(x_at, mask=in_rows[:, None] & in_inner[None, :], other=0.0)
        weight = tl.load(weight_at, mask=in_outputs[None, :] & in_inner[:, None], other=0.0)
        acc = tl.dot(x, weight, acc, input_precision=PRECISION)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + outputs, mask=in_outputs, other=0.0).to(tl.float32)[None, :]
    out_at = out_ptr + rows[:, None] * num_outputs + outputs[None, :]
    tl.store(out_at, acc.to(out_ptr.dtype.element_ty), mask=in_rows[:, None] & in_outputs[None, :])


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """``x Wᵀ + b``, summed in float32: ``[num_rows, num_outputs]``, of which no row depends on another.

    Rows of ``x`` and ``weight`` ``[num_outputs, num_inputs]`` are dense, and of one dtype; ``out`` is contiguous.
    """
    num_rows, num_inputs = x.shape
    num_outputs = weight.shape[0]
    if out is None:
        out = torch.empty(num_rows, num_outputs, dtype=x.dtype, device=x.device)
    tile = _FLOAT32_TILE if x.dtype == torch.float32 else _TILE
    if num_rows:
        grid = (triton.cdiv(num_rows, tile["BLOCK_M"]) * triton.cdiv(num_outputs, tile["BLOCK_N"]),)
        _linear_tiles[grid](
            x,
            weight,
            weight if bias is None else bias,
            out,
            num_rows,
            num_outputs,
            num_inputs,
            x.stride(0),
            weight.stride(0),
            HAS_BIAS=bias is not None,
            PRECISION=ieee(x.dtype),
            **tile,
            num_warps=4,
            num_stages=3,
        )
    return out
