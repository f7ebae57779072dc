"""The ranks that share each layer of a model, as one of them sees the group."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from bough.config.port_args import MeetingAddress
from bough.config.sharding import WHOLE, ShardSpec
from bough.distributed.place import Backend
from bough.distributed.rendezvous import meet
from bough.kernels.native_group import NativeGroup
from bough.layers.collectives import Collectives
from bough.layers.linear_method import MethodChoice
from bough.layers.sharding import ShardedChoice

_PATIENCE = timedelta(days=1)
"""Time that a collective may take. A rank that hangs is noticed by the heartbeats of the whole, which ends then."""

_dist: Any = dist
"""Stores have no types there."""

_INTERFACE = "GLOO_SOCKET_IFNAME"
_LOOPBACK = "lo"
"""Interface that only this machine can reach."""

_SIOCGIFADDR = 0x8915


class RankGroup:
    """A group of one rank.

    Attributes:
        spec: place of this rank.
        native: memory that native kernels compute in, together with the other ranks; ``None`` if they do not.
    """

    spec: ShardSpec = WHOLE
    native: NativeGroup | None = None

    def require_native(self) -> NativeGroup:
        """Return the shared memory of native kernels, which there must be."""
        assert self.native is not None, "torch computes"
        return self.native

    def part_of(self, choice: MethodChoice) -> MethodChoice:
        """The choice for what this rank has of each matrix."""
        return choice

    def smallest(self, number: int) -> int:
        """Return the smallest number that a rank has; all ranks call it at the same time."""
        return number

    def total(self, number: int) -> int:
        """Return the sum of what all ranks have; all of them call it at the same time."""
        return number

    def largest(self, number: int) -> int:
        """Return the largest number that a rank has; all ranks call it at the same time."""
        return -self.smallest(-number)

    def take_from_first(self, x: torch.Tensor) -> torch.Tensor:
        """Replace ``x`` by what the first rank has in it; return it."""
        return x

    def join_torch(self, device: torch.device) -> None:
        """Make torch's default group of these ranks, for code that asks torch for its rank; nothing if there is one."""
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            with _gloo_uses(_LOOPBACK):
                dist.init_process_group(backend, store=_dist.HashStore(), rank=0, world_size=1)

    def close(self) -> None:
        """Leave the group."""


ALONE_IN_GROUP = RankGroup()


class ProcessRanks(RankGroup):
    """A group of processes. A process can be in one at a time.

    They agree on numbers where they met, and compute together by torch's collectives. Those that compute steps in
    native memory join torch's group when they first need it, since gloo wakes a hundred times a second from then on.

    Args:
        spec: place of this rank.
        place: where they meet; see :func:`meet`.
        device: of the tensors.
        timeout_s: seconds that the others may take to come.
        backend: by default NCCL for CUDA devices, of which each rank then has one of its own, and else gloo.
        native: shared memory in which native kernels compute steps.

    Raises:
        StartupError: naming the ranks that did not come in time.
    """

    def __init__(
        self,
        spec: ShardSpec,
        place: Path | MeetingAddress,
        device: torch.device,
        timeout_s: float,
        backend: Backend | None = None,
        *,
        native: NativeGroup | None = None,
    ) -> None:
        self.spec, self.native = spec, native
        self._store = meet(place, spec.rank, spec.world, timeout_s)
        self._interface = _LOOPBACK if isinstance(place, Path) else _interface_of(place.own_host)
        self._backend = backend or ("nccl" if device.type == "cuda" else "gloo")
        self._num_agreements = 0
        self._collectives: Collectives = TorchCollectives(spec.world)
        if native is None:
            self.join_torch(device)
        else:
            self._collectives = LateCollectives(self._collectives, partial(self.join_torch, device))

    def part_of(self, choice: MethodChoice) -> MethodChoice:
        return ShardedChoice(choice, self.spec, self._collectives)

    def smallest(self, number: int) -> int:
        return min(self._numbers_of_all(number))

    def total(self, number: int) -> int:
        return sum(self._numbers_of_all(number))

    def _numbers_of_all(self, number: int) -> list[int]:
        self._num_agreements += 1
        keys = [f"number {self._num_agreements} of {rank}" for rank in range(self.spec.world)]
        self._store.set(keys[self.spec.rank], str(number))
        self._store.wait(keys, _PATIENCE)
        return [int(self._store.get(key)) for key in keys]

    def take_from_first(self, x: torch.Tensor) -> torch.Tensor:
        dist.broadcast(x, src=0)
        return x

    def join_torch(self, device: torch.device) -> None:
        """Make torch's default group of these ranks, all of which call it at the same time; nothing if there is one."""
        if dist.is_initialized():
            return
        with _gloo_uses(self._interface):
            dist.init_process_group(
                self._backend,
                store=self._store,
                rank=self.spec.rank,
                world_size=self.spec.world,
                timeout=_PATIENCE,
            )
            dist.all_reduce(torch.zeros(1, device=device))  # connects them

    def close(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()
        self._store = None  # it leaves the file where they met, which its last user deletes


class TorchCollectives(Collectives):
    """Collectives of this process's group of ``world`` ranks."""

    def __init__(self, world: int) -> None:
        self._world = world

    def add_up(self, x: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(x)
        return x

    def join_columns(self, x: torch.Tensor, widths: Sequence[int], out: torch.Tensor | None = None) -> torch.Tensor:
        num_rows, width = x.shape
        # Shares of unequal width are sent as wide as the widest.
        sent = x.new_empty(num_rows, max(widths))
        sent[:, :width] = x
        received = x.new_empty(self._world, num_rows, max(widths))
        dist.all_gather(list(received.unbind()), sent)
        result = x.new_empty(num_rows, sum(widths)) if out is None else out
        start = 0
        for share, share_width in zip(received, widths, strict=True):
            result[:, start : start + share_width] = share[:, :share_width]
            start += share_width
        return result


class LateCollectives(Collectives):
    """Collectives of a group that is joined before each, by what does nothing if it is."""

    def __init__(self, collectives: Collectives, join: Callable[[], None]) -> None:
        self._collectives, self._join = collectives, join

    def add_up(self, x: torch.Tensor) -> torch.Tensor:
        self._join()
        return self._collectives.add_up(x)

    def join_columns(self, x: torch.Tensor, widths: Sequence[int], out: torch.Tensor | None = None) -> torch.Tensor:
        self._join()
        return self._collectives.join_columns(x, widths, out)


@contextlib.contextmanager
def _gloo_uses(interface: str | None) -> Iterator[None]:
    """Have what gloo makes meanwhile listen on an interface, unless the environment names one.

    NCCL looks at its environment once in a process, which may be in a trainer's group later: it is left alone.
    """
    if sys.platform != "linux" or _INTERFACE in os.environ or interface is None:
        yield
        return
    os.environ[_INTERFACE] = interface
    try:
        yield
    finally:
        del os.environ[_INTERFACE]  # a trainer's group, made later, goes by the network


def _interface_of(host: str) -> str | None:
    """Name of the interface that has an IPv4 address (netdevice(7)); ``None`` if none has it, or of an IPv6 address."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        wanted = socket.inet_aton(host)
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without such an address
                found = fcntl.ioctl(probe, _SIOCGIFADDR, name.encode().ljust(256, b"\0"))
                if found[20:24] == wanted:
                    return name
    return None
