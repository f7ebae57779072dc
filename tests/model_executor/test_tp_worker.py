from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from bough.config.model_config import ModelConfig
from bough.config.ranks import WHOLE_MACHINE, MachineShare
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError, EngineDead, StartupError
from bough.model_executor.machine import Machine
from bough.model_executor.tp_worker import TpModelWorker, resolve_device
from bough.model_executor.tp_worker_client import TpModelWorkerClient
from bough.process_usage import resident_bytes
from bough.step_plan import StepPlan, StepResult
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, int32, make_runner
from tests.models.checkpoints import Checkpoint, save_checkpoint
from tests.step_runs import runs_of


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama")


def make_worker(path: Path, share: MachineShare = WHOLE_MACHINE, **options: object) -> TpModelWorker:
    args = ServerArgs(model_path=str(path), cpu_threads=1, **options)
    return TpModelWorker(args, ModelConfig.from_path(args.model_path, device="cpu"), share)


def test_info_tells_the_limits(checkpoint: Checkpoint) -> None:
    worker = make_worker(checkpoint.path, max_running_requests=3, page_size=32, max_total_tokens=1000)
    info = worker.get_worker_info()
    pool = worker.kv_pool
    assert (info.max_running_requests, info.page_size, info.max_total_num_tokens) == (3, 32, 992)
    assert (info.vocab_size, info.context_len) == (160, 512)
    assert (info.max_req_len, info.max_req_input_len) == (512, 511)
    assert (info.device, info.dtype) == ("cpu", "float32")
    unpacked = 4 * sum(parameter.numel() for parameter in checkpoint.reference.parameters())
    assert unpacked <= info.weight_bytes <= 1.1 * unpacked, "packing pads small matrices"
    assert pool.num_slots == 992 + 32
    assert info.kv_bytes == pool.num_bytes == pool.num_slots * 2 * 3 * 2 * 12 * 4
    assert {"load_weights", "measure_forward", "init_memory_pool"} <= set(info.timings)
    assert all(seconds >= 0 for seconds in info.timings.values())


def test_lone_request_may_fill_a_pool_smaller_than_its_context(checkpoint: Checkpoint) -> None:
    info = make_worker(checkpoint.path, max_total_tokens=96, page_size=16).get_worker_info()
    assert (info.max_req_len, info.max_req_input_len, info.max_running_requests) == (96, 95, 1)


def test_pool_larger_than_memory_is_refused_with_the_numbers(checkpoint: Checkpoint) -> None:
    with pytest.raises(StartupError, match=r"--max-total-tokens .* needs [\d.]+ GiB, but only [\d.]+ GiB"):
        make_worker(checkpoint.path, max_total_tokens=2**40)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_missing_device_is_refused() -> None:
    assert resolve_device("auto").type == "cpu"
    with pytest.raises(ConfigError, match="--device cpu"):
        resolve_device("cuda")


def test_each_scheduler_of_a_machine_has_a_cuda_device_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    devices = [resolve_device(name, MachineShare(index, 2)) for index, name in enumerate(("auto", "cuda"))]
    assert devices == chosen == [torch.device("cuda", 0), torch.device("cuda", 1)]
    assert resolve_device("cpu", MachineShare(1, 2)) == torch.device("cpu")
    with pytest.raises(ConfigError, match="3 schedulers need as many devices"):
        resolve_device("cuda", MachineShare(0, 3))


def test_schedulers_of_a_machine_share_its_memory(checkpoint: Checkpoint) -> None:
    alone = make_worker(checkpoint.path, mem_fraction_static=0.001)
    half = MachineShare(1, 2, memory=Machine().available_bytes())
    sharing = make_worker(checkpoint.path, half, mem_fraction_static=0.001)
    assert 0 < sharing.kv_pool.max_total_tokens < 0.7 * alone.kv_pool.max_total_tokens
    with pytest.raises(StartupError, match="not enough memory for the KV cache"):
        make_worker(checkpoint.path, MachineShare(0, 2, memory=2 * resident_bytes()), mem_fraction_static=0.001)


class RunnerAsWorker:
    def __init__(self, runner: RecordingRunner) -> None:
        self.runner = runner
        self.running = threading.Event()
        self.may_run = threading.Event()
        self.may_run.set()

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        self.running.set()
        assert self.may_run.wait(10)
        return self.runner.forward_batch_generation(plan)


def test_steps_submitted_ahead_continue_from_tokens_that_nobody_has_seen(checkpoint: Checkpoint) -> None:
    worker = RunnerAsWorker(make_runner(checkpoint.path))
    worker.may_run.clear()
    builder = PlanBuilder(worker.runner)
    client = TpModelWorkerClient(worker)
    first, second = builder.add([5, 6, 7]), builder.add([9] * 20)
    client.submit(builder.plan([(first, 3)]))
    client.submit(builder.plan([(first, 1), (second, 20)], guessed=True))
    first.tokens.append(-1)
    client.submit(builder.plan([(first, 1), (second, 1)], guessed=True))
    assert worker.running.wait(10)
    worker.may_run.set()
    results = [client.resolve_batch_result() for _ in range(3)]
    client.close()
    assert [result.step_id for result in results] == [1, 2, 3]
    assert [runs_of(result)[0][0] for result in results] == checkpoint.greedy([5, 6, 7], 3)
    assert [runs_of(result)[1][0] for result in results[1:]] == checkpoint.greedy([9] * 20, 2)


class StumblingWorker:
    """Fails at its first step only."""

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        if plan.step_id == 1:
            raise RuntimeError("no luck")
        return StepResult(plan.step_id, plan.input_ids, plan.extend_lens)


def test_error_of_a_step_is_raised_where_its_result_is_fetched(checkpoint: Checkpoint) -> None:
    builder = PlanBuilder(make_runner(checkpoint.path))
    client = TpModelWorkerClient(StumblingWorker())
    sequence = builder.add([1, 2])
    client.submit(builder.plan([(sequence, 1)]))
    client.submit(builder.plan([(sequence, 1)]))
    with pytest.raises(RuntimeError, match="no luck"):
        client.resolve_batch_result()
    assert client.resolve_batch_result().step_id == 2, "the step after it ran all the same"
    client.close()
    client.close()
    with pytest.raises(EngineDead):
        client.submit(builder.plan([(builder.add([int(int32(3)[0])]), 1)]))
