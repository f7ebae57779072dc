from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bough.kernels.thread_pool import ThreadPool
from bough.model_executor.core_binding import CoreBinding, CoreClaim, bind_threads, claim_cores
from bough.model_executor.machine import Core, Machine
from tests.native import needs_native

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")

FIRST = 10_000
"""Of made-up processors: servers beside the tests may claim real ones."""

TWO_NODES = [Core(frozenset({FIRST + core, FIRST + 8 + core}), node=core // 4) for core in range(8)]

Claim = Callable[[list[Core], int], "list[int] | None"]


@pytest.fixture
def made() -> Iterator[list[CoreClaim]]:
    made: list[CoreClaim] = []
    yield made
    for claim in made:
        claim.release()


@pytest.fixture
def claim(made: list[CoreClaim]) -> Claim:
    """Claims cores and says which; released after the test."""

    def claim(cores: list[Core], count: int) -> list[int] | None:
        claimed = claim_cores(cores, count)
        if claimed is None:
            return None
        made.append(claimed)
        return [min(core.cpus) - FIRST for core in claimed.cores]

    return claim


def test_servers_get_cores_of_their_own_near_to_one_memory(claim: Claim) -> None:
    assert claim(TWO_NODES, 3) == [7, 6, 5]
    assert claim(TWO_NODES, 3) == [3, 2, 1]
    assert claim(TWO_NODES, 2) == [4, 0]
    assert claim(TWO_NODES, 1) is None


def test_a_claim_that_fails_leaves_the_cores_to_others(claim: Claim, made: list[CoreClaim]) -> None:
    assert claim(TWO_NODES[:2], 2) == [1, 0]
    assert claim(TWO_NODES, 7) is None
    assert claim(TWO_NODES, 6) == [7, 6, 5, 4, 3, 2]
    made[-1].release()
    assert claim(TWO_NODES, 5) == [7, 6, 5, 4, 3]


CLAIMING = f"""
from bough.model_executor.core_binding import claim_cores
from bough.model_executor.machine import Core
claim = claim_cores([Core(frozenset({{{FIRST}}}), 0)], 1)
print(claim is not None, flush=True)
input()
"""


def test_a_claim_ends_with_its_process_however_that_ends(claim: Claim) -> None:
    command = [sys.executable, "-c", CLAIMING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert claim(TWO_NODES[:1], 1) is None
        other.kill()
    assert claim(TWO_NODES[:1], 1) == [0]


def machine(monkeypatch: pytest.MonkeyPatch, root: Path, *, quota: bool = False) -> Machine:
    """Eight processors: four cores in two nodes."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(FIRST, FIRST + 8)))
    for cpu in range(8):
        directory = root / f"sys/devices/system/cpu/cpu{FIRST + cpu}"
        (directory / "topology").mkdir(parents=True)
        (directory / "topology/thread_siblings_list").write_text(f"{FIRST + cpu % 4},{FIRST + 4 + cpu % 4}\n")
        (directory / f"node{cpu % 4 // 2}").mkdir()
    if quota:
        for file, content in {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "300000 100000\n"}.items():
            (root / file).parent.mkdir(parents=True)
            (root / file).write_text(content)
    return Machine(root)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> dict[int, set[int]]:
    """Where each thread was bound to last, 0 being the calling one."""
    bound: dict[int, set[int]] = {}
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, cpus: bound.update({thread: {c - FIRST for c in cpus}}))
    return bound


@needs_native
def test_threads_are_bound_and_the_caller_stays_near_until_it_is_confined(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    bound: dict[int, set[int]],
    made: list[CoreClaim],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    pool = ThreadPool(2)
    binding = bind_threads(pool, machine(monkeypatch, tmp_path))
    assert binding is not None
    made.append(binding.claim)
    assert bound == {pool.thread_ids()[1]: {2, 6}, 0: {2, 6, 3, 7}}
    assert caplog.messages == [f"threads are bound to cores: {FIRST + 2}"]
    # One core near to the workers' memory would be too little for all that the caller starts.
    binding.confine_caller()
    assert bound[0] == {0, 4, 1, 5, 3, 7}


@needs_native
@pytest.mark.parametrize(("threads", "quota"), [(1, False), (4, False), (5, False), (2, True)])
def test_nothing_is_bound_without_room_for_others_or_under_a_quota(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bound: dict[int, set[int]], threads: int, quota: bool
) -> None:
    assert bind_threads(ThreadPool(threads), machine(monkeypatch, tmp_path, quota=quota)) is None
    assert bound == {}


@needs_native
def test_nothing_is_bound_where_another_server_has_the_cores(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    bound: dict[int, set[int]],
    claim: Claim,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    here = machine(monkeypatch, tmp_path)
    assert claim(here.cores(), 2) == [3, 2]
    assert bind_threads(ThreadPool(3), here) is None
    assert bound == {}
    assert caplog.messages == [
        "threads are not bound to cores: other servers have theirs bound to some of these 4",
    ]


@needs_native
def test_a_system_that_refuses_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, claim: Claim, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: int, cpus: set[int]) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    here = machine(monkeypatch, tmp_path)
    assert bind_threads(ThreadPool(2), here) is None
    assert caplog.messages == ["threads are not bound to cores: the system refuses it (not here)"]
    assert claim(here.cores(), 4) == [3, 2, 1, 0]


@needs_native
@pytest.mark.skipif(len(Machine().cores()) < 2, reason="needs two cores")
def test_real_threads_are_bound() -> None:
    def bind() -> None:
        first, second = Machine().cores()[:2]
        pool = ThreadPool(2)
        caller, worker = pool.thread_ids()
        assert caller == threading.get_native_id()
        os.sched_setaffinity(worker, second.cpus)
        CoreBinding([first, second], CoreClaim([first, second], [])).confine_caller()
        assert os.sched_getaffinity(caller) == first.cpus
        assert os.sched_getaffinity(worker) == second.cpus
        # It still computes there.
        assert pool.thread_ids() == [caller, worker]

    # On a thread that ends, since what it starts later would be bound, too.
    with ThreadPoolExecutor(max_workers=1) as executor:
        executor.submit(bind).result()
