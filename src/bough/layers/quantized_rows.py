"""Weights as a checkpoint that is quantised already has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from bough.errors import ModelError


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """A matrix ``[rows, inputs]`` of small whole numbers; each ``group`` inputs of a row share a scale.

    An element is ``scale * code``, with minimums ``scale * code + minimum``. Memory may be that of a mapped file.
    """

    bits: Literal[4, 8]
    """Of a code. Without minimums codes are from -8 to 7 or -128 to 127, with them 4 bits are from 0 to 15."""
    group: int
    """Inputs that share a scale; the last group of a row may be shorter."""
    codes: torch.Tensor
    """int8 or uint8 ``[rows, inputs]``, one to a byte."""
    scales: torch.Tensor
    """float32 ``[rows, groups]``; may be negative."""
    minimums: torch.Tensor | None = None
    """float32 ``[rows, groups]``"""

    def __post_init__(self) -> None:
        """Raises:
        ModelError: if dtypes or shapes do not fit together.
        """
        if self.codes.dtype not in (torch.int8, torch.uint8) or self.codes.ndim != 2 or self.group < 1:
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

    def part(self, first_row: int, end_row: int) -> QuantizedRows:
        """Some of the rows, as views."""
        rows = slice(first_row, end_row)
        minimums = None if self.minimums is None else self.minimums[rows]
        return QuantizedRows(self.bits, self.group, self.codes[rows], self.scales[rows], minimums)

    def dequantize(self) -> torch.Tensor:
        """float32 ``[rows, inputs]``"""
        values = self._spread(self.scales).mul_(self.codes)
        return values if self.minimums is None else values.add_(self._spread(self.minimums))

    def _spread(self, per_group: torch.Tensor) -> torch.Tensor:
        return per_group[:, torch.arange(self.shape[1], device="cpu") // self.group]
