"""Matrices of one shape that Triton's kernels multiply in one launch, each by the rows that are sorted to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from bough.kernels.triton.sorted_rows import SortedRows


class StackedMatrices(ABC):
    """Matrices with their numbers one behind the other."""

    @abstractmethod
    def multiply(self, x: torch.Tensor, rows: SortedRows, *, from_tokens: bool, out: torch.Tensor) -> torch.Tensor:
        """Multiply rows by the matrices that they are sorted to.

        Args:
            x: ``[num_tokens, in_features]`` if ``from_tokens``, else ``[num_copies, in_features]``; rows dense.
            rows: how they are sorted.
            from_tokens: read tokens and write places; else the other way round.
            out: ``[num_copies, out_features]``, contiguous, like ``x``; copies for other matrices stay as they are.

        Returns:
            ``out``
        """


class PlainMatrices(StackedMatrices):
    """Matrices as the checkpoint has them, and their biases."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        self._weight, self._bias = (put_together(layers, name) for name in ("weight", "bias"))

    def multiply(self, x: torch.Tensor, rows: SortedRows, *, from_tokens: bool, out: torch.Tensor) -> torch.Tensor:
        from bough.kernels.triton.grouped_gemm import grouped_linear  # where there is Triton

        assert self._weight is not None
        return grouped_linear(x, self._weight, self._bias, rows, from_tokens=from_tokens, out=out)


def put_together(layers: Sequence[nn.Module], name: str) -> torch.Tensor | None:
    """Put a parameter of some layers, not loaded yet, into one tensor of which they have parts from then on.

    Returns:
        ``[len(layers), *shape]``; ``None`` if the layers have no such parameter.
    """
    parameters = [parameter for layer in layers if isinstance(parameter := getattr(layer, name), nn.Parameter)]
    if len(parameters) < len(layers):
        return None
    first = parameters[0]
    stack = first.data.new_empty((len(parameters), *first.shape))
    for parameter, part in zip(parameters, stack, strict=True):
        part.copy_(parameter.data)
        parameter.data = part
    return stack
