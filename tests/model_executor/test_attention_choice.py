from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bough.errors import ConfigError
from bough.layers.attention.torch_native import TorchNativeBackend
from bough.model_executor import attention_choice
from tests.model_executor.plan_builder import make_runner
from tests.models.checkpoints import save_checkpoint
from tests.native import MISSING


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama").path


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_native_kernels_leave_no_choice(path: Path) -> None:
    with pytest.raises(ConfigError, match="--attention-backend is for CUDA"):
        make_runner(path, attention_backend="torch_native")


def test_sizes_of_graphs_are_refused_without_cuda(path: Path) -> None:
    with pytest.raises(ConfigError, match="--cuda-graph-max-bs is for CUDA"):
        make_runner(path, native=False, cuda_graph_max_bs=8)


def test_torch_computes_where_nothing_else_can(path: Path) -> None:
    assert isinstance(make_runner(path, native=False).attn_backend, TorchNativeBackend)


def test_a_backend_that_was_asked_for_and_cannot_run_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_choice, "_why_not_triton", lambda pool: "Triton's kernels need a CUDA device")
    with pytest.raises(ConfigError, match="--attention-backend triton: Triton's kernels need a CUDA device"):
        make_runner(path, native=False, attention_backend="triton")


def test_triton_is_the_default_on_cuda_unless_something_speaks_against_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runner = make_runner(path, native=False)
    monkeypatch.setattr(runner.kv_pool, "device", torch.device("cuda"))
    monkeypatch.setattr(attention_choice, "_why_not_triton", lambda pool: "heads are too wide")
    monkeypatch.setattr(attention_choice, "TorchNativeBackend", lambda pool, windows: "torch")
    assert attention_choice.attention_backend(None, runner.kv_pool, runner.config) == "torch"
    assert "heads are too wide" in caplog.text
