"""Numbers of 8 bits with an exponent (Micikevicius et al. 2022, "FP8 Formats for Deep Learning")."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.target_info import cuda_capability_geq

_TO_WHOLE = tl.constexpr(12582912.0)
"""1.5 · 2²³: a float32 below 2²² loses its fraction when this is added, rounded to the nearest, ties to even."""


@triton.jit
def to_float8(x, kind: tl.constexpr):
    """float32 to the nearest number of ``kind`` (float8e4nv or float8e5), ties to even, at most the largest there is.

    What is not a number becomes 0, so that what is stored in a KV pool is always finite.
    It is rounded here, so that the conversion itself is exact: how devices round, and what they make of numbers that
    are too large, differs.
    """
    is_wide: tl.constexpr = kind == tl.float8e5
    largest: tl.constexpr = 57344.0 if is_wide else 448.0
    fraction: tl.constexpr = 0.25 if is_wide else 0.125
    least: tl.constexpr = 6.103515625e-05 if is_wide else 0.015625
    x = tl.where(x == x, x, 0.0)  # noqa: PLR0124 - what is not a number is not equal to itself
    x = tl.minimum(tl.maximum(x, -largest), largest)
    power = (x.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
    step = tl.maximum(power, least) * fraction
    return ((x / step + _TO_WHOLE - _TO_WHOLE) * step).to(kind)


@triton.jit
def widened(x, kind: tl.constexpr):
    """What a pool holds as numbers of ``kind``, which has room for them."""
    if x.dtype.is_fp8() and not cuda_capability_geq(9, 0):
        # Triton 3.6 goes from 8 bits to bfloat16 by an instruction that older devices do not have.
        x = x.to(tl.float32)
    return x.to(kind)
