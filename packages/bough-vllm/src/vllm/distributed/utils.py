"""Groups of processes beside torch's default one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from bough.ipc.call_values import decode_values, encode_values
from bough.weight_sync.weight_groups import GROUP_TIMEOUT

_dist: Any = dist
"""Stores have no types there."""


@dataclass
class StatelessProcessGroup:
    """Some processes that share a store; a process may be in any number of such groups.

    What they send each other is of the types of :func:`bough.ipc.call_values.encode_values`; nothing is unpickled.

    Attributes:
        timeout: seconds that the others may take to come, and to send each value or tensor.
    """

    rank: int
    world_size: int
    store: Any
    timeout: float = GROUP_TIMEOUT
    _num_sent: dict[int, int] = field(default_factory=dict)
    _num_barriers: int = 0

    @classmethod
    def create(
        cls,
        host: str,
        port: int,
        rank: int,
        world_size: int,
        data_expiration_seconds: int = 3600,
        store_timeout: float = GROUP_TIMEOUT,
    ) -> StatelessProcessGroup:
        """Meet the others of a group; returns when all are there.

        Args:
            host, port: where rank 0 serves the store.
            data_expiration_seconds: without effect: what was sent is removed once all have it.
            store_timeout: seconds that the others may take, now and later.

        Raises:
            Exception: what torch raises, after the timeout at the latest.
        """
        store = _dist.TCPStore(host, port, world_size, is_master=rank == 0, timeout=timedelta(seconds=store_timeout))
        return cls(rank, world_size, store, store_timeout)

    def broadcast_obj(self, obj: Any | None, src: int) -> Any:
        """Send a value from rank ``src`` to all; returns it on each."""
        number = self._num_sent.get(src, 0)
        self._num_sent[src] = number + 1
        key = f"broadcast/{src}/{number}"
        if self.rank == src:
            self.store.set(key, encode_values(obj, "obj"))
            return obj
        value = decode_values(bytes(self.store.get(key)))
        if self.store.add(f"{key}/read", 1) == self.world_size - 1:
            self.store.delete_key(key)
            self.store.delete_key(f"{key}/read")
        return value

    def all_gather_obj(self, obj: Any) -> list[Any]:
        """Return the values of all ranks, in order."""
        return [self.broadcast_obj(obj if rank == self.rank else None, rank) for rank in range(self.world_size)]

    def barrier(self, timeout: float = 30.0) -> None:
        """Wait until all are here.

        Raises:
            TimeoutError: if they are not, after so many seconds.
        """
        key = f"barrier/{self._num_barriers}"
        self._num_barriers += 1
        self.store.add(key, 1)
        deadline = time.monotonic() + timeout
        while int(self.store.add(key, 0)) < self.world_size:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not all of {self.world_size} processes were there within {timeout:g} s")
            time.sleep(0.001)
