from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bough.errors import StartupError
from tests.model_executor.plan_builder import make_runner
from tests.model_loader.test_quantized_source import WIDE, compressed_config, error_of
from tests.models.checkpoints import Checkpoint, save_checkpoint
from tests.models.quantized_checkpoints import Draw, Stored, float8, quantize
from tests.native import needs_native

ATTENTION_SCALES = {
    "model.layers.0.self_attn.k_scale": torch.tensor(0.5),
    "model.layers.0.self_attn.v_scale": torch.tensor([0.25]),
    "model.layers.1.self_attn.k_proj.k_scale": torch.tensor(2.0),
    "model.layers.1.self_attn.v_proj.v_scale": torch.tensor(4.0),
}


def compressed(strategy: str, **more: Any) -> dict[str, Any]:
    config = compressed_config("float-quantized", 8, None, symmetric=True, type="float", strategy=strategy, **more)
    return {**config, "kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor"}}


FLOAT8_CASES: dict[str, tuple[dict[str, Any], Callable[[Draw], Stored]]] = {
    "one scale": ({"quant_method": "fp8", "activation_scheme": "static"}, lambda draw: float8(draw, None)),
    "rows": ({"quant_method": "fbgemm_fp8"}, lambda draw: float8(draw, (1, draw.codes.shape[1]))),
    "blocks": (
        {"quant_method": "fp8", "weight_block_size": [48, 64]},
        lambda draw: float8(draw, (48, 64), scales_name="weight_scale_inv"),
    ),
    "odd blocks": (
        {"quant_method": "fp8", "weight_block_size": [48, 40]},
        lambda draw: float8(draw, (48, 40), scales_name="weight_scale_inv"),
    ),
    "one scale, called an inverse": (
        {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None},
        lambda draw: float8(draw, None, scales_name="weight_scale_inv"),
    ),
    "modelopt": ({"quant_method": "modelopt", "quant_algo": "FP8"}, lambda draw: float8(draw, None)),
    "compressed-tensors, channels": (compressed("channel"), lambda draw: float8(draw, (1, draw.codes.shape[1]))),
    "compressed-tensors, blocks": (
        compressed("block", block_structure=[128, 128]),
        lambda draw: float8(draw, (128, 128)),
    ),
}


def make(path: Path, case: str, **shape: Any) -> Checkpoint:
    config, store = FLOAT8_CASES[case]
    checkpoint = save_checkpoint(path, "Llama", **(WIDE | shape))
    calibrated = ("input_scale", "activation_scale", "output_scale")
    extra = {f"model.layers.0.mlp.down_proj.{name}": torch.tensor(0.1) for name in calibrated} | ATTENTION_SCALES
    return quantize(checkpoint, config, store, bits=8, group=32, symmetric=True, extra=extra)


@pytest.mark.parametrize("case", FLOAT8_CASES)
def test_torch_computes_with_the_numbers_that_codes_and_scales_stand_for(tmp_path: Path, case: str) -> None:
    assert error_of(make(tmp_path, case), dtype="float32", native=False) < 1e-5


@needs_native
@pytest.mark.parametrize("case", ["one scale", "blocks"])
def test_native_kernels_get_these_numbers_in_the_models_type(
    tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = make(tmp_path, case)
    assert error_of(checkpoint, dtype="float32") < 1e-5
    assert error_of(checkpoint, dtype="bfloat16") < 0.03
    assert error_of(checkpoint, quantization="int8") < 0.06
    with caplog.at_level("INFO"):
        runner = make_runner(checkpoint.path, dtype="bfloat16")
    assert any("weights of few bits are held in the model's type" in message for message in caplog.messages)
    assert any(" GB as bfloat16; " in message for message in caplog.messages)
    assert runner.model.model.layers[0].mlp.down_proj.packed.stored == "native"


@pytest.mark.parametrize(
    ("part", "tensor", "message"),
    [
        ("weight_scale_inv", None, r"no scales of model\.layers\.1\.self_attn\.o_proj\.weight"),
        ("weight_scale_inv", torch.ones(7, 2), r"has scales \[7, 2\] for 128 rows"),
        ("weight_scale_inv", torch.ones(3, 9), r"for rows of 128 codes in groups of"),
        ("weight", torch.zeros(128, 128), "must be torch.float8_e4m3fn, got torch.float32"),
        ("weight", torch.zeros(128).to(torch.float8_e4m3fn), "which are no matrix"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, part: str, tensor: torch.Tensor | None, message: str
) -> None:
    make(tmp_path, "blocks")
    tensors = load_file(tmp_path / "model.safetensors")
    name = f"model.layers.1.self_attn.o_proj.{part}"
    del tensors[name]
    if tensor is not None:
        tensors[name] = tensor
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(StartupError, match=message):
        make_runner(tmp_path)
