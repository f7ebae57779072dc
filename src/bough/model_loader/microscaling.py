"""MXFP4: 4-bit floating point with a power of two for each 32 numbers.

"OCP Microscaling Formats (MX) Specification", version 1.0, sections 5.3.3 (E2M1), 5.4.1 (E8M0) and 6.3: a number is
``2 ** (exponent - 127)`` times that of its code; the exponent 255 is not a number.
"""

from __future__ import annotations

import torch

from bough.layers.quantized_rows import QuantizedRows

GROUP = 32
"""Numbers that share a scale."""

_BIAS = 127
# Twice the numbers of E2M1, by code: the fourth bit is the sign.
_DOUBLED = torch.tensor([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], dtype=torch.int8, device="cpu")
_DOUBLED_PAIRS = torch.stack((_DOUBLED.repeat(16), _DOUBLED.repeat_interleave(16)), -1).view(torch.int16)[:, 0]
"""Both numbers of a byte, that of the low half first, as one number of 16 bits: int16 ``[256]``"""


def microscaled_rows(pairs: torch.Tensor, exponents: torch.Tensor) -> QuantizedRows:
    """Rows of a matrix in MXFP4.

    Args:
        pairs: uint8 ``[rows, inputs / 2]``, the code of each even input in the lower half.
        exponents: uint8 ``[rows, inputs / 32]``
    """
    codes = _DOUBLED_PAIRS[pairs.int()].view(torch.int8)  # [rows, inputs]
    scales = torch.ldexp(torch.ones(exponents.shape), exponents.int() - (_BIAS + 1))
    # Of groups of zeros the scale means nothing, and may be one that no other format has room for.
    empty = (codes.view(len(codes), -1, GROUP) == 0).all(-1)
    scales.masked_fill_(empty, 0.0).masked_fill_(exponents == 255, torch.nan)
    return QuantizedRows.from_e2m1(GROUP, codes, scales)
