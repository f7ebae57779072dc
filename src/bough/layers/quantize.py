"""Quantise weights with torch, for CUDA (``coded_method.py``).

On a CPU the native library quantises while it packs (``csrc/packing.cpp``, through ``kernels/packed_weights.py``).
Activations are quantised by the kernels that multiply them.
"""

from __future__ import annotations

from typing import Literal

import torch

from bough.layers.quantized_rows import QuantizedRows

QUANTIZED_AT_A_TIME = 1 << 22
"""Weights that are quantised together on a device."""

QUANTIZING_BYTES = 32 * QUANTIZED_AT_A_TIME
"""Memory that this takes at most, what is quantised included."""

_ERROR_STEPS = 8
_SMALLEST_SHARE = 0.7
_NO_SCALE = 1e-30


def quantize_rows(rows: torch.Tensor, bits: Literal[4, 8], group: int) -> QuantizedRows:
    """Whole numbers for weights ``[n, inputs]``: of several scales of a group that with the smallest squared error.

    With 8 bits the largest weight of a group becomes 127. With 4 bits the largest becomes -8, and smaller scales are
    tried, which cut it off; each is refined by least squares, once the codes are known.
    """
    num_rows, inputs = rows.shape
    padded = torch.nn.functional.pad(rows.float(), (0, -inputs % group)).view(num_rows, -1, group)
    if bits == 8:
        scales = padded.abs().amax(-1, keepdim=True) / 127
        codes = (padded / scales.clamp(min=_NO_SCALE)).round_()
    else:
        largest = padded.gather(-1, padded.abs().argmax(-1, keepdim=True)) / -8
        codes, scales, least = torch.zeros_like(padded), torch.zeros_like(largest), torch.full_like(largest, torch.inf)
        for share in torch.linspace(1.0, _SMALLEST_SHARE, _ERROR_STEPS).tolist():
            tried = largest * share
            whole = (padded / torch.where(tried == 0, 1.0, tried)).round_().clamp_(-8, 7)
            fitted = (padded * whole).sum(-1, keepdim=True) / whole.square().sum(-1, keepdim=True).clamp(min=1)
            error = (padded - fitted * whole).square_().sum(-1, keepdim=True)
            better = error < least
            codes, scales = torch.where(better, whole, codes), torch.where(better, fitted, scales)
            least = torch.where(better, error, least)
    whole_rows = codes.to(torch.int8).view(num_rows, -1)[:, :inputs]
    return QuantizedRows(bits, group, whole_rows, scales.squeeze(-1))


def quantize_float8(rows: torch.Tensor, group: int | None) -> QuantizedRows:
    """8-bit floating point (e4m3) for weights ``[n, inputs]``, the largest of each ``group`` as the largest number.

    ``None``: a scale for each row.
    """
    num_rows, inputs = rows.shape
    group = max(inputs, 1) if group is None else group
    padded = torch.nn.functional.pad(rows.float(), (0, -inputs % group)).view(num_rows, -1, group)
    most = torch.finfo(torch.float8_e4m3fn).max
    scales = (padded.abs().amax(-1, keepdim=True) / most).clamp_(min=_NO_SCALE)
    codes = (padded / scales).clamp_(-most, most).to(torch.float8_e4m3fn).view(num_rows, -1)[:, :inputs]
    return QuantizedRows(8, group, codes, scales.squeeze(-1))
