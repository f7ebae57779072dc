"""Meeting of the ranks of one model, where each says that it is there.

On one machine that is a file in the private directory: it has no port that another program could take, and only the
user can reach it. Ranks on several machines meet at a socket that the first one has listened on since before it began.
"""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from bough.config.port_args import MeetingAddress
from bough.errors import StartupError

_dist: Any = dist
"""Stores have no types there."""


def meet(place: Path | MeetingAddress, rank: int, world: int, timeout_s: float) -> Any:
    """Wait until all ranks are there; return the store that they share.

    Args:
        place: the same for all of them, and for no others; the first one makes the file.
        rank: of this process, among ``world``.
        timeout_s: seconds that the others may take.

    Raises:
        StartupError: naming the ranks that did not come in time.
    """
    deadline = time.monotonic() + timeout_s
    store = _store(place, rank, world, timeout_s)
    store.set(f"rank {rank}", "here")
    missing = [each for each in range(world) if not _comes(store, each, max(deadline - time.monotonic(), 0.001))]
    if missing:
        names = ", ".join(f"TP{each}" for each in missing)
        raise StartupError(f"{names} did not come within {timeout_s:g} s, so the model cannot be computed together")
    return store


def _store(place: Path | MeetingAddress, rank: int, world: int, timeout_s: float) -> Any:
    if isinstance(place, Path):
        return _dist.FileStore(str(place), world)
    served = {"is_master": True, "master_listen_fd": place.listener} if rank == 0 else {"is_master": False}
    timeout = timedelta(seconds=timeout_s)
    try:
        return _dist.TCPStore(place.host, place.port, world, timeout=timeout, wait_for_workers=False, **served)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise StartupError(f"TP{rank} cannot reach TP0 at {place.host}, port {place.port}: {reason}") from None


def _comes(store: Any, rank: int, timeout_s: float) -> bool:
    try:
        store.wait([f"rank {rank}"], timedelta(seconds=timeout_s))
    except (RuntimeError, ValueError):
        return False
    return True
