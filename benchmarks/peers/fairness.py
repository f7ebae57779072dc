"""Who has to wait when others come: first tokens and gaps between tokens, with the same arrivals for every engine.

Everybody cuts prompts as it does by default: that is what decides how long others wait. A first token is counted from
the moment at which its request was to arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import uvloop
from benchmarks.peers.cells import SHARES_OF_CAPACITY, Cell
from benchmarks.peers.checkpoints import Precision
from benchmarks.peers.engines import Engines
from benchmarks.peers.runners import Runner, WorkerRunner
from benchmarks.peers.serving import (
    Job,
    Measure,
    bough_server,
    client_of,
    llama_server_for,
    through_http,
    through_worker,
)

from bough.bench.backends import BACKENDS, Sampling
from bough.bench.datasets import BenchRequest, DatasetArgs
from bough.errors import StartupError

OPENVINO_BATCHED_TOKENS = 256
"""Its default, which divides prompts into smaller pieces than what its other figures are measured with."""
ARRIVALS = 16
"""Of a repetition."""
PROMPT_TOKENS, OUTPUT_TOKENS = 256, 64
"""Most of a request that arrives at random; each has between half and all of it."""
LONG_TOKENS = 8192
LONG_AT = 1.0
STREAMS, STREAM_TOKENS = 2, 96
"""Outputs that are being made when the long prompt comes."""
SHORTS, SHORT_TOKENS, SHORT_OUTPUT_TOKENS = 12, 64, 16
SHORT_RATE = 2.0
"""Short requests a second, behind the long one: all of them come before the fastest engine is through with that."""
WARM_UP_REQUESTS = 2
CAPACITY_SEEDS = (1, 2, 3)
TURN_SEEDS = 1000
"""Repetitions have seeds from here on, and jobs before them those below: nobody knows a prompt yet."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request, and when it comes."""

    at: float
    """Seconds from the start of the repetition."""
    request: BenchRequest
    is_timed: bool = True
    """Whether its first token is of interest; its gaps are, in any case."""


Arrivals = list[Arrival]
Waits = dict[str, list[float]]
"""``first_token`` and ``gaps``, in seconds, of one repetition."""


@dataclass(frozen=True, slots=True)
class Way:
    """How an engine is asked."""

    do_job: Measure
    serve: Callable[[Arrivals], Waits]


def traffic(vocab_size: int, requests: int) -> Job:
    """Requests of mixed lengths; as a job, all at once, which finds what an engine gets done."""
    dataset = DatasetArgs(
        num_prompts=requests,
        random_input_len=PROMPT_TOKENS,
        random_output_len=OUTPUT_TOKENS,
        random_range_ratio=0.5,
        vocab_size=vocab_size,
    )
    return Job(dataset, PROMPT_TOKENS, OUTPUT_TOKENS, concurrency=requests)


def at_random(job: Job, rate: float, seed: int) -> Arrivals:
    """The requests of a job at the moments of a Poisson process, ``rate`` a second."""
    requests = job.requests(seed)
    moments = np.random.default_rng(seed).exponential(1.0 / rate, len(requests)).cumsum().tolist()
    return [Arrival(at, request) for at, request in zip(moments, requests, strict=True)]


def behind_a_long_one(vocab_size: int, seed: int) -> Arrivals:
    """Outputs that are being made, then a long prompt, and short requests at random moments behind it."""
    rng = np.random.default_rng(seed)

    def request(prompt_tokens: int, output_tokens: int) -> BenchRequest:
        return BenchRequest(output_tokens, input_ids=rng.integers(0, vocab_size - 1, prompt_tokens).tolist())

    arrivals = [Arrival(0.0, request(SHORT_TOKENS, STREAM_TOKENS), is_timed=False) for _ in range(STREAMS)]
    arrivals.append(Arrival(LONG_AT, request(LONG_TOKENS, 1), is_timed=False))
    moments = LONG_AT + rng.exponential(1.0 / SHORT_RATE, SHORTS).cumsum()
    return arrivals + [Arrival(at, request(SHORT_TOKENS, SHORT_OUTPUT_TOKENS)) for at in moments.tolist()]


def measure_waits(cell: Cell, engines: Engines, runners: Mapping[str, Runner], precision: Precision) -> dict[str, Any]:
    """What all requests of all repetitions had to wait for, engines in turns.

    A rate is a share of what the slowest engine gets done, so that nobody is overloaded.
    """
    vocab_size = engines.checkpoints.config["vocab_size"]
    share = SHARES_OF_CAPACITY.get(cell.kind)
    job = traffic(vocab_size, ARRIVALS if share else WARM_UP_REQUESTS)
    room = job if share else Job(job.dataset, LONG_TOKENS, 1, concurrency=STREAMS + 1 + SHORTS)
    figures: dict[str, Any] = {"rates": {}}
    with contextlib.ExitStack() as stack:
        ways = _open(stack, engines, runners, precision, job, room)
        for way in ways.values():
            way.do_job(0)  # the first one is slower: memory is touched, and kernels are made for shapes
        if share:
            seconds = {name: [way.do_job(seed)["seconds"] for seed in CAPACITY_SEEDS] for name, way in ways.items()}
            capacities = {name: job.concurrency / statistics.median(each) for name, each in seconds.items()}
            rate = share * min(capacities.values())
            figures |= {"arrivals_per_second": rate, "capacities": capacities}
        waits: dict[str, list[Waits]] = {name: [] for name in ways}
        for turn in range(cell.pairs):
            seed = TURN_SEEDS + turn
            arrivals = at_random(job, rate, seed) if share else behind_a_long_one(vocab_size, seed)
            for name in sorted(ways, reverse=turn % 2 == 0):
                waits[name].append(ways[name].serve(arrivals))
    return figures | {"waits": waits}


def _open(
    stack: contextlib.ExitStack,
    engines: Engines,
    runners: Mapping[str, Runner],
    precision: Precision,
    job: Job,
    room: Job,
) -> dict[str, Way]:
    ways: dict[str, Way] = {}
    for name in runners:
        if name in ("bough", "llama.cpp"):
            server = bough_server(engines, precision) if name == "bough" else llama_server_for(engines, precision, room)
            url = stack.enter_context(server)
            ways[name] = Way(through_http(url, job), _arrivals_over_http(url))
        elif name == "openvino":
            worker = engines.open_worker(name, precision, max_batched_tokens=OPENVINO_BATCHED_TOKENS)
            stack.callback(worker.close)
            ways[name] = Way(through_worker(worker, job), _arrivals_to_worker(worker))
    return ways


def _arrivals_over_http(url: str) -> Callable[[Arrivals], Waits]:
    return lambda arrivals: uvloop.run(_send(url, arrivals))


async def _send(url: str, arrivals: Arrivals) -> Waits:
    waits: Waits = {"first_token": [], "gaps": []}

    async with client_of(url) as client:
        begin = time.perf_counter()

        async def ask(arrival: Arrival) -> None:
            await asyncio.sleep(begin + arrival.at - time.perf_counter())
            answer = await client.ask(arrival.request, BACKENDS["oai"], "any", Sampling())
            if answer.error is not None or answer.ttft is None:
                raise StartupError(f"{url}: {answer.error or 'an answer without tokens'}")
            if arrival.is_timed:
                waits["first_token"].append(answer.sent_at + answer.ttft - begin - arrival.at)
            waits["gaps"] += answer.gaps

        await asyncio.gather(*map(ask, arrivals))
    return waits


def _arrivals_to_worker(worker: WorkerRunner) -> Callable[[Arrivals], Waits]:
    def serve(arrivals: Arrivals) -> Waits:
        requests = [arrival.request for arrival in arrivals]
        times = worker.ask(
            "arrive",
            moments=[arrival.at for arrival in arrivals],
            prompts=[request.input_ids for request in requests],
            max_tokens=[request.output_len for request in requests],
        )["times"]
        return {
            "first_token": [
                each[0] - arrival.at for arrival, each in zip(arrivals, times, strict=True) if arrival.is_timed
            ],
            "gaps": [after - before for each in times for before, after in pairwise(each)],
        }

    return serve
