"""When torch computes in place of the native kernels, and that the log says so."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import numpy as np
import pytest
import torch

from bough.config.model_config import ModelConfig
from bough.errors import StartupError
from bough.kernels.library import Isa, LibraryMissing
from bough.kernels.program import Program
from bough.model_executor import native_path
from bough.model_executor.cpu_graph_runner import kernel_bytes
from bough.model_executor.machine import Machine
from bough.model_executor.native_path import native_threads
from tests.model_executor.plan_builder import PlanBuilder, make_runner
from tests.models.checkpoints import Checkpoint, save_checkpoint
from tests.models.vector_checkpoints import VectorScheduler, save_vector_checkpoint
from tests.native import needs_native

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama")


def missing_library() -> None:
    raise LibraryMissing("they were not built")


def config_of(checkpoint: Checkpoint, dtype: str = "float32") -> ModelConfig:
    return ModelConfig.from_path(str(checkpoint.path), dtype=dtype, device="cpu")


def test_without_a_library_torch_computes_and_the_log_says_so(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(native_path, "load_library", missing_library)
    runner = make_runner(checkpoint.path)
    assert runner.threads is None
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "torch computes, several times slower than native kernels: they were not built."
    ]
    builder = PlanBuilder(runner)
    sequence = builder.add([1, 2, 3])
    builder.generate(sequence, 3)
    assert sequence.output == checkpoint.greedy([1, 2, 3], 3)


def test_half_precision_that_the_kernels_lack_is_computed_by_torch_and_the_log_says_so(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    assert native_threads(config_of(checkpoint, "float16"), CPU, 1) is None
    assert "no float16" in caplog.text


def test_other_devices_are_not_the_kernels(checkpoint: Checkpoint) -> None:
    assert native_threads(config_of(checkpoint), torch.device("meta"), 1) is None


@needs_native
def test_the_log_names_the_instruction_set_and_what_the_build_lacks(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(native_path, "current_isa", lambda: Isa.AVX2)
    monkeypatch.setattr(native_path, "best_isa", lambda: Isa.AVX2)
    monkeypatch.setattr(native_path, "machine_isa", lambda: Isa.AVX512BF16)
    assert native_threads(config_of(checkpoint), CPU, 2) is not None
    assert "native CPU kernels: AVX2, 2 threads" in caplog.text
    assert "has AVX512BF16, but the compiler" in caplog.text


def test_the_log_says_why_a_small_model_has_one_thread_on_a_machine_of_more_cores(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(native_path, "load_library", lambda: None)
    monkeypatch.setattr(native_path, "why_not_recordable", lambda config: None)
    monkeypatch.setattr(native_path, "ThreadPool", lambda num_threads: num_threads)
    for isa in ("current_isa", "best_isa", "machine_isa"):
        monkeypatch.setattr(native_path, isa, lambda: Isa.AVX2)
    monkeypatch.setattr(Machine, "usable_threads", lambda self: 2)
    small = config_of(checkpoint)
    large = dataclasses.replace(small, hidden_size=1_000_000)
    for config, num_threads in ((small, 1), (small, 2), (large, 1)):
        native_threads(config, CPU, num_threads)
    assert [record.getMessage() for record in caplog.records] == [
        "native CPU kernels: AVX2, 1 thread, which suits so small a model (--cpu-threads)",
        "native CPU kernels: AVX2, 2 threads",
        "native CPU kernels: AVX2, 1 thread",
    ]


@needs_native
def test_more_threads_than_cores_are_warned_of(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Machine, "usable_threads", lambda self: 2)
    for num_threads in (2, 3):
        assert native_threads(config_of(checkpoint), CPU, num_threads) is not None
    (warning,) = (record.getMessage() for record in caplog.records if "may use" in record.getMessage())
    assert warning.startswith("3 threads are more than the cores that this process may use (2)")
    assert warning.endswith("than with --cpu-threads 2.")


@needs_native
def test_more_threads_than_the_system_gives_are_a_start_up_error(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(num_threads: int) -> None:
        raise native_path.KernelError(f"the system does not give {num_threads} threads")

    monkeypatch.setattr(native_path, "why_not_recordable", lambda config: None)
    monkeypatch.setattr(native_path, "ThreadPool", refuse)
    with pytest.raises(StartupError, match="does not give 9 threads; lower --cpu-threads"):
        native_threads(config_of(checkpoint), CPU, 9)


@needs_native
def test_models_that_pool_run_natively_and_equal_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = save_vector_checkpoint(tmp_path, "Qwen3Model")
    prompts = [[7] * 3, list(range(10, 95)), [5, 9]]
    steps = []
    run = Program.run
    monkeypatch.setattr(Program, "run", lambda self, step: steps.append(step) or run(self, step))
    native = VectorScheduler(checkpoint.path, dtype="float32").vectors(prompts)
    assert steps
    monkeypatch.setattr(native_path, "load_library", missing_library)
    for ours, theirs in zip(native, VectorScheduler(checkpoint.path, dtype="float32").vectors(prompts), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@needs_native
def test_memory_of_the_kernels_grows_with_threads_and_is_what_a_program_takes(checkpoint: Checkpoint) -> None:
    config = config_of(checkpoint)
    few, many = (kernel_bytes(config, threads, max_rows=8, max_step_tokens=4096) for threads in (1, 64))
    # An eighth of a megabyte of sums for each thread's chunk of a product alone.
    assert many - few > 63 << 17
    assert kernel_bytes(config, 1, max_rows=8, max_step_tokens=16) < few
