"""Whole models with weights of few bits in Triton's kernels, in the interpreter or on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from bough.config.engine_args import Quantization
from bough.errors import ConfigError
from bough.layers.quantize import QUANTIZING_BYTES
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.model_executor.test_model_runner import prompt
from tests.model_loader.test_float8_source import make as make_float8
from tests.model_loader.test_quantized_source import CASES
from tests.models.checkpoints import Checkpoint, save_checkpoint
from tests.models.microscaled_checkpoints import save_microscaled_checkpoint
from tests.models.quantized_checkpoints import quantize

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

SHAPE = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 1}


@pytest.fixture(autouse=True)
def _little_is_computed_to_measure_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.model_executor.runner_memory._MEASURED_TOKENS_ON_CPU", 1)


def runner_of(checkpoint: Checkpoint, **options: Any) -> RecordingRunner:
    return make_runner(checkpoint.path, dtype="float32", native=False, attention_backend="triton", **options)


def error_of(checkpoint: Checkpoint, runner: RecordingRunner) -> float:
    """Of the logits after a prompt and a decode step, relative to their size."""
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(12))
    builder.generate(sequence, 2)
    expected = checkpoint.logits(sequence.tokens[:-1])[11:]
    return float((torch.stack(sequence.logits) - expected).norm() / expected.norm())


def test_experts_in_mxfp4_are_held_as_whole_numbers(tmp_path: Path) -> None:
    checkpoint = save_microscaled_checkpoint(tmp_path)
    runner = runner_of(checkpoint)
    assert runner.model.model.layers[0].mlp.experts["0"].down_proj.weight.dtype == torch.int8
    assert error_of(checkpoint, runner) < 1e-5


@pytest.mark.parametrize(
    ("case", "bound"),
    [
        pytest.param("gptq 4 bits", 1e-5, marks=pytest.mark.slow),
        pytest.param("gptq 4 bits, zero points", 1e-5, marks=pytest.mark.slow),
        pytest.param("gptq 4 bits, whole rows", 1e-5, marks=pytest.mark.slow),
        pytest.param("gptq 8 bits", 1e-5, marks=pytest.mark.slow),
        ("awq", 1e-5),
        pytest.param("packed 4 bits", 1e-5, marks=pytest.mark.slow),
        pytest.param("integers", 1e-5, marks=pytest.mark.slow),
        # Groups that kernels do not know become int8.
        ("gptq 4 bits, odd groups", 0.02),
    ],
)
def test_checkpoints_of_whole_numbers_are_multiplied_as_they_are(tmp_path: Path, case: str, bound: float) -> None:
    config, store, bits, group, symmetric = CASES[case]
    checkpoint = save_checkpoint(tmp_path, "Qwen2", **SHAPE)
    quantize(checkpoint, config, store, bits=bits, group=group, symmetric=symmetric)
    assert error_of(checkpoint, runner_of(checkpoint)) < bound


@pytest.mark.parametrize("deterministic", [False, True])
def test_matrices_that_stay_what_they_are_are_not_said_to_become_int8(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, deterministic: bool
) -> None:
    config, store, bits, group, symmetric = CASES["gptq 4 bits"]
    checkpoint = save_checkpoint(tmp_path, "Qwen2", **SHAPE)
    quantize(checkpoint, config, store, bits=bits, group=group, symmetric=symmetric)
    caplog.set_level("INFO")
    options: dict[str, Any] = {
        "native": False,
        "attention_backend": "triton",
        "enable_deterministic_inference": deterministic,
    }
    runner = make_runner(checkpoint.path, dtype="float32", **options)
    assert runner.model.model.layers[0].mlp.down_proj.method.batch_invariant == deterministic
    assert "become int8" not in caplog.text


def test_that_weights_take_more_memory_than_in_the_checkpoint_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = make_float8(tmp_path, "rows", num_hidden_layers=2)
    monkeypatch.setattr("bough.model_executor.weight_choice.why_not_float8", lambda device: "the device is too old")
    make_runner(checkpoint.path, dtype="float32", native=False, attention_backend="triton")
    assert caplog.text.count("held in the model's type, which takes more memory: the device is too old") == 1


@pytest.mark.parametrize(
    "case", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("one scale", "rows")), "blocks", "odd blocks"]
)
def test_checkpoints_of_8_bit_floating_point_lose_what_inputs_lose(tmp_path: Path, case: str) -> None:
    checkpoint = make_float8(tmp_path, case, num_hidden_layers=2 if case == "rows" else 1)
    runner = runner_of(checkpoint)
    # Blocks that kernels do not know are held as numbers of the model's type.
    assert error_of(checkpoint, runner) < (1e-5 if case == "odd blocks" else 0.15)
    held = runner.model
    assert (held.model.layers[0].mlp.down_proj.weight.dtype == torch.float8_e4m3fn) == (case != "odd blocks")
    for name in ("self_attn.k_proj.weight", "mlp.down_proj.weight"):
        expected = checkpoint.reference.get_parameter(f"model.layers.0.{name}")
        torch.testing.assert_close(held.checkpoint_weights[f"model.layers.0.{name}"].read(), expected)


@pytest.mark.parametrize(
    ("kind", "bound"), [("int8", 0.03), pytest.param("fp8", 0.15, marks=pytest.mark.slow), ("int4", 0.35)]
)
# Random layers make three times of what one loses: see tests/layers/test_coded_method.py.
def test_weights_are_quantised_while_they_are_loaded(tmp_path: Path, kind: Quantization, bound: float) -> None:
    checkpoint = save_checkpoint(tmp_path, "Llama", **SHAPE)
    assert 0 < error_of(checkpoint, runner_of(checkpoint, quantization=kind)) < bound


def test_memory_that_quantising_takes_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = save_checkpoint(tmp_path, "Llama", **SHAPE)
    needed: list[int] = []
    monkeypatch.setattr(
        "bough.model_executor.loaded_model.check_weights_fit", lambda device, size, *_, **__: needed.append(size)
    )
    for kind in ("none", "fp8"):
        make_runner(checkpoint.path, dtype="float32", native=False, attention_backend="triton", quantization=kind)
    runner = make_runner(checkpoint.path, dtype="float32", native=False, quantization="none")
    assert needed[0] == needed[2] == runner.weight_bytes
    assert QUANTIZING_BYTES < needed[1] < QUANTIZING_BYTES + runner.weight_bytes


def test_weights_replaced_one_by_one_equal_those_of_a_fresh_model(tmp_path: Path) -> None:
    first = save_checkpoint(tmp_path / "first", "Llama", seed=1, **SHAPE)
    second = save_checkpoint(tmp_path / "second", "Llama", seed=2, **SHAPE)
    for kind in ("int4", "fp8"):
        runner, fresh = (
            make_runner(each.path, dtype="float32", native=False, attention_backend="triton", quantization=kind)
            for each in (first, second)
        )
        addresses = [parameter.data_ptr() for parameter in runner.model.parameters()]
        for name, tensor in second.reference.state_dict().items():
            assert runner.model.load_weights([(name, tensor)]) == {name}
        assert [parameter.data_ptr() for parameter in runner.model.parameters()] == addresses
        for ours, theirs in zip(runner.model.parameters(), fresh.model.parameters(), strict=True):
            assert torch.equal(ours.float(), theirs.float())


def test_fp8_is_refused_where_nothing_multiplies_it(tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path, "Llama", **SHAPE)
    for native in (True, False):
        with pytest.raises(ConfigError, match="--quantization fp8 is for CUDA devices; use int8 here"):
            make_runner(checkpoint.path, quantization="fp8", native=native)
