"""The end of a server: clients that are slow to read it through, and parts of the end that fail."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time

import httpx
import pytest

from bough.entrypoints.http.under_way import UNREAD_SECONDS
from bough.entrypoints.server_run import LAST_ANSWERS_SECONDS
from tests.entrypoints.leftovers import eventually
from tests.entrypoints.test_launch import START_TIMEOUT, Server, serve  # noqa: F401 (a fixture)

BROKEN = "tests.entrypoints.serve_broken"

NUM_SAMPLES = 32
NUM_TOKENS = 400
"""Each event has all tokens so far: together more than the system takes in for a client that does not read."""


class SlowClient:
    """Has asked for a long stream of which it has read nothing, while all of it has been generated."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", server.port))
        params = {"max_new_tokens": NUM_TOKENS, "n": NUM_SAMPLES}
        body = json.dumps({"input_ids": [300, 301], "sampling_params": params, "return_logprob": True, "stream": True})
        self.socket.sendall(
            b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%b" % (len(body), body.encode())
        )
        assert eventually(lambda: num_ended(server) == NUM_SAMPLES, 30)

    def read(self, seconds: float = 0.0) -> bytes:
        """What there is to its end; slowly at first, for some time."""
        pieces = []
        begin = time.monotonic()
        while piece := self.socket.recv(16384):
            pieces.append(piece)
            if time.monotonic() - begin < seconds:
                time.sleep(0.1)
        return b"".join(pieces)


def num_ended(server: Server) -> float:
    text = httpx.get(f"{server.url}/metrics").text
    match = re.search(r"^bough:num_requests_total\{[^}]*\} (\S+)$", text, re.MULTILINE)
    assert match is not None
    return float(match[1])


def test_a_client_that_is_slow_to_read_gets_its_answer_to_the_end(serve):  # noqa: F811
    server = serve("--shutdown-timeout", "30").wait_until_ready()
    client = SlowClient(server)
    with client.socket:
        server.signal(signal.SIGTERM)
        text = client.read(2 * LAST_ANSWERS_SECONDS + 1)
    assert b"data: [DONE]" in text[-100:]
    assert server.wait() == 0
    assert any("shutting down once 1 answers are read" in line for line in server.lines), server.lines
    assert server.leaves_nothing()


def test_an_answer_that_is_cut_off_while_it_is_read_is_no_orderly_end(serve):  # noqa: F811
    server = serve("--shutdown-timeout", "1").wait_until_ready()
    client = SlowClient(server)
    with client.socket:
        server.signal(signal.SIGTERM)
        try:
            text = client.read(3)
        except ConnectionError:
            text = b""
    assert b"data: [DONE]" not in text[-100:]
    assert server.wait() == 128 + signal.SIGTERM
    assert any("Ending with 1 answers that are not read to their end" in line for line in server.lines), server.lines
    assert server.leaves_nothing()


def test_a_client_that_reads_nothing_is_given_up(serve):  # noqa: F811
    server = serve("--shutdown-timeout", "60").wait_until_ready()
    client = SlowClient(server)
    with client.socket:
        begin = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait(30) == 128 + signal.SIGTERM
        assert time.monotonic() - begin > UNREAD_SECONDS
    assert server.leaves_nothing()


def test_whoever_watches_the_playground_does_not_hold_up_the_end(serve):  # noqa: F811
    server = serve("--shutdown-timeout", "60").wait_until_ready()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as watcher:
        watcher.sendall(b"GET /playground/events HTTP/1.1\r\nhost: x\r\n\r\n")
        assert watcher.recv(100)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    assert any("no request is running" in line for line in server.lines), server.lines


def test_clients_are_told_of_a_death_even_if_the_crash_dump_fails(serve, tmp_path):  # noqa: F811
    flags = ("--served-model-name", "dump", "--crash-dump-folder", str(tmp_path))
    server = serve(*flags, module=BROKEN).wait_until_ready()
    with server.stream(count=10_000) as events:
        os.kill(server.pids[0], signal.SIGKILL)
        *_, last = (event for event in events if event != "[DONE]")
        assert "was killed by SIGKILL" in last["error"]["message"]
    assert server.wait(5) == 1
    assert any("Could not write the crash dump" in line for line in server.lines)
    assert server.leaves_nothing()


def test_a_crash_dump_tells_who_was_cut_off_by_a_death(serve, tmp_path):  # noqa: F811
    server = serve("--crash-dump-folder", str(tmp_path)).wait_until_ready()
    assert server.generate().status_code == 200
    with server.stream(count=10_000) as events:
        os.kill(server.pids[0], signal.SIGKILL)
        list(events)
    assert server.wait(5) == 1
    (path,) = tmp_path.iterdir()
    dump = json.loads(path.read_text())
    assert "was killed by SIGKILL" in dump["cause"]
    assert [each["outcome"] for each in dump["unfinished"]] == ["unfinished"]
    assert {each["outcome"] for each in dump["ended"]} == {"finished"}


def test_server_that_still_downloads_its_model_ends_at_once(serve):  # noqa: F811
    """With a status of its own, for as the first process of a container it would not be ended by the signal itself."""
    server = serve("--served-model-name", "download", module=BROKEN)
    assert eventually(lambda: "downloading\n" in server.lines, START_TIMEOUT)
    server.signal(signal.SIGTERM)
    assert server.wait(5) == 128 + signal.SIGTERM
    assert server.leaves_nothing()


@pytest.mark.parametrize("part", ["health check", "http"])
def test_a_part_of_the_main_process_that_fails_ends_the_server(serve, part):  # noqa: F811
    server = serve("--served-model-name", part, module=BROKEN)
    assert server.wait(START_TIMEOUT) == 1
    text = "".join(server.lines)
    assert "RuntimeError: told to break" in text
    assert f"the {'HTTP server' if part == 'http' else part} has failed; the server ends" in text
    assert server.leaves_nothing()


def test_a_step_of_the_end_that_fails_does_not_hold_up_the_others(serve):  # noqa: F811
    server = serve("--served-model-name", "end", module=BROKEN).wait_until_ready()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    text = "".join(server.lines)
    assert "something failed: closing connections" in text
    assert "something failed: closing the front end" in text
    assert server.leaves_nothing()
