"""The command lines of llama.cpp's benchmark programs, and what they print."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.peers.cells import CONTEXT_TOKENS, Cell

DECODE_STEPS = {1: 48, 8: 24, 32: 12}
"""Batch to the steps of one measurement: about a second, around the context of the others."""
CONTEXT_STEP = 256
"""What llama.cpp rounds the context of a sequence to."""


def bench_command(cell: Cell, model: Path, threads: int, repetitions: int) -> list[str]:
    """Arguments of ``llama-bench``: a prompt, or decoding behind a long one, which it computes once."""
    if cell.is_prefill:
        work = ["-p", str(cell.prompt_tokens), "-n", "0"]
    else:
        work = ["-p", "0", "-n", str(cell.steps), "-d", str(cell.prompt_tokens)]
    return ["-m", str(model), "-t", str(threads), *work, "-r", str(repetitions), "-o", "json"]


def parse_bench(output: str) -> list[float]:
    """Tokens per second of each repetition."""
    (test,) = json.loads(output)
    return [float(rate) for rate in test["samples_ts"]]


def batched_bench_command(cell: Cell, model: Path, threads: int) -> list[str]:
    """Arguments of ``llama-batched-bench``: sequences that start as copies of one, whose prompt alone is computed."""
    steps = DECODE_STEPS[cell.batch]
    prompt = CONTEXT_TOKENS - steps // 2
    return [
        *("-m", str(model), "-t", str(threads), "-c", str(cell.batch * CONTEXT_STEP)),
        *("-npp", str(prompt), "-ntg", str(steps), "-npl", str(cell.batch), "-pps", "--output-format", "jsonl"),
    ]


def parse_batched_bench(output: str) -> float:
    """Tokens per second of decoding, all sequences together."""
    (line,) = (line for line in output.splitlines() if line.startswith("{"))
    return float(json.loads(line)["speed_tg"])
