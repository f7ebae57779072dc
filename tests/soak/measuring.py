"""What a long run of a server is judged by: what its processes hold, and how fast it answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.e2e.server import Server, running_server
from tests.e2e.test_fake_model import make_checkpoint

NAMES = ("main", "scheduler", "detokenizer")
FLAGS = ("--max-total-tokens", "16384", "--max-running-requests", "16")


@contextlib.contextmanager
def server_without_model(directory: Path, *flags: str, module: str = "bough.launch_server") -> Iterator[Server]:
    """A whole server, whose model costs nothing, so that everything around it is what is measured."""
    make_checkpoint(directory)
    with running_server(directory, "--model-path", str(directory), *FLAGS, *flags, module=module) as server:
        yield server


def resident_bytes(server: Server) -> list[int]:
    """Memory that each process has of its own, in the order of :data:`NAMES`.

    What is mapped from files does not count, which a kernel may drop whenever nobody looks at it, and neither does
    whether it has moved anything to a swap.
    """
    return [_own_bytes(process.pid) for process in server.processes()]


def _own_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem", "VmSwap")))


def descriptors(server: Server) -> list[int]:
    return [process.num_fds() for process in server.processes()]


@dataclass(frozen=True)
class Slope:
    """A straight line through points, and how sure its slope is."""

    value: float
    error: float
    """half of the 95 % confidence interval"""

    def __str__(self) -> str:
        return f"{self.value:+.1f} ± {self.error:.1f}"


def slope(xs: Sequence[float], ys: Sequence[float]) -> Slope:
    """Least squares; the interval takes the residuals for independent, with 1.96 for any number of points."""
    count = len(xs)
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    spread = sum((x - mean_x) ** 2 for x in xs)
    value = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    residuals = sum((y - mean_y - value * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    return Slope(value, 1.96 * math.sqrt(residuals / max(count - 2, 1) / spread))


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
STATUSES: dict[str, set[int]] = {"wrong": {400}, "aborted": {200}}


def request_of_some_kind(rng: random.Random, number: int) -> tuple[str, str, dict[str, Any]]:
    """Kind, path and body of a request; every kind that a text server takes."""
    kind = rng.choice(
        ("stream", "whole", "samples", "logprobs", "stop", "schema", "completion", "ids", "timed", "wrong", "aborted")
    )
    text = f"{rng.choice(('once', 'twice', 'never'))} upon a time {rng.randrange(50)} " * rng.randrange(1, 6)
    tokens = rng.randrange(1, 24)
    sampling: dict[str, Any] = {"max_new_tokens": tokens, "temperature": rng.choice((0.0, 0.8)), "ignore_eos": True}
    body: dict[str, Any] = {"text": text, "sampling_params": sampling}
    if kind == "completion":
        return kind, "/v1/completions", {"prompt": text, "max_tokens": tokens}
    if kind == "stream":
        body["stream"] = True
    elif kind == "samples":
        sampling["n"] = rng.randrange(2, 5)
    elif kind == "logprobs":
        body.update(return_logprob=True, top_logprobs_num=3, logprob_start_len=0)
    elif kind == "stop":
        sampling["stop"] = ["e", "zz"]
    elif kind == "schema":
        sampling["json_schema"] = json.dumps({**SCHEMA, "title": str(rng.randrange(20))})
    elif kind == "ids":
        body = {"input_ids": [rng.randrange(200) for _ in range(rng.randrange(1, 200))], "sampling_params": sampling}
    elif kind == "timed":
        body["timeout"] = 60
    elif kind == "wrong":
        sampling["top_p"] = 7
    elif kind == "aborted":
        sampling["max_new_tokens"] = 900
        body["rid"] = f"gone-{number}"
    return kind, "/generate", body


@dataclass
class Run:
    """What came of a run.

    Attributes:
        latencies: seconds of each request that was answered, in order of its end.
        wrong: what should not have happened.
    """

    latencies: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


async def run_mixed(url: str, count: int, concurrency: int, seed: int, run: Run) -> None:
    """Ask ``count`` requests of mixed kinds, ``concurrency`` at a time."""
    numbers = iter(range(count))
    loop = asyncio.get_running_loop()

    async def work(session: aiohttp.ClientSession, rng: random.Random) -> None:
        for number in numbers:
            kind, path, body = request_of_some_kind(rng, seed * 1_000_000 + number)
            begin = loop.time()
            asking = asyncio.create_task(_ask(session, url + path, body))
            if kind == "aborted":
                await asyncio.sleep(0.005)
                async with session.post(f"{url}/abort_request", json={"rid": body["rid"]}) as response:
                    await response.read()
            status, text = await asking
            if status not in STATUSES.get(kind, {200}):
                run.wrong.append(f"{kind}: {status} {text[:300]}")
            elif kind not in ("wrong", "aborted"):
                run.latencies.append(loop.time() - begin)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session, random.Random(seed * 1000 + i)) for i in range(concurrency)))


async def _ask(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> tuple[int, str]:
    async with session.post(url, json=body) as response:
        return response.status, await response.text()
