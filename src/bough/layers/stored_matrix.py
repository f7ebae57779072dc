"""Matrices that are still packed as a checkpoint has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from bough.layers.quantized_rows import QuantizedRows

Unpack = Callable[[slice, slice], torch.Tensor | QuantizedRows]
"""Returns some rows and columns of a matrix; both slices have a start and a stop."""


@dataclass(frozen=True, slots=True)
class StoredMatrix:
    """Neighbouring rows and columns of a matrix ``[rows, inputs]``, of which nothing has been unpacked yet."""

    unpack: Unpack
    """Unpacks some of the whole matrix"""
    row_span: slice
    column_span: slice

    @classmethod
    def of(cls, rows: int, columns: int, unpack: Unpack) -> StoredMatrix:
        """Return a whole matrix of that shape."""
        return cls(unpack, slice(0, rows), slice(0, columns))

    @property
    def shape(self) -> torch.Size:
        """``(rows, columns)``"""
        return torch.Size(span.stop - span.start for span in (self.row_span, self.column_span))

    def part(self, first_row: int, end_row: int) -> StoredMatrix:
        """Some of the rows."""
        return replace(self, row_span=_within(self.row_span, first_row, end_row))

    def columns(self, first: int, end: int) -> StoredMatrix:
        """Some of the inputs."""
        return replace(self, column_span=_within(self.column_span, first, end))

    def unpacked(self) -> torch.Tensor | QuantizedRows:
        """Unpack it.

        Raises:
            StartupError: if the file has something else than it says.
            ModelError: if groups of inputs that share a scale would be cut.
        """
        return self.unpack(self.row_span, self.column_span)


def _within(span: slice, first: int, end: int) -> slice:
    return slice(span.start + first, min(span.start + end, span.stop))
