"""The ranks that share each layer of a model, as one of them sees the group."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
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

    def close(self) -> None:
        """Leave the group."""


ALONE_IN_GROUP = RankGroup()


class ProcessRanks(RankGroup):
    """A group of processes, by torch's collectives. A process can be in one at a time.

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
        self.spec, self._device, self.native = spec, device, native
        backend = backend or ("nccl" if device.type == "cuda" else "gloo")
        store = meet(place, spec.rank, spec.world, timeout_s)
        with _gloo_uses(_LOOPBACK if isinstance(place, Path) else _interface_of(place.own_host)):
            dist.init_process_group(
                backend,
                store=store,
                rank=spec.rank,
                world_size=spec.world,
                timeout=_PATIENCE,
            )
            self.smallest(0)  # connects them
        self._collectives: Collectives = TorchCollectives(spec.world)

    def part_of(self, choice: MethodChoice) -> MethodChoice:
        return ShardedChoice(choice, self.spec, self._collectives)

    def smallest(self, number: int) -> int:
        return self._reduced(number, dist.ReduceOp.MIN)

    def total(self, number: int) -> int:
        return self._reduced(number, dist.ReduceOp.SUM)

    def _reduced(self, number: int, operation: dist.ReduceOp.RedOpType) -> int:
        found = torch.tensor([number], dtype=torch.int64, device=self._device)
        dist.all_reduce(found, operation)
        return int(found)

    def take_from_first(self, x: torch.Tensor) -> torch.Tensor:
        dist.broadcast(x, src=0)
        return x

    def close(self) -> None:
        dist.destroy_process_group()


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


def join_group_of_one(device: torch.device) -> None:
    """Make torch's default group with this process alone in it, for code that asks torch for its rank; nothing if there
    is a default group."""
    if dist.is_initialized():
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    with _gloo_uses(_LOOPBACK):
        dist.init_process_group(backend, store=_dist.HashStore(), rank=0, world_size=1)


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
