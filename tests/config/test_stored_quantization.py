from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bough.config.stored_quantization import StoredQuantization, quantization_entry, read_stored_quantization
from bough.errors import ConfigError

WEIGHTS = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 128}

FLOAT8 = {"num_bits": 8, "type": "float"}


def compressed(weights: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    groups = {"group_0": {"targets": ["Linear"], "weights": {**WEIGHTS, **(weights or {})}}}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups, **more}


def test_what_is_supported_is_read() -> None:
    cases = [
        ({"quant_method": "gptq", "bits": 4, "group_size": 64}, StoredQuantization("gptq", 4, 64, 1)),
        (
            {
                "quant_method": "gptq",
                "bits": 8,
                "group_size": -1,
                "checkpoint_format": "gptq_v2",
                "dynamic": {"-:x": {}},
                "sym": False,
            },
            StoredQuantization("gptq", 8, None, 0, zero_points=True),
        ),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": True},
            StoredQuantization("gptq", 4, 64, 1),
        ),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "GEMM"},
            StoredQuantization("awq", 4, 128, zero_points=True),
        ),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": False},
            StoredQuantization("awq", 4, 128),
        ),
        (compressed(), StoredQuantization("packed", 4, 128)),
        (compressed({"symmetric": False}), StoredQuantization("packed", 4, 128, zero_points=True)),
        (
            compressed({"num_bits": 8, "strategy": "channel", "group_size": None}, format="int-quantized"),
            StoredQuantization("integers", 8, None),
        ),
        ({"quant_method": "fp8", "activation_scheme": "static"}, StoredQuantization("float8", 8, None)),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, StoredQuantization("float8", 8, None)),
        (
            {"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"},
            StoredQuantization("float8", 8, None),
        ),
        ({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, StoredQuantization("float8", 8, None)),
        (
            {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [64, 128]},
            StoredQuantization("float8", 8, 128, rows=64),
        ),
        (
            compressed({**FLOAT8, "strategy": "channel"}, format="float-quantized", kv_cache_scheme=FLOAT8),
            StoredQuantization("float8", 8, None),
        ),
        (
            compressed({**FLOAT8, "strategy": "tensor"}, format="float-quantized", quantization_status="frozen"),
            StoredQuantization("float8", 8, None),
        ),
        (
            compressed({**FLOAT8, "strategy": "tensor"}, format="float-quantized", sparsity_config={"format": "dense"}),
            StoredQuantization("float8", 8, None),
        ),
        (
            compressed({**FLOAT8, "strategy": "block", "block_structure": [128, 64]}, format="naive-quantized"),
            StoredQuantization("float8", 8, 64, rows=128),
        ),
    ]
    for raw, expected in cases:
        assert read_stored_quantization(Path("config.json"), raw) == expected


def test_everything_else_is_refused_with_what_is_supported() -> None:
    cases = [
        ({"quant_method": "fp8", "fmt": "e5m2"}, "FP8 in the format e5m2"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "ModelOpt's NVFP4"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "blocks of [128]"),
        ({"quant_method": "fp8", "weight_block_size": [True, 0]}, "blocks of [True, 0]"),
        ({"quant_method": "bitsandbytes"}, "bitsandbytes"),
        ({}, "None"),
        ("int8", "'int8'"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "3-bit weights"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "groups of 0"),
        ({"quant_method": "gptq", "bits": 4, "sym": "no"}, "sym 'no'"),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "marlin"),
        ({"quant_method": "gptq", "bits": 4, "is_marlin_format": True}, "marlin"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"+:x": {"bits": 8}}}, "different rules for different modules"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "AWQ in the format gemv"),
        (compressed(format="float-quantized"), "4-bit int weights in the format float-quantized"),
        (compressed({"type": "float", "num_bits": 4}, format="float-quantized"), "4-bit float weights"),
        (compressed(format=["a"]), "the format ['a']"),
        (compressed(format="nvfp4-pack-quantized"), "the format nvfp4-pack-quantized"),
        (compressed({"type": "float", "num_bits": 8}), "8-bit float weights"),
        (compressed({"strategy": "block"}), "the strategy block"),
        (compressed(kv_cache_scheme={"num_bits": 8, "type": "int"}), "kv_cache_scheme"),
        (compressed(config_groups={}), "without config_groups"),
        (compressed(config_groups={"a": 1}), "without a scheme for weights"),
        (
            compressed(config_groups={"a": {"weights": WEIGHTS}, "b": {"weights": {**WEIGHTS, "num_bits": 8}}}),
            "different schemes",
        ),
        (compressed(quantization_status="calibration"), "the state calibration"),
        (compressed(sparsity_config={"format": "sparse-24-bitmask"}), "with sparsity_config"),
    ]
    for raw, named in cases:
        with pytest.raises(ConfigError) as caught:
            read_stored_quantization(Path("/m/config.json"), raw)
        message = caught.value.message
        assert named in message
        assert message.startswith("/m/config.json: quantisation: ")
        assert "supported are GPTQ, AWQ (gemm) and compressed-tensors" in message


def test_what_the_first_autoawq_says_beside_the_configuration_counts(tmp_path: Path) -> None:
    file = tmp_path / "quant_config.json"
    file.write_text('{"zero_point": true, "q_group_size": 64, "w_bit": 4, "version": "GEMM"}')
    entry = quantization_entry(tmp_path, {})
    assert read_stored_quantization(file, entry) == StoredQuantization("awq", 4, 64, zero_points=True)
    file.write_text('{"other": 1}')
    assert quantization_entry(tmp_path, {}) is None


def test_what_autogptq_says_beside_the_configuration_counts(tmp_path: Path) -> None:
    file = tmp_path / "quantize_config.json"
    file.write_text('{"bits": 8, "group_size": 32, "desc_act": true, "sym": true, "checkpoint_format": null}')
    entry = quantization_entry(tmp_path, {})
    assert read_stored_quantization(file, entry) == StoredQuantization("gptq", 8, 32, 1)
    assert quantization_entry(tmp_path, {"quantization_config": {"quant_method": "awq"}}) == {"quant_method": "awq"}
    file.write_text('{"bits": 4, "quant_method": "awq"}')
    entry = quantization_entry(tmp_path, {})
    assert read_stored_quantization(file, entry) == StoredQuantization("awq", 4, 128, zero_points=True)
    file.write_text('{"bits": 4, "checkpoint_format": "marlin"}')
    with pytest.raises(ConfigError, match="GPTQ in the format marlin"):
        read_stored_quantization(file, quantization_entry(tmp_path, {}))
    # Exporters to other formats write a file of this name.
    for other in ("[]", "{}", '{"per_channel": true, "reduce_range": true}'):
        file.write_text(other)
        assert quantization_entry(tmp_path, {}) is None


def test_what_modelopt_says_beside_the_configuration_counts(tmp_path: Path) -> None:
    file = tmp_path / "hf_quant_config.json"
    assert quantization_entry(tmp_path, {}) is None
    file.write_text('{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": []}}')
    entry = quantization_entry(tmp_path, {})
    assert read_stored_quantization(file, entry) == StoredQuantization("float8", 8, None)
    assert quantization_entry(tmp_path, {"quantization_config": {"quant_method": "awq"}}) == {"quant_method": "awq"}
    file.write_text('{"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}}')
    assert quantization_entry(tmp_path, {}) is None
    file.write_text("[]")
    with pytest.raises(ConfigError, match="must have an entry quantization"):
        quantization_entry(tmp_path, {})
