"""The end of a server in whatever it is doing: in order, cut short, and at once."""

from __future__ import annotations

import itertools
import signal
import time
from pathlib import Path

import httpx
import pytest

from bough.entrypoints.server_run import SAME_SIGNAL_SECONDS
from tests.faults.test_matrix import Place, Server, bring_into, place  # noqa: F401 (a fixture)

ALWAYS = {("prefill", "in time")}
CASES = [
    pytest.param(*case, marks=() if case in ALWAYS else pytest.mark.faults, id="-".join(case).replace(" ", "_"))
    for case in itertools.product(("idle", "prefill", "decode", "paused"), ("in time", "too late", "second signal"))
]


@pytest.mark.parametrize(("state", "how"), CASES)
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.faults)])
def test_drain(place: Place, tmp_path: Path, state: str, how: str, number: signal.Signals) -> None:  # noqa: F811
    server = Server(place, tmp_path, "--shutdown-timeout", "0.5" if how == "too late" else "60")
    try:
        server.find_processes()
        tokens = 120 if how == "in time" else 900
        clients = bring_into(server, "decode" if state == "paused" else state, tokens)
        if state == "paused":
            assert httpx.post(f"{server.url}/pause_generation", json={"mode": "in_place"}).status_code == 200
        server.process.send_signal(number)
        if state != "idle":
            server.wait_until("/ready", 503, 5)
            assert server.status_of("/health", 5) == 200, "it drains, and is not sick"
            refused = httpx.post(f"{server.url}/generate", json={"input_ids": [1]})
            assert refused.status_code == 503
            assert refused.headers["connection"] == "close"
            assert "retry-after" in refused.headers
        if how == "second signal":
            if state != "idle":
                time.sleep(SAME_SIGNAL_SECONDS)  # sooner, it would be taken for the first one
            server.process.send_signal(number)
        status = server.process.wait(30)  # fails before the time is up that a request may take
        for client in clients:
            client.join(5)
            assert client.result == ("answered" if how == "in time" else "error"), client.detail
        if state != "idle":
            assert status == (0 if how == "in time" else 128 + number)
        server.assert_nothing_is_left()
    finally:
        server.close()
