"""Memory and speed of replicas on a CPU, which have their weights in memory once.

``memory``: the proportional set size (PSS, of /proc/PID/smaps_rollup) of one scheduler, and of two replicas with as
much KV cache together; pages that both map count half in each. ``panels``: decode of one sequence with weights that
another replica has packed, beside a server that has its own, each of one thread. ``streams``: as many sequences as
``--streams`` says, by two replicas of one thread each, beside one server of two threads. Speeds are measured in turns:
medians of tokens per second, and the median of the ratios of a turn with its 95 % interval.

    python -m benchmarks.replica_memory memory --shape llama
    python -m benchmarks.replica_memory panels streams --shape qwen --turns 15
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from benchmarks.grammar_masks import interval
from benchmarks.peers.shapes import SHAPES

from bough import Engine
from bough.bench.options import write_json

CELLS = ("memory", "panels", "streams")
REPLICAS = 2
PROMPT_TOKENS = 32
MAPPED = 1
"""Replica that maps what the first one has packed."""


@contextlib.contextmanager
def checkpoint(shape: str) -> Iterator[str]:
    """Directory with the configuration of a shape, and no weights."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "config.json").write_text(json.dumps(SHAPES[shape]))
        yield directory


def schedulers() -> list[psutil.Process]:
    """Schedulers of the engines of this process."""
    return [each for each in psutil.Process().children() if "scheduler.process" in " ".join(each.cmdline())]


def prompts(count: int, seed: int) -> list[list[int]]:
    """So many prompts that have nothing in common."""
    rng = random.Random(seed)
    return [rng.choices(range(100, 1000), k=PROMPT_TOKENS) for _ in range(count)]


def sampling(tokens: int) -> dict[str, Any]:
    """Parameters of an answer of so many tokens."""
    return {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}


def memory_of(options: Mapping[str, Any], dp_size: int, tokens: int) -> dict[str, float]:
    """Figures of the schedulers of an engine that has computed something, in bytes."""
    with Engine(dp_size=dp_size, max_total_tokens=tokens // dp_size, **options) as engine:
        engine.generate(input_ids=prompts(16, 0), sampling_params=sampling(16))
        infos = engine.get_server_info()
        maps = [each.memory_full_info() for each in schedulers()]
    return {
        "pss": sum(each.pss for each in maps),
        "uss": sum(each.uss for each in maps),
        # Replicas report the same weights, each of them.
        "weights": infos["weight_bytes"] // dp_size,
        "kv": infos["kv_bytes"],
    }


def show_memory(options: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """Print and return the memory of one scheduler and of replicas."""
    results = {f"{count} replicas": memory_of(options, count, tokens) for count in (1, REPLICAS)}
    one = results["1 replicas"]
    least = one["weights"] + one["kv"]
    print(f"{'':<12} {'PSS':>9} {'weights':>9} {'KV':>9} {'PSS / (weights + KV)':>21} {'PSS / one':>10}   (MB)")
    for name, found in results.items():
        sizes = " ".join(f"{found[key] / 1e6:9.0f}" for key in ("pss", "weights", "kv"))
        print(f"{name:<12} {sizes} {found['pss'] / least:21.3f} {found['pss'] / one['pss']:10.3f}")
    return results


def compare(ways: Mapping[str, Callable[[int], float]], turns: int) -> dict[str, Any]:
    """Measure ways in turns, print and return them; the ratio is that of the second one to the first."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(-1, turns):
        for name in ways if turn % 2 else reversed(list(ways)):
            rate = ways[name](turn)
            if turn >= 0:
                rates[name].append(rate)
    first, second = rates.values()
    ratios = [after / before for before, after in zip(first, second, strict=True)]
    least, most = interval(ratios)
    for name, found in rates.items():
        print(f"{name:<34} {statistics.median(found):9.1f} tokens/s")
    print(f"{'ratio':<34} {statistics.median(ratios):9.3f} [{least:.3f}, {most:.3f}], {turns} turns")
    return {"tokens_per_second": rates, "ratio": statistics.median(ratios), "least": least, "most": most}


def decode_rate(engine: Engine, tokens: int, seed: int, rank: int | None = None) -> float:
    """Tokens per second of one sequence after its first token."""
    (prompt,) = prompts(1, seed)
    answer = engine.generate(input_ids=prompt, sampling_params=sampling(tokens), routed_dp_rank=rank)
    return float(answer["meta_info"]["decode_throughput"])


def total_rate(engine: Engine, streams: int, tokens: int, seed: int) -> float:
    """Tokens per second of sequences that begin at the same time."""

    async def ask() -> None:
        asking = (
            engine.async_generate(input_ids=prompt, sampling_params=sampling(tokens))
            for prompt in prompts(streams, seed)
        )
        await asyncio.gather(*asking)

    begin = time.perf_counter()
    asyncio.run(ask())
    return streams * tokens / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="+", choices=CELLS)
    parser.add_argument("--shape", default="qwen", choices=SHAPES)
    parser.add_argument("--quantization", default="int8", choices=("none", "int8", "int4"))
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--cache-tokens", type=int, default=16_384, help="of the KV cache of one server")
    parser.add_argument("--output", type=Path, default=Path("results/replica_memory.json"))
    args = parser.parse_args()
    results: dict[str, Any] = {}
    with checkpoint(args.shape) as path:
        options: dict[str, Any] = {
            "model_path": path,
            "load_format": "dummy",
            "skip_tokenizer_init": True,
            "quantization": args.quantization,
            "log_level": "error",
        }
        if "memory" in args.cells:
            results["memory"] = show_memory(options, args.cache_tokens)
        options["max_total_tokens"] = args.cache_tokens // REPLICAS
        if "panels" in args.cells:
            with (
                Engine(cpu_threads=1, **options) as own,
                Engine(cpu_threads=1, dp_size=REPLICAS, **options) as replicas,
            ):
                ways = {
                    "one sequence, own weights": lambda turn: decode_rate(own, args.tokens, turn),
                    "one sequence, mapped weights": lambda turn: decode_rate(replicas, args.tokens, turn, MAPPED),
                }
                results["panels"] = compare(ways, args.turns)
        if "streams" in args.cells:
            with (
                Engine(cpu_threads=REPLICAS, **{**options, "max_total_tokens": args.cache_tokens}) as one,
                Engine(cpu_threads=1, dp_size=REPLICAS, **options) as replicas,
            ):
                ways = {
                    f"{args.streams} streams, one server": lambda turn: total_rate(
                        one, args.streams, args.tokens, turn
                    ),
                    f"{args.streams} streams, replicas": lambda turn: total_rate(
                        replicas, args.streams, args.tokens, turn
                    ),
                }
                results["streams"] = compare(ways, args.turns)
    write_json(args.output, results)


if __name__ == "__main__":
    main()
