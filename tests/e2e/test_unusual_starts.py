"""A server on a Unix socket, under a proxy's path, of a model whose path is not UTF-8, by a Python without docs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bough.config.engine_args import bundled_model_path
from tests.e2e.server import READY_SECONDS

ROOT, KEY = "/models/sapling", "sk-admin"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Path]]:
    directory = tmp_path_factory.mktemp("unusual")
    path = directory / "server.sock"
    cwd = Path(os.fsdecode(os.fsencode(directory) + b"/caf\xe9"))
    shutil.copytree(bundled_model_path(), cwd)
    keys = cwd / "keys"
    keys.write_text(f"{KEY}\n")
    flags = ["--uds", str(path), "--root-path", ROOT, "--model-path", str(cwd), "--admin-api-key-file", str(keys)]
    flags += ["--log-format", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bough.launch_server", *flags],
        cwd=cwd,
        env={**os.environ, "PYTHONOPTIMIZE": "2"},
        stderr=subprocess.PIPE,
        text=True,
    )
    client = httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost", timeout=60)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            with contextlib.suppress(httpx.TransportError):
                if client.get("/ready").status_code == 200:
                    break
            assert process.poll() is None, process.stderr
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield client, path
        client.close()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
        assert process.returncode == 0
        lines = [json.loads(line)["message"] for line in log.splitlines()]
        assert any(f"curl --unix-socket {path} http://localhost/v1/chat/completions" in line for line in lines)
        assert not path.exists(), "the socket is removed at the end"
    finally:
        process.kill()
        process.communicate()


def test_it_answers_there_and_for_this_user_alone(started: tuple[httpx.Client, Path]) -> None:
    client, path = started
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "stream": True}
    assert client.post("/v1/chat/completions", json=body).text.endswith("data: [DONE]\n\n")
    assert client.post("/flush_cache").status_code == 401
    assert client.post("/flush_cache", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200


def test_its_paths_are_shown_as_far_as_they_can_be(started: tuple[httpx.Client, Path]) -> None:
    client, _ = started
    info = client.get("/server_info").json()
    for path in (info["model_path"], info["tokenizer_path"], client.get("/model_info").json()["model_path"]):
        assert path.endswith("/caf\ufffd")
    assert client.get("/v1/models").json()["data"][0]["id"] == "caf\ufffd"
    assert client.post("/api/show", json={"model": "caf\ufffd"}).status_code == 200


def test_a_proxy_may_leave_its_path_or_take_it_off(started: tuple[httpx.Client, Path]) -> None:
    client, _ = started
    for path in ("/health", "/v1/models", "/docs", "/playground/main.js"):
        assert client.get(path).status_code == client.get(ROOT + path).status_code == 200
    assert client.get(f"{ROOT}/nowhere").status_code == 404
    assert client.get(f"{ROOT}x/health").status_code == 404
    assert client.post(f"{ROOT}/v1/completions", json={"prompt": "a", "max_tokens": 2}).status_code == 200


def test_addresses_lead_to_the_proxys_path(started: tuple[httpx.Client, Path]) -> None:
    client, _ = started
    assert client.get("/openapi.json").json()["servers"] == [{"url": ROOT}]
    moved = client.get(ROOT, headers={"Accept": "text/html"})
    assert (moved.status_code, moved.headers["location"]) == (307, f"{ROOT}/")
    page = client.get(f"{ROOT}/", headers={"Accept": "text/html"}).text
    assert "playground/main.js" in page
    assert 'src="/' not in page
    assert 'href="/' not in page
