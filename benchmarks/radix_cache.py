"""How long the host's KV bookkeeping takes: prefix matching, insertion, eviction, slots for a decode step.

The trace is 4,000 prompts over 16 shared beginnings of 256 to 2,048 tokens, each followed by 128 tokens of its own,
about 1,280 tokens a prompt on average. Each prompt is matched and then inserted, as a server does, in random order;
then all are matched again, when they are known from end to end. The baseline, timed on the same prompts in the same
run, is a radix tree with the same semantics whose runs are Python lists, compared token by token. Garbage collection is
off while the trace is timed, because the baseline's lists would be walked at the expense of both.

    python benchmarks/radix_cache.py --output radix.json
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.eviction import EVICTION_POLICIES
from bough.mem_cache.kv_cache_manager import KVCacheManager
from bough.mem_cache.radix_cache import RadixCache
from bough.mem_cache.req_to_token_pool import ReqToTokenPool

IntArray = npt.NDArray[np.int32]

VOCAB_SIZE = 150_000
TARGET_US = 60.0
"""What one match or one insertion of the trace may take at page size 1, in microseconds."""


class PlainNode:
    def __init__(self, tokens: list[int], slots: list[int]) -> None:
        self.tokens = tokens
        self.slots = slots
        self.children: dict[tuple[int, ...], PlainNode] = {}


class PlainRadixTree:
    """The baseline: a radix tree in plain Python."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.root = PlainNode([], [])

    def match_prefix(self, tokens: list[int]) -> list[int]:
        node, slots, position = self.root, [], 0
        while position < len(tokens):
            child = node.children.get(tuple(tokens[position : position + self.page_size]))
            if child is None:
                break
            shared = self._shared(child.tokens, tokens, position)
            if shared < len(child.tokens):
                child = self._split(node, child, shared)
                slots += child.slots
                break
            slots += child.slots
            position += shared
            node = child
        return slots

    def insert(self, tokens: list[int], slots: list[int]) -> int:
        node, position = self.root, 0
        end = len(tokens) - len(tokens) % self.page_size
        while position < end:
            key = tuple(tokens[position : position + self.page_size])
            child = node.children.get(key)
            if child is None:
                node.children[key] = PlainNode(tokens[position:end], slots[position:end])
                break
            shared = self._shared(child.tokens, tokens, position)
            if shared < len(child.tokens):
                child = self._split(node, child, shared)
            position += shared
            node = child
        return position

    def _shared(self, run: list[int], tokens: list[int], start: int) -> int:
        count = 0
        for a, b in zip(run, tokens[start:], strict=False):
            if a != b:
                break
            count += 1
        return count - count % self.page_size

    def _split(self, parent: PlainNode, node: PlainNode, at: int) -> PlainNode:
        upper = PlainNode(node.tokens[:at], node.slots[:at])
        parent.children[tuple(node.tokens[: self.page_size])] = upper
        node.tokens, node.slots = node.tokens[at:], node.slots[at:]
        upper.children[tuple(node.tokens[: self.page_size])] = node
        return upper


def make_trace(num_prompts: int, seed: int) -> list[IntArray]:
    rng = np.random.default_rng(seed)
    lengths = np.linspace(256, 2048, 16).astype(int)
    bases = [rng.integers(0, VOCAB_SIZE, length, dtype=np.int32) for length in lengths]
    chosen = rng.integers(0, len(bases), num_prompts)
    return [np.concatenate([bases[i], rng.integers(0, VOCAB_SIZE, 128, dtype=np.int32)]) for i in chosen]


class Timer:
    """Collects the durations of single calls."""

    def __init__(self) -> None:
        self.nanoseconds: list[int] = []

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        start = time.perf_counter_ns()
        result = function(*args)
        self.nanoseconds.append(time.perf_counter_ns() - start)
        return result

    @property
    def mean_us(self) -> float:
        return float(np.mean(self.nanoseconds)) / 1e3

    def percentile_us(self, percent: float) -> float:
        return float(np.percentile(self.nanoseconds, percent)) / 1e3


def row(name: str, timer: Timer, baseline: Timer | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "mean_us": timer.mean_us,
        "p50_us": timer.percentile_us(50),
        "p99_us": timer.percentile_us(99),
        "baseline_mean_us": baseline.mean_us if baseline else None,
        "times_faster": baseline.mean_us / timer.mean_us if baseline else None,
    }


def bench_trace(prompts: Sequence[IntArray], page_size: int) -> list[dict[str, Any]]:
    """Both trees on every prompt in turn, so that noise of the machine hits both alike."""
    allocator = SlotAllocator(sum(len(prompt) + page_size for prompt in prompts), page_size)
    cache, plain = RadixCache(allocator, page_size), PlainRadixTree(page_size)
    match, insert, again, plain_match, plain_insert, plain_again = (Timer() for _ in range(6))
    lists = [prompt.tolist() for prompt in prompts]
    gc.collect()
    gc.disable()
    for prompt, tokens in zip(prompts, lists, strict=True):
        found = match(cache.match_prefix, prompt)
        known = len(found.slots)
        new = allocator.alloc_extend(len(prompt) - known, known, int(found.slots[-1]) if known else -1)
        if new is None:
            raise RuntimeError("the pool is too small for the trace")
        slots = np.concatenate([found.slots, new])
        result = insert(cache.insert, prompt, slots)
        allocator.free(slots[result.owned_len :])

        plain_found = plain_match(plain.match_prefix, tokens)
        if plain_insert(plain.insert, tokens, slots.tolist()) != result.existing_len or len(plain_found) != known:
            raise RuntimeError("the two trees disagree")
    for prompt, tokens in zip(prompts, lists, strict=True):
        if again(cache.match_prefix, prompt).slots.tolist() != plain_again(plain.match_prefix, tokens):
            raise RuntimeError("the two trees disagree")
    gc.enable()
    cache.check_integrity()
    return [
        row(f"match, page {page_size}", match, plain_match),
        row(f"insert, page {page_size}", insert, plain_insert),
        row(f"match known, page {page_size}", again, plain_again),
    ]


def fill(num_nodes: int, run_len: int, policy: str, seed: int) -> tuple[SlotAllocator, RadixCache, IntArray]:
    """A tree of ``num_nodes`` leaves that share nothing, and their runs [num_nodes, run_len]."""
    rng = np.random.default_rng(seed)
    allocator = SlotAllocator(num_nodes * run_len + 100_000, 1)
    cache = RadixCache(allocator, 1, policy)
    runs = rng.integers(0, VOCAB_SIZE, (num_nodes, run_len), dtype=np.int32)
    runs[:, 0] = np.arange(num_nodes)
    for run in runs:
        slots = allocator.alloc_extend(run_len, 0, -1)
        if slots is None:
            raise RuntimeError("the pool is too small")
        cache.insert(run, slots)
    return allocator, cache, runs


def bench_size(num_nodes: int, seed: int, num_calls: int = 1000, run_len: int = 32) -> list[dict[str, Any]]:
    """Single calls on a tree of a given size: they must not depend on it."""
    allocator, cache, runs = fill(num_nodes, run_len, "lru", seed)
    rng = np.random.default_rng(seed + 1)
    match, insert, evict = Timer(), Timer(), Timer()
    for index in rng.integers(0, num_nodes, num_calls):
        match(cache.match_prefix, runs[index])
        run = np.append(runs[index, : run_len // 2], rng.integers(0, VOCAB_SIZE, run_len, dtype=np.int32))
        slots = allocator.alloc_extend(len(run), 0, -1)
        if slots is None:
            raise RuntimeError("the pool is too small")
        result = insert(cache.insert, run, slots)
        allocator.free(slots[: result.existing_len])
    for _ in range(num_calls // 2):
        evict(cache.evict, 1)
    return [
        row(f"match, {num_nodes} nodes", match),
        row(f"insert, {num_nodes} nodes", insert),
        row(f"evict one leaf, {num_nodes} nodes", evict),
    ]


def bench_eviction(policy: str, num_nodes: int, seed: int, run_len: int = 32) -> dict[str, Any]:
    """Empty a tree in calls of 256 tokens, as decode steps do, after every leaf was used again in another order."""
    _, cache, runs = fill(num_nodes, run_len, policy, seed)
    for index in np.random.default_rng(seed + 1).permutation(num_nodes):
        cache.match_prefix(runs[index])
    start = time.perf_counter()
    tokens = 0
    while freed := cache.evict(256):
        tokens += freed
    seconds = time.perf_counter() - start
    return {
        "name": policy,
        "nodes": num_nodes,
        "us_per_node": seconds / num_nodes * 1e6,
        "tokens_per_second": tokens / seconds,
    }


def bench_decode(num_rows: int, page_size: int, num_steps: int = 1000) -> dict[str, Any]:
    """Slots for one more token of every running request."""
    allocator = SlotAllocator(num_rows * (num_steps + 2 * page_size + 300), page_size)
    manager = KVCacheManager(
        RadixCache(allocator, page_size), allocator, ReqToTokenPool(num_rows, num_steps + 2 * page_size + 300)
    )
    rows = np.zeros(num_rows, dtype=np.int32)
    for i in range(num_rows):
        kv = manager.begin(np.zeros(0, dtype=np.int32))
        if kv is None or manager.extend(kv, 1 + i % 256) is None:
            raise RuntimeError("the pool is too small")
        rows[i] = kv.req_slot
    timer = Timer()
    for _ in range(num_steps):
        timer(manager.extend_decode, rows)
    return row(f"decode slots, {num_rows} rows, page {page_size}", timer)


def print_calls(title: str, rows: Sequence[dict[str, Any]]) -> None:
    print(f"\n{title}")
    print(f"  {'':36}{'mean µs':>10}{'p50 µs':>10}{'p99 µs':>10}{'baseline µs':>13}{'ratio':>9}")
    for entry in rows:
        line = f"  {entry['name']:36}{entry['mean_us']:10.2f}{entry['p50_us']:10.2f}{entry['p99_us']:10.2f}"
        if entry["baseline_mean_us"] is not None:
            line += f"{entry['baseline_mean_us']:13.1f}{entry['times_faster']:8.1f}x"
        print(line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--num-prompts", type=int, default=4000)
    parser.add_argument("--page-sizes", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--num-nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write the figures there as JSON")
    args = parser.parse_args()

    prompts = make_trace(args.num_prompts, args.seed)
    trace = [entry for page_size in args.page_sizes for entry in bench_trace(prompts, page_size)]
    print_calls(f"Trace: {len(prompts)} prompts of {np.mean([len(p) for p in prompts]):.0f} tokens on average", trace)

    by_size = [bench_size(num_nodes, args.seed) for num_nodes in args.num_nodes]
    growth = {
        last["name"].split(",")[0]: last["p50_us"] / first["p50_us"]
        for first, last in zip(by_size[0], by_size[-1], strict=True)
    }
    print_calls("Single calls by size of the tree", [entry for entries in by_size for entry in entries])
    grown = ", ".join(f"{name} {ratio:.2f}x" for name, ratio in growth.items())
    print(f"  median from {args.num_nodes[0]} to {args.num_nodes[-1]} nodes: {grown}")

    evictions = [bench_eviction(policy, args.num_nodes[-1], args.seed) for policy in EVICTION_POLICIES]
    print(f"\nEmptying a tree of {args.num_nodes[-1]} nodes")
    for entry in evictions:
        rate = entry["tokens_per_second"] / 1e6
        print(f"  {entry['name']:12}{entry['us_per_node']:8.2f} µs a node{rate:10.1f} M tokens/s")

    decode = [bench_decode(num_rows, page_size) for page_size in args.page_sizes for num_rows in (1, 64, 256)]
    print_calls("Slots for a decode step", decode)

    if args.output:
        figures = {
            "machine": {"platform": platform.platform(), "python": sys.version.split()[0], "numpy": np.__version__},
            "trace": trace,
            "by_size": [entry for entries in by_size for entry in entries],
            "growth_of_median": growth,
            "eviction": evictions,
            "decode": decode,
        }
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(figures, indent=2) + "\n")

    slow = [e for e in trace if e["name"] in ("match, page 1", "insert, page 1") and e["mean_us"] > TARGET_US]
    for entry in slow:
        print(
            f"too slow: {entry['name']} took {entry['mean_us']:.1f} µs, the target is {TARGET_US:.0f} µs",
            file=sys.stderr,
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
