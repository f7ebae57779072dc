from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bough.config.model_config import ModelConfig
from bough.errors import ModelError, StartupError
from bough.layers.checkpoint_weight import Weight
from bough.model_loader.loader import load_model, open_source
from bough.observability.progress import Progress
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.models.quantized_checkpoints import Draw, Stored, awq, gptq, integers, packed, quantize, set_config
from tests.native import needs_native

PROMPT = random.Random(0).choices(range(VOCAB_SIZE), k=40)
WIDE = {"hidden_size": 128, "intermediate_size": 192}


def error_of(checkpoint: Checkpoint, **options: Any) -> float:
    """Of the logits, relative to their size."""
    runner = make_runner(checkpoint.path, **options)
    builder = PlanBuilder(runner)
    sequence = builder.add(PROMPT)
    builder.generate(sequence, 1)
    expected = checkpoint.logits(PROMPT)[-1]
    return float((sequence.logits[0] - expected).norm() / expected.norm())


def gptq_config(bits: int, group: int, **more: Any) -> dict[str, Any]:
    return {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": False, **more}


def awq_config(group: int) -> dict[str, Any]:
    return {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm"}


def compressed_config(form: str, bits: int, group: int | None, *, symmetric: bool, **more: Any) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "group" if group else "channel"}
    scheme = {"targets": ["Linear"], "weights": {**weights, "group_size": group, "dynamic": False, **more}}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": {"group_0": {**scheme, "input_activations": None, "output_activations": None}},
        "ignore": ["lm_head"],
        "quantization_status": "compressed",
        "kv_cache_scheme": None,
    }


def gptq_in_random_order(draw: Draw) -> Stored:
    order = torch.arange(draw.codes.shape[1]) // draw.group
    generator = torch.Generator().manual_seed(int(draw.codes.sum()))
    return gptq(draw, order=order[torch.randperm(len(order), generator=generator)])


Case = tuple[dict[str, Any], Callable[[Draw], Stored], int, int, bool]

CASES: dict[str, Case] = {
    "gptq 4 bits": (gptq_config(4, 64), gptq, 4, 64, True),
    "gptq 4 bits, zero points": (gptq_config(4, 32, sym=False), gptq, 4, 32, False),
    "gptq 4 bits, whole rows": (gptq_config(4, -1), gptq, 4, -1, True),
    "gptq 4 bits, odd groups": (gptq_config(4, 16), gptq, 4, 16, True),
    "gptq 8 bits": (gptq_config(8, 64), gptq, 8, 64, True),
    "gptq 8 bits, zero points": (gptq_config(8, 64, sym=False), gptq, 8, 64, False),
    "gptq 4 bits, order of activations": (gptq_config(4, 32, desc_act=True), gptq_in_random_order, 4, 32, True),
    "gptq 4 bits, order of activations, zero points": (
        gptq_config(4, 32, desc_act=True, sym=False),
        gptq_in_random_order,
        4,
        32,
        False,
    ),
    "gptq second version": (
        gptq_config(4, 64, checkpoint_format="gptq_v2", sym=False),
        lambda draw: gptq(draw, version=2),
        4,
        64,
        False,
    ),
    "awq": (awq_config(64), awq, 4, 64, False),
    "packed 4 bits": (
        compressed_config("pack-quantized", 4, 64, symmetric=True),
        lambda d: packed(d, symmetric=True),
        4,
        64,
        True,
    ),
    "packed 4 bits, zero points": (
        compressed_config("pack-quantized", 4, 64, symmetric=False),
        lambda d: packed(d, symmetric=False),
        4,
        64,
        False,
    ),
    "packed 4 bits, channels": (
        compressed_config("pack-quantized", 4, None, symmetric=True),
        lambda d: packed(d, symmetric=True),
        4,
        -1,
        True,
    ),
    "packed 8 bits, channels": (
        compressed_config("pack-quantized", 8, None, symmetric=True),
        lambda d: packed(d, symmetric=True),
        8,
        -1,
        True,
    ),
    "integers": (
        compressed_config("int-quantized", 8, None, symmetric=True),
        lambda d: integers(d, symmetric=True),
        8,
        -1,
        True,
    ),
    "integers, zero points": (
        compressed_config("int-quantized", 8, None, symmetric=False),
        lambda d: integers(d, symmetric=False),
        8,
        -1,
        False,
    ),
    "integers, one scale": (
        compressed_config("int-quantized", 8, None, symmetric=True, strategy="tensor"),
        lambda d: integers(d, symmetric=True, per_tensor=True),
        8,
        -1,
        True,
    ),
    "integers, one scale, zero points": (
        compressed_config("int-quantized", 8, None, symmetric=False, strategy="tensor"),
        lambda d: integers(d, symmetric=False, per_tensor=True),
        8,
        -1,
        False,
    ),
}


def make(
    path: Path, case: str, family: str = "Qwen2", *, seed: int = 0, symmetric: bool | None = None, **more: Any
) -> Checkpoint:
    """A checkpoint of a case, its zero points in the middle if the case says so, or if ``symmetric``."""
    config, store, bits, group, usual = CASES[case]
    checkpoint = save_checkpoint(path, family, seed=seed, **WIDE)
    symmetric = usual if symmetric is None else symmetric
    return quantize(checkpoint, config, store, bits=bits, group=group, symmetric=symmetric, seed=seed, **more)


def weights_of(runner: RecordingRunner) -> list[tuple[str, Weight]]:
    """What a fresh model of the runner's checkpoint is filled with."""
    source = open_source(runner.config, "auto")
    assert source is not None
    (file,) = source.files
    return list(source.read(file, Progress("", 1), runner.model.checkpoint_weights))


def replace_one_by_one(runner: RecordingRunner, fresh: RecordingRunner) -> None:
    """Put the weights of ``fresh`` in place of those of ``runner``, and compare."""
    parameters, expected = (list(each.model.parameters()) for each in (runner, fresh))
    assert not any(map(torch.equal, parameters, expected))
    addresses = [parameter.data_ptr() for parameter in parameters]
    for name, weight in weights_of(fresh):
        assert runner.model.load_weights([(name, weight)]) == {name}
    assert [parameter.data_ptr() for parameter in runner.model.parameters()] == addresses
    assert all(map(torch.equal, parameters, expected))


@pytest.mark.parametrize("case", CASES)
def test_torch_computes_with_the_numbers_that_the_layout_stands_for(tmp_path: Path, case: str) -> None:
    assert error_of(make(tmp_path, case), dtype="float32", native=False) < 1e-5


@needs_native
@pytest.mark.parametrize("case", CASES)
def test_kernels_stay_close_to_these_numbers(tmp_path: Path, case: str) -> None:
    assert error_of(make(tmp_path, case)) < 0.06


EXPERTS = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "norm_topk_prob": True}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("case", ["gptq 4 bits", "awq", "packed 4 bits", "integers"])
def test_experts_keep_the_form_of_the_file_and_routers_stay_what_they_are(
    tmp_path: Path, case: str, native: bool
) -> None:
    config, store, bits, group, symmetric = CASES[case]
    checkpoint = save_checkpoint(tmp_path, "Qwen3Moe", **WIDE, **EXPERTS)
    left_out = ("lm_head", "embed_tokens", "mlp.gate.")
    quantize(checkpoint, config, store, bits=bits, group=group, symmetric=symmetric, left_out=left_out)
    if native:
        assert error_of(checkpoint) < 0.1
    else:
        assert error_of(checkpoint, dtype="float32", native=False) < 1e-5


@needs_native
@pytest.mark.parametrize(
    ("case", "form"),
    [
        ("gptq 4 bits", "int4"),
        ("gptq 4 bits, zero points", "uint4"),
        ("gptq 4 bits, odd groups", "int8"),
        ("gptq 8 bits", "int8"),
        ("awq", "uint4"),
        ("packed 4 bits", "int4"),
        ("packed 4 bits, channels", "int4"),
        ("integers", "int8"),
    ],
)
def test_codes_are_held_in_the_narrowest_format_that_fits(tmp_path: Path, case: str, form: str) -> None:
    checkpoint = make(tmp_path, case)
    runner = make_runner(checkpoint.path, dtype="float32")
    layer = runner.model.model.layers[0]
    (heads,) = layer.self_attn.qkv_proj.matrices
    assert heads.packed.stored == layer.mlp.down_proj.packed.stored == form
    assert runner.model.lm_head.holder.packed.stored == "int8"
    if "zero points" in case or case.endswith("odd groups"):
        return
    for name in ("self_attn.k_proj.weight", "mlp.down_proj.weight"):
        held = runner.model.checkpoint_weights[f"model.layers.0.{name}"].read()
        expected = checkpoint.reference.get_parameter(f"model.layers.0.{name}")
        torch.testing.assert_close(held, expected, rtol=2e-3, atol=1e-3)


@needs_native
@pytest.mark.parametrize("case", CASES)
def test_weights_replaced_one_by_one_equal_those_of_a_fresh_model(tmp_path: Path, case: str) -> None:
    runner, fresh = (make_runner(make(tmp_path / str(seed), case, seed=seed).path) for seed in (1, 2))
    replace_one_by_one(runner, fresh)


@needs_native
@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][4] is False])
@pytest.mark.parametrize("first", [True, False])
def test_zero_points_that_happen_to_be_in_the_middle_are_no_form_of_their_own(
    tmp_path: Path, case: str, first: bool
) -> None:
    runner, fresh = (
        make_runner(make(tmp_path / str(seed), case, seed=seed, symmetric=(seed == 1) == first).path) for seed in (1, 2)
    )
    replace_one_by_one(runner, fresh)


@needs_native
def test_zero_points_off_the_middle_are_followed_where_the_configuration_promises_others(tmp_path: Path) -> None:
    checkpoint = make(tmp_path, "gptq 4 bits", symmetric=False)
    assert error_of(checkpoint) < 0.06
    layer = make_runner(checkpoint.path).model.model.layers[0]
    assert layer.mlp.down_proj.packed.stored == "uint4"


@needs_native
@pytest.mark.parametrize("bits", [4, 8])
def test_zero_points_in_the_middle_as_the_second_version_has_them_may_be_called_those_of_the_first(
    tmp_path: Path, bits: int
) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen2", **WIDE)
    second = partial(gptq, version=2)
    quantize(checkpoint, gptq_config(bits, 32, sym=True), second, bits=bits, group=32, symmetric=True)
    assert error_of(checkpoint) < 0.06
    layer = make_runner(checkpoint.path).model.model.layers[0]
    assert layer.mlp.down_proj.packed.stored == f"int{bits}"


@needs_native
def test_weights_of_a_narrower_form_stay_what_they_are(tmp_path: Path) -> None:
    runner = make_runner(make(tmp_path / "first", "gptq 4 bits, zero points", seed=1).path)
    fresh = make_runner(make(tmp_path / "second", "gptq 4 bits", seed=2).path)
    assert fresh.model.model.layers[0].mlp.down_proj.packed.stored == "int4"
    runner.model.load_weights(weights_of(fresh))
    for name, weight in fresh.model.checkpoint_weights.items():
        assert torch.equal(runner.model.checkpoint_weights[name].read(), weight.read())


@needs_native
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("gptq 4 bits", "gptq 4 bits, zero points"),
        ("gptq 4 bits", "awq"),
        ("gptq 4 bits", "gptq 4 bits, odd groups"),
        ("gptq 4 bits", "gptq 4 bits, order of activations"),
        ("packed 4 bits", "packed 8 bits, channels"),
        ("packed 4 bits, zero points", "integers, zero points"),
    ],
)
def test_weights_that_a_matrix_has_no_room_for_are_refused(tmp_path: Path, first: str, second: str) -> None:
    runner, fresh = (make_runner(make(tmp_path / case, case).path) for case in (first, second))
    name = "model.layers.0.mlp.down_proj.weight"
    before = runner.model.checkpoint_weights[name].read()
    with pytest.raises(ModelError, match=rf"weight {name}: its matrix is held as u?int4") as caught:
        runner.model.load_weights([(name, dict(weights_of(fresh))[name])])
    assert caught.value.param == name
    assert torch.equal(runner.model.checkpoint_weights[name].read(), before)


def test_numbers_whose_order_is_undone_some_rows_at_a_time_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = make(tmp_path, "gptq 4 bits, order of activations, zero points")
    # 7 rows of the narrow matrices, which are neither all at once nor a divisor of their number.
    monkeypatch.setattr("bough.model_loader.quantized_source._REORDERED_AT_A_TIME", 7 * WIDE["hidden_size"] + 5)
    model = make_runner(checkpoint.path, dtype="float32", native=False).model
    for name, expected in checkpoint.reference.state_dict().items():
        assert torch.equal(model.checkpoint_weights[name].read(), expected)


@pytest.mark.parametrize("layout", ["gptq", "packed"])
def test_groups_in_the_order_of_activations_are_followed(tmp_path: Path, layout: str) -> None:
    generator = torch.Generator().manual_seed(0)

    def store(draw: Draw) -> Stored:
        order = torch.arange(draw.codes.shape[1]) // draw.group
        order = order[torch.randperm(len(order), generator=generator)]
        return gptq(draw, order=order) if layout == "gptq" else packed(draw, symmetric=True, order=order)

    config = gptq_config(4, 32, desc_act=True)
    if layout == "packed":
        config = compressed_config("pack-quantized", 4, 32, symmetric=True, actorder="group")
    checkpoint = save_checkpoint(tmp_path, "Llama", **WIDE)
    quantize(checkpoint, config, store, bits=4, group=32, symmetric=True)
    assert error_of(checkpoint, dtype="float32", native=False) < 1e-5
    assert error_of(checkpoint) < 0.06


def test_groups_in_no_order_are_in_the_usual_one(tmp_path: Path) -> None:
    def store(draw: Draw) -> Stored:
        tensors, numbers = packed(draw, symmetric=True)
        # What compressed-tensors begins with.
        return {**tensors, "weight_g_idx": torch.full((draw.codes.shape[1],), -1, dtype=torch.int32)}, numbers

    config = compressed_config("pack-quantized", 4, 32, symmetric=True)
    checkpoint = quantize(save_checkpoint(tmp_path, "Llama", **WIDE), config, store, bits=4, group=32, symmetric=True)
    assert error_of(checkpoint, dtype="float32", native=False) < 1e-5
    source = open_source(ModelConfig.from_path(str(tmp_path)), "auto")
    assert source is not None
    assert source.form("model.layers.0.mlp.down_proj.weight") == "int4"


def test_a_body_without_a_prefix_keeps_its_form_and_its_biases(tmp_path: Path) -> None:
    checkpoint = make(tmp_path, "gptq 4 bits")
    file = tmp_path / "model.safetensors"
    tensors = {name.removeprefix("model."): tensor for name, tensor in load_file(file).items() if "lm_head" not in name}
    tensors["layers.0.self_attn.q_proj.bias"].zero_()
    tensors["layers.0.mlp.down_proj.bias"] = torch.zeros(WIDE["hidden_size"])
    save_file(tensors, file)
    set_config(tmp_path, architectures=["Qwen2Model"])
    config = ModelConfig.from_path(str(tmp_path), device="cpu", dtype="float32")
    source = open_source(config, "auto")
    assert source is not None
    name = "model.layers.0.mlp.down_proj.weight"
    assert source.form(name) == "int4"
    model = load_model(config, source=source, device=torch.device("cpu"), seed=0)
    assert torch.equal(model.checkpoint_weights[name].read(), checkpoint.reference.get_parameter(name))
    assert not model.checkpoint_weights["model.layers.0.self_attn.q_proj.bias"].read().any()


def test_a_configuration_of_gptq_may_stand_beside_that_of_the_model(tmp_path: Path) -> None:
    checkpoint = make(tmp_path, "gptq 4 bits")
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    saved = config.pop("quantization_config")
    saved.pop("quant_method")
    file.write_text(json.dumps(config))
    (tmp_path / "quantize_config.json").write_text(json.dumps(saved))
    assert error_of(checkpoint, dtype="float32", native=False) < 1e-5


@needs_native
def test_a_matrix_with_two_names_is_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    checkpoint = save_checkpoint(tmp_path, "Qwen2", tie_word_embeddings=True, **WIDE)
    make_runner(quantize(checkpoint, gptq_config(4, 64), gptq, bits=4, group=64, symmetric=True).path)
    (told,) = [line for line in caplog.messages if "become int8" in line]
    assert told.startswith("1 ")
    assert "embed_tokens" in told


@needs_native
def test_what_a_checkpoint_leaves_unquantised_stays_close_to_what_it_was_and_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    checkpoint = make(tmp_path, "gptq 4 bits", left_out=("lm_head", "embed_tokens", "v_proj", "layers.1.mlp.down_proj"))
    runner = make_runner(checkpoint.path, dtype="float32")
    layers = runner.model.model.layers
    assert [layer.mlp.down_proj.packed.stored for layer in layers] == ["int4", "int8", "int4"]
    for layer in layers:
        held = {tuple(matrix.parts): matrix.packed.stored for matrix in layer.self_attn.qkv_proj.matrices}
        assert held == {("q_proj", "k_proj"): "int4", ("v_proj",): "int8"}
    (told,) = [line for line in caplog.messages if "become int8" in line]
    assert "layers.1.mlp.down_proj" in told
    assert "lm_head" in told
    assert error_of(checkpoint) < 0.06


def test_experts_that_are_not_all_quantised_are_held_alike(tmp_path: Path) -> None:
    sizes = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "head_dim": 32}
    checkpoint = save_checkpoint(tmp_path, "Qwen3Moe", **{**WIDE, **sizes})
    left_out = ("lm_head", "embed_tokens", "mlp.gate.", "layers.1.mlp.experts.2.")
    quantize(checkpoint, gptq_config(4, 32), gptq, bits=4, group=32, symmetric=True, left_out=left_out)
    layers = make_runner(checkpoint.path, dtype="float32").model.model.layers
    held = [{expert.down_proj.packed.stored for _, expert in layer.mlp.experts.each()} for layer in layers]
    assert held == [{"int4"}, {"int8"}, {"int4"}]
    assert error_of(checkpoint) < 0.06


def test_needless_biases_of_zeros_are_left_out_and_others_are_not(tmp_path: Path) -> None:
    needless = {"model.layers.0.mlp.down_proj.bias": torch.zeros(WIDE["hidden_size"])}
    checkpoint = make(tmp_path, "gptq 4 bits", extra=needless)
    assert error_of(checkpoint, dtype="float32", native=False) < 1e-5
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.layers.0.mlp.down_proj.bias"][3] = 0.5
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(StartupError, match=r"no weight named model.layers.0.mlp.down_proj.bias"):
        make_runner(tmp_path)


@pytest.mark.parametrize(
    ("part", "tensor", "message"),
    [
        ("qweight", None, "lacks 1 of"),
        ("qzeros", torch.zeros(1, 1, dtype=torch.int32), "has zero points"),
        ("qzeros", torch.zeros(3, dtype=torch.int32), "which are no matrix"),
        ("qweight", torch.zeros(16, 128, dtype=torch.int16), "must be torch.int32, got torch.int16"),
        ("qweight", torch.zeros(16, dtype=torch.int32), "which are no matrix"),
        ("qweight", torch.zeros(8, 128, dtype=torch.int32), r"must have shape \[128, 128\], got \[128, 64\]"),
        ("g_idx", torch.full((128,), 9, dtype=torch.int32), "groups that do not fit its scales"),
        ("g_idx", torch.tensor(0, dtype=torch.int32), r"g_idx must be a list of whole numbers, got torch.int32 \[\]"),
        ("g_idx", torch.zeros(128), "must be a list of whole numbers, got torch.float32"),
        ("scales", torch.full((2, 128), 64.0), r"weight model\.layers\.1\.self_attn\.o_proj\.weight: .* above 63\.97"),
        ("scales", torch.ones(2, 64), r"has scales \[64, 2\] for 128 rows"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, part: str, tensor: torch.Tensor | None, message: str
) -> None:
    make(tmp_path, "gptq 4 bits, zero points" if part == "qzeros" else "gptq 4 bits")
    tensors = load_file(tmp_path / "model.safetensors")
    name = f"model.layers.1.self_attn.o_proj.{part}"
    del tensors[name]
    if tensor is not None:
        tensors[name] = tensor
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(StartupError, match=message) as caught:
        make_runner(tmp_path)
    assert "\n" not in caught.value.message


def test_whole_numbers_beyond_their_bits_are_refused(tmp_path: Path) -> None:
    config = compressed_config("int-quantized", 4, None, symmetric=True)
    checkpoint = save_checkpoint(tmp_path, "Qwen2", **WIDE)
    quantize(checkpoint, config, lambda d: integers(d, symmetric=True), bits=8, group=-1, symmetric=True)
    with pytest.raises(StartupError, match=r"has codes that are not from -8 to 7"):
        make_runner(tmp_path)


def test_groups_longer_than_any_row_are_whole_rows(tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen2", **WIDE)
    quantize(checkpoint, gptq_config(4, 10**30), gptq, bits=4, group=-1, symmetric=True)
    assert error_of(checkpoint, dtype="float32", native=False) < 1e-5


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (torch.tensor(128), r"has \[128, 128\] codes for a matrix \[128\]"),
        (torch.tensor([128.0, 128.0]), "weight_shape must be whole numbers, got torch.float32"),
    ],
)
def test_a_shape_that_is_none_is_refused(tmp_path: Path, shape: torch.Tensor, message: str) -> None:
    make(tmp_path, "packed 4 bits")
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.layers.1.self_attn.o_proj.weight_shape"] = shape
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(StartupError, match=message):
        make_runner(tmp_path)
