"""Numbers of 8 bits with an exponent (Micikevicius et al. 2022, "FP8 Formats for Deep Learning")."""

from __future__ import annotations

import triton
import triton.language as tl

_TO_WHOLE = tl.constexpr(12582912.0)
"""1.5 · 2²³: a float32 below 2²² loses its fraction when this is added, rounded to the nearest, ties to even."""


@triton.jit
def to_float8(x, kind: tl.constexpr):
    """float32 to the nearest number of ``kind`` (float8e4nv or float8e5), ties to even, at most the largest there is.

    It is rounded here, so that the conversion itself is exact: how devices round, and what they make of numbers that
    are too large, differs.
    """
    is_wide: tl.constexpr = kind == tl.float8e5
    largest: tl.constexpr = 57344.0 if is_wide else 448.0
    fraction: tl.constexpr = 0.25 if is_wide else 0.125
    least: tl.constexpr = 6.103515625e-05 if is_wide else 0.015625
    x = tl.minimum(tl.maximum(x, -largest), largest)
    power = (x.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
    step = tl.maximum(power, least) * fraction
    return ((x / step + _TO_WHOLE - _TO_WHOLE) * step).to(kind)
