"""Weights of which each of several ranks has a share."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch

from bough.config.sharding import ShardSpec, Span
from bough.layers.checkpoint_weight import CheckpointWeight, DividedWeight, StoredWeight, Weight
from bough.layers.collectives import Collectives
from bough.layers.linear_method import LinearMethod, MethodChoice


class ShardedWeight(DividedWeight):
    """A weight of which this rank has some rows, or columns. It has the shape of the whole, and takes the whole.

    Args:
        held: what is here.
        rows: those that are here.
        columns: the same; ``None`` of a vector.
        collectives: join what the ranks have when the weight is read.
    """

    def __init__(self, held: CheckpointWeight, rows: Span, columns: Span | None, collectives: Collectives) -> None:
        self._held, self._rows, self._columns, self._collectives = held, rows, columns, collectives
        self.shape = torch.Size([rows.total] if columns is None else [rows.total, columns.total])
        self.dtype = held.dtype
        self.key = held.key
        self.form = held.form

    @property
    def share(self) -> CheckpointWeight:
        return self._held

    def own(self, numbers: StoredWeight) -> Iterator[tuple[CheckpointWeight, Weight]]:
        yield from self._held.own(self._part_of(numbers))

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        """Return rows of the whole; all ranks read at the same time."""
        count = self.shape[0] if num_rows is None else num_rows
        part = self._held.read(min(max(count - self._rows.start, 0), self._rows.size))
        whole = part.new_zeros(count, *self.shape[1:])
        if not self._rows.is_copy:
            here = whole[self._rows.start : self._rows.start + len(part)]
            here = here if self._columns is None else here[:, self._columns.start : self._columns.stop]
            here.copy_(part)
        return self._collectives.add_up(whole)

    def _part_of(self, numbers: StoredWeight) -> StoredWeight:
        rows, columns = self._rows, self._columns
        if isinstance(numbers, torch.Tensor):
            part = numbers[rows.start : rows.stop]
            return part if columns is None else part[:, columns.start : columns.stop]
        packed = numbers.part(rows.start, rows.stop)
        return packed if columns is None else packed.columns(columns.start, columns.stop)


def whole_weight(
    held: CheckpointWeight, rows: Span, columns: Span | None, collectives: Collectives
) -> CheckpointWeight:
    """The weight of a checkpoint of which ``held`` is here: that itself, or a :class:`ShardedWeight`."""
    is_all = rows.is_whole and (columns is None or columns.is_whole)
    return held if is_all else ShardedWeight(held, rows, columns, collectives)


class AbsentWeight(DividedWeight):
    """A weight that is only on another rank."""

    def __init__(self, shape: torch.Size, dtype: torch.dtype, key: tuple[int, ...]) -> None:
        self.shape, self.dtype, self.key = shape, dtype, key

    @property
    def share(self) -> None:
        return None

    def own(self, numbers: StoredWeight) -> Iterator[tuple[CheckpointWeight, Weight]]:
        return iter(())

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        """Return zeros: the rank that has the numbers reads them."""
        rows = self.shape[0] if num_rows is None else num_rows
        return torch.zeros(rows, *self.shape[1:], dtype=self.dtype)


class WeightElsewhere(AbsentWeight):
    """A weight of which another rank has all; there it is a :class:`ShardedWeight`, and all ranks read it together."""

    def __init__(self, shape: torch.Size, dtype: torch.dtype, key: tuple[int, ...], collectives: Collectives) -> None:
        super().__init__(shape, dtype, key)
        self._collectives = collectives

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        """Return rows of the whole."""
        return self._collectives.add_up(super().read(num_rows))


class ShardedChoice(MethodChoice):
    """A choice of methods for one of several ranks, which hold their shares as one alone holds the whole.

    Args:
        choice: of the methods.
        shard: the rank's place.
        collectives: of the ranks.
    """

    def __init__(self, choice: MethodChoice, shard: ShardSpec, collectives: Collectives) -> None:
        self._choice, self.shard, self.collectives = choice, shard, collectives

    @property
    def plain(self) -> MethodChoice:
        return ShardedChoice(self._choice.plain, self.shard, self.collectives)

    @property
    def unsplit(self) -> MethodChoice:
        return self._choice

    def below(self, path: str) -> MethodChoice:
        return ShardedChoice(self._choice.below(path), self.shard, self.collectives)

    def alike(self, paths: Collection[str]) -> MethodChoice:
        return ShardedChoice(self._choice.alike(paths), self.shard, self.collectives)

    def holding(self, method: LinearMethod) -> MethodChoice:
        return ShardedChoice(method, self.shard, self.collectives)

    def for_matrix(self, names: Collection[str]) -> LinearMethod:
        return self._choice.for_matrix(names)

    def for_precise(self, names: Collection[str]) -> LinearMethod:
        return self._choice.for_precise(names)

    def matrices(self, names: Collection[str]) -> list[tuple[tuple[str, ...], LinearMethod]]:
        return self._choice.matrices(names)
