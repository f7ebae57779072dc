"""A real server: its own processes, a real socket, a real checkpoint."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil

READY_SECONDS = 180.0

MAX_TOTAL_TOKENS = 16_384
"""Bound of the bundled model's KV cache: a start fills it, half a second for each 0.25 GB."""


num_replicas = 1
"""``--dp-size`` of servers whose test names none: pytest's option of this name."""

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw15").removeprefix("gw")) % 16
_FIRST, _COUNT = 16_000 + 1000 * _WORKER, 1000
_offsets = itertools.count(os.getpid())


def free_port() -> int:
    """A port that no other worker of the tests takes, nor a client: those have larger ones."""
    while True:
        port = _FIRST + next(_offsets) % _COUNT
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """A running server and what tests ask of it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        self.client = httpx.Client(base_url=self.url, timeout=120.0)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(path, json=body)

    def generate(self, **body: Any) -> Any:
        response = self.post("/generate", **body)
        assert response.status_code == 200, response.text
        return response.json()

    def states(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get("/server_info").json()["internal_states"]
        return found

    def state(self) -> dict[str, Any]:
        """The state of the scheduler; of several their sums, where they are numbers, and otherwise the first one's."""
        first, *others = self.states()
        for other in others:
            for name, value in other.items():
                if isinstance(value, bool):
                    first[name] = first[name] and value
                elif isinstance(value, (int, float)):
                    first[name] += value
                elif first[name] is None:
                    first[name] = value
        return first

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over its labels, or over those that have these values too."""
        lines = self.client.get("/metrics").text.splitlines()
        of_name = [line for line in lines if line.startswith((f"bough:{name}{{", f"bough:{name} "))]
        assert of_name, f"there is no {name}"
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(line.rsplit(" ", 1)[1]) for line in of_name if all(label in line for label in wanted))

    def processes(self) -> list[psutil.Process]:
        main = psutil.Process(self.process.pid)
        return [main, *main.children(recursive=True)]

    def assert_idle_and_whole(self, timeout: float = 20.0) -> None:
        """No request is left, and every KV slot, request slot and lock is back."""
        deadline = time.monotonic() + timeout
        while not (state := self.state())["idle"]:
            assert time.monotonic() < deadline, f"not idle after {timeout:g} s: {state}"
            time.sleep(0.05)
        assert state["kv_discrepancy"] is None
        assert state["kv_accounting_repairs_total"] == 0
        assert state["num_running_reqs"] == state["num_queue_reqs"] == 0

    def stop(self) -> int:
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextlib.contextmanager
def running_server(
    directory: Path,
    *flags: str,
    wait: bool = True,
    python: str = sys.executable,
    port: int | None = None,
    module: str = "bough.launch_server",
) -> Iterator[Server]:
    port = port or free_port()
    log = directory / f"server-{port}.log"
    if module == "bough.launch_server" and not {"--model-path", "--max-total-tokens"} & set(flags):
        flags += ("--max-total-tokens", str(MAX_TOTAL_TOKENS * num_replicas))
    if num_replicas > 1 and module == "bough.launch_server" and not any(flag.startswith("--dp-size") for flag in flags):
        flags += ("--dp-size", str(num_replicas))
    command = [python, "-m", module, "--port", str(port), *flags]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=dict(os.environ))
    server = Server(process, port, log)
    try:
        if wait:
            wait_until_ready(server)
        yield server
    finally:
        children = []
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(process.pid).children(recursive=True)
        server.stop()
        _gone, alive = psutil.wait_procs(children, timeout=5)
        assert not alive, f"left behind: {alive}"


def wait_until_ready(server: Server) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        with contextlib.suppress(httpx.TransportError):
            if server.client.get("/ready").status_code == 200:
                return
        assert server.process.poll() is None, server.log.read_text()
        assert time.monotonic() < deadline, server.log.read_text()
        time.sleep(0.1)
