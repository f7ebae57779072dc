"""What the prefix cache costs prompts that share nothing, and how exactly this machine can tell.

Three engines in one process take the same jobs in turns, in every order: one with the cache, two without. A job is 64
prompts of 256 random tokens, 32 tokens out. Where an engine's memory happens to lie makes it up to a percent faster or
slower for as long as it lives, so a round makes three new engines, and the next makes them in another order. Reported
is the mean over the rounds of each round's median ratio of processor time and of duration, of the engine with the cache
to one without, with a 95 % interval by bootstrap over rounds; and the same of the second engine without to the first,
which would be exactly 1 on a quiet machine: what that interval excludes, the other can show. Last comes what is exact
but not all: the parts of its processor time and of the duration that an engine spends inside the calls of the cache.

    python benchmarks/unique_prompts.py [--rounds 12] [--jobs 6] [--output FILE]
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from bough import LLMEngine
from bough.bench.options import write_json
from bough.mem_cache.radix_cache import RadixCache

PROMPTS, PROMPT_TOKENS, OUTPUT_TOKENS = 64, 256, 32
VOCABULARY = range(100, 1000)
WARM_UP = 2
BOOTSTRAPS = 4000


@dataclass(frozen=True)
class Cost:
    """What a job took: seconds, or shares of those of others."""

    processor: float
    duration: float


def random_prompts(rng: random.Random) -> list[list[int]]:
    """The prompts of a job."""
    return [rng.choices(VOCABULARY, k=PROMPT_TOKENS) for _ in range(PROMPTS)]


def run_job(engine: LLMEngine, prompts: list[list[int]]) -> Cost:
    sampling_params = {"max_new_tokens": OUTPUT_TOKENS, "ignore_eos": True, "temperature": 0}
    begin = time.perf_counter(), time.process_time()
    for index, prompt in enumerate(prompts):
        engine.add_request(str(index), input_ids=prompt, sampling_params=sampling_params)
    while engine.has_unfinished_requests():
        engine.step()
    return Cost(processor=time.process_time() - begin[1], duration=time.perf_counter() - begin[0])


def interval(ratios: list[float], of: Callable[..., Any] = np.mean) -> tuple[float, float]:
    """Where the mean lies, or the median, with 95 % confidence."""
    rng = np.random.default_rng(0)
    low, high = np.quantile(of(rng.choice(ratios, (BOOTSTRAPS, len(ratios))), axis=1), (0.025, 0.975))
    return float(low), float(high)


def run_round(names: Sequence[str], jobs: int, rng: random.Random) -> dict[str, list[Cost]]:
    """What each engine took for each job; the engines are made in the order of their names."""
    engines = {name: LLMEngine(disable_radix_cache=name != "on", log_level="error") for name in names}
    costs: dict[str, list[Cost]] = {name: [] for name in names}
    orders = itertools.cycle(itertools.permutations(names))
    for job in range(-WARM_UP, jobs):
        prompts = random_prompts(rng)
        for name in next(orders):
            cost = run_job(engines[name], prompts)
            if job >= 0:
                costs[name].append(cost)
    for engine in engines.values():
        engine.close()
    return costs


def share_of_calls(jobs: int, rng: random.Random) -> Cost:
    """The parts of an engine's processor time and of its duration that pass inside the calls of its prefix cache."""
    inside = Cost(0.0, 0.0)

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            begin = time.perf_counter(), time.thread_time()
            try:
                return method(*args, **kwargs)
            finally:
                processor, duration = time.thread_time() - begin[1], time.perf_counter() - begin[0]
                inside = Cost(inside.processor + processor, inside.duration + duration)

        return call

    with ExitStack() as stack:
        for name in ("match_prefix", "matched_len", "insert", "lock", "unlock", "evict"):
            stack.enter_context(mock.patch.object(RadixCache, name, timed(getattr(RadixCache, name))))
        engine = LLMEngine(log_level="error")
        for _ in range(WARM_UP):
            run_job(engine, random_prompts(rng))
        inside = Cost(0.0, 0.0)
        costs = [run_job(engine, random_prompts(rng)) for _ in range(jobs)]
        engine.close()
    return Cost(
        processor=inside.processor / sum(cost.processor for cost in costs),
        duration=inside.duration / sum(cost.duration for cost in costs),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=6, help="of a round; multiples of 6 see every order equally often")
    parser.add_argument("--output", type=Path, default=Path("results/unique_prompts.json"))
    args = parser.parse_args()
    rng = random.Random(1)
    orders = itertools.cycle(itertools.permutations(("on", "off", "off again")))
    rounds = [run_round(next(orders), args.jobs, rng) for _ in range(args.rounds)]
    result = {}
    for of, to in (("on", "off"), ("on", "off again"), ("off again", "off")):
        for kind in ("processor", "duration"):
            ratios = [
                statistics.median(
                    getattr(a, kind) / getattr(b, kind) for a, b in zip(costs[of], costs[to], strict=True)
                )
                for costs in rounds
            ]
            low, high = interval(ratios)
            middle = statistics.mean(ratios)
            result[f"{of} / {to}, {kind}"] = {"mean": middle, "low": low, "high": high}
            print(f"{of:>9} / {to:9} {kind:9}  {middle:.4f}  [{low:.4f}, {high:.4f}]")
    share = share_of_calls(4 * args.jobs, rng)
    for kind in ("processor", "duration"):
        result[f"inside calls, {kind}"] = {"share": getattr(share, kind)}
        print(f"inside the calls of the cache, {kind}: {getattr(share, kind):.4f}")
    write_json(args.output, result)


if __name__ == "__main__":
    main()
