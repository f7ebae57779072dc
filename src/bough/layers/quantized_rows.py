"""Quantised rows: as checkpoints have them, and as torch makes them for CUDA (``coded_method.py``).

On a CPU the native library quantises while it packs (``csrc/packing.cpp``, through ``kernels/packed_weights.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from bough.errors import ModelError

_CODE_DTYPES = (torch.int8, torch.uint8, torch.float8_e4m3fn)


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """A matrix ``[rows, inputs]`` of small numbers, most often whole; each ``group`` inputs of a row share a scale.

    An element is ``scale * code``, with minimums ``scale * code + minimum``. Memory may be that of a mapped file.
    """

    bits: Literal[4, 8]
    """Bits of a code. Without minimums codes are from -8 to 7 or -128 to 127, with them 4 bits are from 0 to 15."""
    group: int
    """Inputs that share a scale; the last group of a row may be shorter."""
    codes: torch.Tensor
    """int8, uint8 or float8_e4m3fn ``[rows, inputs]``, one to a byte."""
    scales: torch.Tensor
    """float32 ``[rows, groups]``; may be negative."""
    minimums: torch.Tensor | None = None
    """float32 ``[rows, groups]``"""

    def __post_init__(self) -> None:
        """Raises:
        ModelError: if dtypes or shapes do not fit together.
        """
        if self.codes.dtype not in _CODE_DTYPES or self.codes.ndim != 2 or self.group < 1:
            raise ModelError(f"codes must be bytes in rows, got {self.codes.dtype} {list(self.codes.shape)}")
        rows, inputs = self.codes.shape
        wanted = torch.Size((rows, -(-inputs // self.group)))
        for name, tensor in (("scales", self.scales), ("minimums", self.minimums)):
            if tensor is not None and (tensor.dtype, tensor.shape) != (torch.float32, wanted):
                raise ModelError(
                    f"{name} of {rows} rows of {inputs} codes in groups of {self.group} must be float32 "
                    f"{list(wanted)}, got {tensor.dtype} {list(tensor.shape)}"
                )

    @property
    def shape(self) -> torch.Size:
        """``(rows, inputs)``"""
        return self.codes.shape

    @property
    def is_float8(self) -> bool:
        """True if codes are 8-bit floating point."""
        return self.codes.dtype == torch.float8_e4m3fn

    def largest_possible(self) -> float:
        """A magnitude that no number is beyond, whatever the codes; not a number where one of the scales is none."""
        if not self.scales.numel():
            return 0.0
        code = torch.finfo(self.codes.dtype).max if self.is_float8 else 2.0**self.bits
        largest = self.scales.abs().max() * code
        return float(largest if self.minimums is None else largest + self.minimums.abs().max())

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> QuantizedRows:
        """Change codes, scales and minimums alike."""
        minimums = None if self.minimums is None else change(self.minimums)
        return QuantizedRows(self.bits, self.group, change(self.codes), change(self.scales), minimums)

    def part(self, first_row: int, end_row: int) -> QuantizedRows:
        """Some of the rows, as views."""
        return self.each(lambda tensor: tensor[first_row:end_row])

    def parts(self, most_rows: int) -> Iterator[tuple[int, QuantizedRows]]:
        """All rows, at most so many at a time, each time with the number of the first."""
        for start in range(0, self.shape[0], most_rows):
            yield start, self.part(start, start + most_rows)

    def to(self, device: torch.device) -> QuantizedRows:
        """The same on ``device``."""
        return self.each(lambda tensor: tensor.to(device))

    def dequantize(self) -> torch.Tensor:
        """float32 ``[rows, inputs]``"""
        values = self._spread(self.scales).mul_(self.codes.float() if self.is_float8 else self.codes)
        return values if self.minimums is None else values.add_(self._spread(self.minimums))

    def _spread(self, per_group: torch.Tensor) -> torch.Tensor:
        return per_group[:, torch.arange(self.shape[1], device=per_group.device) // self.group]


QUANTIZED_AT_A_TIME = 1 << 22
"""Weights that are quantised together on a device."""

QUANTIZING_BYTES = 32 * QUANTIZED_AT_A_TIME
"""Memory that this takes at most, what is quantised included."""

_ERROR_STEPS = 8
_SMALLEST_SHARE = 0.7
_NO_SCALE = 1e-30


def quantize_rows(rows: torch.Tensor, bits: Literal[4, 8], group: int) -> QuantizedRows:
    """Whole numbers for weights: of several scales of a group that with the smallest squared error.

    With 8 bits the largest weight of a group becomes 127. With 4 bits the largest becomes -8, and smaller scales are
    tried, which cut it off; each is refined by least squares, once the codes are known.

    Args:
        rows: ``[n, inputs]``, floating point.
        bits: of a code.
        group: inputs that share a scale.
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
