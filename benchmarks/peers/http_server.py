"""A peer's HTTP server, for as long as it is measured."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from benchmarks.peers.build import ROOT

from bough.errors import StartupError

STOP_SECONDS = 20.0


@contextlib.contextmanager
def http_server(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, start_seconds: float = 120.0
) -> Iterator[str]:
    """A server that tells on ``/health`` when it is ready, on a free port; yields its URL.

    Args:
        command: that starts it, to which ``--port`` is added.
        environment: variables beside our own.
        start_seconds: after which it is given up.

    Raises:
        StartupError: if it does not start; with the end of what it wrote.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=ROOT,
            env=os.environ | (environment or {}),
            stdout=complaints,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # it ends with all that it starts
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process, time.monotonic() + start_seconds, complaints)
            yield url
        finally:
            _end(process)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], deadline: float, complaints: IO[str]) -> None:
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            urllib.request.urlopen(url + "/health", timeout=5).close()
            return
        time.sleep(0.1)
    complaints.seek(0)
    raise StartupError(f"{process.args!r} does not start: {complaints.read()[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
