from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bough.config.engine_args import AttentionBackendName, EngineArgs
from bough.config.model_config import ModelConfig
from bough.errors import ConfigError
from bough.layers.attention.torch_native import TorchNativeBackend
from bough.model_executor import attention_choice
from tests.model_executor.plan_builder import make_runner
from tests.models.checkpoints import save_checkpoint
from tests.native import MISSING
from tests.tables import table


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama").path


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_native_kernels_leave_no_choice(path: Path) -> None:
    with pytest.raises(ConfigError, match="--attention-backend is for CUDA"):
        make_runner(path, attention_backend="torch_native")


@table("flag", ["--cuda-graph-max-bs", "--cuda-graph-max-bs-prefill"])
def test_sizes_of_graphs_are_refused_without_cuda(path: Path, flag: str) -> None:
    options: dict[str, Any] = {flag[2:].replace("-", "_"): 8}
    with pytest.raises(ConfigError, match=rf"{flag} has no effect: .* CUDA devices only"):
        make_runner(path, native=False, **options)


def test_sizes_of_prompts_are_refused_where_no_prompts_are_recorded(path: Path) -> None:
    config = ModelConfig.from_path(str(path), dtype="auto")
    options = EngineArgs(disable_prefill_cuda_graph=True, cuda_graph_max_bs_prefill=8)
    with pytest.raises(ConfigError, match="--cuda-graph-max-bs-prefill has no effect beside --disable-prefill"):
        attention_choice.check_recording(options, "triton", torch.device("cuda"), config)


def test_torch_computes_where_nothing_else_can(path: Path) -> None:
    assert isinstance(make_runner(path, native=False).attn_backend, TorchNativeBackend)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"attention_backend": "triton"}, "--attention-backend triton: heads are too wide"),
        ({"attention_backend": "triton", "kv_cache_dtype": "fp8_e4m3"}, "--kv-cache-dtype .*heads are too wide"),
        ({"kv_cache_dtype": "fp8_e4m3"}, "only Triton's attention reads it"),
        ({"attention_backend": "torch_native", "kv_cache_dtype": "fp8_e5m2"}, "only Triton's attention reads it"),
        (
            {"attention_backend": "triton", "enable_deterministic_inference": True},
            "--enable-deterministic.*heads are too wide",
        ),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_loaded(
    path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], complaint: str
) -> None:
    monkeypatch.setattr(attention_choice, "why_not_triton_attention", lambda device, config: "heads are too wide")
    monkeypatch.setattr(attention_choice, "why_not_float8", lambda device: None)
    monkeypatch.setattr("bough.model_executor.loaded_model.open_source", lambda *args: pytest.fail("it was opened"))
    with pytest.raises(ConfigError, match=complaint):
        make_runner(path, native=False, **options)


def test_heads_are_wider_than_kernels_hold(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_runner(path, native=False).config
    monkeypatch.setattr(attention_choice, "why_not_triton", lambda device: None)
    cuda = torch.device("cuda")

    def problem(head_dim: int) -> str | None:
        layers = tuple(replace(layer, mixer=replace(layer.mixer, head_dim=head_dim)) for layer in config.layers)
        return attention_choice.why_not_triton_attention(cuda, replace(config, layers=layers))

    assert problem(256) is None
    assert "heads of 257 numbers" in str(problem(257))


def test_triton_is_the_default_on_cuda_unless_something_speaks_against_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config, cuda = make_runner(path, native=False).config, torch.device("cuda")
    monkeypatch.setattr(attention_choice, "why_not_triton_attention", lambda device, config: None)
    assert attention_choice.chosen_attention(None, cuda, config) == "triton"
    assert attention_choice.chosen_attention("flashinfer", cuda, config) == "flashinfer"
    assert attention_choice.chosen_attention("torch_native", cuda, config) == "torch_native"
    assert attention_choice.chosen_attention(None, torch.device("cpu"), config) == "torch_native"
    monkeypatch.setattr(attention_choice, "why_not_triton_attention", lambda device, config: "heads are too wide")
    assert attention_choice.chosen_attention(None, cuda, config) == "torch_native"
    assert "heads are too wide" in caplog.text


@pytest.mark.parametrize(
    ("attention", "options", "problem"),
    [
        ("triton", {}, None),
        ("flashinfer", {}, "with Triton's attention only"),
        ("torch_native", {}, "with Triton's attention only"),
        ("triton", {"disable_cuda_graph": True}, "--disable-cuda-graph is set"),
    ],
)
def test_decode_steps_are_recorded_where_triton_computes_attention_and_their_number_is_refused_elsewhere(
    path: Path,
    attention: AttentionBackendName,
    options: dict[str, Any],
    problem: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    config, cuda = ModelConfig.from_path(str(path), dtype="auto"), torch.device("cuda")
    attention_choice.check_recording(EngineArgs(**options), attention, cuda, config)
    assert ("decode steps are launched kernel by kernel" in caplog.text) == (attention != "triton")
    sized = EngineArgs(cuda_graph_max_bs=8, **options)
    if problem is None:
        attention_choice.check_recording(sized, attention, cuda, config)
        return
    with pytest.raises(ConfigError, match=f"--cuda-graph-max-bs has no effect: .*{problem}"):
        attention_choice.check_recording(sized, attention, cuda, config)
