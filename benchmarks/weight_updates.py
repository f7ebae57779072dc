"""Speed of updates of all weights, beside a plain copy of the same bytes, in GB of the checkpoint's weights a second.

The trainer is this process: ``tensor`` hands its tensors over (:meth:`Engine.update_weights_from_tensor`),
``distributed`` broadcasts them over gloo, in calls of at most ``--bucket`` bytes, and ``disk`` has the engine read the
checkpoint, which the system holds in memory. ``copy`` is what none of them can be faster than: each tensor is copied
once, by one thread. The ways take turns; medians are shown. Nothing else may run.

    python -m benchmarks.weight_updates [--model-path PATH | --shape qwen] [--quantization none int8] [--output FILE]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from benchmarks.peers.random_checkpoint import add_model_options, chosen_checkpoint
from safetensors.torch import load_file
from torch.distributed import ProcessGroup
from torch.distributed import broadcast as broadcast_tensor

from bough import Engine
from bough.bench.options import write_json
from bough.weight_sync.process_group import join_group

Tensors = dict[str, torch.Tensor]

GREEDY = {"temperature": 0.0, "max_new_tokens": 16, "ignore_eos": True}
PROMPT = list(range(100, 132))


def buckets(tensors: Tensors, most: int) -> Iterator[list[str]]:
    """Names in their order, cut where the next one would be beyond so many bytes."""
    names: list[str] = []
    size = 0
    for name, tensor in tensors.items():
        if names and size + tensor.nbytes > most:
            yield names
            names, size = [], 0
        names.append(name)
        size += tensor.nbytes
    yield names


def join(engine: Engine, name: str) -> ProcessGroup:
    """Make a group of this process, which is rank 0, and the engine; a process has one of each name."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    limit = timedelta(seconds=60)
    common: dict[str, Any] = {"world_size": 2, "name": name, "backend": "gloo", "timeout": limit}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        joining = pool.submit(engine.init_weights_update_group, "127.0.0.1", port, 1, 2, name, "gloo")
        group = join_group("127.0.0.1", port, rank=0, patience=limit, **common)
        check(joining.result())
    return group


def broadcast(engine: Engine, name: str, group: ProcessGroup, tensors: Tensors, bucket: int) -> None:
    """Send all tensors in several calls, of which the last one has the prefix cache forgotten."""
    calls = list(buckets(tensors, bucket))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for names in calls:
            about = [tensors[each].dtype for each in names], [list(tensors[each].shape) for each in names]
            is_last = names is calls[-1]
            asked = pool.submit(engine.update_weights_from_distributed, names, *about, name, is_last)
            for each in names:
                broadcast_tensor(tensors[each], 0, group=group)
            check(asked.result())


def check(outcome: Any) -> None:
    """Fail unless an update was made."""
    assert outcome.success, outcome.message


def copy(tensors: Tensors, targets: Tensors) -> None:
    """Copy each tensor once."""
    for name, tensor in tensors.items():
        targets[name].copy_(tensor)


def measure(source: Path, quantization: str, args: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of each way, by turns."""
    tensors = load_file(source / "model.safetensors")
    targets = {name: tensor.clone() for name, tensor in tensors.items()}
    options: dict[str, Any] = {"quantization": quantization, "skip_tokenizer_init": True, "max_total_tokens": 4096}
    with Engine(model_path=str(source), **options) as engine:
        group = join(engine, quantization)
        ways: dict[str, Callable[[], None]] = {
            "copy": lambda: copy(tensors, targets),
            "tensor": lambda: check(engine.update_weights_from_tensor(tensors.items())),
            "distributed": lambda: broadcast(engine, quantization, group, tensors, args.bucket),
            "disk": lambda: check(engine.update_weights_from_disk(str(source))),
        }
        expected = engine.generate(input_ids=PROMPT, sampling_params=GREEDY)["output_ids"]
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        torch.set_num_threads(1)
        for turn in range(args.turns + 1):
            for name, way in ways.items():
                begin = time.perf_counter()
                way()
                if turn:  # the first one commits memory
                    seconds[name].append(time.perf_counter() - begin)
        assert engine.generate(input_ids=PROMPT, sampling_params=GREEDY)["output_ids"] == expected
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_options(parser, "qwen")
    parser.add_argument("--quantization", nargs="+", default=["none", "int8"], choices=("none", "int8", "int4"))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--bucket", type=int, default=2**29, help="most bytes of a broadcast, as trainers have it")
    parser.add_argument("--output", type=Path, default=Path("results/weight_updates.json"))
    args = parser.parse_args()
    results: dict[str, Any] = {}
    with chosen_checkpoint(args) as (source, _):
        num_bytes = sum(tensor.nbytes for tensor in load_file(source / "model.safetensors").values())
        print(f"{num_bytes / 1e9:.2f} GB of weights")
        for quantization in args.quantization:
            seconds = measure(source, quantization, args)
            medians = {name: statistics.median(each) for name, each in seconds.items()}
            results[quantization] = {"seconds": seconds, "medians": medians, "bytes": num_bytes}
            for name, median in medians.items():
                of_copy = f"{medians['copy'] / median:6.2f} of a copy's speed"
                print(f"{quantization:6} {name:12} {median:7.2f} s {num_bytes / median / 1e9:7.2f} GB/s {of_copy}")
    write_json(args.output, results)


if __name__ == "__main__":
    main()
