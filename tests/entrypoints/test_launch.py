from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from tests.e2e.server import free_port
from tests.entrypoints.leftovers import children, eventually, is_running, loads_torch, socket_directories

ECHO = "tests.entrypoints.serve_echo"
START_TIMEOUT = 60.0


class Server:
    """A server process of our own, and what it has said."""

    def __init__(self, *flags: str, module: str = ECHO, tmp: str | None = None) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "--port", str(self.port), *flags],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.getcwd(), **({"TMPDIR": tmp} if tmp else {})},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.pids: list[int] = []

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)

    def wait_until_ready(self) -> Server:
        def ready() -> bool:
            assert self.process.poll() is None, self.lines
            with contextlib.suppress(httpx.HTTPError):
                return httpx.get(f"{self.url}/ready").status_code == 200
            return False

        assert eventually(ready, START_TIMEOUT), self.lines
        self.pids = children(self.process.pid)
        return self

    def generate(self, ids: tuple[int, ...] = (300, 301), count: int = 3, **fields) -> httpx.Response:
        body = {"input_ids": list(ids), "sampling_params": {"max_new_tokens": count}, **fields}
        return httpx.post(f"{self.url}/generate", json=body, timeout=30)

    def num_requests(self) -> int:
        """How many requests the scheduler has."""
        (state,) = httpx.get(f"{self.url}/get_server_info").json()["internal_states"]
        return state["num_running_reqs"]

    @contextlib.contextmanager
    def stream(self, count: int) -> Iterator[Iterator[dict | str]]:
        """Events of a slow stream (20 tokens a second), after the first one has come."""
        body = {
            "input_ids": [300, 301],
            "sampling_params": {"max_new_tokens": count},
            "stream": True,
            "extra_key": "slow",
        }
        with httpx.stream("POST", f"{self.url}/generate", json=body, timeout=30) as response:
            assert response.status_code == 200
            events = _events(response)
            assert next(events)["output_ids"] == [300]
            yield events

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 20.0) -> int:
        status = self.process.wait(timeout)
        self._reader.join(5)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()

    def leaves_nothing(self) -> bool:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", self.port))
        return not any(map(is_running, self.pids)) and not socket_directories()


def _events(response: httpx.Response) -> Iterator[dict | str]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            data = line.removeprefix("data: ")
            yield data if data == "[DONE]" else json.loads(data)


@pytest.fixture
def serve(own_tmp) -> Iterator:
    servers: list[Server] = []

    def start(*flags: str, **options) -> Server:
        servers.append(Server(*flags, tmp=own_tmp, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def complaint(server: Server) -> str:
    """The one line that a server which could not start has left."""
    assert len(server.lines) == 1, server.lines
    assert server.lines[0].startswith("bough: error: ")
    return server.lines[0].removeprefix("bough: error: ").strip()


# --- starting ---------------------------------------------------------------------------------------------------------


def test_server_answers_and_ends_in_order_when_told_to(serve):
    server = serve().wait_until_ready()
    assert server.generate().json()["output_ids"] == [300, 301, 300]
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.leaves_nothing()
    assert "SIGTERM: shutting down; no request is running" in server.lines[-2]
    assert "The server has ended, with exit status 0" in server.lines[-1]


def test_start_up_is_accounted_for_and_says_how_to_talk(serve):
    begin = time.time()
    server = serve().wait_until_ready()
    wall = time.time() - begin
    server.signal(signal.SIGINT)
    assert server.wait() == 0
    text = "".join(server.lines)
    match = re.search(r"Ready after ([\d.]+) s: (.*)", text)
    assert match is not None
    total = float(match[1])
    parts = [float(part.rsplit(" ", 1)[1]) for part in match[2].split(", ")]
    assert abs(sum(parts) - total) < 0.01 * (len(parts) + 1)
    assert total <= wall + 0.05
    curl = re.search(r"curl (.*)", text)
    assert curl is not None
    assert f"{server.url}/v1/chat/completions" in curl[1]
    assert f'base_url="{server.url}/v1"' in text


def test_while_loading_the_server_says_that_it_is_not_ready(serve):
    server = serve("--served-model-name", "slow")

    def answers() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{server.url}/ready").status_code == 503
        return False

    assert eventually(answers, START_TIMEOUT)
    refused = server.generate()
    assert refused.status_code == 503
    assert refused.json()["error"]["message"] == "the server is starting"
    assert "retry-after" in refused.headers
    assert httpx.post(f"{server.url}/api/chat").json() == {"error": "the server is starting"}
    assert httpx.post(f"{server.url}/v1/messages").json()["error"]["type"] == "overloaded_error"
    page = httpx.get(server.url, headers={"accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
    assert 'http-equiv="refresh"' in page.text
    server.pids = children(server.process.pid)
    server.signal(signal.SIGTERM)
    assert server.wait(5) == 128 + signal.SIGTERM
    assert server.leaves_nothing()


def family_until_end(server):
    """All processes that a server has started, once it has ended."""
    family: set[int] = set()
    while server.process.poll() is None:
        with contextlib.suppress(psutil.Error):
            family.update(children(server.process.pid))
        time.sleep(0.05)
    return family


def test_port_in_use_is_said_at_once(serve):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = serve("--port", str(taken.getsockname()[1]))
        family = family_until_end(server)
        assert server.wait() == 1
    assert not family, "nothing is started before"
    assert re.fullmatch(r"cannot listen on 127.0.0.1:\d+: Address already in use; choose another.*", complaint(server))
    assert socket_directories() == set()


def test_a_mistyped_model_is_said_before_a_port_in_use(serve):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = serve("/no/such/model", "--port", str(taken.getsockname()[1]))
        assert server.wait() == 2
    assert re.fullmatch(
        r"no such directory: /no/such/model; .* \(besides: cannot listen on 127.0.0.1:\d+: Address already in use; .*",
        complaint(server),
    )


def test_what_keeps_a_server_from_starting_is_said_in_one_line(serve) -> None:
    cases = [
        (["/no/such/model"], 2, "no such directory: /no/such/model"),
        (["--max-running-requests", "0"], 2, "--max-running-requests must be at least 1"),
        (["--served-model-name", "config-error"], 2, "no such device; use another"),
        (["--served-model-name", "error"], 1, "internal error: RuntimeError: told to fail"),
        (["--served-model-name", "killed"], 1, "the scheduler process was killed by SIGKILL"),
        (["--served-model-name", "exit"], 1, "the scheduler process ended with status 3"),
        (["--tokenizer-path", "/no/such/tokenizer"], 2, "no such directory: /no/such/tokenizer"),
    ]
    for flags, status, message in cases:
        server = serve(*flags)
        family = family_until_end(server)
        assert server.wait() == status
        assert complaint(server).startswith(message)
        assert socket_directories() == set()
        assert family or status == 2, "no child was ever seen"
        assert eventually(lambda: not any(map(is_running, family)), timeout=2)


def test_start_that_takes_too_long_says_what_it_was_busy_with(serve):
    server = serve("--served-model-name", "slow", "--startup-timeout", "4")
    assert server.wait() == 1
    assert server.lines[-1].startswith(
        "bough: error: the scheduler process was not ready after 4 s; if it is not stuck, a larger --startup-timeout"
    )
    assert any("in run_echo_scheduler" in line for line in server.lines)
    assert socket_directories() == set()


def test_unsupported_model_names_the_supported_ones(serve, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["NoSuchModel"]}))
    server = serve(str(tmp_path))
    assert server.wait() == 1
    assert re.search(r"NoSuchModel is not supported; supported are .*LlamaForCausalLM", complaint(server))


def test_debug_shows_where_a_start_failed(serve):
    server = serve("--served-model-name", "error", "--log-level", "debug")
    assert server.wait() == 1
    assert any("Traceback" in line for line in server.lines)
    assert any('raise RuntimeError("told to fail")' in line for line in server.lines)


# --- ending -----------------------------------------------------------------------------------------------------------


def test_running_requests_finish_while_new_ones_are_refused(serve):
    server = serve().wait_until_ready()
    with server.stream(count=40) as events:
        server.signal(signal.SIGTERM)
        assert eventually(lambda: httpx.get(f"{server.url}/ready").status_code == 503, 2)
        refused = server.generate()
        assert refused.status_code == 503
        assert "shutting down" in refused.json()["error"]["message"]
        *_, last, done = events
    assert last["meta_info"]["completion_tokens"] == 40
    assert done == "[DONE]"
    assert server.wait() == 0
    assert server.leaves_nothing()


def test_requests_that_take_too_long_are_ended(serve):
    server = serve("--shutdown-timeout", "1").wait_until_ready()
    with ThreadPoolExecutor(1) as pool, server.stream(count=10_000) as events:
        whole = pool.submit(server.generate, count=10_000, extra_key="slow")
        assert eventually(lambda: server.num_requests() == 2, 5)
        begin = time.monotonic()
        server.signal(signal.SIGTERM)
        *_, last = (event for event in events if event != "[DONE]")
        assert "the server was shut down" in last["error"]["message"]
        error = whole.result().json()["error"]
        assert (whole.result().status_code, error["code"]) == (503, "shutting_down")
        assert error["message"] == last["error"]["message"]
    assert server.wait() == 128 + signal.SIGTERM
    assert time.monotonic() - begin > 0.9
    assert server.leaves_nothing()


def test_client_that_does_not_read_its_answer_does_not_hold_up_the_end(serve):
    server = serve("--shutdown-timeout", "60").wait_until_ready()
    body = json.dumps(
        {
            "input_ids": [300, 301],
            "sampling_params": {"max_new_tokens": 2000, "n": 32},
            "return_logprob": True,
            "stream": True,
        }
    ).encode()
    head = (
        f"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(head.encode() + body)
        assert connection.recv(1)
        time.sleep(1)
        server.signal(signal.SIGTERM)
        server.wait(30)  # fails after so long: before the time is up that requests may take
    assert not any("Traceback" in line for line in server.lines), server.lines
    assert server.leaves_nothing()


def test_second_signal_ends_at_once(serve):
    server = serve().wait_until_ready()
    with server.stream(count=10_000):
        server.signal(signal.SIGINT)
        time.sleep(0.5)
        server.signal(signal.SIGINT)
        assert server.wait() == 128 + signal.SIGINT
    assert server.leaves_nothing()


@contextlib.contextmanager
def sighup(action: signal.Handlers) -> Iterator[None]:
    """What processes that start meanwhile do on SIGHUP: these tests may run under nohup themselves."""
    before = signal.signal(signal.SIGHUP, action)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_server_whose_terminal_is_closed_ends_in_order(serve):
    with sighup(signal.SIG_DFL):
        server = serve()
    server.wait_until_ready()
    with server.stream(count=20) as events:
        for pid in (server.process.pid, *server.pids):
            os.kill(pid, signal.SIGHUP)
        assert list(events)[-1] == "[DONE]"
    assert server.wait() == 0
    assert server.leaves_nothing()


def test_server_under_nohup_outlives_its_terminal(serve):
    with sighup(signal.SIG_IGN):
        server = serve()
    server.wait_until_ready()
    server.signal(signal.SIGHUP)
    time.sleep(0.5)
    assert server.generate().status_code == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_signal_that_is_delivered_twice_is_one(serve):
    server = serve().wait_until_ready()
    server.signal(signal.SIGTERM)
    time.sleep(0.005)
    server.signal(signal.SIGTERM)
    assert server.wait(20) == 0
    assert server.leaves_nothing()


@pytest.mark.parametrize("victim", [0, 1], ids=["scheduler", "detokenizer"])
def test_dead_child_fails_pending_requests_and_ends_the_server(serve, victim):
    server = serve().wait_until_ready()
    with server.stream(count=10_000) as events:
        os.kill(server.pids[victim], signal.SIGKILL)
        *_, last = (event for event in events if event != "[DONE]")
        assert "was killed by SIGKILL" in last["error"]["message"]
    assert server.wait() == 1
    assert any("process was killed by SIGKILL" in line for line in server.lines)
    assert server.leaves_nothing()


def test_exception_in_the_scheduler_is_logged_and_ends_the_server(serve):
    server = serve().wait_until_ready()
    assert server.generate(extra_key="raise").status_code == 503
    assert server.wait(5) == 1
    text = "".join(server.lines)
    assert "RuntimeError: told to fail" in text
    assert "the scheduler process ended with status 1; the server ends" in text
    assert server.leaves_nothing()


@pytest.mark.parametrize("victim", [0, 1], ids=["scheduler", "detokenizer"])
def test_stopped_child_ends_the_server_after_the_watchdog_time(serve, victim):
    server = serve("--watchdog-timeout", "2").wait_until_ready()
    os.kill(server.pids[victim], signal.SIGSTOP)
    assert server.wait(10) == 1
    name = ("scheduler", "detokenizer")[victim]
    assert any(f"no sign of life from {name}" in line for line in server.lines)
    assert server.leaves_nothing()


def test_suspicious_silence_is_written_to_the_log_once_and_ends_nothing(serve):
    server = serve("--soft-watchdog-timeout", "1.5").wait_until_ready()
    with pytest.raises(httpx.TimeoutException):
        httpx.post(f"{server.url}/generate", json={"input_ids": [1], "extra_key": "hang"}, timeout=5)
    text = "".join(server.lines)
    assert text.count("No sign of life from scheduler for") == 1, text
    assert "in obey" in text, "the stack says where it hangs"
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_stacks_can_be_asked_for(serve):
    server = serve().wait_until_ready()
    for pid in (server.process.pid, *server.pids):
        os.kill(pid, signal.SIGUSR1)
    assert eventually(lambda: sum("most recent call first" in line for line in server.lines) >= 3)
    assert server.generate().status_code == 200


def test_killed_server_leaves_no_process_and_no_file(serve):
    server = serve().wait_until_ready()
    assert len(server.pids) == 2
    server.signal(signal.SIGKILL)
    server.wait()
    assert eventually(server.leaves_nothing, 5)


def test_server_without_tokenizer_has_no_detokenizer_and_stays_alive(serve):
    server = serve("--skip-tokenizer-init", "--watchdog-timeout", "1.5").wait_until_ready()
    assert len(server.pids) == 1
    time.sleep(3)
    assert server.generate().json()["output_ids"] == [300, 301, 300]
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.leaves_nothing()


# --- the real thing ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_server() -> Iterator[Server]:
    server = Server(module="bough.launch_server")
    try:
        yield server.wait_until_ready()
    finally:
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


class TestBundledModel:
    def test_it_answers(self, real_server):
        body = {"model": "x", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8}
        answer = httpx.post(f"{real_server.url}/v1/chat/completions", json=body, timeout=60).json()
        assert answer["usage"]["completion_tokens"] > 0

    def test_only_the_scheduler_loads_torch(self, real_server):
        scheduler, detokenizer = real_server.pids
        assert [loads_torch(pid) for pid in (real_server.process.pid, scheduler, detokenizer)] == [False, True, False]

    def test_idle_processes_use_under_one_percent_of_a_core(self, real_server):
        processes = [psutil.Process(pid) for pid in (real_server.process.pid, *real_server.pids)]

        def share(window: float) -> float:
            """Of a core, of all threads, those that have ended, too."""
            before, begin = sum(sum(each.cpu_times()[:2]) for each in processes), time.monotonic()
            time.sleep(window)
            after = sum(sum(each.cpu_times()[:2]) for each in processes)
            return (after - before) / (time.monotonic() - begin)

        assert eventually(lambda: share(1.0) < 0.02, 20), "what is done once, such as an import, takes no 20 s"
        # Once more, since a neighbour on the same core makes everything take longer.
        assert min(share(5.0), share(5.0)) < 0.01
