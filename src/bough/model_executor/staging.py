"""Host memory from which a single copy fills what a recorded step reads."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import numpy.typing as npt
import torch

_ALIGNED_ELEMENTS = 4
"""Parts of a buffer begin at multiples of 16 bytes: kernels are compiled for that."""

_IN_TURN = 2


class _Pinned:
    """Page-locked host memory, and whether the device has read it."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.memory = torch.zeros(size, dtype=torch.int32, pin_memory=device.type == "cuda")
        self.copied = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]


class StagedArrays:
    """Arrays of int32 in one piece of device memory, so that one copy fills them.

    Two steps may be launched that the device has not begun: the host memory that they are copied from takes turns.

    Attributes:
        on_device: the arrays, where the device reads them.
    """

    def __init__(self, sizes: list[int], device: torch.device) -> None:
        """``sizes``: of the arrays, in elements."""
        begins = np.cumsum([0, *(-(-size // _ALIGNED_ELEMENTS) * _ALIGNED_ELEMENTS for size in sizes)])
        self._places = [slice(int(begin), int(begin) + size) for begin, size in zip(begins[:-1], sizes, strict=True)]
        self._device = torch.zeros(int(begins[-1]), dtype=torch.int32, device=device)
        self.on_device = [self._device[place] for place in self._places]
        self._turns = cycle([_Pinned(int(begins[-1]), device) for _ in range(_IN_TURN)])
        self._current = next(self._turns)

    def host_arrays(self) -> list[npt.NDArray[np.int32]]:
        """The arrays in host memory that the device does not read any more, with what was in there before."""
        self._current = next(self._turns)
        if self._current.copied is not None:
            self._current.copied.synchronize()
        host = self._current.memory.numpy()
        return [host[place] for place in self._places]

    def copy(self, last: int) -> None:
        """Copy the arrays to the device, the first ``last`` elements of the last one."""
        size = self._places[-1].start + last
        self._device[:size].copy_(self._current.memory[:size], non_blocking=True)
        if self._current.copied is not None:
            self._current.copied.record()
