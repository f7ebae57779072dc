"""Products of the experts of a mixture: each row is multiplied by the matrix of the expert that it is sorted to, all of
them in one launch.

Each element has one accumulator that goes over the inner dimension in ascending order. Where tiles are alike however
few rows there are, no row depends on the others.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from bough.kernels.triton.launch import ieee
from bough.kernels.triton.sorted_rows import SortedRows, expert_tile

_TILES = {
    16: {"BLOCK_N": 64, "num_warps": 4, "num_stages": 4},
    32: {"BLOCK_N": 128, "num_warps": 4, "num_stages": 3},
    64: {"BLOCK_N": 128, "num_warps": 4, "num_stages": 3},
}
"""By the rows of a tile. Not measured yet."""
_FLOAT32_TILE = {"BLOCK_N": 32, "num_warps": 4, "num_stages": 2}
_BLOCK_K = 64

_SUMMED = 512
"""Columns of a token that one program sums."""


@triton.jit
def _grouped_tiles(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    order_ptr,
    starts_ptr,
    tile_ends_ptr,
    num_outputs,
    num_inputs,
    x_stride,
    NUM_EXPERTS: tl.constexpr,
    EXPERTS_BLOCK: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    FROM_TOKENS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Program (tile of rows, tile of outputs)."""
    expert, from_rows, to_rows, in_rows = expert_tile(
        tl.program_id(0),
        order_ptr,
        starts_ptr,
        tile_ends_ptr,
        NUM_EXPERTS,
        EXPERTS_BLOCK,
        PER_TOKEN,
        FROM_TOKENS,
        BLOCK_M,
    )
    if expert < NUM_EXPERTS:
        outputs = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
        in_outputs = outputs < num_outputs
        weight_rows = weight_ptr + (expert.to(tl.int64) * num_outputs + outputs) * num_inputs
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for begin in range(0, num_inputs, BLOCK_K):
            inner = begin + tl.arange(0, BLOCK_K)
            in_inner = inner < num_inputs
            x_at = x_ptr + from_rows[:, None] * x_stride + inner[None, :]
            x = tl.load(x_at, mask=in_rows[:, None] & in_inner[None, :], other=0.0)
            weight_at = weight_rows[None, :] + inner[:, None]
            weight = tl.load(weight_at, mask=in_outputs[None, :] & in_inner[:, None], other=0.0)
            acc = tl.dot(x, weight, acc, input_precision=PRECISION)
        if HAS_BIAS:
            bias = tl.load(bias_ptr + expert * num_outputs + outputs, mask=in_outputs, other=0.0)
            acc += bias.to(tl.float32)[None, :]
        out_at = out_ptr + to_rows[:, None] * num_outputs + outputs[None, :]
        tl.store(out_at, acc.to(out_ptr.dtype.element_ty), mask=in_rows[:, None] & in_outputs[None, :])


def grouped_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    rows: SortedRows,
    *,
    from_tokens: bool,
    out: torch.Tensor,
) -> torch.Tensor:
    """``x Wᵀ + b`` with the matrix of each row's expert, summed in float32.

    Args:
        x: rows, dense: ``[num_tokens, num_inputs]`` if ``from_tokens``, else ``[num_copies, num_inputs]`` in the order
            of places.
        weight: ``[num_experts, num_outputs, num_inputs]``, contiguous, of the same type.
        bias: ``[num_experts, num_outputs]``
        rows: how they are sorted.
        from_tokens: read tokens, and write results in the order of places; else the other way round.
        out: ``[num_copies, num_outputs]``, contiguous. Copies for experts that are elsewhere are not written.

    Returns:
        ``out``
    """
    _, num_outputs, num_inputs = weight.shape
    if not len(rows.order):
        return out
    tile = _FLOAT32_TILE if x.dtype == torch.float32 else _TILES[rows.tile_rows]
    grid = (rows.most_tiles, triton.cdiv(num_outputs, tile["BLOCK_N"]))
    _grouped_tiles[grid](
        x,
        weight,
        weight if bias is None else bias,
        out,
        *rows.tensors,
        num_outputs,
        num_inputs,
        x.stride(0),
        **rows.constants,
        FROM_TOKENS=from_tokens,
        HAS_BIAS=bias is not None,
        PRECISION=ieee(x.dtype),
        BLOCK_M=rows.tile_rows,
        BLOCK_K=_BLOCK_K,
        **tile,
    )
    return out


@triton.jit
def _sum_copies(results_ptr, weights_ptr, out_ptr, width, PER_TOKEN: tl.constexpr, BLOCK: tl.constexpr):
    """Program (token, block of columns)."""
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    total = tl.zeros([BLOCK], tl.float32)
    for index in tl.static_range(PER_TOKEN):
        copy = token * PER_TOKEN + index
        result = tl.load(results_ptr + copy * width + columns, mask=inside, other=0.0)
        total += tl.load(weights_ptr + copy) * result.to(tl.float32)
    tl.store(out_ptr + token * width + columns, total.to(out_ptr.dtype.element_ty), mask=inside)


def sum_copies(results: torch.Tensor, weights: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Sum up the weighted results of each token's experts, in the order in which the token has them.

    Args:
        results: ``[num_tokens * per_token, width]``, contiguous, tokens one after the other.
        weights: float32 ``[num_tokens, per_token]``, contiguous.
        dtype: of the sums, which are made in float32.

    Returns:
        ``[num_tokens, width]``
    """
    (num_tokens, per_token), width = weights.shape, results.shape[1]
    out = torch.empty(num_tokens, width, dtype=dtype, device=results.device)
    if num_tokens:
        _sum_copies[(num_tokens, triton.cdiv(width, _SUMMED))](
            results, weights, out, width, PER_TOKEN=per_token, BLOCK=_SUMMED
        )
    return out
