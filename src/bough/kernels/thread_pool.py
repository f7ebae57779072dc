"""The threads that run native kernels."""

from __future__ import annotations

import ctypes
import weakref

from bough.kernels.library import load_library


class ThreadPool:
    """``num_threads`` threads, the calling one included, that live as long as this object.

    Kernels of one pool must not be run by two threads at a time.

    Attributes:
        handle: what the library's functions take.
    """

    def __init__(self, num_threads: int) -> None:
        if num_threads < 1:
            raise ValueError(f"a pool needs at least one thread, got {num_threads}")
        library = load_library()
        self.num_threads = num_threads
        self.handle = ctypes.c_void_p(library.bough_pool_create(num_threads))
        if not self.handle:
            raise MemoryError(f"the system does not give {num_threads} threads; lower --cpu-threads")
        weakref.finalize(self, library.bough_pool_destroy, self.handle)
