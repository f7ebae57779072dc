"""Memory that an engine gives back while it sleeps, as the machine sees it, and how long going and coming take.

An engine of random weights in the shape of Llama 3.2 1B sleeps and wakes. What MemAvailable of /proc/meminfo gains is
put beside what the level gives back: KV cache and weights. Nothing else may run. Greedy answers have to stay the same.

    python -m benchmarks.sleep --output results/sleep.json
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.random_checkpoint import add_model_options, chosen_checkpoint

from bough import Engine
from bough.bench.options import write_json

PROMPT = list(range(100, 132))
ENOUGH = 0.95
"""Share of the memory after which is looked no longer."""
GREEDY = {"temperature": 0.0, "max_new_tokens": 32, "ignore_eos": True}


def available() -> int:
    """MemAvailable, in bytes."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def measure(engine: Engine) -> dict[str, float]:
    """Figures of one cycle."""
    info = engine.get_server_info()
    expected = engine.generate(input_ids=PROMPT, sampling_params=GREEDY)["output_ids"]
    before, begin = available(), time.perf_counter()
    engine.sleep(level=1)
    slept = time.perf_counter()
    given = info["weight_bytes"] + info["kv_bytes"]  # of replicas, too, weights are there once
    gained, wanted_s = available() - before, max(given / 1e9, 1.0)
    while gained < ENOUGH * given and time.perf_counter() - begin < wanted_s:  # the system counts late
        time.sleep(0.01)
        gained = available() - before
    there = woken = time.perf_counter()
    engine.wake_up()
    end = time.perf_counter()
    assert engine.generate(input_ids=PROMPT, sampling_params=GREEDY)["output_ids"] == expected
    return {
        "gained_gb": gained / 1e9,
        "share": gained / given,
        "sleep_s": slept - begin,
        "available_s": there - begin,
        "wake_s": end - woken,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_options(parser, "llama")
    parser.add_argument("--quantization", default="none", choices=("none", "int8", "int4"))
    parser.add_argument("--max-total-tokens", type=int, default=32_768)
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--output", type=Path, default=Path("results/sleep.json"))
    args = parser.parse_args()
    results: dict[str, Any] = {}
    with chosen_checkpoint(args) as (source, _):
        for replicas in (1, 2):
            options: dict[str, Any] = {"quantization": args.quantization, "dp_size": replicas}
            tokens = args.max_total_tokens // replicas
            with Engine(model_path=str(source), skip_tokenizer_init=True, max_total_tokens=tokens, **options) as engine:
                cycles = [measure(engine) for _ in range(args.cycles)]
                left = available()
                measure(engine)
                lost = left - available()
            results[f"replicas_{replicas}"] = {"cycles": cycles, "lost_in_a_cycle_gb": lost / 1e9}
    for name, each in results.items():
        medians = {key: statistics.median(cycle[key] for cycle in each["cycles"]) for key in each["cycles"][0]}
        each["medians"] = medians
        print(name, "  ".join(f"{key} {value:.3f}" for key, value in medians.items()))
    write_json(args.output, results)


if __name__ == "__main__":
    main()
