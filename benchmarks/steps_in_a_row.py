"""What answers gain from plans of several decode steps, beside plans of one.

Two engines serve the same jobs in turns: prompts of 32 random tokens, answers of a given length, all at once, greedy or
sampled as a model proposes; told whole, which takes one native call for several steps; with a stop string that does not
occur, so that the scheduler looks at each token; streamed token by token; or with logprobs. Their prefix caches are
full, as those of servers are after a while. Reported are tokens per second, medians, and the median of the ratios of a
turn; that their outputs are the same is checked.

    python -m benchmarks.steps_in_a_row [--model PATH] [--running 1 8] [--tokens 200] [--turns 9] [--output FILE]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from pathlib import Path
from typing import Any

from bough import Engine
from bough.bench.options import write_json

PROMPT_TOKENS = 32
VOCABULARY = range(100, 1000)
POOL_TOKENS = 1 << 14
JOBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "greedy": ({"temperature": 0}, {}),
    "sampled": ({"temperature": 0.7, "top_p": 0.9, "sampling_seed": 1}, {}),
    "stop string": ({"temperature": 0, "stop": "\0 no text has this \0"}, {}),
    "streamed": ({"temperature": 0}, {"stream": True}),
    "logprobs": ({"temperature": 1, "sampling_seed": 1}, {"return_logprob": True}),
    "5 likeliest": ({"temperature": 0}, {"return_logprob": True, "top_logprobs_num": 5}),
}
"""Sampling parameters, and what else is asked of the engine."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="directory of a checkpoint; default: the bundled model")
    parser.add_argument("--running", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--tokens", type=int, default=200, help="of each answer")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    common: dict[str, Any] = {"log_level": "error", "max_total_tokens": POOL_TOKENS}
    if args.model:
        common["model_path"] = args.model
    rng = random.Random(0)
    rows = []
    print(f"{'':<11} {'running':>8} {'plans of one step, tokens/s':>28} {'of several':>11} {'ratio':>6}")
    with Engine(num_continuous_decode_steps=1, **common) as single, Engine(**common) as several:
        for engine in (single, several):
            filling = [rng.choices(VOCABULARY, k=256) for _ in range(POOL_TOKENS // 256 + 1)]
            engine.generate(input_ids=filling, sampling_params={"max_new_tokens": 1})
        for name, (sampling, others) in JOBS.items():
            for running in args.running:
                params = {**sampling, "max_new_tokens": args.tokens, "ignore_eos": True}
                speeds: list[list[float]] = []
                for turn in range(-1, args.turns):
                    prompts = [rng.choices(VOCABULARY, k=PROMPT_TOKENS) for _ in range(running)]
                    found, outputs = {}, []
                    for engine in (single, several) if turn % 2 else (several, single):
                        begin = time.perf_counter()
                        outputs.append(_outputs(engine, prompts, params, **others))
                        found[engine] = running * args.tokens / (time.perf_counter() - begin)
                    if outputs[0] != outputs[1]:
                        raise SystemExit("the outputs differ")
                    if turn >= 0:
                        speeds.append([found[single], found[several]])
                medians = [statistics.median(column) for column in zip(*speeds, strict=True)]
                ratio = statistics.median(after / before for before, after in speeds)
                rows.append({"job": name, "running": running, "tokens_per_second": medians, "ratio": ratio})
                print(f"{name:<11} {running:8} {medians[0]:28.0f} {medians[1]:11.0f} {ratio:6.2f}", flush=True)
    if args.output:
        write_json(args.output, rows)


def _outputs(engine: Engine, prompts: list[list[int]], params: dict[str, Any], **others: Any) -> list[Any]:
    """The tokens of each answer, and the logprobs that it has."""
    answers: Any = engine.generate(input_ids=prompts, sampling_params=params, **others)
    last = {event["index"]: event for event in answers} if others.get("stream") else dict(enumerate(answers))
    told = ("output_token_logprobs", "output_top_logprobs")
    return [(answer["output_ids"], *map(answer["meta_info"].get, told)) for _, answer in sorted(last.items())]


if __name__ == "__main__":
    main()
