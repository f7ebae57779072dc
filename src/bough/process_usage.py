"""What a process has used of the machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cache


def resident_bytes() -> int:
    """Memory of this process that is in RAM, in bytes; 0 where the system does not say (no Linux)."""
    return _pages(1) * os.sysconf("SC_PAGE_SIZE")


def private_bytes() -> int:
    """Return the resident memory that is neither a file's nor shared, in bytes; 0 where the system does not say."""
    return (_pages(1) - _pages(2)) * os.sysconf("SC_PAGE_SIZE")


def address_space_bytes() -> int:
    """Addresses that this process has asked for, in bytes; 0 where the system does not say (no Linux)."""
    return _pages(0) * os.sysconf("SC_PAGE_SIZE")


def _pages(column: int) -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[column])
    except OSError:
        return 0


def allocated_bytes() -> int:
    """Return the bytes that this process has allocated and not freed; without glibc, its resident memory."""
    look = _mallinfo()
    if look is None:
        return resident_bytes()
    seen = look()
    return int(seen.uordblks + seen.hblkhd)


def give_back_freed_memory() -> None:
    """Return freed memory that the C library has kept to the system; does nothing without glibc. Releases the GIL."""
    if _mallinfo() is not None:
        ctypes.CDLL(None).malloc_trim(0)


class _MallInfo(ctypes.Structure):
    """Structure ``mallinfo2`` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for names in ("arena ordblks smblks hblks hblkhd", "usmblks fsmblks uordblks fordblks keepcost")
        for name in names.split()
    )


@cache
def _mallinfo() -> Callable[[], _MallInfo] | None:
    """Return glibc's ``mallinfo2``, which versions before 2.33 lack."""
    try:
        look = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return None
    look.restype = _MallInfo
    return look


def stand_back(niceness: int, thread_id: int | None = None) -> None:
    """Lower the priority of one thread, the calling one if not given, where the system allows that (Linux does)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread_id or threading.get_native_id(), niceness)
