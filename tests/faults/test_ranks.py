"""Ranks that go wrong while they share a real model: the same must hold as in the matrix of servers of one rank."""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from bough.config.engine_args import bundled_model_path
from tests.entrypoints.leftovers import children, eventually
from tests.faults.injection import SCHEDULER_VARIABLE
from tests.faults.test_matrix import Client, Place, Server, assert_server_ends
from tests.model_companions import write_other_checkpoint
from tests.native import needs_native

pytestmark = needs_native

FLAGS = ("--tp-size", "2", "--dtype", "float32", "--cpu-threads", "1", "--max-total-tokens", "12288")
PROMPT_TOKENS = 3000
"""At 8 in a step the first takes about a second."""

TWO_RANKS = ("first", "follower", "detokenizer")
TWO_REPLICAS = ("first", "other follower", "second", "follower", "controller", "detokenizer")
"""Children in the order in which they are started; the follower of the last replica is struck."""

ALWAYS = {(TWO_RANKS, "SIGKILL", "decode"), (TWO_RANKS, "SIGSTOP", "idle")}
CASES = [
    *(
        (TWO_RANKS, *case)
        for case in itertools.product(("SIGKILL", "SIGSTOP"), ("idle", "prefill", "decode", "update"))
    ),
    *((TWO_REPLICAS, *case) for case in (("SIGKILL", "decode"), ("SIGSTOP", "prefill"), ("SIGKILL", "update"))),
]


class Ranks(Server):
    """A server of ranks one of which is going to fail."""

    def __init__(self, place: Place, faults: Path, names: tuple[str, ...]) -> None:
        self.names = names
        replicas = ("--dp-size", "2", "--load-balance-method", "round_robin") if names == TWO_REPLICAS else ()
        super().__init__(place, faults, *FLAGS, *replicas)

    def find_processes(self) -> None:
        assert eventually(lambda: len(children(self.process.pid)) == len(self.names), 60), self.log.read_text()
        self.pids = {"main": self.process.pid, **dict(zip(self.names, children(self.process.pid), strict=True))}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as temporary:
        place = Place(tmp_path_factory.mktemp("checkpoint"), temporary)
        place.checkpoint = bundled_model_path()
        yield place


@pytest.mark.parametrize(
    ("names", "fault", "state"),
    [
        pytest.param(
            *case,
            marks=() if case in ALWAYS else pytest.mark.faults,
            id="-".join((*(("replicas",) if case[0] == TWO_REPLICAS else ()), *case[1:])),
        )
        for case in CASES
    ],
)
def test_fault(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], fault: str, state: str
) -> None:
    monkeypatch.setenv(SCHEDULER_VARIABLE, "tests.faults.rank")
    server = Ranks(place, tmp_path, names)
    try:
        server.find_processes()
        clients = bring_into(server, state, tmp_path)
        shared = shared_memory_of(server.pids["follower"])
        assert shared, "ranks compute in memory that they share"
        armed = server.arm("follower", fault)
        several = names == TWO_REPLICAS
        assert_server_ends(server, clients, "follower", fault, state, armed, answers_meanwhile=several)
        server.assert_nothing_is_left()
        assert not shared & set().union(*map(shared_memory_of, psutil.pids()))
    finally:
        server.close()


@pytest.mark.faults
def test_weights_that_one_rank_of_one_replica_refuses_are_written_nowhere(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCHEDULER_VARIABLE, "tests.faults.rank")
    other = write_other_checkpoint(tmp_path / "other")
    server = Ranks(place, tmp_path, TWO_REPLICAS)

    def post(path: str, **body: Any) -> httpx.Response:
        return httpx.post(f"{server.url}{path}", json=body, timeout=60)

    def answers() -> list[str]:
        asked = {"text": "<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n"}
        sampling = {"temperature": 0, "max_new_tokens": 16}
        found = [post("/generate", **asked, sampling_params=sampling).json() for _ in range(2)]
        assert {each["meta_info"]["dp_rank"] for each in found} == {0, 1}
        return [each["text"] for each in found]

    try:
        server.find_processes()
        server.wait_until("/ready", 200, 120)
        before = answers()
        (tmp_path / str(server.pids["follower"])).write_text("refuse")
        refused = post("/update_weights_from_disk", model_path=str(other), weight_version="new")
        assert refused.status_code == 400
        assert "they do not fit here" in refused.json()["message"]
        assert answers() == before
        (tmp_path / str(server.pids["follower"])).unlink()
        assert post("/update_weights_from_disk", model_path=str(other)).status_code == 200
        assert not set(answers()) & set(before)
    finally:
        server.close()


def bring_into(server: Ranks, state: str, directory: Path) -> list[Client]:
    """Bring a server into a state; returns the clients that wait there."""
    server.wait_until("/ready", 200, 120)
    if state == "idle":
        return []
    if state == "update":
        (directory / "hold_writing").touch()
        update = {"model_path": str(server.place.checkpoint)}
        client = Client(server.url, update, "/update_weights_from_disk")
        assert eventually(lambda: server.struck("writing") is not None, 20), server.log.read_text()
        return [client]
    clients = server.ask(3000, PROMPT_TOKENS if state == "prefill" else 3, until_it_streams=state == "decode")
    assert eventually(lambda: total(server, "num_running_reqs", "num_queue_reqs") == len(clients), 10)
    done = "prefill_tokens_total" if state == "prefill" else "decode_tokens_total"
    assert eventually(lambda: total(server, done) > 0, 10), server.log.read_text()
    return clients


def total(server: Ranks, *names: str) -> float:
    states = httpx.get(f"{server.url}/server_info", timeout=20).json()["internal_states"]
    return float(sum(state[name] for state in states for name in names))


def shared_memory_of(pid: int) -> set[str]:
    """Inodes of the memory without a name that a process maps, of those that this package makes."""
    with contextlib.suppress(OSError):
        maps = Path(f"/proc/{pid}/maps").read_text()
        return {match[1] for match in re.finditer(r"^\S+ \S+ \S+ \S+ (\d+) +/memfd:bough-", maps, re.MULTILINE)}
    return set()
