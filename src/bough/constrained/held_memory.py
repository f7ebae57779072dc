"""Measure and limit the memory of all compiled grammars in this process together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bough.constrained.grammar_bounds import MAX_HELD_BYTES
from bough.errors import Overloaded
from bough.observability.process_usage import allocated_bytes

ROOM_SECONDS = 5.0
"""Time that a new grammar waits for memory before its request is refused."""

TRIM_BYTES = 16 * 2**20
"""Amount of freed memory after which the allocator's unused memory is returned to the system."""

LOOK_NS = 2000
MAX_LOOKS_APART = 64
"""Average time, in ns, to measure memory growth per piece of work, and most pieces per measurement. Measuring takes
longer the more free blocks the allocator has, so only one piece in several is measured."""


class HeldBytes:
    """Bytes of all grammars together. Thread-safe.

    Attributes:
        total: bytes in use.
        wanted: bytes that new grammars wait for.
    """

    def __init__(self, max_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._freed = 0
        self.total = 0
        self.wanted = 0

    @property
    def lacking(self) -> int:
        """Bytes to free to make room for waiting grammars and for growth."""
        return max(self.total + self.wanted - self._max_bytes, 0)

    def add(self, num_bytes: int) -> None:
        """Add the size of a grammar, or a negative number for memory that it has freed."""
        with self._changed:
            self.total += num_bytes
            if num_bytes < 0:
                self._changed.notify_all()

    def release(self, num_bytes: int) -> bool:
        """Subtract the size of a grammar; return true, once, when enough has been freed since the last time."""
        self.add(-num_bytes)
        with self._changed:
            self._freed += num_bytes
            if self._freed < TRIM_BYTES:
                return False
            self._freed = 0
            return True

    @contextmanager
    def room(self, num_bytes: int) -> Iterator[None]:
        """Reserve room for a grammar until its own size is counted.

        Raises:
            Overloaded: no room became free in time.
        """
        with self._changed:
            self.wanted += num_bytes
            try:
                fits = self._changed.wait_for(lambda: self.total + num_bytes <= self._max_bytes, ROOM_SECONDS)
            finally:
                self.wanted -= num_bytes
            if not fits:
                raise Overloaded(
                    "the grammars of other requests take all the memory there is for them; try again later"
                )
            self.total += num_bytes
        try:
            yield
        finally:
            self.add(-num_bytes)


class GrowthMeter:
    """Measures the memory that pieces of work leave allocated; unmeasured pieces count like measured ones."""

    def __init__(self) -> None:
        self._apart = 1
        self._left = 0
        self._cost_ns = LOOK_NS

    def begin(self) -> int | None:
        """Measure the memory before a piece of work; return ``None`` if this piece is not measured."""
        self._left -= 1
        if self._left > 0:
            return None
        begin = time.perf_counter_ns()
        before = allocated_bytes()
        # The time of an interrupted measurement says little about the next one.
        self._cost_ns = min(time.perf_counter_ns() - begin, 2 * self._cost_ns)
        self._apart = min(max(self._cost_ns // LOOK_NS, 1), MAX_LOOKS_APART)
        self._left = self._apart
        return before

    def grown(self, before: int) -> int:
        """Return the estimated growth from the piece of work that has just ended."""
        return (allocated_bytes() - before) * self._apart
