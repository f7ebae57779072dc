"""What one client's extremes do to the token gaps of the others.

Four streams run all the time. Meanwhile another client sends, again and again: nothing (the yardstick), or something
extreme. Reported: median and 99th percentile of the streams' gaps, and their ratio to the yardstick's in the same run,
phases interleaved. With the bundled model, or the one in the flags, extremes beyond its context are refused; a made-up
model with a context of 1.2 million tokens takes them in and computes them until the phase ends and the client hangs up.

    python benchmarks/neighbours.py --output results/neighbours.json [flags of bough serve]
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import uvloop

from bough.bench.options import write_json
from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.options import OptionTable, option
from bough.config.server_args import ServerArgs
from run_all import running_server
from server_overhead import CONFIG, make_checkpoint

STREAMS = 4
STREAM_TOKENS = 3000


@dataclass(frozen=True, kw_only=True, slots=True)
class NeighboursArgs(OptionTable):
    seconds: float = option(4.0, help="Length of each phase.", group="Run", minimum=1.0)
    rounds: int = option(3, help="How often each phase is repeated.", group="Run", minimum=1)
    output: str = option("results/neighbours.json", help="Where the figures go.", group="Run", metavar="FILE")


def long_text(rng: random.Random) -> dict[str, Any]:
    return {"text": "".join(rng.choices("abcdefgh ", k=2_000_000))}


def million_ids(rng: random.Random) -> dict[str, Any]:
    return {"input_ids": rng.choices(range(100, 1000), k=1_000_000)}


def prompt_logprobs(rng: random.Random) -> dict[str, Any]:
    ids = rng.choices(range(100, 1000), k=3900)
    return {"input_ids": ids, "return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 5}


def long_prompt(rng: random.Random) -> dict[str, Any]:
    return {"input_ids": rng.choices(range(100, 1000), k=3900)}


Make = Callable[[random.Random], dict[str, Any]]
EXTREMES: dict[str, Make] = {"2 MB of text": long_text, "a million ids": million_ids}
PHASES: dict[str, Make] = {
    **EXTREMES,
    "prompts of 3,900 ids": long_prompt,
    "logprobs of 3,900 prompt tokens": prompt_logprobs,
}
NOBODY = "nobody"
LONG_CONTEXT = {
    **CONFIG,
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": 1_200_000,
}


class Phase:
    """Which phase it is, for the streams that run through all of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.name: str | None = None
        self.gaps: dict[str, list[float]] = {name: [] for name in names}
        self.statuses: dict[str, set[int | str]] = {name: set() for name in names}


async def stream_for_ever(session: aiohttp.ClientSession, url: str, seed: int, phase: Phase) -> None:
    rng = random.Random(seed)
    while True:
        body = {
            "input_ids": rng.choices(range(100, 1000), k=16),
            "stream": True,
            "sampling_params": {"temperature": 0, "max_new_tokens": STREAM_TOKENS, "ignore_eos": True},
        }
        last = None
        async with session.post(f"{url}/generate", json=body, raise_for_status=True) as response:
            async for _ in response.content.iter_any():
                now = time.perf_counter()
                if last is not None and phase.name is not None:
                    phase.gaps[phase.name].append(now - last)
                last = now


async def disturb(session: aiohttp.ClientSession, url: str, bodies: list[bytes], statuses: set[int | str]) -> None:
    turn = 0
    while True:
        body = bodies[turn % len(bodies)]
        turn += 1
        try:
            async with session.post(f"{url}/generate", data=body) as response:
                await response.read()
                statuses.add(response.status)
        except aiohttp.ClientError as error:
            statuses.add(type(error).__name__)
        await asyncio.sleep(0.05)


async def obey(url: str, bodies: dict[str, list[bytes]], orders: Connection) -> None:
    """Send the bodies of each phase that is ordered, until the next order, which is answered with their statuses."""
    loop = asyncio.get_running_loop()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        nuisance: asyncio.Task[None] | None = None
        statuses: set[int | str] = set()
        while (name := await loop.run_in_executor(None, orders.recv)) is not None:
            if nuisance is not None:
                nuisance.cancel()
                await asyncio.gather(nuisance, return_exceptions=True)
            orders.send(statuses)
            statuses = set()
            nuisance = asyncio.create_task(disturb(session, url, bodies[name], statuses)) if name in bodies else None


def run_nuisance(url: str, names: Iterable[str], orders: Connection) -> None:
    """A client in a process of its own, which makes its bodies and then does as it is told."""
    rng = random.Random(0)
    bodies = {
        name: [json.dumps({**PHASES[name](rng), "sampling_params": {"max_new_tokens": 1}}).encode() for _ in range(8)]
        for name in names
    }
    orders.send(set())
    uvloop.run(obey(url, bodies, orders))


async def measure(url: str, phases: Sequence[str], args: NeighboursArgs) -> Phase:
    """Run all phases in turns."""
    phase = Phase([NOBODY, *phases])
    orders, theirs = multiprocessing.Pipe()
    # A client that sends megabytes stalls what else runs on its event loop, such as the streams that are measured.
    nuisance = multiprocessing.get_context("spawn").Process(
        target=run_nuisance, args=(url, phases, theirs), daemon=True
    )
    nuisance.start()
    theirs.close()  # so that its end is noticed
    loop = asyncio.get_running_loop()

    async def order(name: str) -> set[int | str]:
        """Have it begin a phase; returns what it was answered with in the one before."""
        orders.send(name)
        answered: set[int | str] = await loop.run_in_executor(None, orders.recv)
        return answered

    await loop.run_in_executor(None, orders.recv)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        streams = [asyncio.create_task(stream_for_ever(session, url, seed, phase)) for seed in range(STREAMS)]
        await asyncio.sleep(2.0)
        for _ in range(args.rounds):
            for name in phase.gaps:
                await order(name)
                await asyncio.sleep(0.5)
                phase.name = name
                await asyncio.sleep(args.seconds)
                phase.name = None
                phase.statuses[name] |= await order(NOBODY)
                for task in streams:
                    if task.done():
                        task.result()  # raises: a stream that is lost would only make the others look better
                await asyncio.sleep(0.5)
        orders.send(None)
        for task in streams:
            task.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
    nuisance.join()
    return phase


def main(argv: list[str]) -> None:
    """Measure and print."""
    parser = CommandParser(prog="neighbours.py", usage="neighbours.py [flags]", description=__doc__ or "")
    add_options(parser, NeighboursArgs)
    add_options(parser, ServerArgs)
    add_config_option(parser)
    namespace = parser.parse_args(argv)
    args = NeighboursArgs(**given_options(namespace, NeighboursArgs))
    options = {"incremental_streaming_output": True, **given_options(namespace, ServerArgs, config=namespace.config)}
    results = {}
    with running_server(options) as url:
        results["model"] = report("the model", uvloop.run(measure(url, list(PHASES), args)))
    with tempfile.TemporaryDirectory() as directory:
        make_checkpoint(Path(directory), LONG_CONTEXT)
        options |= {"model_path": directory, "load_format": "dummy", "max_total_tokens": 1_250_000}
        with running_server(options) as url:
            results["long context"] = report("a context of 1.2 million", uvloop.run(measure(url, list(EXTREMES), args)))
    write_json(Path(args.output), results)


def report(title: str, phase: Phase) -> list[dict[str, Any]]:
    """Print a table; returns its rows."""
    rows: list[dict[str, Any]] = []
    print(f"{title:32} {'p50 ms':>8} {'p99 ms':>8} {'ratio p50':>10} {'ratio p99':>10}  answered with")
    for name, gaps in phase.gaps.items():
        median, p99 = (float(np.percentile(gaps, q)) * 1e3 for q in (50, 99))
        row: dict[str, Any] = {"phase": name, "gaps": len(gaps), "p50_ms": median, "p99_ms": p99}
        rows.append(row)
        row["ratio_p50"], row["ratio_p99"] = median / rows[0]["p50_ms"], p99 / rows[0]["p99_ms"]
        row["statuses"] = sorted(phase.statuses[name], key=str)
        answered = ", ".join(map(str, row["statuses"])) or ("" if name == NOBODY else "nothing yet")
        print(f"{name:32} {median:8.2f} {p99:8.2f} {row['ratio_p50']:10.2f} {row['ratio_p99']:10.2f}  {answered}")
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
