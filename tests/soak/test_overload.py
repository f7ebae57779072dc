"""Five times as many requests as can be answered: what is taken is answered in time, the others are refused at once.

A step takes a fixed time here, so that the capacity is known and the load costs the machine little.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.server import Server
from tests.entrypoints.leftovers import eventually
from tests.faults.injection import DIRECTORY_VARIABLE, STEP_SECONDS
from tests.soak.measuring import percentile, server_without_model

RUNNING = 8
QUEUED = 16
TOKENS = 10
SERVICE_SECONDS = TOKENS * STEP_SECONDS
CAPACITY = RUNNING / SERVICE_SECONDS
"""Requests a second, if steps followed each other without a gap."""
DEADLINE_SECONDS = 4.0
BODY: dict[str, Any] = {
    "input_ids": [1, 2, 3],
    "sampling_params": {"max_new_tokens": TOKENS, "ignore_eos": True},
    "timeout": DEADLINE_SECONDS,
}


@dataclass
class Load:
    """What came of a load.

    Attributes:
        statuses: of all answers.
        seconds: until each answer had come, by status.
        cut: answers with status 200 that had fewer tokens than were asked for, since their time was up.
        queue_lengths: ten a second.
        probe_seconds: until each probe for life was answered, ten a second.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: dict[int, list[float]] = field(default_factory=dict)
    cut: int = 0
    without_retry_after: int = 0
    queue_lengths: list[int] = field(default_factory=list)
    probe_seconds: list[float] = field(default_factory=list)


def is_whole(answer: dict[str, Any]) -> bool:
    """Whether all tokens are there, and not those alone that were made until the deadline."""
    return len(answer["output_ids"]) == TOKENS and answer["meta_info"]["finish_reason"]["type"] == "length"


async def offer(server: Server, rate: float, seconds: float, load: Load) -> None:
    """Let requests arrive, ``rate`` a second at random, whatever becomes of those before."""
    rng = random.Random(7)
    loop = asyncio.get_running_loop()

    async def one(session: aiohttp.ClientSession) -> None:
        begin = loop.time()
        async with session.post(f"{server.url}/generate", json=BODY) as response:
            body = await response.read()
        load.statuses[response.status] += 1
        load.seconds.setdefault(response.status, []).append(loop.time() - begin)
        load.cut += response.status == 200 and not is_whole(json.loads(body))
        load.without_retry_after += response.status == 503 and "retry-after" not in response.headers

    async def watch(session: aiohttp.ClientSession) -> None:
        while True:
            begin = loop.time()
            async with session.get(f"{server.url}/health") as response:
                await response.read()
            load.probe_seconds.append(loop.time() - begin)
            async with session.get(f"{server.url}/server_info") as response:
                load.queue_lengths.append((await response.json())["internal_states"][0]["num_queue_reqs"])
            await asyncio.sleep(0.1)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        watching = asyncio.create_task(watch(session))
        running = set()
        end = time.monotonic() + seconds
        arrival = time.monotonic()
        while (arrival := arrival + rng.expovariate(rate)) < end:
            await asyncio.sleep(max(arrival - time.monotonic(), 0))
            running.add(asyncio.create_task(one(session)))
        await asyncio.gather(*running)
        watching.cancel()


def goodput_of(server: Server, rate: float, seconds: float, load: Load) -> float:
    """Requests that are answered in a second, whole."""
    begin = time.monotonic()
    asyncio.run(offer(server, rate, seconds, load))
    return (load.statuses[200] - load.cut) / (time.monotonic() - begin)


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(4, marks=pytest.mark.slow, id="short"), pytest.param(120, marks=pytest.mark.soak, id="long")],
)
def test_goodput_stays_at_capacity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    flags = ["--max-running-requests", str(RUNNING), "--max-queued-requests", str(QUEUED)]
    with server_without_model(tmp_path, *flags, module="tests.faults.serve") as server:
        alone, busy, five_times = Load(), Load(), Load()
        asyncio.run(offer(server, CAPACITY / 2, seconds / 2, alone))
        assert set(alone.statuses) == {200}
        capacity = goodput_of(server, 1.5 * CAPACITY, seconds / 2, busy)
        goodput = goodput_of(server, 5 * CAPACITY, seconds, five_times)
        answered, refused = five_times.seconds[200], five_times.seconds[503]
        print(
            f"capacity {capacity:.1f}/s, at most {CAPACITY:.0f}/s; goodput {goodput:.1f}/s; {five_times.statuses}; "
            f"answered p50 {percentile(answered, 0.5):.2f} s, p99 {percentile(answered, 0.99):.2f} s; "
            f"refused p50 {percentile(refused, 0.5) * 1e3:.0f} ms, p99 {percentile(refused, 0.99) * 1e3:.0f} ms; "
            f"probes p50 {percentile(five_times.probe_seconds, 0.5) * 1e3:.0f} ms"
        )
        for load in (alone, busy, five_times):
            assert set(load.statuses) <= {200, 503}, "nobody is taken who then has to be told that the time is up"
            assert load.cut == 0
            assert load.without_retry_after == 0
        assert max(five_times.queue_lengths) <= QUEUED + RUNNING, "those count too that the next step can start"
        is_long = seconds > 60
        assert goodput > (0.9 if is_long else 0.7) * capacity
        assert max(answered) < DEADLINE_SECONDS
        if is_long:
            assert percentile(refused, 0.5) < 0.25
            assert percentile(refused, 0.99) < 0.5
        else:  # beside other tests, on a machine that may be slower than this load: as soon as anybody hears anything
            assert percentile(refused, 0.5) < 2 * percentile(five_times.probe_seconds, 0.5) + 0.1
            assert percentile(refused, 0.99) < DEADLINE_SECONDS / 2
        assert server.metric("num_refused_requests_total") >= five_times.statuses[503]
        server.assert_idle_and_whole()
        assert eventually(lambda: server.client.get("/ready").status_code == 200), "with the next heartbeat"
        assert is_whole(server.generate(**BODY))


def test_who_waits_too_long_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    flags = ["--max-running-requests", "1", "--queue-timeout", "0.3"]
    with server_without_model(tmp_path, *flags, module="tests.faults.serve") as server:
        load = Load()
        asyncio.run(offer(server, 3 / SERVICE_SECONDS, 1.5, load))
        assert load.statuses[503] > 0
        assert load.statuses[200] > 0
        assert load.without_retry_after == 0
        assert max(load.seconds[503]) < 2
        server.assert_idle_and_whole()
        assert eventually(lambda: server.metric("queue_timeouts_total") == load.statuses[503])
        late = server.post("/generate", **{**BODY, "timeout": 1e-6})
        assert late.status_code == 504
        assert late.json()["error"]["code"] == "timeout"
        cut = server.generate(**{**BODY, "timeout": 0.5, "sampling_params": {"max_new_tokens": 500}})
        assert cut["meta_info"]["finish_reason"]["type"] == "abort"
        assert 0 < len(cut["output_ids"]) < 100
        assert not is_whole(cut)
