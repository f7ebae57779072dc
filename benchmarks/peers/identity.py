"""Shows that all engines compute the same model: how far their greedy outputs of the same prompts agree."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping, Sequence
from itertools import takewhile

from benchmarks.peers.checkpoints import Precision
from benchmarks.peers.engines import Engines
from benchmarks.peers.llama_server import llama_server
from benchmarks.peers.runners import Runner, WorkerRunner

PROMPTS = [[(start * 977 + 31 * i) % 20_000 for i in range(24)] for start in range(1, 9)]
"""Ids that every vocabulary has."""
TOKENS = 16


def greedy_outputs(engines: Engines, runners: Mapping[str, Runner], precision: Precision) -> dict[str, list[list[int]]]:
    """Engine to what it answers :data:`PROMPTS` with."""
    outputs = {
        name: runner.ask("generate", prompts=PROMPTS, max_tokens=TOKENS)["outputs"]
        for name, runner in runners.items()
        if isinstance(runner, WorkerRunner)
    }
    if "llama.cpp" in runners:
        server = llama_server(
            engines.environment.tool("llama-server"),
            engines.checkpoints.gguf(precision),
            threads=engines.threads,
            slots=1,
            slot_tokens=len(PROMPTS[0]) + TOKENS,
        )
        with server as url:
            outputs["llama.cpp"] = [_complete(url, prompt) for prompt in PROMPTS]
    return outputs


def _complete(url: str, prompt: list[int]) -> list[int]:
    body = {"prompt": prompt, "n_predict": TOKENS, "temperature": 0.0, "ignore_eos": True, "return_tokens": True}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/completion", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        tokens: list[int] = json.load(answer)["tokens"]
    return tokens


def agreeing_tokens(ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]) -> list[int]:
    """For each prompt, how many tokens two engines agree on before they part."""
    return [
        len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
        for one, other in zip(ours, theirs, strict=True)
    ]
