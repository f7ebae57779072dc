"""A device's way of giving results, played by a CPU: nobody has them before they are waited for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bough.model_executor.readback import HostArrays, Readback
from bough.model_executor.tp_worker import TpModelWorker
from bough.model_executor.worker_info import Worker
from bough.scheduler.executor import AheadExecutor, StepExecutor


class DeferringLane:
    """Counts what is copied and waited for.

    Attributes:
        events: ``begin`` and ``wait`` with the number of the step, in order.
        copies: tensors brought to the host, for each step.
    """

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.copies: list[int] = []

    def begin(self) -> None:
        self.events.append(("begin", len(self.copies)))

    def read(self, tensors: Sequence[torch.Tensor]) -> Readback:
        self.copies.append(len(tensors))
        return _Deferred(self, len(self.copies) - 1, [tensor.clone() for tensor in tensors])

    def waits(self) -> list[int]:
        return [step for event, step in self.events if event == "wait"]


class _Deferred:
    seconds = 1e-3

    def __init__(self, lane: DeferringLane, step: int, copies: list[torch.Tensor]) -> None:
        self._lane, self._step, self._copies = lane, step, copies

    def wait(self) -> HostArrays:
        self._lane.events.append(("wait", self._step))
        return [copy.numpy() for copy in self._copies]


_WAITING = {
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::masked_select",
    "aten::equal",
    "aten::is_nonzero",
    "aten::unique_dim",
    "aten::_unique2",
    "aten::repeat_interleave.Tensor",
}

_UPLOADING = ("sampling/transfer.py", "layers/attention/torch_native.py")
"""Where host arrays become tensors: through page-locked memory, but for the backend whose steps are waited for."""


def _place_in_bough() -> str:
    """The file of Bough's that has called what is running."""
    frame = sys._getframe()
    while f"{os.sep}bough{os.sep}" not in frame.f_code.co_filename:
        assert frame.f_back is not None
        frame = frame.f_back
    return frame.f_code.co_filename


class NoWaiting(TorchDispatchMode):
    """Refuses operations for which a CUDA device would be waited for.

    The host must know their results, or they take memory to the device that is not page-locked.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name if func._overloadname == "default" else func.name()
        assert name not in _WAITING, f"{name} waits for the device"
        if name == "aten::lift_fresh":
            place = _place_in_bough()
            assert place.endswith(_UPLOADING), f"{place} copies from memory that is not page-locked"
        if func._schema.name in ("aten::index", "aten::index_put", "aten::index_put_"):
            assert all(at is None or at.dtype != torch.bool for at in args[1]), f"{name} by booleans waits"
        return func(*args, **(kwargs or {}))


def running_ahead(worker: TpModelWorker, *, checked: bool = False) -> Callable[[Worker], StepExecutor]:
    """An executor that launches ``worker``'s steps on a deferring lane; ``checked``: with :class:`NoWaiting`."""
    worker.lane = DeferringLane()
    if checked:
        launch = worker.launch

        def checked_launch(plan: Any) -> Any:
            with NoWaiting():
                return launch(plan)

        worker.launch = checked_launch  # type: ignore[method-assign]
    return AheadExecutor
