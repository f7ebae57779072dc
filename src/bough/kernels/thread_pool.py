"""The threads that run native kernels."""

from __future__ import annotations

import ctypes
import weakref
from typing import NamedTuple

from bough.kernels.library import KernelError, load_library


class PoolCounts(NamedTuple):
    """Totals since a pool was made; zeros for a pool of one thread."""

    runs: int
    """Runs of operations that the threads share."""
    joined: int
    """Threads other than the calling one that took part in those runs, together."""
    stolen: int
    """Chunks of work that another thread than their owner computed."""
    recomputed: int
    """Chunks committed by another thread than the one at work on them, which had lost its core."""
    dropped: int
    """Results that came too late."""


class ThreadPool:
    """``num_threads`` threads, the calling one included, that live as long as this object.

    Kernels that two threads run on a pool of several take turns, and a child of ``os.fork`` cannot run any there. A
    pool of one is nothing but the caller, wherever that is.

    Raises:
        KernelError: if the system does not give so many threads.
    """

    def __init__(self, num_threads: int) -> None:
        if num_threads < 1:
            raise ValueError(f"a pool needs at least one thread, got {num_threads}")
        library = load_library()
        self._expect_run, self._counts = library.bough_pool_expect_run, library.bough_pool_counts
        self.num_threads = num_threads
        self.handle = ctypes.c_void_p()
        try:
            library.bough_pool_create(num_threads, ctypes.byref(self.handle))
        except (KernelError, MemoryError) as error:
            raise KernelError(f"the system does not give {num_threads} threads ({error})") from None
        # Not at exit: a daemon thread may be in the middle of a step.
        weakref.finalize(self, library.bough_pool_destroy, self.handle).atexit = False

    def thread_ids(self) -> list[int]:
        """What the system calls each thread, the calling one first, as :func:`os.sched_setaffinity` takes it."""
        ids = (ctypes.c_int32 * self.num_threads)()
        load_library().bough_pool_thread_ids(self.handle, ids)
        return list(ids)

    def counts(self) -> PoolCounts:
        """Read the counters; may be called during a run."""
        numbers = (ctypes.c_int64 * len(PoolCounts._fields))()
        self._counts(self.handle, numbers)
        return PoolCounts(*numbers)

    def expect_run(self) -> None:
        """Say that kernels run soon, so that threads which sleep wake up while their work is prepared."""
        self._expect_run(self.handle)
