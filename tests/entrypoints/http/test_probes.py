from __future__ import annotations

import asyncio
import concurrent.futures
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http import probes
from bough.entrypoints.http.asgi import Call, Response
from bough.errors import EngineDead
from bough.ipc.messages import FinishReason
from tests.entrypoints.http.server import RunningServer, running_server


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[RunningServer, httpx.Client]]:
    with (
        running_server(tmp_path, max_queued_requests=4, watchdog_timeout=1.5) as running,
        httpx.Client(base_url=running.url) as client,
    ):
        yield running, client


def statuses(client: httpx.Client) -> dict[str, int]:
    return {path: client.get(path).status_code for path in ("/health", "/ready", "/health_generate")}


def test_all_is_well(client: httpx.Client) -> None:
    assert statuses(client) == {"/health": 200, "/ready": 200, "/health_generate": 200}
    assert client.head("/health").status_code == 200


def test_shallow_probes_ask_nobody(server: RunningServer, client: httpx.Client) -> None:
    received = len(server.engine.received)
    server.run(server.engine.gate.clear)
    for _ in range(20):
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
    assert len(server.engine.received) == received


def test_deep_probe_that_times_out_is_aborted_and_says_so(
    server: RunningServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "DEEP_PROBE_TIMEOUT", 0.2)
    server.run(server.engine.gate.clear)
    response = client.get("/health_generate")
    assert response.status_code == 503
    assert "no token" in response.text
    server.wait_until(lambda: not server.engine.running)
    assert server.engine.aborted[-1].startswith("HEALTH_CHECK_")


def test_deep_probe_that_a_pause_holds_up_is_no_sign_of_sickness(
    server: RunningServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "DEEP_PROBE_TIMEOUT", 0.5)
    server.engine.token_delay = 60.0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        probe = pool.submit(httpx.get, f"{server.url}/health_generate")
        server.wait_until(lambda: server.engine.running)
        assert client.post("/pause_generation", json={"mode": "in_place"}).status_code == 200
        assert client.post("/continue_generation").status_code == 200
        assert probe.result().status_code == 200
    server.wait_until(lambda: not server.engine.running)


def test_deep_probes_at_the_same_time_share_one_attempt(server: RunningServer, client: httpx.Client) -> None:
    received = len(server.engine.received)
    handler = probes.Probes(server.manager, ChatCore(server.manager))

    async def together() -> list[Response]:
        return await asyncio.gather(*(handler.health_generate(cast(Call, None)) for _ in range(8)))

    assert [answer.status for answer in server.call(together())] == [200] * 8
    assert len(server.engine.received) == received + 1
    assert client.get("/health_generate").status_code == 200
    assert len(server.engine.received) == received + 2


def test_busy_is_not_sick(server: RunningServer, client: httpx.Client) -> None:
    server.engine.refusal = FinishReason("abort", message="the waiting queue is full", status_code=503)
    assert client.get("/health_generate").status_code == 200


def test_a_model_that_fails_makes_no_token(server: RunningServer, client: httpx.Client) -> None:
    server.engine.refusal = FinishReason("abort", message="the forward pass has failed", status_code=500)
    response = client.get("/health_generate")
    assert (response.status_code, response.text) == (503, "no token: the forward pass has failed\n")
    server.engine.refusal = FinishReason("abort", message="it took too long", status_code=504)
    assert client.get("/health_generate").status_code == 503
    server.engine.refusal = FinishReason("abort", message="somebody has aborted all requests")
    assert client.get("/health_generate").status_code == 200


def test_full_queue_is_not_ready_but_alive(own: tuple[RunningServer, httpx.Client]) -> None:
    server, client = own
    server.run(lambda: server.engine.heartbeat(num_queue_reqs=4))
    server.wait_until(lambda: server.manager.metrics.heartbeats)
    assert statuses(client) == {"/health": 200, "/ready": 503, "/health_generate": 200}
    assert "queue is full" in client.get("/ready").text
    server.run(lambda: server.engine.heartbeat(num_queue_reqs=3))
    server.wait_until(lambda: server.manager.health.why_not_ready() is None)
    assert client.get("/ready").status_code == 200


def test_silent_parts_are_noticed_and_forgiven_when_they_come_back(own: tuple[RunningServer, httpx.Client]) -> None:
    server, client = own
    server.wait_until(lambda: server.manager.health.why_not_alive() is not None)
    assert statuses(client) == {"/health": 503, "/ready": 503, "/health_generate": 503}
    assert "no sign of life from scheduler" in client.get("/health").text
    server.run(server.engine.heartbeat)
    server.wait_until(lambda: server.manager.health.why_not_alive() is None)
    assert statuses(client) == {"/health": 200, "/ready": 200, "/health_generate": 200}


def test_draining_refuses_new_requests_and_finishes_old_ones(own: tuple[RunningServer, httpx.Client]) -> None:
    server, client = own
    server.engine.token_delay = 0.005
    body = {"text": "Hi", "sampling_params": {"max_new_tokens": 50}}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(httpx.post, f"{server.url}/generate", json=body)
        server.wait_until(lambda: server.engine.running)
        server.run(server.manager.health.start_draining)
        refused = client.post("/generate", json=body)
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert refused.headers.get_list("connection") == ["close"]
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
            raw.sendall(b"POST /generate HTTP/1.1\r\nhost: here\r\ncontent-length: 13\r\n\r\n" + b'{"text": "H"}')
            answer = b"".join(iter(lambda: raw.recv(65536), b""))  # until the server closes
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert client.get("/ready").status_code == 503
        assert client.get("/health").status_code == 200
        assert running.result().json()["meta_info"]["completion_tokens"] == 50


def test_death_of_the_engine_reaches_every_waiter_and_every_later_request(
    own: tuple[RunningServer, httpx.Client],
) -> None:
    server, client = own
    server.engine.token_delay = 0.01
    body = {"text": "Hi", "sampling_params": {"max_new_tokens": 300, "ignore_eos": True}}
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        whole = pool.submit(httpx.post, f"{server.url}/generate", json=body)
        chat = pool.submit(
            httpx.post,
            f"{server.url}/v1/chat/completions",
            json={"messages": [{"role": "user", "content": "Hi"}], "stream": True, "ignore_eos": True},
        )
        server.wait_until(lambda: len(server.engine.running) == 2)
        time.sleep(0.1)
        server.run(lambda: server.manager.fail_all(EngineDead("the scheduler has died")))
        assert whole.result().status_code == 503
        assert whole.result().json()["error"]["message"] == "the scheduler has died"
        events = chat.result().text.split("\n\n")
        assert "the scheduler has died" in events[-3]
        assert events[-2] == "data: [DONE]"
    assert statuses(client) == {"/health": 503, "/ready": 503, "/health_generate": 503}
    assert client.post("/generate", json=body).status_code == 503


def test_probes_are_not_counted(server: RunningServer, client: httpx.Client) -> None:
    before = server.manager.metrics.requests.num_requests
    statuses(client)
    assert server.manager.metrics.requests.num_requests == before
    assert 'endpoint="/health"' not in client.get("/metrics").text
