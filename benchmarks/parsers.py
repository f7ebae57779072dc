"""Microseconds per delta of taking an answer apart: plain text, code, thoughts, the arguments of a call, per format.

Beside it what happens without a parser: an event is made of every delta. ``hostile`` is a text that begins a call over
and over, per character.

    python benchmarks/parsers.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bough.parsers.base import Content, ToolSpec
from bough.parsers.dialect import make_dialect
from bough.parsers.tool_formats import TOOL_FORMATS

NUM_DELTAS = 10_000
HOSTILE_CHARS = 100_000
SLICE_CHARS = 4096
NUMBERS = {
    "text": NUM_DELTAS,
    "code": NUM_DELTAS,
    "thoughts": NUM_DELTAS,
    "arguments": NUM_DELTAS,
    "hostile": HOSTILE_CHARS,
}
WORDS = ["the", "of", "model", "naïve", "快速", "value", "0.25", "return", "été", "and", "is", "a", "which", "there"]
CODE = [" if", " (a", " <", " b", "):", "\n", "    ", " x", "[", "i", "]", " =", ' "', "y", '"', ";", " <=", " {", "}"]

TOOL = ToolSpec("write", None, {"type": "object", "properties": {"text": {"type": "string"}}}, strict=False)
OBJECT = ('{"name": "write", "arguments": {"text": "', '"}}')
CALLS: dict[str, tuple[str, str]] = {
    "deepseekv31": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write<｜tool▁sep｜>{"text": "',
        '"}<｜tool▁call▁end｜>',
    ),
    "glm45": ("<tool_call>write\n<arg_key>text</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>"),
    "gpt-oss": ('<|channel|>commentary to=functions.write <|constrain|>json<|message|>{"text": "', '"}<|call|>'),
    "hermes": ("<tool_call>\n" + OBJECT[0], OBJECT[1] + "\n</tool_call>"),
    "kimi_k2": (
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{"text": "',
        '"}<|tool_call_end|><|tool_calls_section_end|>',
    ),
    "llama3": ("<|python_tag|>" + OBJECT[0], OBJECT[1]),
    "mistral": ('[TOOL_CALLS]write[ARGS]{"text": "', '"}'),
    "pythonic": ("<|python_start|>[write(text='", "')]<|python_end|>"),
    "qwen3_coder": ("<tool_call>\n<function=write>\n<parameter=text>\n", "\n</parameter>\n</function>\n</tool_call>"),
}
"""What comes before and behind a text that is the argument of a call."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of which the fastest counts")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    results = measure(args.rounds)
    columns = list(NUMBERS)
    print(f"{'µs':14}" + "".join(f"{column:>18}" for column in columns))
    for name, figures in results.items():
        print(
            f"{name:14}" + "".join(f"{figures[column]:18.3f}" if column in figures else " " * 18 for column in columns)
        )
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def measure(rounds: int) -> dict[str, dict[str, float]]:
    draw = random.Random(0)
    words = [f" {draw.choice(WORDS)}" for _ in range(NUM_DELTAS)]
    code = [draw.choice(CODE) for _ in range(NUM_DELTAS)]
    results: dict[str, dict[str, float]] = {}
    for name in ("no parser", *CALLS):
        kinds: dict[str, Callable[[], None]] = {}
        if name == "no parser":
            for kind in ("text", "code"):
                kinds[kind] = without_parser(words if kind == "text" else code)
        else:
            before, behind = CALLS[name]
            start, end = ("<|channel|>analysis<|message|>", "<|end|>") if name == "gpt-oss" else ("<think>", "</think>")
            final = "<|channel|>final<|message|>" if name == "gpt-oss" else "\n"
            trigger = TOOL_FORMATS[name].triggers[0]
            kinds = {
                "text": parsed(name, [final, *words]),
                "code": parsed(name, [final, *code]),
                "thoughts": parsed(name, [start, *words, end]),
                "arguments": parsed(name, [before, *words, behind]),
                "hostile": parsed(name, slices(trigger * (HOSTILE_CHARS // len(trigger)))),
            }
        results[name] = {kind: best(case, rounds) * 1e6 / NUMBERS[kind] for kind, case in kinds.items()}
    return results


def without_parser(deltas: Sequence[str]) -> Callable[[], None]:
    def run() -> None:
        for delta in deltas:
            [Content(delta)]

    return run


def parsed(name: str, deltas: Sequence[str]) -> Callable[[], None]:
    dialect = make_dialect(
        None, tool_call_parser=name, reasoning_parser="gpt-oss" if name == "gpt-oss" else "deepseek-v3"
    )

    def run() -> None:
        parser = dialect.parser((TOOL,), parse_tools=True, separate_reasoning=True, thinking=False)
        assert parser is not None
        feed = parser.feed
        for delta in deltas:
            feed(delta)
        list(parser.finish())

    return run


def slices(text: str) -> list[str]:
    return [text[at : at + SLICE_CHARS] for at in range(0, len(text), SLICE_CHARS)]


def best(case: Callable[[], None], rounds: int) -> float:
    """Seconds of the fastest of several rounds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        case()
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    main()
