"""Memory that several processes map, on huge pages where the system makes them: see :mod:`bough.kernels.host_memory`.

It has no name in any file system: processes get it as a descriptor (memfd_create(2)), and it is gone with the last of
them.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os

import torch

from bough.errors import StartupError
from bough.kernels.host_memory import HUGE_PAGE_BYTES

_MAP_FIXED = 0x10
_MADV_REMOVE, _MADV_COLLAPSE = 9, 25


class SharedMapping:
    """A mapping of shared memory that begins where a huge page does. Stays until the process ends.

    Attributes:
        memory: uint8 ``[num_bytes]``. Without ``writable``, writing to it ends the process.
    """

    def __init__(self, descriptor: int, num_bytes: int, *, writable: bool, offset: int = 0) -> None:
        """Map bytes of shared memory, which must have so many behind ``offset``, where a huge page begins.

        Raises:
            StartupError: if the system refuses so many addresses.
        """
        self._descriptor, self._num_bytes = descriptor, num_bytes
        self._size = -(-num_bytes // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
        libc = _libc()
        # Addresses are reserved first, so that an aligned part of them can be taken.
        reserved = libc.mmap(None, self._size + HUGE_PAGE_BYTES, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        self._address = -(-reserved // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES if _worked(reserved) else 0
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        shared = mmap.MAP_SHARED | _MAP_FIXED
        address = self._address
        if not address or not _worked(libc.mmap(address, self._size, protection, shared, descriptor, offset)):
            reason = os.strerror(ctypes.get_errno())
            raise StartupError(f"the system refuses to map {num_bytes / 2**30:.2f} GiB of shared memory ({reason})")
        array = (ctypes.c_uint8 * num_bytes).from_address(self._address)
        self.memory = torch.frombuffer(array, dtype=torch.uint8)

    def collapse(self) -> bool:
        """Move what has been written onto huge pages; returns False where the system does not (Linux 6.1 and newer do).

        It is a request for this moment: unlike private memory, shared memory gets no huge pages as it is touched unless
        the machine's administrator says so (``shmem_enabled``).
        """
        return bool(_libc().madvise(self._address, self._size, _MADV_COLLAPSE) == 0)

    def give_back(self) -> None:
        """Give the memory back to the system, for all processes that map it: there are zeros at the same addresses.

        Raises:
            OSError: if the system refuses.
        """
        # MADV_DONTNEED would free nothing: the pages are the file's.
        if _libc().madvise(self._address, self._size, _MADV_REMOVE):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def take_again(self) -> None:
        """Have the system commit the memory after :meth:`give_back`, on huge pages where it makes them.

        Raises:
            StartupError: if there is not so much memory.
        """
        reserve(self._descriptor, self._num_bytes)
        self.collapse()


def reserve(descriptor: int, num_bytes: int, *, offset: int = 0) -> None:
    """Give shared memory room for bytes behind ``offset``, and all of their pages, so that writing to them cannot fail.

    Memory that is there already keeps what it holds.

    Raises:
        StartupError: if there is not so much memory.
    """
    size = -(-num_bytes // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    try:
        os.posix_fallocate(descriptor, offset, size)
    except OSError as error:
        hint = "; lower what limits this process or its container" if error.errno == errno.ENOSPC else ""
        raise StartupError(
            f"the system refuses {size / 2**30:.2f} GiB of shared memory ({error.strerror}){hint}"
        ) from None


def _worked(address: int | None) -> bool:
    return address not in (None, ctypes.c_void_p(-1).value)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    size, flags = ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, size, flags, flags, flags, ctypes.c_int64]
    libc.madvise.argtypes = [ctypes.c_void_p, size, flags]
    return libc
