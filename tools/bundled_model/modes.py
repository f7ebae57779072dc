"""Measure the bundled model through servers, in every precision and cache mode of a CPU.

``python tools/bundled_model/modes.py --model DIRECTORY`` starts one server after the other and prints a table in
Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measure import TEMPERATURES, Score, ServedAnswers, measure

from bough import Runtime

PRECISIONS: Mapping[str, Mapping[str, Any]] = {
    "bfloat16": {},
    "float32": {"dtype": "float32"},
    "int8 weights": {"quantization": "int8"},
    "int4 weights": {"quantization": "int4"},
}
CACHES: Mapping[str, Mapping[str, Any]] = {"": {}, ", int8 cache": {"kv_cache_dtype": "int8"}}
MODES: Mapping[str, Mapping[str, Any]] = {
    **{
        precision + cache: {**of_weights, **of_cache}
        for precision, of_weights in PRECISIONS.items()
        for cache, of_cache in CACHES.items()
    },
    "float32, bfloat16 cache": {"dtype": "float32", "kv_cache_dtype": "bfloat16"},
    "float16": {"dtype": "float16"},
    "no prefixes kept": {"disable_radix_cache": True},
    "int4 weights, int8 cache, no prefixes kept": {
        "quantization": "int4",
        "kv_cache_dtype": "int8",
        "disable_radix_cache": True,
    },
    "pages of one token": {"page_size": 1},
    "prompts in parts of 32 tokens": {"chunked_prefill_size": 32},
}
# What the first letters of a skill's name say.
GROUPS = ("arithmetic", "JSON extraction", "tool choice", "everyday tools", "")


def share(scores: Mapping[str, Score], group: str) -> str:
    """How much was right in a group of skills."""
    chosen = [score for skill, score in scores.items() if skill.startswith(group)]
    return f"{100 * sum(score.right for score in chosen) / sum(score.cases for score in chosen):.1f} %"


def measure_modes(model: Path, count: int) -> str:
    """A table with a row for each mode and a column for each group of skills and temperature."""
    columns = [f"{group or 'all'}, {temperature:g}" for group in GROUPS for temperature in TEMPERATURES]
    lines = [f"| mode | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for mode, options in MODES.items():
        with Runtime(model_path=str(model), served_model_name="sapling", **options) as runtime:
            answers = ServedAnswers(runtime.url)
            found = [measure(answers, count, temperature) for temperature in TEMPERATURES]
        cells = [share(scores, group) for group in GROUPS for scores in found]
        lines.append(f"| {mode} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="directory of the model")
    parser.add_argument("--cases", type=int, default=200, help="about this many of each module of skills")
    arguments = parser.parse_args()
    print(measure_modes(arguments.model, arguments.cases))


if __name__ == "__main__":
    main()
