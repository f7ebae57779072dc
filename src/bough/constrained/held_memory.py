"""Measure and limit the memory of all compiled grammars in this process together."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Thread

from bough.constrained.grammar_bounds import MAX_HELD_BYTES
from bough.errors import Overloaded
from bough.process_usage import allocated_bytes, give_back_freed_memory

ROOM_SECONDS = 5.0
"""Time that a new grammar waits for memory before its request is refused."""

TRIM_BYTES = 16 * 2**20
"""Amount of freed memory after which the allocator's unused memory is returned to the system."""

LOOK_NS = 2000
MAX_LOOKS_APART = 64
"""Average time, in ns, to measure memory growth per piece of work, and most pieces per measurement. Measuring takes
longer the more free blocks the allocator has, so only one piece in several is measured."""

SURE_BYTES = 2**20
"""Growth that one measurement may stand for however small the grammar is."""


class HeldBytes:
    """Bytes of all grammars together. Thread-safe.

    Destructors call :meth:`release`, and the garbage collector may run them in any thread, inside any lock. So they
    only put what they release into queues, which take no lock; a thread does the rest.
    """

    def __init__(self, max_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._total = 0
        self._freed = 0
        self._released: SimpleQueue[int] = SimpleQueue()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_started = False
        self.wanted = 0

    @property
    def total(self) -> int:
        """Bytes in use."""
        with self._changed:
            self._settle()
            return self._total

    @property
    def lacking(self) -> int:
        """Bytes to free to make room for waiting grammars and for growth."""
        return max(self.total + self.wanted - self._max_bytes, 0)

    def add(self, num_bytes: int) -> None:
        """Add the size of a grammar, or a negative number for memory that it has freed."""
        with self._changed:
            self._total += num_bytes
            if num_bytes < 0:
                self._changed.notify_all()
            if not self._is_started:
                self._is_started = True
                Thread(target=_run, args=(self._work, weakref.ref(self)), name="grammar-memory", daemon=True).start()
                weakref.finalize(self, self._work.put, None).atexit = False

    def release(self, num_bytes: int, free: Callable[[], None] = lambda: None) -> None:
        """Subtract the size of something that was added, from its destructor; a thread calls ``free``."""
        self._released.put(num_bytes)
        self._work.put(free)

    def close(self) -> None:
        """End the thread; what is released later is freed where it is."""
        self._work.put(None)

    def settle(self) -> None:
        """Subtract what was released, notify those who wait for room, and return memory to the system now and then."""
        with self._changed:
            self._settle()
            trims = self._freed >= TRIM_BYTES
            if trims:
                self._freed = 0
            self._changed.notify_all()
        if trims:
            give_back_freed_memory()

    def _settle(self) -> None:
        while not self._released.empty():
            with suppress(Empty):
                num_bytes = self._released.get_nowait()
                self._total -= num_bytes
                self._freed += num_bytes

    @contextmanager
    def room(self, num_bytes: int) -> Iterator[None]:
        """Reserve room for a grammar until its size is counted. Raises :class:`Overloaded` if none becomes free in
        time.
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
            self._total += num_bytes
        try:
            yield
        finally:
            self.add(-num_bytes)


def _run(work: SimpleQueue[Callable[[], None] | None], owner: weakref.ref[HeldBytes]) -> None:
    """Free what was released, until ``None`` comes."""
    while (free := work.get()) is not None:
        free()
        del free  # it may hold the last reference
        if (held := owner()) is not None:
            held.settle()
            del held


class GrowthMeter:
    """Measures the memory that pieces of work leave allocated; unmeasured pieces count like measured ones.

    Some pieces are not like others: the first mask of a long text takes megabytes, and tables double now and then. So
    one measurement stands for no more than :data:`SURE_BYTES`, what there was before it, or what it has seen.
    """

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

    def grown(self, before: int, size: int) -> int:
        """Return the estimated growth of what had ``size`` bytes, from the piece of work that has just ended."""
        measured = allocated_bytes() - before
        most = max(SURE_BYTES, size, abs(measured))
        return max(-most, min(measured * self._apart, most))
