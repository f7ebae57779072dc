"""Processes of a server with replicas that go wrong: the same must hold as in the matrix of one without."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.test_fake_model import make_checkpoint
from tests.entrypoints.leftovers import children, eventually
from tests.faults.test_matrix import PROMPT_TOKENS, Client, Place, Server, assert_server_ends, place  # noqa: F401

NAMES = ("first", "second", "controller", "detokenizer")
"""Children of a server with two replicas, in the order in which they are started."""

CLIENTS = 6
ALWAYS = {("second", "SIGSTOP", "updating")}
CASES = [
    pytest.param(*case, marks=() if case in ALWAYS else pytest.mark.faults, id="-".join(case))
    for case in (
        ("controller", "SIGKILL", "decode"),
        ("controller", "SIGSTOP", "prefill"),
        ("second", "SIGKILL", "prefill"),
        ("second", "SIGSTOP", "decode"),
        ("first", "SIGKILL", "updating"),
        ("second", "SIGSTOP", "updating"),
    )
]


class Replicas(Server):
    """A server with two replicas that is going to fail."""

    def find_processes(self) -> None:
        assert eventually(lambda: len(children(self.process.pid)) == len(NAMES), 60), self.log.read_text()
        self.pids = {"main": self.process.pid, **dict(zip(NAMES, children(self.process.pid), strict=True))}

    def total(self, name: str) -> float:
        states: list[dict[str, Any]] = httpx.get(f"{self.url}/server_info", timeout=20).json()["internal_states"]
        assert len(states) == 2
        return sum(state[name] for state in states)


@pytest.mark.parametrize(("process", "fault", "state"), CASES)
def test_fault(place: Place, tmp_path: Path, process: str, fault: str, state: str) -> None:  # noqa: F811
    server = Replicas(place, tmp_path, "--dp-size", "2", "--load-balance-method", "round_robin")
    try:
        server.find_processes()
        clients = bring_into(server, state, tmp_path)
        assert_server_ends(server, clients, process, fault, state, server.arm(process, fault))
        server.assert_nothing_is_left()
    finally:
        server.close()


def bring_into(server: Replicas, state: str, directory: Path) -> list[Client]:
    """Bring a server into a state; returns the clients that wait there."""
    server.wait_until("/ready", 200)
    prompt = list(range(1, 1 + (PROMPT_TOKENS if state == "prefill" else 3)))
    sampling = {"max_new_tokens": 900 if state != "prefill" else 300, "ignore_eos": True, "temperature": 0}
    clients = []
    for number in range(CLIENTS):
        body = {"input_ids": [number + 1, *prompt], "sampling_params": sampling, "stream": number % 2 == 0}
        clients.append(Client(server.url, body))
    if state == "prefill":
        assert eventually(lambda: server.total("num_running_reqs") + server.total("num_queue_reqs") == CLIENTS, 10)
        assert eventually(lambda: server.total("prefill_tokens_total") > 0, 10)
        return clients
    assert eventually(lambda: server.total("decode_tokens_total") > 20, 10)
    if state == "updating":
        assert httpx.post(f"{server.url}/pause_generation", json={"mode": "in_place"}).status_code == 200
        other = directory / "other"
        other.mkdir()
        make_checkpoint(other, shift=1)
        (directory / "hold_writing").touch()
        update = {"model_path": str(other), "flush_cache": False}
        clients.append(Client(server.url, update, "/update_weights_from_disk"))
        assert eventually(lambda: server.struck("writing") is not None, 10), server.log.read_text()
        time.sleep(0.2)  # the second replica has nothing to write, and has replied by then
    return clients
