"""The KV pool beside which the largest steps have room, whatever else turns out to take memory."""

from __future__ import annotations

import logging
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from bough.errors import StartupError
from bough.model_executor.runner_memory import DeviceTables, MemoryPlanner
from tests.model_executor.plan_builder import PlanBuilder, make_runner
from tests.models.checkpoints import Checkpoint, save_checkpoint

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama")


class Device:
    """Has as many tokens' worth of memory too little as it is told, one number for each pool that is made.

    Attributes:
        pools: tokens of each.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, missing_tokens: list[int]) -> None:
        self.pools: list[int] = []
        last: list[weakref.ref[Any]] = []
        build = MemoryPlanner.init_memory_pool

        def watched_build(planner: MemoryPlanner, pool_tokens: int) -> DeviceTables:
            assert not [each for each in last if each() is not None], "the last one still takes memory"
            self.pools.append(pool_tokens)
            tables = build(planner, pool_tokens)
            self._token_bytes = tables.kv_pool.num_bytes // tables.kv_pool.num_slots
            parts = (tables.kv_pool, tables.req_to_token, tables.attn_backend, tables.sampling_state, tables.sampler)
            last[:] = map(weakref.ref, parts)
            return tables

        monkeypatch.setattr(MemoryPlanner, "init_memory_pool", watched_build)
        monkeypatch.setattr(
            MemoryPlanner, "missing_bytes", lambda planner, step_bytes: missing_tokens.pop(0) * self._token_bytes
        )


def runner_of(path: Path, **options: Any) -> Any:
    return make_runner(path, native=False, **{"max_total_tokens": None, **options})


def test_a_pool_beside_which_steps_have_too_little_is_dropped_and_made_smaller_until_they_have_enough(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    runners = [runner_of(checkpoint.path)]
    full = runners[0].kv_pool.max_total_tokens
    device = Device(monkeypatch, [100, 20, 0])
    runners.append(runner_of(checkpoint.path))
    # A quarter more than is missing, in whole pages: 125 and 25 tokens.
    assert device.pools == [full, full - 128, full - 128 - 32]
    assert runners[1].kv_pool.max_total_tokens == full - 160
    builders = [PlanBuilder(runner) for runner in runners]
    outputs = [builder.generate(builder.add(PROMPT), 3) for builder in builders]
    assert outputs[0] == outputs[1]


def test_a_device_without_room_for_the_largest_steps_is_told_which_options_help(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(planner: MemoryPlanner) -> int:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(MemoryPlanner, "step_bytes", fail)
    with pytest.raises(StartupError, match="lower --max-prefill-tokens or --max-running-requests"):
        runner_of(checkpoint.path)


def test_memory_that_is_missing_whatever_the_size_of_the_pool_is_refused(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(monkeypatch, [100, 100, 100])
    with pytest.raises(StartupError, match=r"however small.*lower --mem-fraction-static, --cuda-graph-max-bs or"):
        runner_of(checkpoint.path)
    assert len(device.pools) == 3


def test_a_pool_of_a_size_that_the_user_set_is_not_made_smaller_but_refused(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(monkeypatch, [1])
    with pytest.raises(StartupError, match=r"--max-total-tokens 4096 leaves .*--cuda-graph-max-bs"):
        runner_of(checkpoint.path, max_total_tokens=4096)
    assert device.pools == [4096]


def test_what_happens_again_counts_again_and_is_said_once(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Device(monkeypatch, [16, 0])
    ticks = iter(range(100))
    monkeypatch.setattr("bough.model_executor.runner_memory.time.perf_counter", lambda: next(ticks))
    runner = runner_of(checkpoint.path, context_length=64, max_running_requests=500, mem_fraction_static=1e-5)
    assert (runner.timings["init_memory_pool"], runner.timings["init_graphs"]) == (2, 2)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    lowered = f"is lowered to {runner.max_running_requests}"
    assert [lowered in each for each in warnings if "--max-running-requests" in each] == [True]


_DEVICE_ERROR = getattr(torch, "AcceleratorError", torch.OutOfMemoryError)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("2 GiB are missing"), _DEVICE_ERROR("CUDA error: out of memory")]
)
def test_recorded_steps_without_room_say_which_options_help(
    error: Exception, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: Any) -> None:
        raise error

    monkeypatch.setattr(MemoryPlanner, "init_cuda_graphs", no_room)
    with pytest.raises(StartupError, match=rf"4096 tokens; lower --mem-fraction-static.*{error}"):
        runner_of(checkpoint.path, max_total_tokens=4096)


@pytest.mark.skipif(_DEVICE_ERROR is torch.OutOfMemoryError, reason="an older torch")
def test_other_errors_of_the_device_are_not_taken_for_a_lack_of_memory(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise _DEVICE_ERROR("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(MemoryPlanner, "init_cuda_graphs", broken)
    with pytest.raises(_DEVICE_ERROR, match="illegal"):
        runner_of(checkpoint.path, max_total_tokens=4096)
