from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.entrypoints.llm_engine import LLMEngine
from bough.errors import ConfigError, StartupError
from bough.kernels.thread_pool import ThreadPool
from bough.model_executor import core_binding, execution_choice, model_runner, tp_worker
from bough.model_executor.core_binding import CoreBinding, CoreClaim, bind_threads, claim_cores
from bough.model_executor.machine import Core, Machine
from bough.model_executor.tp_worker import TpModelWorker
from tests.models.checkpoints import save_checkpoint
from tests.native import needs_native

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")

FIRST = 10_000 * os.getpid()
"""Of made-up processors: servers, and other tests, may claim the same ones else."""

TWO_NODES = [Core(FIRST + core, frozenset({FIRST + core, FIRST + 8 + core}), node=core // 4) for core in range(8)]

Claim = Callable[[list[Core], int], "list[int] | None"]


@pytest.fixture
def claims() -> Iterator[list[CoreClaim]]:
    """Whatever is put in is released after the test."""
    claims: list[CoreClaim] = []
    yield claims
    for claim in claims:
        claim.release()


@pytest.fixture
def claim(claims: list[CoreClaim]) -> Claim:
    """Claims cores and says which."""

    def claim(cores: list[Core], count: int) -> list[int] | None:
        claimed = claim_cores(cores, count)
        if claimed is None:
            return None
        claims.append(claimed)
        return [core.number - FIRST for core in claimed.cores]

    return claim


def test_servers_get_cores_of_their_own_near_to_one_memory(claim: Claim) -> None:
    assert claim(TWO_NODES, 3) == [0, 1, 2]
    assert claim(TWO_NODES, 3) == [4, 5, 6]
    assert claim(TWO_NODES, 2) == [3, 7]
    assert claim(TWO_NODES, 1) is None


def test_fast_cores_come_first(claim: Claim) -> None:
    cores = [Core(FIRST + n, frozenset({FIRST + n}), speed=speed) for n, speed in enumerate([300, 900, 300, 1024])]
    assert claim(cores, 3) == [3, 1, 0]


def test_servers_with_different_threads_of_a_core_do_not_share_it(claim: Claim) -> None:
    def half(cpus: range) -> list[Core]:
        allowed = {FIRST + cpu for cpu in cpus}
        return [Core(core.number, core.cpus & allowed, core.node) for core in TWO_NODES]

    assert claim(half(range(8)), 8) == list(range(8))
    assert claim(half(range(8, 16)), 1) is None


def test_a_claim_that_fails_leaves_the_cores_to_others(claim: Claim, claims: list[CoreClaim]) -> None:
    assert claim(TWO_NODES[:2], 2) == [0, 1]
    assert claim(TWO_NODES, 7) is None
    assert claim(TWO_NODES, 6) == [2, 3, 4, 5, 6, 7]
    claims[-1].release()
    assert claim(TWO_NODES, 5) == [2, 3, 4, 5, 6]


def test_servers_that_start_together_claim_one_after_the_other(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(8) as starting:
        found = list(starting.map(lambda _: claim(TWO_NODES, 5), range(8)))
    assert [each for each in found if each is not None] == [[0, 1, 2, 3, 4]]
    monkeypatch.setattr(core_binding, "_CLAIMING_SECONDS", 0.05)
    with core_binding._turn(), pytest.raises(StartupError, match="choosing its cores for too long"):
        claim(TWO_NODES, 1)


CLAIMING = f"""
from bough.model_executor.core_binding import claim_cores
from bough.model_executor.machine import Core
claim = claim_cores([Core({FIRST}, frozenset({{{FIRST}}}), 0)], 1)
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


def machine(monkeypatch: pytest.MonkeyPatch, root: Path) -> Machine:
    """Eight processors: four cores in two nodes."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(FIRST, FIRST + 8)))
    for cpu in range(8):
        directory = root / f"sys/devices/system/cpu/cpu{FIRST + cpu}"
        (directory / "topology").mkdir(parents=True)
        (directory / "topology/thread_siblings_list").write_text(f"{FIRST + cpu % 4},{FIRST + 4 + cpu % 4}\n")
        (directory / f"node{cpu % 4 // 2}").mkdir()
    return Machine(root)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> dict[int, set[int]]:
    """Where each thread was bound to last, 0 being the calling one."""
    bound: dict[int, set[int]] = {}
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, cpus: bound.update({thread: {c - FIRST for c in cpus}}))
    return bound


@needs_native
@pytest.mark.parametrize(
    ("threads", "workers", "while_loading", "caller"),
    [(1, [], {0, 4, 1, 5}, {0, 4, 1, 5}), (2, [{2, 6}], set(range(8)), {0, 4, 1, 5})],
)
def test_threads_are_bound_and_the_caller_stays_near_until_it_is_confined(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    bound: dict[int, set[int]],
    claims: list[CoreClaim],
    threads: int,
    workers: list[set[int]],
    while_loading: set[int],
    caller: set[int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    pool = ThreadPool(threads)
    binding = bind_threads(pool, machine(monkeypatch, tmp_path))
    claims.append(binding.claim)
    assert [bound[thread] for thread in pool.thread_ids()[1:]] == workers
    assert bound[0] == while_loading
    told = [f"threads are bound to cores {FIRST + 2}"] if workers else []
    assert caplog.messages == [*told, f"the scheduler, which computes, too, is kept to cores {FIRST}, {FIRST + 1}"]
    binding.confine_caller()
    assert bound[0] == caller


@needs_native
@pytest.mark.parametrize("threads", [4, 5])
def test_as_many_threads_as_cores_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bound: dict[int, set[int]], threads: int
) -> None:
    with pytest.raises(
        ConfigError, match=f"more cores than threads; here are 4 for {threads}: set --cpu-threads to at most 3"
    ):
        bind_threads(ThreadPool(threads), machine(monkeypatch, tmp_path))
    assert bound == {}


@needs_native
def test_cores_of_other_servers_are_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bound: dict[int, set[int]], claim: Claim
) -> None:
    here = machine(monkeypatch, tmp_path)
    assert claim(here.cores(), 2) == [0, 1]
    with pytest.raises(StartupError, match=r"needs 3 cores, one more than threads, and others .* of the 4 here"):
        bind_threads(ThreadPool(2), here)
    assert bound == {}


@needs_native
def test_a_system_that_refuses_is_told_of_and_the_cores_are_free(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, claim: Claim
) -> None:
    def refuse(thread: int, cpus: set[int]) -> None:
        raise PermissionError("not here")

    here = machine(monkeypatch, tmp_path)
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    with pytest.raises(StartupError, match="the system refuses"):
        bind_threads(ThreadPool(2), here)
    assert claim(here.cores(), 4) == [0, 1, 2, 3]


@needs_native
@pytest.mark.skipif(len(Machine().cores()) < 2, reason="needs two cores")
def test_real_threads_are_bound() -> None:
    def bind() -> None:
        first, second = Machine().cores()[:2]
        pool = ThreadPool(2)
        caller, worker = pool.thread_ids()
        assert caller == threading.get_native_id()
        core_binding._bind(worker, [second])
        CoreBinding(CoreClaim([], []), [first], [second]).confine_caller()
        assert os.sched_getaffinity(caller) == first.cpus
        assert os.sched_getaffinity(worker) == second.cpus
        # They still compute there.
        assert pool.thread_ids() == [caller, worker]

    # On a thread that ends, since what it starts later would be bound, too.
    with ThreadPoolExecutor(max_workers=1) as executor:
        executor.submit(bind).result()


@needs_native
def test_the_flag_binds_the_threads_of_a_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bound: dict[int, set[int]], claims: list[CoreClaim]
) -> None:
    here = machine(monkeypatch, tmp_path / "machine")
    for module in (execution_choice, tp_worker):
        monkeypatch.setattr(module, "Machine", lambda: here)
    # Else so small a model has one thread.
    monkeypatch.setattr(tp_worker, "default_threads", lambda config, cores: cores)
    path = str(save_checkpoint(tmp_path / "model", "Llama").path)

    def runner(dtype: str = "float32", **options: Any) -> model_runner.ModelRunner:
        args = ServerArgs(model_path=path, device="cpu", max_total_tokens=256, **options)
        return TpModelWorker(args, ModelConfig.from_path(path, dtype=dtype, device="cpu"))

    assert runner().threads.num_threads == 4  # type: ignore[union-attr]
    assert bound == {}
    made = runner(bind_threads=True)
    assert made.threads is not None
    assert made.choice.binding is not None
    claims.append(made.choice.binding.claim)
    assert [bound[thread] for thread in made.threads.thread_ids()[1:]] == [{2, 6}, {3, 7}]
    assert bound[0] == {0, 4, 1, 5}
    with pytest.raises(StartupError, match="lower --cpu-threads, or leave --bind-threads out"):
        runner(bind_threads=True, cpu_threads=2)
    with pytest.raises(ConfigError, match="native CPU kernels"):
        runner(bind_threads=True, dtype="float16")


def test_a_program_that_steps_itself_keeps_its_threads() -> None:
    with pytest.raises(ConfigError, match="bind_threads is for processes of Bough's own"):
        LLMEngine(bind_threads=True)
