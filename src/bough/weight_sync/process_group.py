"""Groups of processes that share nothing but tensors: a trainer, and the engines that serve what it trains.

torch makes such a group only next to a default one, to which all processes of a program belong. What is here is what
trainers do instead (OpenRLHF, slime and verl, after SGLang's and vLLM's interfaces for it): a store at the trainer's
address, and a group in it under its own name.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.distributed.rendezvous import rendezvous

_c10d: Any = distributed_c10d
"""What is not for everybody in it has other types in other versions."""


def join_group(
    address: str,
    port: int,
    *,
    rank: int,
    world_size: int,
    name: str,
    backend: str,
    timeout: timedelta,
    patience: timedelta,
) -> dist.ProcessGroup:
    """Become part of a group; returns when all are there.

    Args:
        address: name or address of the machine on which rank 0 is, which serves the store.
        name: of the group; one process cannot be in two of the same name.
        backend: ``gloo`` or ``nccl``.
        timeout: for the others to be there.
        patience: for each collective, later.

    Raises:
        Exception: what torch raises, after the timeout at the latest.
    """
    host = f"[{address}]" if ":" in address else address
    store, _, _ = next(rendezvous(f"tcp://{host}:{port}", rank, world_size, timeout=timeout))
    store.set_timeout(timeout)
    own_store = _c10d.PrefixStore(name, store)
    group, _ = _c10d._new_process_group_helper(
        world_size, rank, [], dist.Backend(backend), own_store, name, timeout=patience
    )
    # Which rank of the whole program each rank of the group is: here they are the same.
    _c10d._world.pg_group_ranks[group] = {each: each for each in range(world_size)}
    return cast(dist.ProcessGroup, group)
