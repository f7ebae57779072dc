"""Memory of a model that one name in a checkpoint fills."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from bough.errors import ModelError
from bough.layers.quantized_rows import QuantizedRows
from bough.layers.stored_matrix import StoredMatrix

if TYPE_CHECKING:
    from bough.layers.stored_formats import StoredForm

Weight = torch.Tensor | QuantizedRows
"""A tensor of a checkpoint."""

StoredWeight = Weight | StoredMatrix
"""A tensor of a checkpoint, perhaps still packed."""

_ROWS_AT_A_TIME = 4096
"""Rows that are dequantised at a time, so that no second copy of a matrix exists."""


def largest_magnitude(tensor: torch.Tensor) -> torch.Tensor:
    """Largest magnitude of floating-point numbers; NaN if an element is NaN."""
    return torch.stack(tensor.aminmax()).abs().max() if tensor.numel() else tensor.new_zeros(())


def check_finite(numbers: Weight, dtype: torch.dtype, largest: torch.Tensor | None = None) -> None:
    """Refuse numbers that are not finite in ``dtype``.

    Args:
        largest: :func:`largest_magnitude` of a tensor, where it is known.

    Raises:
        ModelError: at NaN, infinities, and what rounding makes one.
    """
    if isinstance(numbers, torch.Tensor):
        found = [(largest_magnitude(numbers) if largest is None else largest).to(dtype)]
    else:
        found = [largest_magnitude(each) for each in (numbers.scales, numbers.minimums) if each is not None]
        # 8-bit floating-point codes include a NaN of either sign, but no infinity.
        if numbers.is_float8 and bool(((numbers.codes.view(torch.uint8) & 0x7F) == 0x7F).any()):
            found = [torch.tensor(torch.nan)]
        if numbers.largest_possible() > torch.finfo(dtype).max:
            found += [largest_magnitude(part.dequantize()).to(dtype) for _, part in numbers.parts(_ROWS_AT_A_TIME)]
    if not all(bool(each.isfinite()) for each in found):
        raise ModelError("it has numbers that are not finite (NaN or infinity)")


class CheckpointWeight(ABC):
    """The place of one tensor of a checkpoint in a model, however the model holds it.

    Attributes:
        shape: of the tensor in the checkpoint.
        dtype: what :meth:`write` rounds to.
        key: equal for two names of the same memory.
        form: of the codes that hold it; ``None`` if it is not quantised, or nothing but this model reads its codes.
    """

    shape: torch.Size
    dtype: torch.dtype
    key: tuple[int, ...]
    form: StoredForm | None = None

    @property
    def share(self) -> CheckpointWeight | None:
        """Return what this process has of the weight, as a weight of its own; ``None`` if it has nothing of it."""
        return self

    def check(self, numbers: Weight) -> None:
        """Raise :class:`ModelError` if this cannot hold what :meth:`write` would keep of some numbers; nothing is
        changed. They must be finite in :attr:`dtype`.
        """
        check_finite(numbers, self.dtype)

    def own(self, numbers: StoredWeight) -> Iterator[tuple[CheckpointWeight, Weight]]:
        """Yield what this process keeps of a whole weight, as views or just unpacked, and where it goes."""
        yield self, numbers.unpacked() if isinstance(numbers, StoredMatrix) else numbers

    @abstractmethod
    def write(self, numbers: Weight) -> None:
        """Replace the whole weight, at the same address, by any floating-point numbers that :meth:`check` accepts; it
        is not asked again. Codes held alike are kept.
        """

    @abstractmethod
    def read(self, num_rows: int | None = None) -> torch.Tensor:
        """The weight, or its first ``num_rows`` rows, in the checkpoint's shape and the model's dtype; not to be
        changed.
        """


class DividedWeight(CheckpointWeight):
    """A weight of which other weights hold the numbers."""

    @abstractmethod
    def own(self, numbers: StoredWeight) -> Iterator[tuple[CheckpointWeight, Weight]]:
        """Yield what each of those that this process has keeps of the whole."""

    def check(self, numbers: Weight) -> None:
        for weight, part in self.own(numbers):
            weight.check(part)

    def write(self, numbers: Weight) -> None:
        for weight, part in self.own(numbers):
            weight.write(part)


class StackedWeight(DividedWeight):
    """Rows of several weights, which a checkpoint has one below the other in one tensor.

    Attributes:
        names: the model's names of the weights, from top to bottom.
    """

    def __init__(self, parts: Mapping[str, CheckpointWeight]) -> None:
        self.names = tuple(parts)
        self._parts: list[CheckpointWeight] = list(parts.values())
        first = self._parts[0]
        self.shape = torch.Size((sum(part.shape[0] for part in self._parts), *first.shape[1:]))
        self.dtype = first.dtype
        self.key = tuple(number for part in self._parts for number in part.key)

    @property
    def share(self) -> CheckpointWeight | None:
        shares = [part.share for part in self._parts]
        found = {name: share for name, share in zip(self.names, shares, strict=True) if share is not None}
        return type(self)(found) if len(found) == len(shares) else None

    def own(self, numbers: StoredWeight) -> Iterator[tuple[CheckpointWeight, Weight]]:
        for part, rows in self._rows_of(numbers):
            yield from part.own(rows)

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        return torch.cat([part.read() for part in self._parts])[:num_rows]

    def _rows_of(self, numbers: StoredWeight) -> Iterator[tuple[CheckpointWeight, StoredWeight]]:
        start = 0
        for part in self._parts:
            end = start + part.shape[0]
            yield part, numbers[start:end] if isinstance(numbers, torch.Tensor) else numbers.part(start, end)
            start = end


class InterleavedWeight(StackedWeight):
    """Rows of several weights of one shape, alternating in one tensor of a checkpoint."""

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        return torch.stack([part.read() for part in self._parts], 1).flatten(0, 1)[:num_rows]

    def _rows_of(self, numbers: StoredWeight) -> Iterator[tuple[CheckpointWeight, StoredWeight]]:
        numbers = numbers.unpacked() if isinstance(numbers, StoredMatrix) else numbers
        step = len(self._parts)
        for first, part in enumerate(self._parts):
            yield part, numbers[first::step] if isinstance(numbers, torch.Tensor) else numbers.every(step, first)


class ExpertStack(StackedWeight):
    """Weights of the experts of a layer, one for each, which a checkpoint has in one tensor with another dimension.

    Attributes:
        names: the model's names of all weights that it fills.
    """

    def __init__(self, parts: Sequence[StackedWeight], *, transposed: bool = False) -> None:
        """Stack ``parts``; in a ``transposed`` stack each matrix has its inputs as rows."""
        self.names = tuple(name for part in parts for name in part.names)
        self._parts: list[CheckpointWeight] = list(parts)
        self._transposed = transposed
        first = self._parts[0]
        self.shape = torch.Size((len(parts), *(reversed(first.shape) if transposed else first.shape)))
        self.dtype = first.dtype
        self.key = tuple(number for part in self._parts for number in part.key)

    @property
    def share(self) -> CheckpointWeight | None:
        shares = [part.share for part in self._parts]
        found = [share for share in shares if isinstance(share, StackedWeight)]
        return ExpertStack(found, transposed=self._transposed) if len(found) == len(shares) else None

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        return self._turned(torch.stack([part.read() for part in self._parts[:num_rows]]))

    def _rows_of(self, numbers: StoredWeight) -> Iterator[tuple[CheckpointWeight, StoredWeight]]:
        if not isinstance(numbers, torch.Tensor):
            raise ModelError("experts that are quantised must be stored one by one")
        yield from zip(self._parts, self._turned(numbers), strict=True)

    def _turned(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers.transpose(1, -1) if self._transposed else numbers


class TensorWeight(CheckpointWeight):
    """A tensor, or a view of one, just as the checkpoint has it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self.shape = tensor.shape
        self.dtype = tensor.dtype
        self.key = (tensor.data_ptr(), *tensor.shape)

    def write(self, numbers: Weight) -> None:
        if isinstance(numbers, torch.Tensor):
            self._tensor.copy_(numbers)
            return
        for start, part in numbers.parts(_ROWS_AT_A_TIME):
            self._tensor[start : start + len(part.codes)].copy_(part.dequantize())

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        return self._tensor[:num_rows]
