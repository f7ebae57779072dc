"""Memory of answers with logprobs, and of unread answers, is limited for all clients together."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from bough.managers import held_answers
from tests.entrypoints.http.server import RunningServer, running_server

LIMIT = 2**18
SAMPLING = {"max_new_tokens": 100, "ignore_eos": True}
CHAT = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100, "ignore_eos": True}
LARGE: dict[str, dict[str, Any]] = {
    "/generate": {
        "text": "Hi",
        "sampling_params": {**SAMPLING, "n": 8},
        "return_logprob": True,
        "top_logprobs_num": 16,
    },
    "/v1/completions": {"prompt": "Hi", "max_tokens": 100, "ignore_eos": True, "n": 8, "logprobs": 16},
    "/v1/chat/completions": {**CHAT, "n": 8, "logprobs": True, "top_logprobs": 16},
}


@pytest.fixture
def bounded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RunningServer, httpx.Client]]:
    monkeypatch.setattr(held_answers, "SMALL_ANSWER_BYTES", 2**15)
    with (
        running_server(tmp_path, max_pending_answer_size=LIMIT) as server,
        httpx.Client(base_url=server.url, timeout=20) as client,
    ):
        yield server, client
        server.assert_idle()
        assert held(server) == 0


def held(server: RunningServer) -> int:
    total: int = server.run(lambda: server.app.front.answers.num_bytes)
    return total


def test_what_grows_beyond_the_bound_beside_others_is_given_up(bounded: tuple[RunningServer, httpx.Client]) -> None:
    for path in LARGE:
        server, client = bounded
        server.engine.token_delay = 0.005
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: client.post(path, json=LARGE[path]), range(4)))
            statuses = sorted(answer.status_code for answer in answers)
        assert statuses[0] == 200, "one is always taken"
        assert statuses[-1] == 503
        for answer in answers:
            if answer.status_code == 503:
                assert answer.headers["retry-after"]
                assert answer.json()["error"]["code"] == "overloaded"
                assert "--max-pending-answer-size" in answer.json()["error"]["message"]
        assert client.post(path, json=LARGE[path]).status_code == 200


def test_streams_whose_clients_read_hold_nothing_for_long(bounded: tuple[RunningServer, httpx.Client]) -> None:
    for path in LARGE:
        _, client = bounded
        body = {**LARGE[path], "stream": True, "n": 1}
        if path == "/generate":  # whose every event repeats what came before, so that this is held, encoded
            del body["n"]
            body |= {"sampling_params": SAMPLING, "top_logprobs_num": 2}
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda _: client.post(path, json=body).text, range(8)))
        assert all(text.endswith("data: [DONE]\n\n") and '"error"' not in text for text in texts)


def unread(server: RunningServer, path: str, body: dict[str, Any]) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    content = json.dumps(body).encode()
    connection.sendall(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (path.encode(), len(content)))
    connection.sendall(content)
    return connection


def test_clients_that_do_not_read_hold_no_more_than_the_bound(
    bounded: tuple[RunningServer, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in LARGE:
        for stream in [False, True]:
            server, client = bounded
            monkeypatch.setattr(held_answers, "PATIENCE", 0.0)
            with ExitStack() as stack:
                for _ in range(8):
                    stack.enter_context(unread(server, path, {**LARGE[path], "stream": stream}))
                small = {"text": "Hi", "sampling_params": {"max_new_tokens": 8}, "return_logprob": True}
                for _ in range(10):
                    assert client.post("/generate", json=small).status_code == 200
                server.wait_until(lambda: not server.engine.running, timeout=20)
                assert client.post(path, json=LARGE[path]).status_code == 200, "who reads is not hurt by who does not"
            server.wait_until(lambda: server.manager.metrics.http_requests_active == 0, timeout=20)
