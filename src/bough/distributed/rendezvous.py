"""Meeting of the ranks of one model on one machine: a file in the private directory, where each says that it is there.

A file has no port that another program could take, and only the user can reach it.
"""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from bough.errors import StartupError

_dist: Any = dist
"""Stores have no types there."""


def meet(file: Path, rank: int, world: int, timeout_s: float) -> Any:
    """Wait until all ranks are there; return the store that they share.

    Args:
        file: the same for all of them, and for no others; the first one makes it.
        rank: of this process, among ``world``.
        timeout_s: seconds that the others may take.

    Raises:
        StartupError: naming the ranks that did not come in time.
    """
    store = _dist.FileStore(str(file), world)
    store.set(f"rank {rank}", "here")
    deadline = time.monotonic() + timeout_s
    missing = [each for each in range(world) if not _comes(store, each, max(deadline - time.monotonic(), 0.001))]
    if missing:
        names = ", ".join(f"TP{each}" for each in missing)
        raise StartupError(f"{names} did not come within {timeout_s:g} s, so the model cannot be computed together")
    return store


def _comes(store: Any, rank: int, timeout_s: float) -> bool:
    try:
        store.wait([f"rank {rank}"], timedelta(seconds=timeout_s))
    except (RuntimeError, ValueError):
        return False
    return True
