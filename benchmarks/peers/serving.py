"""Jobs through servers: those of Bough, llama.cpp, SGLang and vLLM with streaming clients, OpenVINO's pipeline fed the
same way."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import uvloop
from benchmarks.peers.cells import Cell
from benchmarks.peers.checkpoints import Precision
from benchmarks.peers.engines import Engines
from benchmarks.peers.llama_server import llama_server
from benchmarks.peers.python_servers import PYTHON_SERVERS
from benchmarks.peers.runners import Runner, WorkerRunner
from benchmarks.run_all import prefill_seconds, running_server

from bough.bench.backends import BACKENDS, Sampling
from bough.bench.client import BenchClient, Load, run_load
from bough.bench.datasets import BenchRequest, DatasetArgs, make_requests
from bough.bench.metrics import summarise
from bough.errors import StartupError

MAX_TOTAL_TOKENS = 65_536
REQUESTS, FEW_REQUESTS = 32, 3
FIRST_TOKEN_PROMPTS = 8

Measure = Callable[[int], dict[str, Any]]
"""Does a job once, with a seed; returns at least ``seconds`` and ``cpu_seconds``, the client's."""


@dataclass(frozen=True, slots=True)
class Job:
    """Requests of one length, some at a time."""

    dataset: DatasetArgs
    prompt_tokens: int
    output_tokens: int
    concurrency: int

    def requests(self, seed: int) -> list[BenchRequest]:
        """The requests of one repetition: none starts like those of another, so every repetition finds a cold cache."""
        return make_requests(replace(self.dataset, seed=seed), vocab_size=1)


def job_of(kind: str, vocab_size: int) -> Job:
    """The requests of one of :data:`JOBS`.

    Unrelated prompts, all at once (``server``) or a few one after the other (``server-1``), or a shared prefix, 8 at a
    time (``shared``).
    """
    if kind == "shared":
        dataset = DatasetArgs(
            dataset_name="generated-shared-prefix",
            gsp_num_groups=1,
            gsp_prompts_per_group=REQUESTS,
            gsp_system_prompt_len=512,
            gsp_question_len=32,
            gsp_output_len=32,
            vocab_size=vocab_size,
        )
        return Job(dataset, prompt_tokens=544, output_tokens=32, concurrency=8)
    if kind == "server-1":
        return _unrelated(FEW_REQUESTS, 128, 64, vocab_size, concurrency=1)
    return _unrelated(REQUESTS, 128, 64, vocab_size, concurrency=REQUESTS)


def _unrelated(requests: int, prompt_tokens: int, output_tokens: int, vocab_size: int, *, concurrency: int) -> Job:
    dataset = DatasetArgs(
        num_prompts=requests,
        random_input_len=prompt_tokens,
        random_output_len=output_tokens,
        random_range_ratio=1.0,
        vocab_size=vocab_size,
    )
    return Job(dataset, prompt_tokens, output_tokens, concurrency)


def measure_job(cell: Cell, engines: Engines, runners: Mapping[str, Runner], precision: Precision) -> dict[str, Any]:
    """A job through every server, in turns; Bough's engine without a server beside it."""
    job = job_of(cell.kind, engines.checkpoints.config["vocab_size"])
    with contextlib.ExitStack() as stack:
        ways: dict[str, Measure] = {}
        for name, runner in runners.items():
            if name == "llama.cpp":
                ways[name] = through_http(stack.enter_context(llama_server_for(engines, precision, job)), job)
            elif name == "bough":
                ways[name] = through_http(stack.enter_context(bough_server(engines, precision)), job)
                ways["bough offline"] = through_worker(runner, job)
            elif name == "openvino":
                ways[name] = through_worker(runner, job)
        for name, server in python_servers(engines, precision):
            ways[name] = through_http(stack.enter_context(server), job)
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
        for turn in range(-1, cell.pairs):  # the first is for warming up
            for name in sorted(ways, reverse=turn % 2 == 0):
                result = ways[name](turn + 1)
                if turn >= 0:
                    results[name].append(result)
    tokens = len(job.requests(0)) * job.output_tokens
    rates = {
        name: [tokens / each["seconds"] for each in done] for name, done in results.items() if name != "bough offline"
    }
    return {"rates": rates, "jobs": results}


def measure_first_token(cell: Cell, engines: Engines, precision: Precision) -> dict[str, Any]:
    """How long an idle server takes for the first token of 32, beside the forward passes that computed them."""
    vocab_size = engines.checkpoints.config["vocab_size"]
    job = _unrelated(FIRST_TOKEN_PROMPTS, 32, 2, vocab_size, concurrency=1)
    results = []
    with bough_server(engines, precision) as url:
        measure = through_http(url, job)
        measure(0)
        for turn in range(cell.pairs):
            before = prefill_seconds(url)
            ttft = measure(turn + 1)["mean_ttft_ms"]
            forward = (prefill_seconds(url) - before) * 1e3 / FIRST_TOKEN_PROMPTS
            results.append({"ttft_ms": ttft, "forward_ms": forward, "ratio": ttft / forward})
    return {"rates": {}, "first_token": results}


def bough_server(engines: Engines, precision: Precision) -> contextlib.AbstractContextManager[str]:
    """``bough serve``; gives its URL."""
    options: dict[str, Any] = {
        "model-path": str(engines.checkpoints.hugging_face()),
        "dtype": "bfloat16",
        "max-total-tokens": MAX_TOTAL_TOKENS,
        "cpu-threads": engines.threads,
    }
    return running_server(options if precision == "bf16" else {**options, "quantization": precision})


def llama_server_for(engines: Engines, precision: Precision, job: Job) -> contextlib.AbstractContextManager[str]:
    """llama.cpp's server, with room for all of a job; gives its URL."""
    return llama_server(
        engines.environment.tool("llama-server"),
        engines.checkpoints.gguf(precision),
        threads=engines.threads,
        slots=job.concurrency,
        slot_tokens=job.prompt_tokens + job.output_tokens,
    )


def python_servers(
    engines: Engines, precision: Precision
) -> Iterator[tuple[str, contextlib.AbstractContextManager[str]]]:
    """SGLang's and vLLM's, where they are to be measured and take the precision; each gives its URL."""
    if precision != "bf16":
        return
    for name, python in engines.interpreters.items():
        model = engines.checkpoints.hugging_face()
        yield name, PYTHON_SERVERS[name](python, model, threads=engines.threads, max_tokens=MAX_TOTAL_TOKENS)


def through_http(url: str, job: Job) -> Measure:
    """Measures a server with the client of ``bough bench serve``, over the interface that all servers have."""

    def measure(seed: int) -> dict[str, Any]:
        requests = job.requests(seed)
        result = uvloop.run(_send(url, requests, job.concurrency))
        wanted = sum(request.output_len for request in requests)
        if result["total_output_tokens"] != wanted:
            raise StartupError(f"{url}: {result['total_output_tokens']} tokens, not {wanted}: {result['errors']}")
        return {
            "seconds": result["duration"],
            "cpu_seconds": result["client_cpu_seconds"],
            "computed_prompt_tokens": result["total_computed_input_tokens"],
            "mean_ttft_ms": result["mean_ttft_ms"],
        }

    return measure


async def _send(url: str, requests: list[BenchRequest], concurrency: int) -> dict[str, Any]:
    """Figures of one run."""
    async with client_of(url) as client:
        load = Load(max_concurrency=concurrency)
        return summarise(await run_load(client, requests, BACKENDS["oai"], "any", Sampling(), load))


@contextlib.asynccontextmanager
async def client_of(url: str) -> AsyncIterator[BenchClient]:
    """A client of a server. Every request has a connection of its own: llama-server closes used ones without a word."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        yield BenchClient(session, url)


def through_worker(runner: Runner, job: Job) -> Measure:
    """Measures an engine without a server; its worker process is the client."""
    assert isinstance(runner, WorkerRunner)

    def measure(seed: int) -> dict[str, Any]:
        prompts = [request.input_ids for request in job.requests(seed)]
        return runner.ask("serve", prompts=prompts, max_tokens=job.output_tokens, concurrency=job.concurrency)

    return measure
