from __future__ import annotations

import contextlib
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers import python_servers
from benchmarks.peers.build import PeerEnvironment
from benchmarks.peers.checkpoints import Checkpoints
from benchmarks.peers.engines import Engines
from benchmarks.peers.http_server import http_server
from benchmarks.peers.serving import job_of
from benchmarks.peers.serving import python_servers as servers_of

from bough.errors import StartupError

SERVER = """
import os, signal, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{child.pid} {os.environ['GREETING']}".encode())

child = subprocess.Popen(["sleep", "60"])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only waiting to be asked how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_server_is_ready_when_it_is_given_and_ends_with_what_it_started() -> None:
    with http_server([sys.executable, "-c", SERVER], {"GREETING": "hello"}) as url:
        child, greeting = urllib.request.urlopen(url).read().decode().split()
        assert greeting == "hello"
        assert is_running(int(child))
    deadline = time.monotonic() + 10
    while is_running(int(child)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(int(child))


def test_server_that_does_not_start_says_why() -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no such model')"]
    with pytest.raises(StartupError, match="no such model"), http_server(failing):
        pass


def test_server_that_never_answers_is_given_up_and_ended(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    silent = ["sh", "-c", f"echo $$ > {told}; exec sleep 60"]
    with (
        pytest.raises(StartupError, match="does not start"),
        http_server(silent, start_seconds=2.0),
    ):
        pass
    assert not is_running(int(told.read_text()))


def test_sglang_and_vllm_serve_the_checkpoint_itself_and_only_in_bf16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[list[str], dict[str, str]]] = []

    def start(command: list[str], environment: dict[str, str], **_: Any) -> contextlib.AbstractContextManager[str]:
        started.append((command, environment))
        return contextlib.nullcontext("http://127.0.0.1:1")

    monkeypatch.setattr(python_servers, "http_server", start)
    checkpoints = Checkpoints(tmp_path, "tiny", PeerEnvironment(tmp_path))
    (tmp_path / "tiny/hf").mkdir(parents=True)
    engines = Engines(
        checkpoints._environment, checkpoints, 2, {"sglang": Path("/s/python"), "vllm": Path("/v/python")}
    )
    assert [name for name, _ in servers_of(engines, "int8")] == []
    assert [name for name, _ in servers_of(engines, "bf16")] == ["sglang", "vllm"]
    for (command, environment), python in zip(started, ("/s/python", "/v/python"), strict=True):
        assert command[0] == python
        assert str(tmp_path / "tiny/hf") in command
        assert environment["OMP_NUM_THREADS"] == "2"


def test_jobs_are_as_large_as_their_names_say() -> None:
    sizes = {}
    for kind in ("server-1", "server", "shared"):
        job = job_of(kind, 1000)
        requests = job.requests(7)
        assert {len(request.input_ids or ()) for request in requests} == {job.prompt_tokens}
        assert {request.output_len for request in requests} == {job.output_tokens}
        sizes[kind] = (len(requests), job.concurrency)
    assert sizes == {"server-1": (3, 1), "server": (32, 32), "shared": (32, 8)}
