from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind

from bough.config.model_config import ModelConfig
from bough.errors import ModelError, StartupError
from bough.model_loader.loader import open_source
from bough.observability.progress import Progress
from tests.model_executor.plan_builder import PlanBuilder, make_runner
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.models.gguf_files import write_gguf
from tests.models.microscaled_checkpoints import SIZES
from tests.models.test_against_transformers import LONGROPE, SCALED, YARN
from tests.native import needs_native
from tests.tables import table

PROMPT = random.Random(0).choices(range(VOCAB_SIZE), k=40)

WIDE = {"hidden_size": 256, "intermediate_size": 512}
"""Rows of whole blocks of 256."""

MOST_ERROR = 0.2
"""Random weights make of half a percent in each product, from inputs of 8 bits, 0.11 to 0.24 over many positions and
mostly less at the one that is looked at; matrices in each other's place make 1.2 to 1.4."""


def logits_of(path: Path, **options: Any) -> torch.Tensor:
    runner = make_runner(path, **options)
    builder = PlanBuilder(runner)
    sequence = builder.add(PROMPT)
    builder.generate(sequence, 1)
    return sequence.logits[0]


def error_of(checkpoint: Checkpoint, **options: Any) -> float:
    """Of the logits, relative to their size."""
    expected = checkpoint.logits(PROMPT)[-1]
    return float((logits_of(checkpoint.path, **options) - expected).norm() / expected.norm())


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["Llama", "Mistral", "Qwen2", "Qwen3", "Gemma3"])
def test_logits_equal_those_of_the_checkpoint_that_was_converted(
    tmp_path: Path, family: str, tied: bool, native: bool
) -> None:
    gemma = {"num_hidden_layers": 7, "sliding_window": 9, "query_pre_attn_scalar": 16}
    layers = gemma if family == "Gemma3" else {"sliding_window": None}
    original = save_checkpoint(tmp_path / "hf", family, tie_word_embeddings=tied, head_dim=16, **layers)
    checkpoint = write_gguf(tmp_path / "model.gguf", original)
    expected = original.logits(PROMPT)[-1]
    torch.testing.assert_close(logits_of(checkpoint.path, native=native), expected, rtol=1e-4, atol=1e-4)


def test_biases_of_rotated_rows_are_put_in_order_as_well(tmp_path: Path) -> None:
    original = save_checkpoint(tmp_path / "hf", "Llama", attention_bias=True, mlp_bias=True)
    assert error_of(write_gguf(tmp_path / "model.gguf", original)) < 1e-5


@pytest.mark.parametrize("kind", [Kind.F16, Kind.BF16])
def test_half_precision_is_widened_exactly(tmp_path: Path, kind: Kind) -> None:
    checkpoint = write_gguf(tmp_path / "model.gguf", save_checkpoint(tmp_path / "hf", "Llama"), kind)
    assert error_of(checkpoint, dtype="float32") < 1e-5


EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "norm_topk_prob": True}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("kind", [Kind.F32, Kind.Q8_0, Kind.Q4_K])
@pytest.mark.parametrize("family", ["Qwen3Moe", "Mixtral"])
def test_experts_of_a_file_that_has_them_in_one_are_those_of_the_checkpoint(
    tmp_path: Path, family: str, kind: Kind, native: bool
) -> None:
    original = save_checkpoint(tmp_path / "hf", family, head_dim=64, sliding_window=None, **WIDE, **EXPERTS)
    checkpoint = write_gguf(tmp_path / "model.gguf", original, kind, kinds={"ffn_gate_inp.weight": Kind.F32})
    exact = kind is Kind.F32 or not native
    options = {"dtype": "float32", "native": False} if exact and not native else {}
    assert error_of(checkpoint, **options) < (1e-4 if exact else MOST_ERROR)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("kind", [Kind.F32, Kind.Q8_0, Kind.MXFP4])
def test_sinks_and_experts_with_biases_are_those_of_the_checkpoint(tmp_path: Path, kind: Kind, native: bool) -> None:
    rotation = {**YARN, "truncate": False}
    original = save_checkpoint(tmp_path / "hf", "GptOss", **SIZES, rope_parameters=rotation)
    scaling = {"type": "yarn", "factor": 4.0, "original_context_length": 128}
    metadata = {f"gpt-oss.rope.scaling.{key}": value for key, value in scaling.items()}
    checkpoint = write_gguf(tmp_path / "model.gguf", original, kinds={"_exps.weight": kind}, metadata=metadata)
    exact = kind is Kind.F32 or not native
    options = {} if native else {"dtype": "float32", "native": False}
    assert error_of(checkpoint, **options) < (1e-4 if exact else MOST_ERROR)


QUANTIZED = [Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K]


@pytest.mark.parametrize("kind", QUANTIZED)
def test_torch_computes_with_the_numbers_that_were_written(tmp_path: Path, kind: Kind) -> None:
    original = save_checkpoint(tmp_path / "hf", "Llama", tie_word_embeddings=True, **WIDE)
    checkpoint = write_gguf(tmp_path / "model.gguf", original, kind)
    assert error_of(checkpoint, dtype="float32", native=False) < 1e-5


@needs_native
@pytest.mark.parametrize("kind", QUANTIZED)
def test_kernels_stay_close_to_the_numbers_that_were_written(tmp_path: Path, kind: Kind) -> None:
    original = save_checkpoint(tmp_path / "hf", "Qwen2", **WIDE)
    checkpoint = write_gguf(tmp_path / "model.gguf", original, kind)
    assert error_of(checkpoint) < MOST_ERROR


@needs_native
def test_a_mixture_of_types_gives_each_matrix_the_width_of_its_widest_part(tmp_path: Path) -> None:
    """As in the popular ``Q4_K_M``: most matrices in four bits, some in six, the norms and little else in full."""
    original = save_checkpoint(tmp_path / "hf", "Llama", tie_word_embeddings=True, **WIDE)
    kinds = {"0.attn_v.weight": Kind.Q6_K, "0.ffn_down.weight": Kind.Q6_K, "token_embd.weight": Kind.Q8_0}
    checkpoint = write_gguf(tmp_path / "model.gguf", original, Kind.Q4_K, kinds=kinds)
    assert error_of(checkpoint) < MOST_ERROR
    assert error_of(checkpoint, quantization="int8") < MOST_ERROR


@table("native", [True, False])
def test_long_and_short_factors_are_those_of_the_file(tmp_path: Path, native: bool) -> None:
    """As converters write Phi-3: stacked projections, a part of each head rotated, two rows of factors."""
    shape = {"num_attention_heads": 3, "num_key_value_heads": 1, "original_max_position_embeddings": 16}
    original = save_checkpoint(tmp_path / "hf", "Phi3", rope_parameters=LONGROPE, **shape)
    rows = {"rope_factors_long.weight": "long_factor", "rope_factors_short.weight": "short_factor"}
    extra = {name: np.array(LONGROPE[key], dtype=np.float32) for name, key in rows.items()}
    metadata = {
        "phi3.rope.dimension_count": 12,
        "phi3.rope.scaling.original_context_length": 16,
        "phi3.rope.scaling.attn_factor": math.sqrt(1 + math.log(512 / 16) / math.log(16)),
    }
    checkpoint = write_gguf(tmp_path / "model.gguf", original, metadata=metadata, extra=extra)
    assert error_of(checkpoint, native=native) < 1e-4


@needs_native
def test_stacked_matrices_keep_the_types_of_the_file(tmp_path: Path) -> None:
    original = save_checkpoint(tmp_path / "hf", "Phi3", **WIDE)
    kinds = {"attn_qkv.weight": Kind.Q5_K, "ffn_down.weight": Kind.Q6_K}
    checkpoint = write_gguf(tmp_path / "model.gguf", original, Kind.Q4_K, kinds=kinds)
    assert error_of(checkpoint, dtype="float32", native=False) < 1e-5
    assert error_of(checkpoint) < MOST_ERROR


@table("native", [True, False])
def test_queries_are_scaled_as_the_file_says(tmp_path: Path, native: bool) -> None:
    """As converters write Ministral 3."""
    original = save_checkpoint(tmp_path / "hf", "Ministral3", rope_parameters=SCALED, head_dim=16)
    metadata = {
        "mistral3.rope.scaling.type": "yarn",
        "mistral3.rope.scaling.factor": SCALED["factor"],
        "mistral3.rope.scaling.original_context_length": SCALED["original_max_position_embeddings"],
        "mistral3.rope.scaling.yarn_log_multiplier": 1.0,
        "mistral3.attention.temperature_scale": SCALED["llama_4_scaling_beta"],
    }
    checkpoint = write_gguf(tmp_path / "model.gguf", original, metadata=metadata)
    assert error_of(checkpoint, native=native) < 1e-4


def test_layers_of_smollm3_that_rotate_follow_from_the_architecture(tmp_path: Path) -> None:
    original = save_checkpoint(tmp_path / "hf", "SmolLM3", num_hidden_layers=4)
    assert error_of(write_gguf(tmp_path / "model.gguf", original)) < 1e-4


def test_stretched_frequencies_are_those_of_the_file(tmp_path: Path) -> None:
    scaling = {
        "rope_type": "llama3",
        "rope_theta": 10_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }
    original = save_checkpoint(tmp_path / "hf", "Llama", rope_parameters=scaling)
    plain = save_checkpoint(tmp_path / "plain", "Llama").reference.model.rotary_emb.inv_freq
    factors = (plain / original.reference.model.rotary_emb.inv_freq).numpy().astype(np.float32)
    checkpoint = write_gguf(tmp_path / "model.gguf", original, extra={"rope_freqs.weight": factors})
    assert error_of(checkpoint) < 1e-4


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_scaled_positions_are_those_of_the_file(tmp_path: Path, kind: str) -> None:
    scaling = {"rope_type": kind, "rope_theta": 10_000.0, "factor": 4.0}
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = 32
    original = save_checkpoint(tmp_path / "hf", "Qwen2", rope_parameters=scaling)
    entries = {"qwen2.rope.scaling.type": kind, "qwen2.rope.scaling.factor": 4.0}
    if kind == "yarn":
        entries["qwen2.rope.scaling.original_context_length"] = 32
    checkpoint = write_gguf(tmp_path / "model.gguf", original, metadata=entries)
    assert error_of(checkpoint) < 1e-4


def test_yarn_with_settings_of_its_own_is_that_of_the_file(tmp_path: Path) -> None:
    own = {"attention_factor": 1.6, "beta_fast": 4.0, "beta_slow": 0.5}
    yarn = {"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 32}
    original = save_checkpoint(tmp_path / "hf", "Qwen2", rope_parameters={**yarn, **own})
    entries = {
        "type": "yarn",
        "factor": 4.0,
        "original_context_length": 32,
        "yarn_attn_factor": 1.6,
        "yarn_beta_fast": 4.0,
        "yarn_beta_slow": 0.5,
    }
    metadata = {f"qwen2.rope.scaling.{key}": value for key, value in entries.items()}
    assert error_of(write_gguf(tmp_path / "model.gguf", original, metadata=metadata)) < 1e-4


@needs_native
@pytest.mark.parametrize("kind", [*QUANTIZED, Kind.F32, Kind.F16, Kind.BF16])
def test_weights_replaced_one_by_one_equal_those_of_a_fresh_model(tmp_path: Path, kind: Kind) -> None:
    first, second = (
        write_gguf(
            tmp_path / f"{seed}.gguf",
            save_checkpoint(tmp_path / str(seed), "Llama", seed=seed, **WIDE),
            kind,
            seed=seed,
        )
        for seed in (1, 2)
    )
    runner, fresh = make_runner(first.path), make_runner(second.path)
    assert not any(map(torch.equal, runner.model.parameters(), fresh.model.parameters()))
    source = open_source(fresh.config, "auto")
    assert source is not None
    addresses = [parameter.data_ptr() for parameter in runner.model.parameters()]
    for name, weight in source.read(source.files[0], Progress("", 1), ()):
        assert runner.model.load_weights([(name, weight)]) == {name}
    assert [parameter.data_ptr() for parameter in runner.model.parameters()] == addresses
    for ours, theirs in zip(runner.model.parameters(), fresh.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@needs_native
def test_weights_that_a_file_of_another_type_has_no_room_for_are_refused(tmp_path: Path) -> None:
    original = save_checkpoint(tmp_path / "hf", "Llama", **WIDE)
    runner = make_runner(write_gguf(tmp_path / "first.gguf", original, Kind.Q4_0).path)
    name = "model.layers.0.mlp.down_proj.weight"
    before = runner.model.checkpoint_weights[name].read()
    for kind in (Kind.Q4_1, Kind.Q8_0, Kind.Q6_K, Kind.BF16):
        checkpoint = write_gguf(tmp_path / f"{kind.name}.gguf", original, kind)
        source = open_source(ModelConfig.from_path(str(checkpoint.path), device="cpu"), "auto")
        assert source is not None
        weights = dict(source.read(source.files[0], Progress("", 1), ()))
        with pytest.raises(ModelError, match=rf"weight {name}: its matrix is held as int4") as caught:
            runner.model.load_weights([(name, weights[name])])
        assert caught.value.param == name
    assert torch.equal(runner.model.checkpoint_weights[name].read(), before)


@pytest.mark.parametrize("shape", [(8, 2, 8), (64, 2, 64), (2, 2, 64)])
def test_rotated_rows_of_three_dimensions_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    original = save_checkpoint(tmp_path / "hf", "Llama")
    extra = {"blk.0.attn_q.bias": np.zeros(shape, np.float32)}
    checkpoint = write_gguf(tmp_path / "model.gguf", original, extra=extra)
    source = open_source(ModelConfig.from_path(str(checkpoint.path), device="cpu"), "auto")
    assert source is not None
    with pytest.raises(StartupError, match=r"tensor blk.0.attn_q.bias is neither matrix nor vector but \["):
        dict(source.read(source.files[0], Progress("", 1), ()))


@needs_native
@pytest.mark.parametrize(
    ("kind", "form"),
    [
        *((Kind.Q8_0, "int8"), (Kind.Q4_0, "int4"), (Kind.Q4_1, "uint4"), (Kind.Q4_K, "uint4")),
        (Kind.MXFP4, "mxfp4"),
    ],
)
def test_codes_stay_what_they_are(tmp_path: Path, kind: Kind, form: str) -> None:
    original = save_checkpoint(tmp_path / "hf", "Llama", tie_word_embeddings=True, **WIDE)
    checkpoint = write_gguf(tmp_path / "model.gguf", original, kind)
    model = make_runner(checkpoint.path, dtype="float32").model
    assert model.model.layers[0].mlp.down_proj.packed.stored == model.model.embed_tokens.packed.stored == form
    for name, expected in checkpoint.reference.state_dict().items():
        if name in model.checkpoint_weights:
            torch.testing.assert_close(model.checkpoint_weights[name].read(), expected, rtol=2e-3, atol=1e-3)
