"""A process that holds one engine and measures it on request, so that engines can take turns without loading again.

    python -m benchmarks.peers.worker ENGINE MODEL PRECISION THREADS OPTIONS

runs in the environment of its engine. Requests and answers are lines of JSON on standard input and output; see
:data:`ACTIONS`. Between requests it does nothing.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections import deque
from typing import Any, Protocol


class StepEngine(Protocol):
    """An engine that is driven step by step. All outputs are greedy and ignore ends of sequence."""

    facts: dict[str, Any]
    """What is worth writing down about it: versions, sizes."""

    def add(self, key: int, prompt: list[int], max_tokens: int) -> None:
        """Take a request."""

    def step(self) -> dict[int, list[int]]:
        """Compute one step; returns the new tokens of each request that got any."""

    def drop(self) -> None:
        """End all requests."""


ENGINES = {
    "bough": "benchmarks.peers.bough_engine",
    "openvino": "benchmarks.peers.openvino_engine",
    "transformers": "benchmarks.peers.transformers_engine",
}
"""Name to a module with ``open_engine(model, precision, threads, **options)``."""
UNENDING = 100_000
"""Most tokens of a request that is dropped when it has been measured; cut by the engine to what fits its context."""


def prefill(engine: StepEngine, prompt: list[int]) -> dict[str, Any]:
    """Seconds until the first token of a prompt."""
    begin = time.perf_counter()
    engine.add(0, prompt, 1)
    while not engine.step():
        pass
    seconds = time.perf_counter() - begin
    engine.drop()
    return {"seconds": seconds}


def start(engine: StepEngine, prompts: list[list[int]], max_tokens: int) -> dict[str, Any]:
    """Take prompts and compute them, so that :func:`decode` finds them all at their outputs."""
    for key, prompt in enumerate(prompts):
        engine.add(key, prompt, max_tokens)
    waiting = set(range(len(prompts)))
    while waiting:
        waiting -= engine.step().keys()
    return {}


def decode(engine: StepEngine, steps: int, batch: int) -> dict[str, Any]:
    """Seconds of some steps, and how many tokens they made: one of each of ``batch`` sequences.

    Raises:
        RuntimeError: if not every step made one of each; then this is no figure of that batch.
    """
    tokens = 0
    begin = time.perf_counter()
    for _ in range(steps):
        tokens += sum(map(len, engine.step().values()))
    seconds = time.perf_counter() - begin
    if tokens != steps * batch:
        raise RuntimeError(f"{steps} steps of {batch} sequences made {tokens} tokens, not {steps * batch}")
    return {"seconds": seconds, "tokens": tokens}


def drop(engine: StepEngine) -> dict[str, Any]:
    """End what :func:`start` began."""
    engine.drop()
    return {}


def generate(engine: StepEngine, prompts: list[list[int]], max_tokens: int) -> dict[str, Any]:
    """The outputs of prompts."""
    return {"outputs": _serve(engine, prompts, max_tokens, len(prompts))}


def serve(engine: StepEngine, prompts: list[list[int]], max_tokens: int, concurrency: int) -> dict[str, Any]:
    """Seconds for a job whose clients each send a prompt when they have the answer to their last one."""
    begin, cpu = time.perf_counter(), time.process_time()
    _serve(engine, prompts, max_tokens, concurrency)
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}


def _serve(engine: StepEngine, prompts: list[list[int]], max_tokens: int, concurrency: int) -> list[list[int]]:
    waiting = deque(enumerate(prompts))
    outputs: list[list[int]] = [[] for _ in prompts]
    running: set[int] = set()
    while waiting or running:
        while waiting and len(running) < concurrency:
            key, prompt = waiting.popleft()
            engine.add(key, prompt, max_tokens)
            running.add(key)
        for key, tokens in engine.step().items():
            outputs[key] += tokens
            if len(outputs[key]) >= max_tokens:
                running.discard(key)
    engine.drop()
    return outputs


def arrive(engine: StepEngine, moments: list[float], prompts: list[list[int]], max_tokens: list[int]) -> dict[str, Any]:
    """Take requests at their moments, in seconds from now, ascending; returns when tokens of each of them came.

    What arrives during a step is taken after it.
    """
    waiting = deque(enumerate(moments))
    times: list[list[float]] = [[] for _ in moments]
    missing = dict(enumerate(max_tokens))
    begin = time.perf_counter()
    while missing:
        now = time.perf_counter() - begin
        if waiting and len(missing) == len(waiting) and waiting[0][1] > now:
            time.sleep(waiting[0][1] - now)
            continue
        while waiting and waiting[0][1] <= now:
            key, _ = waiting.popleft()
            engine.add(key, prompts[key], max_tokens[key])
        news = engine.step()
        now = time.perf_counter() - begin
        for key, tokens in news.items():
            times[key].append(now)
            missing[key] -= len(tokens)
            if missing[key] <= 0:
                del missing[key]
    engine.drop()
    return {"times": times}


ACTIONS = {each.__name__: each for each in (prefill, start, decode, drop, generate, serve, arrive)}


def main(argv: list[str]) -> None:
    """Open the engine, tell its facts, then do what is asked until standard input ends."""
    name, model, precision, threads, options = argv
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not get between the answers
    try:
        module = importlib.import_module(ENGINES[name])
        engine: StepEngine = module.open_engine(model, precision, int(threads), **json.loads(options))
    except Exception as error:
        print(json.dumps({"error": str(error)}), file=answers, flush=True)
        raise
    print(json.dumps(engine.facts), file=answers, flush=True)
    for line in sys.stdin:
        action, arguments = json.loads(line)
        print(json.dumps(ACTIONS[action](engine, **arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
