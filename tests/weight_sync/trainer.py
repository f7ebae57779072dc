"""A trainer: rank 0 of a group, made as programs do that know nothing of Bough; broadcasts a checkpoint's tensors.

``python -m tests.weight_sync.trainer PORT WORLD_SIZE NAME MODEL [ONLY …]`` says ``ready`` and then
``joined``, and waits for a line before it sends.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch.distributed import distributed_c10d
from torch.distributed.rendezvous import rendezvous


def make_group(port: int, world_size: int, name: str) -> Any:
    c10d: Any = distributed_c10d
    limit = timedelta(seconds=60)
    store, _, _ = next(rendezvous(f"tcp://127.0.0.1:{port}", 0, world_size, timeout=limit))
    own = c10d.PrefixStore(name, store)
    group, _ = c10d._new_process_group_helper(world_size, 0, [], dist.Backend("gloo"), own, name, timeout=limit)
    c10d._world.pg_group_ranks[group] = {rank: rank for rank in range(world_size)}
    return group


def main() -> None:
    port, world_size, name, model, *only = sys.argv[1:]
    print("ready", flush=True)
    group = make_group(int(port), int(world_size), name)
    print("joined", flush=True)
    tensors = load_file(f"{model}/model.safetensors")
    for line in sys.stdin:
        for each in only or sorted(tensors):
            tensor = tensors[each] if each in tensors else torch.zeros(3)
            dist.broadcast(tensor.contiguous(), src=0, group=group)
        print("sent", line.strip(), flush=True)


if __name__ == "__main__":
    main()
