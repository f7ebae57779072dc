"""llama.cpp's HTTP server, for as long as it is measured."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bough.errors import StartupError

START_SECONDS = 120.0
SPARE_TOKENS = 64


@contextlib.contextmanager
def llama_server(program: Path, model: Path, *, threads: int, slots: int, slot_tokens: int) -> Iterator[str]:
    """A server on a free port; yields its URL.

    Args:
        program: ``llama-server``.
        model: a GGUF file.
        threads: that compute.
        slots: sequences at the same time.
        slot_tokens: prompt and output of one.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(program), "-m", str(model), "-t", str(threads), "--port", str(port), "--parallel", str(slots)]
    command += ["--ctx-size", str(slots * (slot_tokens + SPARE_TOKENS))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process)
            yield url
        finally:
            process.terminate()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(url + "/health").close()
            return
        time.sleep(0.1)
    raise StartupError("llama-server does not start")
