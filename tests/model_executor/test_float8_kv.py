"""Whole models that keep keys and values in 8-bit floating point, in Triton's interpreter or on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bough.config.engine_args import KVCacheDType
from bough.errors import ConfigError, StartupError
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.model_executor.test_model_runner import prompt
from tests.model_loader.test_float8_source import make
from tests.models.checkpoints import save_checkpoint

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

SHAPE = {"head_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}


@pytest.fixture(autouse=True)
def _little_is_computed_to_measure_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.model_executor.runner_memory._MEASURED_TOKENS_ON_CPU", 1)


def triton_runner(path: Path, **options: Any) -> RecordingRunner:
    return make_runner(path, dtype="float32", native=False, attention_backend="triton", **options)


@pytest.mark.parametrize(("kind", "bound"), [("fp8_e4m3", 0.06), ("fp8_e5m2", 0.12)])
def test_logits_stay_close_and_a_token_takes_a_quarter_of_float32(
    tmp_path: Path, kind: KVCacheDType, bound: float
) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3", **SHAPE)
    runner = triton_runner(tmp_path, kv_cache_dtype=kind)
    assert runner.kv_pool.num_bytes == runner.kv_pool.num_slots * 2 * 64
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(20))
    builder.generate(sequence, 2, chunks=[13])
    expected = checkpoint.logits(sequence.tokens[:-1])[19:]
    assert 0 < float((torch.stack(sequence.logits) - expected).norm() / expected.norm()) < bound


def test_scales_come_from_the_checkpoint(tmp_path: Path) -> None:
    make(tmp_path, "rows", num_hidden_layers=2)
    pool = triton_runner(tmp_path, kv_cache_dtype="fp8_e4m3").kv_pool
    scales = [pool.get_layer_scales(layer) for layer in range(2)]
    assert [each.tolist() for each in scales if each is not None] == [[0.5, 0.25], [2.0, 4.0]]
    tensors = load_file(tmp_path / "model.safetensors")
    for name in [name for name in tensors if name.endswith(("k_scale", "v_scale"))]:
        del tensors[name]
    others = {
        "0.self_attn.kv_scale": 0.5,
        "1.self_attn.k_proj.output_scale": 2.0,
        "1.self_attn.v_proj.output_scale": 4.0,
    }
    tensors |= {f"model.layers.{name}": torch.tensor(scale) for name, scale in others.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    pool = triton_runner(tmp_path, kv_cache_dtype="fp8_e4m3").kv_pool
    scales = [pool.get_layer_scales(layer) for layer in range(2)]
    assert [each.tolist() for each in scales if each is not None] == [[0.5, 0.5], [2.0, 4.0]]
    tensors["model.layers.0.self_attn.k_scale"] = torch.zeros(1)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(StartupError, match=r"layers\.0\.self_attn\.k_scale must be one positive number"):
        triton_runner(tmp_path, kv_cache_dtype="fp8_e4m3")


def test_what_no_kernel_reads_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "Qwen3", **SHAPE)
    for native in (True, False):
        with pytest.raises(ConfigError, match=r"--kv-cache-dtype .* (is for CUDA devices|only Triton's attention)"):
            make_runner(tmp_path, kv_cache_dtype="fp8_e5m2", native=native)
