"""What grammars cost 32 concurrent requests on the bundled model, and what jumping forward gains.

Run with ``python -m benchmarks.grammar_masks [--requests 32] [--follow 64] [--repeats 5] [--kinds …]``. The same
requests, in one process and without HTTP: without a grammar; with a JSON schema, a pattern, and JSON of any shape; with
the schema and every token sampled; with the schema and fixed blanks, where more of the text is certain. ``--follow``
more requests start as others end, so that as many run at a time all the while but for the end; each has 32 to 96
tokens, the same in every kind. The kinds take turns, with a run without a grammar before and after each, whose mean is
what it is compared to; figures are medians, ratios those of each turn, with a 95 % interval by bootstrap over turns.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bough.entrypoints.llm_engine import LLMEngine

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "favourite_tree": {"enum": ["oak", "ash", "birch", "beech"]},
        "is_gardener": {"type": "boolean"},
        "notes": {"type": "array", "items": {"type": "string", "maxLength": 24}, "maxItems": 3},
    },
    "required": ["name", "age", "favourite_tree", "is_gardener", "notes"],
    "additionalProperties": False,
}
SCHEMA = {"type": "array", "items": PERSON, "minItems": 100}
PATTERN = r"([a-z]{3,9} [0-9]{1,3}, (oak|ash|birch); ){200}"
ANY_JSON = {"type": "array", "minItems": 300}
"""What ``json_object`` allows, but for an end before the last token."""
BASE = "no grammar"
BOOTSTRAPS = 4000
PROMPT = "<|im_start|>user\nTell me about the oak.<|im_end|>\n<|im_start|>assistant\n"


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median."""
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(ratios, (BOOTSTRAPS, len(ratios))), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return float(low), float(high)


def run(engine: LLMEngine, lengths: list[int], concurrent: int, sampling: dict[str, Any]) -> dict[str, float]:
    """Tokens per second of all requests together, processor time of this thread per token, and steps."""
    waiting = list(enumerate(lengths))[::-1]

    def add() -> None:
        if waiting:
            seed, tokens = waiting.pop()
            params = {"max_new_tokens": tokens, "sampling_seed": seed, "ignore_eos": True, **sampling}
            engine.add_request(str(seed), PROMPT, params)

    for _ in range(concurrent):
        add()
    steps_before = engine.get_stats().steps_total
    begin, begin_cpu = time.perf_counter(), time.thread_time()
    produced = 0
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                produced += sum(len(each.token_ids) for each in output.outputs)
                add()
    return {
        "tokens_per_s": produced / (time.perf_counter() - begin),
        "cpu_us_per_token": (time.thread_time() - begin_cpu) / produced * 1e6,
        "steps": engine.get_stats().steps_total - steps_before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--follow", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--kinds", nargs="+", help="some of them; default: all")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    common: dict[str, Any] = {"max_running_requests": args.requests}
    default = LLMEngine(**common)
    sampled = LLMEngine(disable_jump_forward=True, **common)
    compact = LLMEngine(constrained_json_disable_any_whitespace=True, **common)
    schema = {"json_schema": json.dumps(SCHEMA)}
    kinds: dict[str, tuple[LLMEngine, dict[str, Any]]] = {
        BASE: (default, {}),
        "schema": (default, schema),
        "pattern": (default, {"regex": PATTERN}),
        "any JSON": (default, {"json_schema": json.dumps(ANY_JSON)}),
        "schema, all sampled": (sampled, schema),
        "schema, fixed blanks": (compact, schema),
    }
    unknown = set(args.kinds or ()) - set(kinds)
    if unknown:
        parser.error(f"--kinds: there is no {sorted(unknown)[0]!r}; there are {', '.join(map(repr, kinds))}")
    compared = [kind for kind in kinds if kind != BASE and kind in (args.kinds or kinds)]
    rng = random.Random(0)
    lengths = [rng.randint(32, 96) for _ in range(args.requests + args.follow)]
    table: dict[str, dict[str, float]] = {}
    for temperature in args.temperatures:

        def measure(kind: str, temperature: float = temperature) -> dict[str, float]:
            engine, params = kinds[kind]
            return run(engine, lengths, args.requests, {"temperature": temperature, **params})

        results: dict[str, list[dict[str, float]]] = {kind: [] for kind in [BASE, *compared]}
        ratios: dict[str, list[float]] = {kind: [] for kind in compared}
        for kind in results:
            measure(kind)  # fills caches
        before = measure(BASE)
        for _ in range(args.repeats):
            for kind in compared:
                result, after = measure(kind), measure(BASE)
                results[kind].append(result)
                results[BASE].append(after)
                ratios[kind].append(result["tokens_per_s"] * 2 / (before["tokens_per_s"] + after["tokens_per_s"]))
                before = after
        for kind, runs in results.items():
            row = {name: statistics.median(each[name] for each in runs) for name in runs[0]}
            row["of no grammar"] = statistics.median(ratios[kind]) if kind != BASE else 1.0
            row["at least"], row["at most"] = interval(ratios[kind]) if kind != BASE else (1.0, 1.0)
            table[f"{kind}, temperature {temperature:g}"] = {name: round(value, 3) for name, value in row.items()}
            print(
                f"{kind:21s} temperature {temperature:3g} {row['tokens_per_s']:7.0f} tokens/s "
                f"{row['of no grammar']:6.3f} [{row['at least']:.3f}, {row['at most']:.3f}] "
                f"{row['cpu_us_per_token']:6.1f} us of this thread a token {row['steps']:4.0f} steps",
                flush=True,
            )
    if args.output:
        args.output.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
