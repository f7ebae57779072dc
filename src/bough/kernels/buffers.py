"""Memory that the operations of a native program work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from bough.kernels.meetings import MeetingPlan
from bough.kernels.native_group import NativeGroup
from bough.kernels.structures import DType

KERNEL_DTYPES = {torch.float32: DType.F32, torch.bfloat16: DType.BF16}
"""The types that matrix products can have."""

_LINE_BYTES = 64


class Columns(NamedTuple):
    """Neighbouring columns of a buffer: those that one of several ranks computes, or all."""

    start: int
    size: int
    total: int

    @classmethod
    def all_of(cls, total: int) -> Columns:
        """Return all of so many."""
        return cls(0, total, total)


class Meeting(NamedTuple):
    """Steps in which ranks meet at a place of a program; ``csrc/program.h`` says what few rows are."""

    if_few: bool
    if_more: bool


@dataclass(frozen=True)
class Buffer:
    """Activations ``[rows, columns]`` of a step, rows ``stride`` elements apart."""

    memory: torch.Tensor
    columns: int
    shared_as: str = ""
    """Name of the memory where all ranks of a model map it"""

    def part(self, columns: Columns) -> Buffer:
        """Some of the columns."""
        end = columns.start + columns.size
        return replace(self, memory=self.memory[:, columns.start : end], columns=columns.size)

    @property
    def pointer(self) -> int:
        """Address of the first element."""
        return self.memory.data_ptr()

    @property
    def stride(self) -> int:
        """Elements from one row to the next."""
        return self.memory.stride(0)

    @property
    def dtype(self) -> DType:
        """Of the elements."""
        return KERNEL_DTYPES[self.memory.dtype]


def padded_columns(columns: int, dtype: torch.dtype) -> int:
    """Columns with which rows start at different places of a cache: an odd number of cache lines."""
    line = _LINE_BYTES // dtype.itemsize
    lines = -(-columns // line)
    return (lines + 1 - lines % 2) * line


class Buffers:
    """All buffers of a program, in memory that the ranks of a model share if there are several.

    Args:
        group: of those ranks; ``None``: there is one.
    """

    def __init__(self, group: NativeGroup | None) -> None:
        self._group = group
        self._made: dict[tuple[str, int, torch.dtype, bool], Buffer] = {}
        self._if_few, self._if_more = MeetingPlan(), MeetingPlan()

    def get(self, role: str, rows: int, columns: int, dtype: torch.dtype, *, is_local: bool) -> Buffer:
        """Return the buffer of that role, width and type, which is made when it is first asked for.

        Args:
            rows: must not change.
            is_local: whether no other rank has to do with it. Others are asked for alike by all ranks.
        """
        key = (role, columns, dtype, is_local)
        if key not in self._made:
            shape, name = (rows, padded_columns(columns, dtype)), f"{role} {columns} {dtype}"
            self._made[key] = self._make(name, shape, columns, dtype, is_local=is_local)
        return self._made[key]

    def add_table(self, rows: int, columns: int) -> Buffer:
        """Make a float32 buffer of its own, whose rows follow one another."""
        name = f"table {len(self._made)}"
        key = (name, columns, torch.float32, False)
        self._made[key] = self._make(name, (rows, columns), columns, torch.float32, is_local=False)
        return self._made[key]

    def have_to_meet(
        self, reads: Sequence[Buffer], writes: Sequence[Buffer], *, by_rows: bool, repeats_few: bool
    ) -> Meeting:
        """Add an operation; return when the ranks have to meet before it.

        Args:
            reads: what it reads, also where it adds to it.
            writes: what it writes.
            by_rows: whether each rank computes some rows of all columns.
            repeats_few: whether each rank computes all rows if they are few, into memory of its own.
        """
        read, written = ([buffer.shared_as for buffer in each if buffer.shared_as] for each in (reads, writes))
        if_more = self._if_more.add(read, written, by_rows=by_rows)
        if_few = self._if_few.add(read, () if repeats_few else written, by_rows=by_rows and not repeats_few)
        return Meeting(if_few, if_more)

    def _make(self, name: str, shape: tuple[int, int], columns: int, dtype: torch.dtype, *, is_local: bool) -> Buffer:
        if self._group is None or is_local:
            return Buffer(torch.zeros(shape, dtype=dtype), columns)
        return Buffer(self._group.arena.tensor(*shape, dtype=dtype), columns, name)
