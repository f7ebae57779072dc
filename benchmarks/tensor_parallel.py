"""Two ranks of one thread (--tp-size 2) beside one process of two threads, on a CPU.

Both engines do the same work in turns: prompts of 512 new tokens, and answers of 64 tokens to 1, 8 and 32 prompts at
once, greedy, whose prompts are cached. Reported are the ratio of their speeds, the median of all turns with the 95 %
interval of that median (bootstrap), and that their outputs are the same is checked. A rank waits for the other one, so
nothing else may run meanwhile.

Rows ``host`` have what a decode step costs the rank that follows besides its operations and its waiting at meetings:
from when it sees a step to its first operation, and from the end of its last one until it waits for the next. The rank
is a thread of this process then and counts the time itself, which takes some hundredths of a microsecond.

    python -m benchmarks.tensor_parallel [--model PATH] [--dtype bfloat16] [--quantization none int8] [--turns 15]
        [--output FILE]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.model_executor.native_ranks import first_of_ranks
from tests.model_executor.plan_builder import PlanBuilder

from bough import Engine
from bough.bench.options import write_json
from bough.config.engine_args import bundled_model_path

VOCABULARY = range(100, 2000)
PROMPT_TOKENS, CACHED_TOKENS, ANSWER_TOKENS = 512, 33, 64
"""Of a cached prompt all but the last token are in whole pages."""
BATCHES = (1, 8, 32)
HOST_STEPS = 20
"""Steps in a row of which the host's time is taken."""
SAMPLES = 4000
"""Of the bootstrap."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="directory of a checkpoint; default: the bundled model")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--quantization", nargs="+", default=["none", "int8"])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    rows = []
    print(f"{'':<6} {'work':<10} {'one process':>12} {'two ranks':>10} {'speed':>6}")
    for quantization in args.quantization:
        common = {"dtype": args.dtype, "quantization": quantization, "log_level": "error"}
        common |= {"max_total_tokens": 16_384, "max_running_requests": max(BATCHES)}
        if args.model:
            common["model_path"] = args.model
        with Engine(cpu_threads=2, **common) as one, Engine(cpu_threads=1, tp_size=2, **common) as two:
            for name in ("prompt", *(f"decode-{batch}" for batch in BATCHES)):
                row = {"quantization": quantization, "work": name, **compare(one, two, name, args.turns)}
                rows.append(row)
                low, high = row["interval"]
                times = f"{row['one'] * 1e3:9.1f} ms {row['two'] * 1e3:7.1f} ms"
                print(f"{quantization:<6} {name:<10} {times} {row['speed']:6.3f} [{low:.3f}, {high:.3f}]", flush=True)
        for batch, seconds in host_times(args, quantization).items():
            rows.append({"quantization": quantization, "work": f"host-{batch}", "two": seconds})
            print(f"{quantization:<6} {f'host-{batch}':<10} {'':>12} {seconds * 1e6:7.1f} us", flush=True)
    if args.output:
        write_json(args.output, rows)


def compare(one: Engine, two: Engine, name: str, turns: int) -> dict[str, Any]:
    """Median seconds of both, and the second's speed relative to the first's."""
    rng = random.Random(name)
    batch = int(name.partition("-")[2] or 1)
    cached = [rng.choices(VOCABULARY, k=CACHED_TOKENS) for _ in range(batch)]
    seconds: dict[Engine, list[float]] = {one: [], two: []}
    for turn in range(-2, turns):
        prompts = [rng.choices(VOCABULARY, k=PROMPT_TOKENS)] if name == "prompt" else cached
        outputs = []
        for engine in (one, two) if turn % 2 else (two, one):
            begin = time.perf_counter()
            outputs.append(outputs_of(engine, prompts, 1 if name == "prompt" else ANSWER_TOKENS))
            if turn >= 0:
                seconds[engine].append(time.perf_counter() - begin)
        if outputs[0] != outputs[1]:
            raise SystemExit(f"{name}: the outputs differ")
    speeds = [first / second for first, second in zip(seconds[one], seconds[two], strict=True)]
    return {
        "one": statistics.median(seconds[one]),
        "two": statistics.median(seconds[two]),
        "speed": statistics.median(speeds),
        "interval": interval_of_median(speeds),
    }


def host_times(args: argparse.Namespace, quantization: str) -> dict[int, float]:
    """Host's seconds for a decode step of the rank that follows, by the number of rows: the median of all turns."""
    options = {"dtype": args.dtype, "quantization": quantization, "max_running_requests": max(BATCHES)}
    found: dict[int, float] = {}
    with first_of_ranks(args.model or bundled_model_path(), 2, max_total_tokens=16_384, **options) as runner:
        group = runner.ranks.native
        assert group is not None
        runner.recording = False
        for batch in BATCHES:
            builder, rng, seconds = PlanBuilder(runner), random.Random(batch), []
            rows = [builder.add(rng.choices(VOCABULARY, k=CACHED_TOKENS)) for _ in range(batch)]
            for row in rows:
                builder.step([(row, CACHED_TOKENS)])
            for _ in range(args.turns):
                before = group.host_time(1)
                builder.step([(row, 1) for row in rows], further=HOST_STEPS - 1, checks_eos=False)
                after = group.host_time(1)
                seconds.append((after.seconds - before.seconds) / (after.num_pieces - before.num_pieces))
            found[batch] = statistics.median(seconds)
    return found


def outputs_of(engine: Engine, prompts: list[list[int]], num_tokens: int) -> list[list[int]]:
    """Tokens of greedy answers of that length."""
    params = {"temperature": 0, "max_new_tokens": num_tokens, "ignore_eos": True}
    return [each["output_ids"] for each in engine.generate(input_ids=prompts, sampling_params=params)]


def interval_of_median(numbers: Sequence[float]) -> tuple[float, float]:
    """95 % interval, by samples with replacement."""
    rng = random.Random(0)
    medians = sorted(statistics.median(rng.choices(numbers, k=len(numbers))) for _ in range(SAMPLES))
    return medians[SAMPLES // 40], medians[-SAMPLES // 40]


if __name__ == "__main__":
    main()
