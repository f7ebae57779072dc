"""The threads that run native kernels."""

from __future__ import annotations

import ctypes
import weakref

from bough.kernels.library import KernelError, load_library


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
        self._expect_run = library.bough_pool_expect_run
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

    def expect_run(self) -> None:
        """Say that kernels run soon, so that threads which sleep wake up while their work is prepared."""
        self._expect_run(self.handle)
