"""Places of a recorded program where the ranks of a model have to meet."""

from __future__ import annotations

from collections.abc import Collection


class MeetingPlan:
    """Tracks which shared buffers ranks have read and written since they last met.

    An operation of one rank computes some columns of a buffer, or if it works row by row, some rows; the others compute
    the rest at the same time. All operations that work row by row give a rank the same rows.
    """

    def __init__(self) -> None:
        self._by_rows: dict[bool, set[str]] = {False: set(), True: set()}
        """Names of buffers that were written, by whether row by row"""
        self._read: dict[bool, set[str]] = {False: set(), True: set()}

    def add(self, reads: Collection[str], writes: Collection[str], *, by_rows: bool) -> bool:
        """Add an operation; return whether the ranks have to meet before it.

        Args:
            reads: names of the buffers that it reads, also where it adds to them.
            writes: names of those that it writes.
            by_rows: whether each rank computes some rows of all columns.
        """
        # What other ranks have written is needed, or they may still read what this overwrites.
        needs = any(name in self._others(self._by_rows, by_rows) for name in (*reads, *writes))
        needs = needs or any(name in self._others(self._read, by_rows) for name in writes)
        if needs:
            for names in (*self._by_rows.values(), *self._read.values()):
                names.clear()
        self._by_rows[by_rows].update(writes)
        self._read[by_rows].update(reads)
        return needs

    @staticmethod
    def _others(names: dict[bool, set[str]], by_rows: bool) -> set[str]:
        """Return those that other ranks may have to do with, as an operation of that kind sees them."""
        return names[False] if by_rows else names[False] | names[True]
