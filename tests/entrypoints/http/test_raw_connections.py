"""Clients that misbehave on the socket: they hang up, stop reading, send half of what they promised, or too much."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import select
import socket
import time
from typing import Any

import httpx
import pytest

from bough.entrypoints.http import bodies
from bough.entrypoints.http import connection as http_connection
from bough.ipc.coalescing import FOLD_LENGTH
from tests.entrypoints.http.server import RunningServer, running_server

LONG = {"max_new_tokens": 400, "ignore_eos": True}


def request_bytes(path: str, body: Any, *, headers: str = "") -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
    return (head + headers + "\r\n").encode() + content


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "generate": ("/generate", {"text": "Hi", "sampling_params": LONG}),
    "generate stream": ("/generate", {"text": "Hi", "sampling_params": LONG, "stream": True}),
    "generate n=3 stream": ("/generate", {"text": "Hi", "sampling_params": {**LONG, "n": 3}, "stream": True}),
    "batch": ("/generate", {"text": ["Hi", "Ho"], "sampling_params": LONG}),
    "completions": ("/v1/completions", {"prompt": "Hi", "max_tokens": 400}),
    "chat stream": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "ignore_eos": True},
    ),
}


@pytest.mark.parametrize("kind", BODIES)
class TestHangingUp:
    def test_before_the_first_token(self, server: RunningServer, kind: str) -> None:
        server.run(server.engine.gate.clear)
        path, body = BODIES[kind]
        with server.connect() as connection:
            connection.sendall(request_bytes(path, body))
            server.wait_until(lambda: server.engine.running)
            outputs = set(server.engine.running)
        server.wait_until(lambda: not server.engine.running)
        assert outputs <= set(server.engine.aborted)
        server.assert_idle()

    def test_in_the_middle(self, server: RunningServer, kind: str) -> None:
        server.engine.token_delay = 0.01
        path, body = BODIES[kind]
        aborted = server.manager.metrics.requests.aborted_requests.total
        with server.connect() as connection:
            connection.sendall(request_bytes(path, body))
            if body.get("stream"):
                assert connection.recv(4096)
            else:
                server.wait_until(lambda: server.engine.running)
                time.sleep(0.05)
            outputs = set(server.engine.running)
            assert outputs
        server.wait_until(lambda: not server.engine.running)
        assert outputs <= set(server.engine.aborted)
        assert server.manager.metrics.requests.aborted_requests.total == aborted + len(outputs)


def test_client_that_stops_reading_holds_up_nobody_and_little_memory(
    server: RunningServer, client: httpx.Client
) -> None:
    server.engine.token_delay = 0.002
    body = {"text": "Hi", "sampling_params": {**LONG, "n": 4}, "return_logprob": True, "stream": True}
    stalled = []
    for _ in range(4):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(request_bytes("/generate", body))
        stalled.append(connection)

    def waiting() -> int:
        return max((len(state.out_list) for state in server.manager.rid_to_state.values()), default=0)

    server.wait_until(lambda: waiting() > 5)
    answer = client.post("/generate", json={"text": "Hi", "sampling_params": {"max_new_tokens": 50}})
    assert answer.status_code == 200
    most = 0
    while server.engine.running:
        most = max(most, server.run(waiting))
    assert 5 < most <= FOLD_LENGTH
    for connection in stalled:
        connection.close()
    server.assert_idle()


def test_client_that_reads_nothing_is_cut_off(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "WRITE_TIMEOUT", 0.2)
    params = {**LONG, "n": 16}
    body = {"text": "Hi", "sampling_params": params, "return_logprob": True, "top_logprobs_num": 64, "stream": True}
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(request_bytes("/generate", body))
        server.wait_until(lambda: server.engine.running)
        server.wait_until(lambda: server.manager.metrics.http_requests_active == 0, timeout=30)
        answer = read_all(connection)
    assert b"[DONE]" not in answer
    server.assert_idle()


def test_client_that_closes_its_side_has_left(server: RunningServer) -> None:
    server.run(server.engine.gate.clear)
    with server.connect() as connection:
        connection.sendall(request_bytes("/generate", {"text": "Hi"}))
        server.wait_until(lambda: server.engine.running)
        outputs = set(server.engine.running)
        connection.shutdown(socket.SHUT_WR)
        server.assert_idle()
    assert outputs <= set(server.engine.aborted)


def test_client_that_closes_its_side_in_the_middle_of_a_body_has_left(server: RunningServer) -> None:
    with server.connect() as connection:
        connection.sendall(request_bytes("/generate", {"text": "Hi"})[:-3])
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""


def test_body_that_nobody_reads_is_not_held_and_hides_no_leaving(server: RunningServer, client: httpx.Client) -> None:
    def get(path: str) -> bytes:
        length = 4 * bodies.MIN_PROGRESS
        return f"GET {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n".encode() + b" " * length

    server.run(server.engine.gate.clear)
    body = {"input": "Hi", "background": True, "stream": True, "request_id": "resp_followed"}
    with server.connect() as connection:
        connection.sendall(request_bytes("/v1/responses", body))
        server.wait_until(lambda: server.engine.running)
    metrics = server.manager.metrics
    server.wait_until(lambda: metrics.http_requests_active == 0)
    with server.connect() as connection:
        connection.sendall(get("/v1/responses/resp_followed?stream=true"))
        server.wait_until(lambda: metrics.http_requests_active == 1)
        connections = server.run(lambda: list(server.server.server_state.connections))
        (protocol,) = (each for each in connections if each.client == connection.getsockname())
        server.wait_until(lambda: not protocol.cycle.more_body)
        assert not protocol.cycle.body
        assert metrics.http_requests_active == 1
    server.wait_until(lambda: metrics.http_requests_active == 0)
    assert client.post("/v1/responses/resp_followed/cancel").status_code == 200
    with server.connect() as connection:
        connection.sendall(2 * get("/health"))
        answers = b""
        while answers.count(b"HTTP/1.1 200 ") < 2:
            answers += connection.recv(65536)
    server.assert_idle()


def test_storm_of_dropped_connections_leaves_nothing(server: RunningServer, client: httpx.Client) -> None:
    server.engine.token_delay = 0.001
    chance = random.Random(7)
    for _ in range(200):
        path, body = BODIES[chance.choice(list(BODIES))]
        data = request_bytes(path, body)
        with server.connect() as connection:
            connection.sendall(data[: chance.choice([len(data), len(data), chance.randrange(1, len(data))])])
            if chance.random() < 0.5:
                time.sleep(chance.random() * 0.01)
    server.assert_idle()
    server.wait_until(lambda: server.manager.metrics.http_requests_active == 0)
    assert client.post("/generate", json={"text": "Hi", "sampling_params": {"max_new_tokens": 2}}).status_code == 200


class TestBodies:
    def test_declared_too_large_is_refused_unread(self, server: RunningServer) -> None:
        with server.connect() as connection:
            connection.sendall(
                b"POST /generate HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 999999999999\r\n\r\n{"
            )
            answer = connection.recv(65536)
        assert status_of(answer) == 413
        assert b"--max-body-size" in answer

    def test_chunked_too_large_is_refused_while_it_comes(self, tmp_path: Any) -> None:
        with running_server(tmp_path, max_body_size=100_000) as server, server.connect() as connection:
            connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(4):
                connection.sendall(b"c350\r\n" + b" " * 50_000 + b"\r\n")
            assert status_of(connection.recv(65536)) == 413

    def test_endless_body_is_cut_off(self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_connection, "MAX_DISCARDED_BYTES", 500_000)
        with running_server(tmp_path, max_body_size=100_000) as server, server.connect() as connection:
            connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")

            def send_for_ever() -> None:
                while True:
                    connection.sendall(b"c350\r\n" + b" " * 50_000 + b"\r\n")

            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                send_for_ever()

    def test_half_a_body_is_given_up(self, server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bodies, "BODY_TIMEOUT", 0.2)
        with server.connect() as connection:
            connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{")
            assert status_of(connection.recv(65536)) == 408

    def test_trickle_is_given_up(self, server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bodies, "BODY_TIMEOUT", 0.3)
        with server.connect() as connection:
            connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n{")
            connection.settimeout(0.02)
            answer = b""
            for _ in range(200):
                connection.sendall(b" ")
                with contextlib.suppress(TimeoutError):
                    answer = connection.recv(65536)
                    break
        assert status_of(answer) == 408

    def test_half_sent_bodies_are_bounded_together(self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bodies, "PATIENCE", 0.3)
        half = b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 900000\r\n\r\n{" + b" " * 700_000
        bounds = {"max_body_size": 1_000_000, "max_pending_body_size": 2_000_000}
        with running_server(tmp_path, **bounds) as server, contextlib.ExitStack() as stack:
            intake = server.app.front.intake
            waiting = [stack.enter_context(server.connect()) for _ in range(4)]
            for connection in waiting[:2]:
                connection.sendall(half)
            server.wait_until(lambda: intake.pending_bytes >= 1_400_000)
            waiting[2].sendall(half)  # nobody is slow yet: the one that is too much goes
            answer = waiting[2].recv(65536)
            assert status_of(answer) == 503
            assert b"--max-pending-body-size" in answer
            time.sleep(0.4)
            waiting[3].sendall(half)  # now the slow ones make room
            (answered, *_), _, _ = select.select(waiting[:2], [], [], 10)
            assert status_of(answered.recv(65536)) == 503
            small = {"text": "Hi", "sampling_params": {"max_new_tokens": 1}}
            assert httpx.post(f"{server.url}/generate", json=small).status_code == 200
            for connection in waiting:
                connection.close()
            server.wait_until(lambda: intake.pending_bytes == 0)

    def test_body_is_not_held_while_its_answer_is_made(self, server: RunningServer) -> None:
        server.run(server.engine.gate.clear)
        body = {"input_ids": [3], "sampling_params": LONG, "session_id": "x" * 300_000}
        with server.connect() as connection:
            connection.sendall(request_bytes("/generate", body))
            server.wait_until(lambda: server.engine.running)
            assert server.run(lambda: server.app.front.intake.pending_bytes) == 0
        server.wait_until(lambda: not server.engine.running)

    def test_body_counts_until_its_prompt_is_made_and_counts_itself(
        self, server: RunningServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversations, gate, num_bytes = server.manager.conversations, asyncio.Event(), 100_000
        encode = conversations.encode

        async def when_told(*args: Any, **options: Any) -> Any:
            await gate.wait()
            return await encode(*args, **options)

        monkeypatch.setattr(conversations, "encode", when_told)
        server.run(server.engine.gate.clear)
        body = {"messages": [{"role": "user", "content": "Hi"}], "user": "x" * num_bytes}
        with server.connect() as connection:
            connection.sendall(request_bytes("/v1/chat/completions", body))
            server.wait_until(lambda: server.app.front.intake.pending_bytes >= num_bytes)
            time.sleep(0.1)
            assert server.run(lambda: server.app.front.intake.pending_bytes) >= num_bytes
            server.run(gate.set)
            server.wait_until(lambda: server.engine.running)
            assert server.run(lambda: server.app.front.intake.pending_bytes) == 0
            assert server.run(lambda: server.manager.outputs.waiting.num_bytes) > 0
        server.wait_until(lambda: not server.engine.running)

    @pytest.mark.parametrize("store", [False, True])
    def test_what_a_response_gives_back_counts_until_it_is_complete(
        self, server: RunningServer, *, store: bool
    ) -> None:
        server.run(server.engine.gate.clear)
        tool = {"type": "function", "name": "f", "description": "x" * 100_000}
        fields = {"tools": [tool], "tool_choice": "none", "max_output_tokens": 3, "store": store}
        dropped = {"safety_identifier": "x" * 200_000}
        with server.connect() as connection:
            connection.sendall(request_bytes("/v1/responses", {"input": "Hi", **fields, **dropped}))
            server.wait_until(lambda: server.engine.running)
            assert 100_000 < server.run(lambda: server.app.front.intake.pending_bytes) < 110_000
            server.run(server.engine.gate.set)
            assert status_of(connection.recv(65536)) == 200
        server.wait_until(lambda: server.app.front.intake.pending_bytes == 0)

    def test_body_in_many_small_pieces(self, server: RunningServer) -> None:
        data = request_bytes(
            "/generate", {"text": "Hi", "sampling_params": {"max_new_tokens": 2}}, headers="connection: close\r\n"
        )
        with server.connect() as connection:
            for i in range(0, len(data), 7):
                connection.sendall(data[i : i + 7])
            assert status_of(read_all(connection)) == 200

    def test_pipelined_requests_are_answered_in_order(self, server: RunningServer) -> None:
        with server.connect() as connection:
            requests = [
                request_bytes(
                    "/generate",
                    {"input_ids": [1], "rid": f"pipelined-{i}", "sampling_params": {"max_new_tokens": 3}},
                    headers="connection: close\r\n" if i == 3 else "",
                )
                for i in range(4)
            ]
            connection.sendall(b"".join(requests))
            answer = read_all(connection)
        positions = [answer.index(f"pipelined-{i}".encode()) for i in range(4)]
        assert positions == sorted(positions)


class TestHeads:
    def test_huge_header_is_refused(self, server: RunningServer) -> None:
        with server.connect() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nx: ")
            answer = b""
            try:
                for _ in range(100):
                    connection.sendall(b"a" * 10_000)
                answer = connection.recv(65536)
            except OSError:
                return  # cut off while still sending
            assert status_of(answer) == 431

    def test_many_headers_are_refused(self, server: RunningServer) -> None:
        with server.connect() as connection:
            connection.sendall(
                b"GET /health HTTP/1.1\r\nhost: x\r\n" + b"".join(b"x%d: y\r\n" % i for i in range(500)) + b"\r\n"
            )
            answer = connection.recv(65536)
            assert status_of(answer) == 431
            assert b"--max-headers" in answer

    def test_long_url_is_refused(self, server: RunningServer) -> None:
        for path in ("/" + "a" * 9000, "/health?" + "a" * 9000):
            with server.connect() as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                answer = read_all(connection)
                assert status_of(answer) == 400
                assert b"--max-url-length" in answer

    def test_bounds_are_options(self, tmp_path: Any) -> None:
        with running_server(tmp_path, max_header_size=2048, max_headers=9, max_url_length=300) as server:
            for head, status, flag in (
                (b"GET /health HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 4000, 431, b"--max-header-size"),
                (b"GET /health HTTP/1.1\r\nhost: x\r\n" + b"x: y\r\n" * 10 + b"\r\n", 431, b"--max-headers"),
                (b"GET /" + b"x" * 301 + b" HTTP/1.1\r\n\r\n", 400, b"--max-url-length"),
            ):
                with server.connect() as connection:
                    connection.sendall(head)
                    answer = read_all(connection)
                assert status_of(answer) == status
                assert flag in answer
                assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]

    def test_garbage_is_refused(self, server: RunningServer) -> None:
        with server.connect() as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
            assert status_of(connection.recv(65536)) == 400

    def test_bound_of_the_head_is_exact_however_it_comes(self, tmp_path: Any) -> None:
        limit = 2048
        body = b'{"text": "Hi", "sampling_params": {"max_new_tokens": 1}}'
        head = b"POST /generate HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\nx: " % len(body)
        with running_server(tmp_path, max_header_size=limit) as server:
            for size, status in ((limit, 200), (limit + 1, 431), (60_000, 431)):
                data = head + b"a" * (size - len(head) - 4) + b"\r\n\r\n" + body
                for cut in (len(data), 1000, limit - 1, limit):
                    with server.connect() as connection:
                        connection.sendall(data[:cut])
                        time.sleep(0.02)
                        with contextlib.suppress(OSError):
                            connection.sendall(data[cut:])
                        assert status_of(connection.recv(65536)) == status, (size, cut)

    @pytest.mark.parametrize(
        ("rest", "named"),
        [
            (b"content-length: abc\r\n\r\n", "Content-Length"),
            (b"content-length: 5\r\ncontent-length: 6\r\n\r\n", "Content-Length"),
            (b"content-length: 99999999999999999999999\r\n\r\n", "Content-Length"),
            (b"transfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n", "chunk size"),
            (b"transfer-encoding: chunked\r\n\r\n3\r\nabcXX", "chunk data"),
            (b"transfer-encoding: foo\r\n\r\n3\r\nabc", "Transfer-Encoding"),
            (b"no colon\r\n\r\n", "header"),
        ],
    )
    def test_what_is_wrong_with_a_request_is_said(self, server: RunningServer, rest: bytes, named: str) -> None:
        for cut in (len(rest), len(rest) - 3):
            with server.connect() as connection:
                connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\n" + rest[:cut])
                time.sleep(0.02)
                with contextlib.suppress(OSError):
                    connection.sendall(rest[cut:])
                answer = read_all(connection)
            assert status_of(answer) == 400
            assert answer.count(b"HTTP/1.1 ") == 1
            assert named in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]
        server.wait_until(lambda: server.manager.metrics.http_requests_active == 0)

    def test_what_waits_for_an_answer_may_take_long_behind_garbage(
        self, server: RunningServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(http_connection, "HEAD_TIMEOUT", 0.1)
        server.run(server.engine.gate.clear)
        with server.connect() as connection:
            connection.sendall(RIGHT + CHUNKS + b"zz\r\n")
            time.sleep(0.3)
            server.run(server.engine.gate.set)
            answer = read_all(connection)
        assert [answer.count(b"HTTP/1.1 %d " % status) for status in (200, 400)] == [1, 1]

    def test_silent_client_is_disconnected(self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_connection, "HEAD_TIMEOUT", 0.2)
        with running_server(tmp_path) as server:
            for beginning in (b"", b"GET /heal"):
                with server.connect() as connection:
                    connection.sendall(beginning)
                    assert connection.recv(100) == b""

    @pytest.mark.parametrize("extra", [b"\r\n", b"\r\nPOST /gen"])
    def test_bytes_behind_a_body_do_not_end_its_answer(
        self, server: RunningServer, monkeypatch: pytest.MonkeyPatch, extra: bytes
    ) -> None:
        monkeypatch.setattr(http_connection, "HEAD_TIMEOUT", 0.1)
        server.engine.token_delay = 0.002
        with server.connect() as connection:
            body = {"text": "Hi", "sampling_params": {**LONG, "max_new_tokens": 200}, "stream": True}
            connection.sendall(request_bytes("/generate", body))
            server.wait_until(lambda: server.engine.running)
            connection.sendall(extra)
            answer = b""
            while b"[DONE]" not in answer:
                part = connection.recv(65536)
                assert part, "cut off in the middle"
                answer += part

    def test_large_headers_below_the_bound_work(self, server: RunningServer) -> None:
        with server.connect() as connection:
            connection.sendall(
                b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: " + b"a" * 30_000 + b"\r\n\r\n"
            )
            assert status_of(read_all(connection)) == 200


def exchange(server: RunningServer, pieces: list[bytes], pause: float = 0.0) -> list[tuple[int, bytes]]:
    """Status and body of each answer until the server closes the connection."""
    with server.connect() as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        rest = read_all(connection)
    answers = []
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answers.append((status_of(head), rest[:length]))
        rest = rest[length:]
    return answers


RIGHT = request_bytes("/generate", {"text": "Hi", "sampling_params": {"max_new_tokens": 8}})
CHUNKS = b"POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNKED = CHUNKS + b'24\r\n{"text":"Hi","sampling_params":null}\r\n0\r\n\r\n'
GARBAGE = {
    "no request": b"\x16\x03\x01\x02\x00 garbage\r\n\r\n",
    "no end": b"GARBAGE",
    "no version": b"GET /health\r\n\r\n",
    "a bad header": b"GET /health HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "a bad chunk": CHUNKS + b"zz\r\n",
    "a bad length": b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: ten\r\n\r\n",
    "too large a head": b"GET /health HTTP/1.1\r\nhost: x\r\nx: " + b"x" * 100_000,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("before", [[RIGHT], [CHUNKED], [RIGHT, CHUNKED, RIGHT]], ids=["one", "chunked", "three"])
@pytest.mark.parametrize("how", ["in one read", "later"])
def test_what_came_before_garbage_is_answered(
    server: RunningServer, garbage: bytes, before: list[bytes], how: str
) -> None:
    server.engine.token_delay = 0.002
    pieces = [*before, garbage] if how == "later" else [b"".join(before) + garbage]
    *answers, (status, body) = exchange(server, pieces, 0.005 if how == "later" else 0.0)
    assert [status for status, _ in answers] == [200] * len(before)
    assert all("text" in json.loads(body) for _, body in answers)
    assert status == (431 if len(garbage) > 1000 else 400)
    assert json.loads(body)["error"]["code"] in ("invalid_http", "headers_too_large")


def test_a_client_that_leaves_behind_garbage_is_noticed(server: RunningServer) -> None:
    server.run(server.engine.gate.clear)
    with server.connect() as connection:
        connection.sendall(RIGHT + GARBAGE["no request"])
        server.wait_until(lambda: server.engine.running)
        connection.sendall(b"more of it")
    server.wait_until(lambda: not server.engine.running)


def test_a_request_that_another_server_could_read_otherwise_is_refused(server: RunningServer) -> None:
    cases = [
        ("HTTP/1.1\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\nhost: a\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\nx: y\r\nHOST: b\r\n", 400),
        ("HTTP/1.0\r\nhost: a\r\nhost: b\r\n", 400),
        ("HTTP/1.0\r\n", 200),
        ("HTTP/1.1\r\nhost:\r\n", 200),
        ("HTTP/1.1\r\nhost: a\r\n", 200),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n", 200),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: Chunked\r\n", 200),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: x, chunked\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: x\r\ntransfer-encoding: chunked\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: x\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, chunked\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked;a=b\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\r\n", 400),
        ("HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n", 400),
        ("HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n", 400),
    ]
    for head, status in cases:
        close = "" if "1.0" in head else "connection: close\r\n"
        body = b"0\r\n\r\n" if "chunked" in head.lower() and status == 200 else b""
        answers = exchange(server, [f"GET /model_info {head}{close}\r\n".encode() + body])
        assert [each for each, _ in answers] == [status]
