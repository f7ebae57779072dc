"""Rows of a matrix as codes and scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
    is_e2m1: bool = False
    """True if codes are twice numbers of 4-bit floating point: see :meth:`from_e2m1`."""

    @classmethod
    def from_e2m1(cls, group: int, doubled: torch.Tensor, halves: torch.Tensor) -> QuantizedRows:
        """Rows in 4-bit floating point (E2M1), as whole numbers of 8 bits, which other formats can hold.

        Args:
            group: inputs that share a scale.
            doubled: int8 ``[rows, inputs]``, twice the numbers; a value that E2M1 does not have is not noticed.
            halves: float32 ``[rows, groups]``, half of each scale.
        """
        return cls(8, group, doubled, halves, is_e2m1=True)

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
        return replace(self, codes=change(self.codes), scales=change(self.scales), minimums=minimums)

    def part(self, first_row: int, end_row: int) -> QuantizedRows:
        """Some of the rows, as views."""
        return self.each(lambda tensor: tensor[first_row:end_row])

    def every(self, step: int, first: int) -> QuantizedRows:
        """Every so many rows, as views."""
        return self.each(lambda tensor: tensor[first::step])

    def columns(self, first: int, end: int) -> QuantizedRows:
        """Some of the inputs, as views.

        Raises:
            ModelError: if groups of inputs that share a scale would be cut.
        """
        groups = groups_of(slice(first, end), self.group, self.shape[1])
        minimums = None if self.minimums is None else self.minimums[:, groups]
        return replace(self, codes=self.codes[:, first:end], scales=self.scales[:, groups], minimums=minimums)

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


def groups_of(columns: slice, group: int, num_inputs: int) -> slice:
    """Return the groups that some of the inputs of a matrix are in.

    Raises:
        ModelError: if groups of inputs that share a scale would be cut.
    """
    if group >= num_inputs:
        return slice(0, 1)
    if columns.start % group:
        raise ModelError(f"inputs are quantised in groups of {group}, which ranks cannot cut at {columns.start}")
    return slice(columns.start // group, -(-columns.stop // group))
