"""What a JSON schema costs 32 concurrent requests on the bundled model, and what jumping forward gains.

Run with ``python benchmarks/grammar_masks.py [--requests 32] [--tokens 128] [--repeats 5] [--output FILE]``. The same
requests, in one process and without HTTP: without a grammar; with a schema, every token sampled; with the schema,
jumping forward; and the same with JSON whose blanks are fixed, where more of the text is certain. All outputs have
``--tokens`` tokens, so that tokens per second can be compared. The kinds take turns; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

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
PROMPT = "<|im_start|>user\nTell me about the oak.<|im_end|>\n<|im_start|>assistant\n"


def run(engine: LLMEngine, requests: int, tokens: int, temperature: float, params: dict[str, Any]) -> dict[str, float]:
    """Tokens per second of all requests together, and steps."""
    for i in range(requests):
        sampling = {"temperature": temperature, "max_new_tokens": tokens, "sampling_seed": i, "ignore_eos": True}
        engine.add_request(str(i), PROMPT, {**sampling, **params})
    steps_before = engine.get_stats().steps_total
    begin = time.perf_counter()
    produced = 0
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                produced += sum(len(each.token_ids) for each in output.outputs)
    seconds = time.perf_counter() - begin
    return {"tokens_per_s": produced / seconds, "steps": engine.get_stats().steps_total - steps_before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    common: dict[str, Any] = {"max_running_requests": args.requests}
    sampled = LLMEngine(disable_jump_forward=True, **common)
    jumping = LLMEngine(**common)
    compact = LLMEngine(constrained_json_disable_any_whitespace=True, **common)
    schema = {"json_schema": json.dumps(SCHEMA)}
    kinds: dict[str, tuple[LLMEngine, dict[str, Any]]] = {
        "no grammar": (sampled, {}),
        "schema, sampled": (sampled, schema),
        "schema, jumping": (jumping, schema),
        "fixed blanks, jumping": (compact, schema),
    }
    table: dict[str, dict[str, float]] = {}
    for temperature in args.temperatures:
        results: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
        for repeat in range(args.repeats + 1):
            for kind, (engine, params) in kinds.items():
                result = run(engine, args.requests, args.tokens, temperature, params)
                if repeat > 0:  # the first round fills caches
                    results[kind].append(result)
        base = statistics.median(each["tokens_per_s"] for each in results["no grammar"])
        for kind, each_run in results.items():
            rate = statistics.median(each["tokens_per_s"] for each in each_run)
            steps = statistics.median(each["steps"] for each in each_run)
            row = {"tokens_per_s": round(rate), "of no grammar": round(rate / base, 3), "steps": steps}
            table[f"{kind}, temperature {temperature:g}"] = row
            print(f"{kind:24s} temperature {temperature:3g} {rate:9.0f} tokens/s {rate / base:6.3f} {steps:6.0f} steps")
    if args.output:
        args.output.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
