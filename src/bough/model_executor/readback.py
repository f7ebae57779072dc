"""A step's results on their way from the device to the host: copied beside the next step, and waited for once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt
import torch

from bough.model_executor.machine import Machine

HostArrays = list[npt.NDArray[Any]]

_CORES_TO_SPARE_ONE = 4
"""A server's other two processes and this one's other threads have work at the same time."""


class Readback(Protocol):
    """Tensors that are being copied."""

    def wait(self) -> HostArrays:
        """All of them on the host, once they are there.

        Raises:
            RuntimeError: what the device has to say of the step's work.
        """

    @property
    def seconds(self) -> float:
        """What the device took for the step; after :meth:`wait`."""


class Lane(Protocol):
    """How a device's results come to the host."""

    def begin(self) -> None:
        """A step's work for the device begins."""

    def read(self, tensors: Sequence[torch.Tensor]) -> Readback:
        """Copy what the step has computed, once it has; returns at once."""


def lane_of(device: torch.device, cores: int | None = None) -> Lane:
    """The lane of a device, for a host with so many cores; ``None``: as this process may use."""
    return CudaLane(device, cores=cores or Machine().usable_threads()) if device.type == "cuda" else HostLane()


class HostLane(Lane):
    """Of a CPU: what is computed is there."""

    def begin(self) -> None:
        self._begin = time.perf_counter()

    def read(self, tensors: Sequence[torch.Tensor]) -> Readback:
        return _Arrived([tensor.numpy() for tensor in tensors], time.perf_counter() - self._begin)


class _Arrived(NamedTuple):
    arrays: HostArrays
    seconds: float

    def wait(self) -> HostArrays:
        return self.arrays


class CudaLane(Lane):
    """Copies into page-locked memory on a stream of its own, so that the next step's kernels need not wait for that.

    The host waits by asking again and again, which notices the end of a step within a microsecond or two and keeps a
    core busy; where that core is not to spare it sleeps instead, and is woken some tens of microseconds late.
    """

    def __init__(self, device: torch.device, *, cores: int) -> None:
        """``cores`` are those that this process may use."""
        self._sleeps = cores < _CORES_TO_SPARE_ONE
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def begin(self) -> None:
        self._begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._begin.record()

    def read(self, tensors: Sequence[torch.Tensor]) -> Readback:
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end.record()
        self._stream.wait_event(end)
        with torch.cuda.stream(self._stream):
            copies = [
                torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor, non_blocking=True)
                for tensor in tensors
            ]
            copied = torch.cuda.Event(blocking=self._sleeps)  # type: ignore[no-untyped-call]
            copied.record()
        return _Copying(self._begin, end, copied, copies, tensors)


@dataclass(slots=True)
class _Copying:
    begin: torch.cuda.Event
    end: torch.cuda.Event
    copied: torch.cuda.Event
    copies: Sequence[torch.Tensor]
    tensors: Sequence[torch.Tensor]
    """Their memory must not go to a later step while it is read."""

    def wait(self) -> HostArrays:
        self.copied.synchronize()
        self.tensors = ()
        return [copy.numpy() for copy in self.copies]

    @property
    def seconds(self) -> float:
        return float(self.begin.elapsed_time(self.end)) / 1e3
