"""Memory that compiled grammars take in this process: measured, and bounded for all of them together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bough.constrained.grammar_bounds import MAX_HELD_BYTES
from bough.errors import Overloaded
from bough.observability.process_usage import allocated_bytes

ROOM_SECONDS = 5.0
"""How long a new grammar waits for others to go before its request is refused."""

TRIM_BYTES = 16 * 2**20
"""Freed memory after which what the allocator keeps is given back to the system."""

LOOK_NS = 2000
MAX_LOOKS_APART = 64
"""Time that measuring growth may take per piece of work, on average: looking takes as long as there are free pieces of
memory to be counted, so it is done for one in every few, up to this many."""


class HeldBytes:
    """Bytes that grammars take together. For several threads.

    Attributes:
        total: of all grammars.
        wanted: how much new ones wait for.
    """

    def __init__(self, max_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._freed = 0
        self.total = 0
        self.wanted = 0

    @property
    def lacking(self) -> int:
        """Bytes that have to go before there is room for the grammars that wait, and for growth."""
        return max(self.total + self.wanted - self._max_bytes, 0)

    def add(self, num_bytes: int) -> None:
        """Count what a grammar takes, or negative what one has given back."""
        with self._changed:
            self.total += num_bytes
            if num_bytes < 0:
                self._changed.notify_all()

    def release(self, num_bytes: int) -> bool:
        """Count that a grammar is gone; returns, once, that much has been freed since the last time."""
        self.add(-num_bytes)
        with self._changed:
            self._freed += num_bytes
            if self._freed < TRIM_BYTES:
                return False
            self._freed = 0
            return True

    @contextmanager
    def room(self, num_bytes: int) -> Iterator[None]:
        """Keep room for a grammar until it counts itself.

        Raises:
            Overloaded: there is none in time.
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
    """Measures what pieces of work leave allocated; what is not looked at counts like what is."""

    def __init__(self) -> None:
        self._apart = 1
        self._left = 0
        self._cost_ns = LOOK_NS

    def begin(self) -> int | None:
        """Look at the memory before a piece of work, or ``None`` if this one is not looked at."""
        self._left -= 1
        if self._left > 0:
            return None
        begin = time.perf_counter_ns()
        before = allocated_bytes()
        # A look that was interrupted says little about the next one.
        self._cost_ns = min(time.perf_counter_ns() - begin, 2 * self._cost_ns)
        self._apart = min(max(self._cost_ns // LOOK_NS, 1), MAX_LOOKS_APART)
        self._left = self._apart
        return before

    def grown(self, before: int) -> int:
        """Bytes by which work grows memory, from what the one that has just ended left allocated."""
        return (allocated_bytes() - before) * self._apart
