"""The groups in which a trainer sends weights."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import torch

from bough.errors import BadRequest, RequestFailed, StartupError
from bough.kernels.host_memory import ALIGNMENT, huge_pages

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

logger = logging.getLogger(__name__)

GROUP_TIMEOUT = 300.0
"""Seconds that a group waits for missing members: while it is made, and for all tensors of a call together."""

_NCCL_PATIENCE = 4
"""How many times longer NCCL waits for a tensor: when it runs out of time, it ends the process."""

_POLL_SECONDS = 0.0002

_MOST_NUMBERS = 2**40

_DTYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "half": torch.float16,
    "float32": torch.float32,
    "float": torch.float32,
    "float64": torch.float64,
    "double": torch.float64,
}


@dataclass(frozen=True)
class Membership:
    """A group, with the address of the store, which the trainer serves, and this process's rank; the trainer's is 0."""

    address: str
    port: int
    rank: int
    world_size: int
    backend: str

    def check(self, device: torch.device) -> None:
        """Raise :class:`BadRequest` if there can be no such group on a device."""
        if not 0 < self.rank < self.world_size:
            raise BadRequest(
                f"rank_offset must be from 1, since the trainer is 0, to world_size - 1, got {self.rank} of "
                f"{self.world_size}",
                param="rank_offset",
            )
        if self.backend == "nccl" and device.type != "cuda":
            raise BadRequest("backend: nccl is for CUDA devices; use gloo here", param="backend")


class WeightGroups:
    """The groups that a worker belongs to. Joining one is done on a thread, so that the worker goes on meanwhile."""

    def __init__(self, device: torch.device, timeout: float = GROUP_TIMEOUT) -> None:
        self._device = device
        self._timeout = timedelta(seconds=timeout)
        self._groups: dict[str, tuple[ProcessGroup, Membership]] = {}
        self._joining: dict[str, _Joining] = {}
        self._leaving: dict[str, threading.Thread] = {}
        self._spoiled: set[str] = set()

    def is_joining(self, name: str) -> bool:
        """True if a group of this name is being made."""
        joining = self._joining.get(name)
        return joining is not None and joining.thread.is_alive()

    def spoil(self, name: str) -> None:
        """Use a group, if there is one, no more: what its trainer sends next may be what was not received."""
        if name in self._groups:
            self._spoiled.add(name)

    def begin_to_join(self, name: str, *, address: str, port: int, rank: int, world_size: int, backend: str) -> None:
        """Begin to become part of a group. Raises :class:`BadRequest` if there is one of this name, or there can be
        none.
        """
        self.check_free(name)
        membership = Membership(address, port, rank, world_size, backend)
        membership.check(self._device)
        self._joining[name] = _Joining(name, membership, self._timeout, self._leaving.pop(name, None))

    def check_free(self, name: str) -> None:
        """Raise :class:`BadRequest` if there is a group of this name, or one is being made."""
        if name in self._groups or name in self._joining:
            raise BadRequest(f"group_name: there is a group {name!r} already", param="group_name")

    def forget(self, name: str) -> None:
        """Leave a group that others failed to join, as far as it is made here; nothing where it is not."""
        if (joining := self._joining.pop(name, None)) is not None:
            self._leaving[name] = threading.Thread(target=joining.drop, name=f"drop {name}", daemon=True)
            self._leaving[name].start()
        elif name in self._groups:
            self.leave(name)

    def finish_joining(self, name: str) -> None:
        """Be part of a group that is made. Raises :class:`RequestFailed` if the others were not there in time."""
        joining = self._joining.pop(name)
        joining.thread.join()
        if joining.group is None:
            place = joining.membership
            raise RequestFailed(
                f"no group {name!r} of {place.world_size} came about at {place.address}:{place.port}, as rank "
                f"{place.rank}: {joining.error}",
                status_code=504,
            )
        self._groups[name] = (joining.group, joining.membership)
        logger.info("In the group %r of %d as rank %d", name, joining.membership.world_size, joining.membership.rank)

    def leave(self, name: str) -> None:
        """Leave a group. Nothing waits for its end, before which gloo waits for a tensor that was given up.

        Raises:
            BadRequest: if there is none of this name.
        """
        self._find(name)
        self._spoiled.discard(name)
        self._leaving = {other: thread for other, thread in self._leaving.items() if thread.is_alive()}
        # No reference stays here: giving up the last one waits for gloo.
        arguments = (self._groups.pop(name)[0], name)
        leaving = threading.Thread(target=_leave, args=arguments, name=f"leave {name}", daemon=True)
        del arguments
        self._leaving[name] = leaving
        leaving.start()

    def receive(
        self, name: str, names: Sequence[str], dtypes: Sequence[str], shapes: Sequence[Sequence[int]]
    ) -> list[tuple[str, torch.Tensor]]:
        """Tensors that the trainer broadcasts, in the order of their names; ``torch.`` before a dtype may be left out.

        Raises:
            BadRequest: if there is no such group.
            RequestFailed: if there is no room for them, or they do not all come in time.
        """
        import torch.distributed as dist

        group, membership = self._find(name)
        if name in self._spoiled:
            raise BadRequest(
                f"group_name: the group {name!r} is out of step, since an update in it has failed; leave it and make "
                "it anew",
                param="group_name",
            )
        device = self._device if membership.backend == "nccl" else torch.device("cpu")
        try:
            tensors = empty_tensors(dtypes, shapes, device)
        except (RuntimeError, StartupError) as error:
            raise RequestFailed(
                "there is no room for all of these tensors at once; send them in several calls"
            ) from error
        deadline = time.monotonic() + self._timeout.total_seconds()
        try:
            for tensor in tensors:
                work = dist.broadcast(tensor, src=0, group=group, async_op=True)
                while not work.is_completed():
                    if time.monotonic() > deadline:
                        group.abort()
                        raise TimeoutError(f"not all were there after {self._timeout.total_seconds():g} s")
                    time.sleep(_POLL_SECONDS)
                work.wait()
        except Exception as error:
            told = " ".join(str(error).split("\n")[0].split())
            raise RequestFailed(f"the trainer's weights did not come: {told}", status_code=504) from error
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return list(zip(names, tensors, strict=True))

    def _find(self, name: str) -> tuple[ProcessGroup, Membership]:
        found = self._groups.get(name)
        if found is None:
            raise BadRequest(f"group_name: there is no group {name!r}", param="group_name")
        return found


class _Joining:
    """A thread on which a group is joined, once one of the same name has been left: a group or an error comes of it."""

    def __init__(self, name: str, membership: Membership, timeout: timedelta, leaving: threading.Thread | None) -> None:
        self.membership = membership
        self.group: ProcessGroup | None = None
        self.error = ""
        self._name = name
        self._timeout = timeout
        self._leaving = leaving
        self.thread = threading.Thread(target=self._join, name=f"join {name}", daemon=True)
        self.thread.start()

    def drop(self) -> None:
        """Wait for the end of the thread, and leave the group if there is one."""
        self.thread.join()
        if self.group is not None:
            _leave(self.group, self._name)

    def _join(self) -> None:
        from bough.weight_sync.process_group import join_group

        place = self.membership
        patience = self._timeout * (_NCCL_PATIENCE if place.backend == "nccl" else 1)
        try:
            if self._leaving is not None:  # torch has no second group of a name
                self._leaving.join()
            self.group = join_group(
                place.address,
                place.port,
                rank=place.rank,
                world_size=place.world_size,
                name=self._name,
                backend=place.backend,
                timeout=self._timeout,
                patience=patience,
            )
        except Exception as error:
            self.error = " ".join(str(error).split("\n")[0].split()) or type(error).__name__


def _leave(group: ProcessGroup, name: str) -> None:
    import torch.distributed as dist

    try:
        dist.destroy_process_group(group)
    except Exception:
        logger.exception("The group %r could not be left in order", name)


def empty_tensors(dtypes: Sequence[str], shapes: Sequence[Sequence[int]], device: torch.device) -> list[torch.Tensor]:
    """Tensors to be filled, on the host in one piece of memory on huge pages: committing small ones takes longer than
    receiving what comes.

    Raises:
        BadRequest: if a type is unknown, or a size negative.
        StartupError: if the host has no room.
    """
    found_dtypes = []
    for index, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True)):
        found = _DTYPES.get(dtype.removeprefix("torch."))
        if found is None:
            raise BadRequest(
                f"dtypes[{index}] must be one of {', '.join(_DTYPES)}, got {dtype!r}", param=f"dtypes[{index}]"
            )
        if any(size < 0 for size in shape) or math.prod(shape) > _MOST_NUMBERS:
            raise BadRequest(f"shapes[{index}] is that of no weight: {list(shape)}", param=f"shapes[{index}]")
        found_dtypes.append(found)
    sizes = [math.prod(shape) * dtype.itemsize for dtype, shape in zip(found_dtypes, shapes, strict=True)]
    if device.type != "cpu":
        pieces = [torch.empty(size, dtype=torch.uint8, device=device) for size in sizes]
    else:
        places = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
        memory = huge_pages(sum(places))
        pieces = [piece[:size] for piece, size in zip(torch.split(memory, places), sizes, strict=True)]
    return [
        piece.view(dtype).view(tuple(shape)) for piece, dtype, shape in zip(pieces, found_dtypes, shapes, strict=True)
    ]
