"""Ranks of one model on one machine, as native programs see them: shared memory, and waiting for each other in it.

``csrc/group.h`` says how they do that.
"""

from __future__ import annotations

import ctypes
import weakref
import zlib
from enum import IntEnum
from typing import NamedTuple

import torch

from bough.errors import StartupError
from bough.kernels.host_memory import HUGE_PAGE_BYTES, Arena
from bough.kernels.library import load_library
from bough.kernels.shared_memory import SharedMapping, reserve

_CHUNK_BYTES = 4 * HUGE_PAGE_BYTES
_LINE_BYTES = 128


class RankLost(RuntimeError):
    """A rank's process has ended, or the group was told to fail; no step can be computed any more."""


class FollowEnd(IntEnum):
    """Reasons for which a rank stops following the first one."""

    TIMEOUT = 1
    INTERRUPTED = 2
    """A signal has come, which Python handles now."""
    CALLED = 3
    """The first rank wants it for something else."""
    FAILED = 4
    """A rank was lost."""


class HostTime(NamedTuple):
    """Time in which a rank neither computed nor waited for others."""

    num_pieces: int
    """Pieces of steps over which it was counted"""
    seconds: float


class SharedChunks(Arena):
    """Hands out consecutive pieces of shared memory, which ranks that ask for the same pieces get at the same places.

    Args:
        descriptor: of shared memory, which grows as it is needed; zeros at first.
    """

    is_writable = True

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._num_bytes = 0
        self._rest = torch.empty(0, dtype=torch.uint8)
        self.fingerprint = 0
        """A number that depends on the sizes of all pieces so far."""

    def zeros(self, num_bytes: int) -> torch.Tensor:
        """Return zeros, uint8 ``[num_bytes]``, that begin where a cache line does.

        Raises:
            StartupError: if there is not so much memory.
        """
        self.fingerprint = zlib.crc32(num_bytes.to_bytes(8, "little"), self.fingerprint)
        taken = -(-num_bytes // _LINE_BYTES) * _LINE_BYTES
        if taken > len(self._rest):
            self._rest = self._chunk(max(taken, _CHUNK_BYTES))
        piece, self._rest = self._rest[:num_bytes], self._rest[taken:]
        return piece

    def tensor(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Return zeros of that shape; raises as :meth:`zeros`."""
        size = dtype.itemsize
        for each in shape:
            size *= each
        return self.zeros(size).view(dtype).view(shape)

    def _chunk(self, num_bytes: int) -> torch.Tensor:
        size = -(-num_bytes // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
        reserve(self._descriptor, size, offset=self._num_bytes)
        mapping = SharedMapping(self._descriptor, size, writable=True, offset=self._num_bytes)
        mapping.collapse()  # where the system has no huge pages for it, it is somewhat slower
        self._num_bytes += size
        return mapping.memory


class NativeGroup:
    """One rank's view of a group of ranks.

    Attributes:
        rank: of this process.
        world: number of ranks.
        arena: memory that all ranks map. All of them must ask it for the same pieces.
    """

    def __init__(self, descriptor: int, rank: int, world: int, *, crowded: bool = False) -> None:
        """Join a group.

        Args:
            descriptor: of shared memory (memfd_create(2)) that is empty before the first rank comes.
            crowded: true if the ranks have fewer cores than threads; they spin for a shorter time then.
        """
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} of {world}")
        self._library = load_library()
        self.rank, self.world = rank, world
        self.arena = SharedChunks(descriptor)
        self._fingerprints = self.arena.tensor(world, dtype=torch.int64)
        memory = self.arena.zeros(self._library.bough_group_bytes())
        self.handle = ctypes.c_void_p()
        self._library.bough_group_create(memory.data_ptr(), rank, world, crowded, ctypes.byref(self.handle))
        weakref.finalize(self, self._library.bough_group_destroy, self.handle).atexit = False

    def settle(self) -> None:
        """Say that this rank has asked for all of its memory."""
        self._fingerprints[self.rank] = self.arena.fingerprint + 1

    def check(self) -> None:
        """Compare this rank's memory with that of those that are settled.

        Raises:
            StartupError: if they have asked for other pieces.
        """
        if any(each not in (0, self.arena.fingerprint + 1) for each in self._fingerprints.tolist()):
            raise StartupError("the ranks of the model have different programs: their options or versions differ")

    def expect(self) -> None:
        """Say that a step comes soon, so that ranks which sleep wake up while it is prepared."""
        self._library.bough_group_expect(self.handle)

    def call(self) -> None:
        """Make the other ranks stop following."""
        self._library.bough_group_call(self.handle)

    @property
    def num_calls(self) -> int:
        """Number of calls since the group began."""
        return int(self._library.bough_group_calls(self.handle))

    def host_time(self, rank: int) -> HostTime:
        """Return what a rank that follows has spent besides its share of the model, since the group began."""
        if not 0 <= rank < self.world:
            raise ValueError(f"rank {rank} of {self.world}")
        num_pieces, seconds = ctypes.c_int64(), ctypes.c_double()
        self._library.bough_group_host_time(self.handle, rank, ctypes.byref(num_pieces), ctypes.byref(seconds))
        return HostTime(num_pieces.value, seconds.value)

    def fail(self) -> None:
        """End all waits of all ranks, for good."""
        self._library.bough_group_fail(self.handle)

    @property
    def has_failed(self) -> bool:
        """True if no step can be computed any more."""
        return bool(self._library.bough_group_has_failed(self.handle))
