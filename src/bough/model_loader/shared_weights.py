"""Packed weights that exist once for all replicas on a machine: one loads them, the others map them.

The memory begins with a header of one page: a number that says that the weights are complete, and their bytes. Behind
it lie the parameters of the model, in the order in which a model is built, which is the same in every replica.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

import torch
from torch import nn

from bough.config.ranks import MachineShare
from bough.errors import StartupError
from bough.kernels.host_memory import ALIGNMENT, Arena
from bough.kernels.shared_memory import SharedMapping, reserve

logger = logging.getLogger(__name__)

_HEADER_BYTES = 4096
_STATE, _NUM_BYTES = 0, 1
"""Words of the header."""
_PRIVATE, _COMPLETE = 1, 2
"""States: each replica loads weights of its own; or the weights are complete. 0 before either is known."""
_POLL_SECONDS = 0.02


class SharedArena(Arena):
    """Hands out consecutive pieces of shared memory."""

    def __init__(self, mapping: SharedMapping, *, is_writable: bool) -> None:
        self.is_writable = is_writable
        self.mapping = mapping
        self._memory = mapping.memory
        self._used = _HEADER_BYTES

    def zeros(self, num_bytes: int) -> torch.Tensor:
        start, self._used = self._used, self._used + aligned(num_bytes)
        assert self._used <= len(self._memory), "the outline of the model had fewer parameters"
        return self._memory[start : start + num_bytes]

    @property
    def num_bytes(self) -> int:
        """Size of the memory."""
        return len(self._memory)

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor lies in this memory."""
        begin = self._memory.data_ptr()
        return begin <= tensor.data_ptr() < begin + len(self._memory)


def aligned(num_bytes: int) -> int:
    """Return the bytes that a piece of so many takes."""
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


class SharedWeights:
    """The shared memory of a model's weights, as one replica sees it.

    Args:
        descriptor: of shared memory, without any bytes yet.
        is_writer: true in the one replica that loads the weights.
    """

    def __init__(self, descriptor: int, *, is_writer: bool) -> None:
        self.is_writer = is_writer
        self._descriptor = descriptor

    @classmethod
    def of(cls, share: MachineShare) -> SharedWeights | None:
        """Return the weights of a scheduler with this share of a machine; ``None`` if it has its own."""
        return None if share.weights is None else cls(share.weights, is_writer=share.index == 0)

    def open(self, outline: nn.Module, has_room: Callable[[int], bool]) -> SharedArena | None:
        """Map room for the parameters of a model; return ``None`` if each replica is to load weights of its own.

        They are to do so where shared memory gets no huge pages, since reading it would take up to twice as long, and
        there is room for so many copies. The writer makes the memory; the others wait until the weights are complete.
        They need no time-out: if the writer dies, so does the engine.

        Args:
            has_room: says whether all replicas may take so many bytes each.

        Raises:
            StartupError: if there is no room, or the weights of the writer have another size.
        """
        needed = _HEADER_BYTES + sum(aligned(parameter.nbytes) for parameter in outline.parameters())
        if self.is_writer:
            reserve(self._descriptor, needed)
        else:
            while os.fstat(self._descriptor).st_size == 0:
                time.sleep(_POLL_SECONDS)
        mapping = SharedMapping(self._descriptor, needed, writable=self.is_writer)
        self._header = mapping.memory[:_HEADER_BYTES].view(torch.int64)
        if self.is_writer:
            self._header[_NUM_BYTES] = needed
            if not mapping.collapse():
                if has_room(needed):
                    logger.warning("Each replica loads weights of its own: shared memory gets no huge pages here.")
                    os.ftruncate(self._descriptor, _HEADER_BYTES)
                    self._header[_STATE] = _PRIVATE
                    return None
                logger.warning("Shared weights get no huge pages here: reading them takes up to twice as long.")
        else:
            while (state := int(self._header[_STATE])) == 0:
                time.sleep(_POLL_SECONDS)
            if state == _PRIVATE:
                return None
            if int(self._header[_NUM_BYTES]) != needed:
                raise StartupError("the replicas have weights of different sizes")
        return SharedArena(mapping, is_writable=self.is_writer)

    def complete(self) -> None:
        """Say that the weights are complete, so that the other replicas go on; the writer only."""
        self._header[_STATE] = _COMPLETE


def adopt_parameters(model: nn.Module, arena: SharedArena) -> None:
    """Move those parameters into shared memory that do not lie there yet, such as weights of norms."""
    for parameter in model.parameters():
        if not arena.holds(parameter):
            parameter.data = arena.zeros(parameter.nbytes).view(parameter.dtype).view(parameter.shape)
