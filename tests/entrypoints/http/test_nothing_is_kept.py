"""What a request leaves behind in the main process: nothing; and of its body nothing from when its prompt waits."""

from __future__ import annotations

import gc
import itertools
import socket
import struct
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from bough.entrypoints.chat.job import ChatJob
from bough.entrypoints.http.routes import ROUTES
from tests.entrypoints.http.server import RunningServer

PARAMS = {"max_new_tokens": 3}
REQUESTS = [
    ("/generate", {"text": "Hi", "sampling_params": PARAMS}),
    ("/generate", {"text": "Hi", "sampling_params": PARAMS, "stream": True}),
    ("/generate", {"text": "Hi", "sampling_params": {**PARAMS, "n": 2}, "return_logprob": True}),
    ("/generate", {"text": "Hi", "sampling_params": {"top_p": 7}}),
    ("/v1/completions", {"prompt": ["Hi", "Ho"], "max_tokens": 3}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, "stream": True}),
    ("/v1/responses", {"input": "Hi", "max_output_tokens": 3, "store": False}),
    ("/tokenize", {"prompt": "Hi"}),
]
ROUNDS = 15


def test_requests_of_all_kinds_leave_no_memory_allocated(server: RunningServer, client: httpx.Client) -> None:
    numbers = itertools.count()

    def ask_all(rounds: int) -> None:
        for _ in range(rounds):
            for path, body in REQUESTS:
                number = next(numbers)
                rid = {"rid": f"request-{number}"} if path == "/generate" else {}
                client.post(path, json={**body, **rid}, headers={"x-request-id": f"{path}-{number}"})
        server.assert_idle()
        server.run(server.engine.received.clear)

    def allocated() -> int:
        """Pieces of memory that Python's objects have."""
        gc.collect()
        # CPython remembers under which names attributes were looked up, by the names' addresses. The client's regular
        # expressions make a new name each time, and thousands of them are kept.
        if hasattr(sys, "_clear_internal_caches"):
            sys._clear_internal_caches()  # its name from 3.13 on
        else:
            sys._clear_type_cache()
        return sys.getallocatedblocks()

    ask_all(3 * ROUNDS)  # whatever is filled once
    levels = []
    for _ in range(3):
        levels.append(server.run(allocated))
        ask_all(ROUNDS)
    levels.append(server.run(allocated))
    growth = min(after - before for before, after in itertools.pairwise(levels))
    assert growth < ROUNDS / 2, "something is kept of all requests of a kind"


PAGE = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


def test_connection_of_a_client_that_has_left_is_forgotten_at_once(server: RunningServer) -> None:
    for resets in [False, True]:
        for sent in [b"", PAGE[:20], PAGE, PAGE + PAGE[:20]]:
            connections: set[Any] = server.server.server_state.connections
            others = server.run(connections.copy)
            with server.connect() as client:
                client.sendall(sent)
                server.wait_until(lambda: connections - others)
                if sent.startswith(PAGE):
                    assert client.recv(4096).startswith(b"HTTP/1.1 200")
                (protocol,) = server.run(lambda: [weakref.ref(each) for each in connections - others])
                if resets:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

            def is_forgotten() -> bool:
                gc.collect()
                return protocol() is None

            server.wait_until(is_forgotten)


SAID = {"messages": [{"role": "user", "content": "Hi"}]}


def test_a_body_is_not_kept_while_it_is_answered(server: RunningServer, client: httpx.Client) -> None:
    cases = [
        ("/generate", {"text": ["Hi"], "sampling_params": {"max_new_tokens": 3}}),
        ("/v1/completions", {"prompt": ["Hi"], "max_tokens": 3, "logprobs": 1}),
        ("/v1/chat/completions", {**SAID, "max_tokens": 3, "n": 2}),
        ("/v1/messages", {**SAID, "model": "m", "max_tokens": 3}),
        ("/v1/responses", {"input": "Hi", "max_output_tokens": 3, "top_logprobs": 1}),
        ("/api/chat", {**SAID, "model": "m", "options": {"num_predict": 3}}),
        ("/api/generate", {"prompt": "Hi", "model": "m", "options": {"num_predict": 3}}),
    ]
    for stream in [False, True]:
        for path, body in cases:
            kinds = (ChatJob, *{info.body.model for info in ROUTES if info.body is not None})
            server.run(server.engine.gate.clear)
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(client.post, path, json={**body, "stream": stream})
                server.wait_until(lambda: server.engine.running)
                gc.collect()
                kept = server.run(lambda: [type(each) for each in gc.get_objects() if isinstance(each, kinds)])
                server.run(server.engine.gate.set)
                assert answer.result().status_code == 200
            assert kept == []
