"""Every way in which a process can go wrong, in every state of a server.

Whatever happens: liveness tells, every client gets an answer or an error, the server ends with a status, nothing of it
is left, and the next one starts at the same place. All cases share a port and a directory for sockets, so each case
starts its server where the one before has ended badly. ``make faults`` runs all of them; a few run always.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import psutil
import pytest

from tests.e2e.server import free_port
from tests.e2e.test_fake_model import make_checkpoint
from tests.entrypoints.leftovers import children, eventually, is_running
from tests.faults.injection import DIRECTORY_VARIABLE

WATCHDOG_SECONDS = 2.0
STARTUP_SECONDS = 10.0
HANG_SECONDS = 25.0
"""A client that has waited this long was forgotten."""
TOLD_SECONDS = 2.0
"""From a death, or from when something has hung for as long as it may, until liveness tells."""
END_SECONDS = 5.0
"""From the same moment until the server has ended."""
PROMPT_TOKENS = 600
"""At 8 in a step of 20 ms the first takes 1.5 s: all clients have come by then, and an idle loop has turned again."""

STATES = ("starting", "idle", "prefill", "decode", "draining")
EVERYWHERE = ("SIGKILL", "SIGSTOP", "exit", "exception", "stuck", "out_of_memory")
FAULTS = [(process, fault) for process in ("scheduler", "detokenizer", "main") for fault in EVERYWHERE]
FAULTS.append(("scheduler", "device_error"))
ALWAYS = {
    ("scheduler", "SIGKILL", "decode"),
    ("scheduler", "out_of_memory", "decode"),
    ("detokenizer", "stuck", "prefill"),
    ("main", "exception", "draining"),
}
CASES = [
    pytest.param(*case, marks=() if case in ALWAYS else pytest.mark.faults, id="-".join(case))
    for case in ((process, fault, state) for (process, fault), state in itertools.product(FAULTS, STATES))
]
HANGS = ("SIGSTOP", "stuck")


class Place:
    """Where all servers of this module are started, one after the other."""

    def __init__(self, directory: Path, temporary: str) -> None:
        self.port = free_port()
        self.temporary = temporary
        self.checkpoint = directory
        make_checkpoint(directory)
        self.shared_memory = set(os.listdir("/dev/shm"))
        self.count = itertools.count()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    checkpoint = tmp_path_factory.mktemp("checkpoint")
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as temporary:
        yield Place(checkpoint, temporary)


class Client(threading.Thread):
    """Someone who waits for an answer; ``result`` says what came of it."""

    def __init__(self, url: str, body: dict[str, Any], path: str = "/generate") -> None:
        super().__init__(daemon=True)
        self.url, self.path, self.body = url, path, body
        self.result = ""
        self.detail = ""
        """What the server said, or what became of the connection, if the answer did not come."""
        self.begun = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            self.result = self._ask()
        except httpx.TimeoutException as error:
            self.result, self.detail = "hung", repr(error)
        except httpx.TransportError as error:
            self.result, self.detail = "error", repr(error)

    def _ask(self) -> str:
        timeout = httpx.Timeout(HANG_SECONDS, connect=5)
        with httpx.stream("POST", self.url + self.path, json=self.body, timeout=timeout) as response:
            text = ""
            for part in response.iter_text():
                if response.status_code == 200:
                    self.begun.set()
                text += part
        if response.status_code != 200:
            self.detail = f"{response.status_code} {text}"
            return "error"
        if self.body.get("stream"):
            events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
            complete = "[DONE]" in text and not any("error" in event for event in events)
        else:
            complete = True
        if not complete:
            self.detail = text
        return "answered" if complete else "error"


class Server:
    """A server that is going to fail."""

    def __init__(self, place: Place, faults: Path, *flags: str) -> None:
        self.place = place
        self.faults = faults
        self.url = f"http://127.0.0.1:{place.port}"
        self.log = faults / "log"
        command = [sys.executable, "-m", "tests.faults.serve", str(place.checkpoint), "--port", str(place.port)]
        limits = [
            "--watchdog-timeout",
            f"{WATCHDOG_SECONDS}",
            "--max-running-requests",
            "2",
            "--max-total-tokens",
            "4096",
        ]
        path = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))
        environment = {"PYTHONPATH": path, "TMPDIR": place.temporary, DIRECTORY_VARIABLE: str(faults)}
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, *limits, "--chunked-prefill-size", "8", *flags],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
            )
        self.pids: dict[str, int] = {}

    def status_of(self, path: str, timeout: float = 0.5) -> int | Literal["refused", "silent"]:
        """The status; "refused" also if the connection is closed without one, "silent" if nothing comes in time."""
        try:
            return httpx.get(self.url + path, timeout=timeout).status_code
        except httpx.TimeoutException:
            return "silent"
        except httpx.TransportError:
            return "refused"

    def wait_until_told(self, deadline: float, *, by_silence: bool) -> None:
        """Until ``/health`` tells that the server is done for; fails if that is later than ``deadline``.

        Args:
            deadline: seconds since 1970.
            by_silence: whether no answer tells, too: a main process that hangs has no other way. Of any other it is a
                probe that was unlucky.
        """
        telling = (503, "refused", "silent") if by_silence else (503, "refused")
        while True:
            said = self.status_of("/health")
            assert time.time() < deadline, (said, self.log.read_text())
            if said in telling:
                return
            assert said in (200, "silent"), said
            time.sleep(0.02)

    def wait_until(self, path: str, status: int, seconds: float = 60.0) -> None:
        def so() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return self.status_of(path) == status

        assert eventually(so, seconds), self.log.read_text()

    def find_processes(self) -> None:
        """Children in the order in which they were started."""
        assert eventually(lambda: len(children(self.process.pid)) == 2, 60), self.log.read_text()
        scheduler, detokenizer = children(self.process.pid)
        self.pids = {"main": self.process.pid, "scheduler": scheduler, "detokenizer": detokenizer}

    def wait_until_loading(self) -> None:
        """Until the children load what they need, wherever that has brought them."""

        def loading(pid: int) -> bool:
            return "tests.faults" in " ".join(psutil.Process(pid).cmdline()) and has_handler(pid)

        assert eventually(lambda: all(map(loading, self.pids.values())), 60)

    def ask(self, tokens: int, prompt: int = 3, *, until_it_streams: bool = False) -> list[Client]:
        """A stream, a whole answer, and one that waits for its turn; the others may come once the first streams."""
        sampling = {"max_new_tokens": tokens, "ignore_eos": True, "temperature": 0}
        ids = [list(range(1 + i, 1 + i + prompt)) for i in range(3)]
        stream = Client(self.url, {"input_ids": ids[0], "sampling_params": sampling, "stream": True})
        if until_it_streams:
            assert stream.begun.wait(20), (stream.result, self.log.read_text())
        whole = Client(self.url, {"input_ids": ids[1], "sampling_params": sampling})
        waiting = Client(
            self.url,
            {"model": "default", "prompt": ids[2], "max_tokens": tokens, "ignore_eos": True},
            "/v1/completions",
        )
        return [stream, whole, waiting]

    def arm(self, process: str, fault: str) -> float:
        """Let the fault happen; returns when, in seconds since 1970."""
        if fault.startswith("SIG"):
            now = time.time()
            os.kill(self.pids[process], getattr(signal, fault))
            return now
        file = self.faults / process
        file.with_suffix(".new").write_text(fault)
        file.with_suffix(".new").rename(file)
        return time.time()

    def struck(self, process: str) -> float | None:
        file = self.faults / f"{process}.struck"
        with contextlib.suppress(FileNotFoundError, ValueError):
            return float(file.read_text())
        return None

    def assert_nothing_is_left(self) -> None:
        assert eventually(lambda: not any(map(is_running, self.pids.values())), 5), self.log.read_text()
        assert eventually(lambda: os.listdir(self.place.temporary) == [], 5), os.listdir(self.place.temporary)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", self.place.port))
        names = ["bough", *map(str, self.pids.values())]  # others on this machine may use it, too
        new = set(os.listdir("/dev/shm")) - self.place.shared_memory
        assert not [each for each in new if any(name in each for name in names)]

    def close(self) -> None:
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                process.kill()
        self.process.kill()
        self.process.wait()
        for left in Path(self.place.temporary).iterdir():  # is this case's failure, not the next one's
            shutil.rmtree(left)


def has_handler(pid: int) -> bool:
    """Whether a process has come so far that it handles the signal for stacks."""
    with open(f"/proc/{pid}/status") as file:
        caught = next(int(line.split()[1], 16) for line in file if line.startswith("SigCgt"))
    return bool(caught >> (signal.SIGUSR1 - 1) & 1)


@pytest.fixture
def faults(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.parametrize(("process", "fault", "state"), CASES)
def test_fault(place: Place, faults: Path, process: str, fault: str, state: str) -> None:
    flags = ["--startup-timeout", f"{STARTUP_SECONDS}"] if state == "starting" and fault in HANGS else []
    if state == "starting":
        (faults / "hold").touch()
    server = Server(place, faults, *flags)
    try:
        server.find_processes()
        survives = fault == "out_of_memory" and state != "starting"
        clients = bring_into(server, state, tokens=120 if survives else 900)
        armed = server.arm(process, fault)
        if fault == "device_error":
            (faults / "hold").unlink(missing_ok=True)  # it shows when the first step is tried
        if survives:
            if state == "idle":
                clients = server.ask(tokens=20)
            assert_server_goes_on(server, clients, process, state)
        else:
            assert_server_ends(server, clients, process, fault, state, armed)
        server.assert_nothing_is_left()
    finally:
        server.close()


def bring_into(server: Server, state: str, tokens: int) -> list[Client]:
    """Bring a server into a state; returns the clients that wait there."""
    if state == "starting":
        server.wait_until("/ready", 503)
        server.wait_until_loading()
        return []
    server.wait_until("/ready", 200)
    if state == "idle":
        return []
    if state == "prefill":
        before = state_of(server)
        clients = server.ask(min(tokens, 300), prompt=PROMPT_TOKENS)
        now: dict[str, Any] = {}

        def computes_prompts() -> bool:
            now.update(state_of(server))
            begun = now["prefill_tokens_total"] > before["prefill_tokens_total"]
            return bool(begun and now["num_running_reqs"] + now["num_queue_reqs"] == len(clients))

        assert eventually(computes_prompts, 10)
        assert now["decode_tokens_total"] == before["decode_tokens_total"], "no prompt is done"
        return clients
    clients = server.ask(tokens, until_it_streams=True)
    # A server that drains refuses whoever comes later.
    assert eventually(lambda: load_of(server) == (2, 1), 10)
    if state == "draining":
        server.process.send_signal(signal.SIGTERM)
        server.wait_until("/ready", 503)
    return clients


def state_of(server: Server) -> dict[str, Any]:
    state: dict[str, Any] = httpx.get(f"{server.url}/server_info").json()["internal_states"][0]
    return state


def load_of(server: Server) -> tuple[int, int]:
    """How many requests run, and how many wait."""
    state = state_of(server)
    return int(state["num_running_reqs"]), int(state["num_queue_reqs"])


def assert_server_ends(
    server: Server,
    clients: list[Client],
    process: str,
    fault: str,
    state: str,
    armed: float,
    *,
    answers_meanwhile: bool = False,
) -> None:
    """Check the bounds from the moment ``armed`` on.

    ``answers_meanwhile``: another replica may be quick enough to answer a client that asks before the server has ended.
    """
    if state == "idle" and fault == "device_error":
        clients = server.ask(tokens=20)
    when = armed
    if not fault.startswith("SIG"):
        assert eventually(lambda: server.struck(process) is not None, 10), server.log.read_text()
        when = server.struck(process) or armed
    may_hang = 0.0
    if fault in HANGS:
        may_hang = WATCHDOG_SECONDS
        if state == "starting":
            may_hang = STARTUP_SECONDS + (WATCHDOG_SECONDS if process == "main" else 0)
    end = when + may_hang + END_SECONDS
    if state != "starting":  # there every probe answers 503, whatever happens: its end tells
        server.wait_until_told(when + may_hang + TOLD_SECONDS, by_silence=process == "main" and fault in HANGS)
    late = Client(server.url, {"input_ids": [1, 2], "sampling_params": {"max_new_tokens": 900}})
    status = server.process.wait(max(end + 5 - time.time(), 1))
    ended = time.time()
    assert status != 0
    assert ended < end, (ended - when, server.log.read_text())
    for client in [*clients, late]:
        client.join(5)
        allowed = ("error", "answered") if client is late and answers_meanwhile else ("error",)
        assert client.result in allowed, (client.body, client.result, server.log.read_text())
    if state == "prefill":
        assert not any(client.begun.is_set() for client in clients), "it struck while prompts were computed"
    log = server.log.read_text()
    if fault == "stuck" and not (process == "main" and state == "starting"):
        assert "tests/faults/injection.py" in log, log
        assert "in strike" in log, "the stack says what hangs"
    if fault == "SIGKILL" and process != "main":
        assert "killed by SIGKILL" in log


def assert_server_goes_on(server: Server, clients: list[Client], process: str, state: str) -> None:
    assert eventually(lambda: server.struck(process) is not None, 10), server.log.read_text()
    if state != "draining":
        assert server.status_of("/health", 5) == 200
    for client in clients:
        client.join(HANG_SECONDS)
        assert client.result in ("answered", "error"), (client.body, client.result, server.log.read_text())
    # A step of several is computed again, in smaller ones; who was alone in it, or with its delta, cannot go on.
    assert [client.result for client in clients].count("error") <= 1, "only those who were concerned fail"
    if state == "draining":
        assert server.process.wait(10) == 0
        return
    answer = httpx.post(f"{server.url}/generate", json={"input_ids": [1], "sampling_params": {"max_new_tokens": 2}})
    assert answer.status_code == 200
    assert eventually(lambda: load_of(server)[0] == 0)
    state_now = httpx.get(f"{server.url}/server_info").json()["internal_states"][0]
    assert state_now["kv_discrepancy"] is None
    assert state_now["kv_accounting_repairs_total"] == 0
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == 0


@pytest.mark.faults
def test_after_all_this_a_server_starts_and_works(place: Place, faults: Path) -> None:
    server = Server(place, faults)
    try:
        server.find_processes()
        server.wait_until("/ready", 200)
        client = Client(server.url, {"input_ids": [1, 2], "sampling_params": {"max_new_tokens": 5}})
        client.join(10)
        assert client.result == "answered"
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0
        server.assert_nothing_is_left()
    finally:
        server.close()
