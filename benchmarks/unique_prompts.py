"""What the prefix cache costs prompts that share nothing, and how exactly this machine can tell.

Three engines in one process take the same jobs in turns, in every order: one with the cache, two without. A job is 64
prompts of 256 random tokens, 32 tokens out. Reported is the median ratio of processor time and of duration, over all
jobs, of the engine with the cache to one without, with a 95 % interval by bootstrap; and the same of the second engine
without to the first, which would be exactly 1 on a quiet machine: what that interval excludes, the other can show.

    python benchmarks/unique_prompts.py [--jobs 60] [--output FILE]
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bough import LLMEngine
from bough.bench.report import write_json

PROMPTS, PROMPT_TOKENS, OUTPUT_TOKENS = 64, 256, 32
VOCABULARY = range(100, 1000)
WARM_UP = 2
BOOTSTRAPS = 4000


@dataclass(frozen=True)
class Cost:
    """Seconds that a job took."""

    processor: float
    duration: float


def run_job(engine: LLMEngine, prompts: list[list[int]]) -> Cost:
    sampling_params = {"max_new_tokens": OUTPUT_TOKENS, "ignore_eos": True, "temperature": 0}
    begin = time.perf_counter(), time.process_time()
    for index, prompt in enumerate(prompts):
        engine.add_request(str(index), input_ids=prompt, sampling_params=sampling_params)
    while engine.has_unfinished_requests():
        engine.step()
    return Cost(processor=time.process_time() - begin[1], duration=time.perf_counter() - begin[0])


def interval(ratios: list[float]) -> tuple[float, float]:
    """Where the median lies, with 95 % confidence."""
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(ratios, (BOOTSTRAPS, len(ratios))), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--output", type=Path, default=Path("results/unique_prompts.json"))
    args = parser.parse_args()
    engines = {
        name: LLMEngine(disable_radix_cache=name != "on", log_level="error") for name in ("on", "off", "off again")
    }
    costs: dict[str, list[Cost]] = {name: [] for name in engines}
    rng = random.Random(1)
    orders = itertools.cycle(itertools.permutations(engines))
    for job in range(-WARM_UP, args.jobs):
        prompts = [rng.choices(VOCABULARY, k=PROMPT_TOKENS) for _ in range(PROMPTS)]
        for name in next(orders):
            cost = run_job(engines[name], prompts)
            if job >= 0:
                costs[name].append(cost)
    result = {}
    for of, to in (("on", "off"), ("on", "off again"), ("off again", "off")):
        for kind in ("processor", "duration"):
            ratios = [getattr(a, kind) / getattr(b, kind) for a, b in zip(costs[of], costs[to], strict=True)]
            low, high = interval(ratios)
            middle = statistics.median(ratios)
            result[f"{of} / {to}, {kind}"] = {"median": middle, "low": low, "high": high}
            print(f"{of:>9} / {to:9} {kind:9}  {middle:.4f}  [{low:.4f}, {high:.4f}]")
    for engine in engines.values():
        engine.close()
    write_json(args.output, result)


if __name__ == "__main__":
    main()
