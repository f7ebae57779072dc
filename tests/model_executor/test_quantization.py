"""Models whose weights are quantised while they are loaded."""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import pytest
import torch

from bough.config.engine_args import Quantization
from bough.config.model_config import ModelConfig
from bough.errors import ConfigError
from bough.model_executor import native_path, runner_memory
from bough.model_executor.capacity import MemoryBudget, default_max_running_requests, fit_pool
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.model_executor.quality import bundled_model, measure, plant_outliers, rescale, sampled_texts
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.native import needs_native
from tests.tables import table

WIDER = {"hidden_size": 128, "intermediate_size": 160}

KINDS = pytest.mark.parametrize("kind", ["int8", "int4"])


def prompt(length: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(VOCAB_SIZE), k=length)


def logits_of(runner: RecordingRunner, tokens: list[int]) -> torch.Tensor:
    """Of the last of ``tokens``, ``[vocab_size]``."""
    builder = PlanBuilder(runner)
    sequence = builder.add(tokens)
    builder.generate(sequence, 1)
    builder.drop(sequence)
    return sequence.logits[0]


@needs_native
@KINDS
@pytest.mark.parametrize("factor", [1.0, 20.0, 100.0])
@pytest.mark.parametrize("seeds", [pytest.param(8, marks=pytest.mark.slow), 3])
def test_error_is_no_larger_than_that_of_the_common_format(
    tmp_path: Path, factor: float, kind: Quantization, seeds: int
) -> None:
    ours = theirs = 0.0
    # A few single weights decide about the error of outliers: of one model, ours may be larger.
    for seed in range(seeds):
        checkpoint = save_checkpoint(tmp_path, "Qwen2", seed=seed, tie_word_embeddings=True, **WIDER)
        plant_outliers(checkpoint.reference, factor, weights=False)
        our, their = measure(checkpoint.reference, tmp_path, kind, [prompt(100, seed=seed) for seed in range(4)])
        ours += our.error
        theirs += their.error
    assert ours <= theirs


@needs_native
@KINDS
def test_weights_replaced_one_by_one_equal_those_of_a_fresh_model(tmp_path: Path, kind: str) -> None:
    first = save_checkpoint(tmp_path / "first", "Llama", seed=1)
    second = save_checkpoint(tmp_path / "second", "Llama", seed=2)
    runner, fresh = (make_runner(each.path, quantization=kind) for each in (first, second))
    addresses = [parameter.data_ptr() for parameter in runner.model.parameters()]
    assert not torch.equal(logits_of(runner, prompt(20)), logits_of(fresh, prompt(20)))
    for name, tensor in second.reference.state_dict().items():
        assert runner.model.load_weights([(name, tensor)]) == {name}
    assert [parameter.data_ptr() for parameter in runner.model.parameters()] == addresses
    for ours, theirs in zip(runner.model.parameters(), fresh.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(logits_of(runner, prompt(20)), logits_of(fresh, prompt(20)))


@needs_native
@table("quantization", ["int8", "int4"])
@table(
    "family, tied",
    [("Gemma3", True), ("Gemma3", False), ("Phi3", False), ("Ministral3", True), ("SmolLM3", True), ("Llama", True)],
)
def test_no_family_loses_more_than_in_the_common_format(
    tmp_path: Path, family: str, tied: bool, quantization: Quantization
) -> None:
    """Random weights of one shape; a norm, a rotation or rows in the wrong place would make an error of 1.

    Families are compared with the common format on the same weights, not with each other. Of these Gemma 3 loses 1.6
    times (int8) and 1.4 times (int4) what Llama loses, and the common format loses 1.6 and 1.3 times as much: its norms
    of heads have weights around 2 here, so that scores are 4 times as large as with weights of 1, and errors in them
    move more attention. With the factor 1/16 that published files put on scores it loses 0.7 times what Llama does.
    """
    options = {**WIDER, "head_dim": 32, **({"query_pre_attn_scalar": 32} if family == "Gemma3" else {})}
    ours = theirs = 0.0
    for seed in range(2):
        checkpoint = save_checkpoint(tmp_path, family, seed=seed, tie_word_embeddings=tied, **options)
        texts = [prompt(60, seed=seed) for seed in range(2)]
        our, their = measure(checkpoint.reference, tmp_path, quantization, texts)
        ours += our.error
        theirs += their.error
    assert ours <= theirs


@needs_native
@KINDS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_logits_depend_neither_on_chunks_nor_on_threads(tmp_path: Path, dtype: str, kind: str) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3", head_dim=16, max_position_embeddings=1024)
    runs = []
    for threads in (1, 3):
        runner = make_runner(checkpoint.path, dtype=dtype, threads=threads, quantization=kind)
        for chunks in ([], [1, 250, 17]):
            builder = PlanBuilder(runner)
            sequence = builder.add(prompt(300))
            builder.generate(sequence, 3, chunks=chunks)
            runs.append(torch.stack(sequence.logits))
    for run in runs[1:]:
        assert torch.equal(run, runs[0])


@needs_native
@pytest.mark.parametrize("shape", [{}, {"head_dim": 20}, {"head_dim": 12, "num_key_value_heads": 1}])
def test_values_of_8_bits_stand_beside_queries_and_keys_of_any_width(tmp_path: Path, shape: dict[str, int]) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3", num_hidden_layers=1, **(WIDER | shape))
    runner = make_runner(checkpoint.path, dtype="float32", quantization="int4")
    assert len(runner.model.model.layers[0].self_attn.qkv_proj.matrices) == 2
    held = {name: weight.read() for name, weight in runner.model.checkpoint_weights.items()}
    checkpoint.reference.load_state_dict(held)
    tokens = prompt(40)
    expected = checkpoint.logits(tokens)[-1]
    # Inputs of products have 8 bits.
    assert float((logits_of(runner, tokens) - expected).norm() / expected.norm()) < 0.03


@needs_native
@pytest.mark.parametrize(("kind", "bits"), [("int8", 8.5), ("int4", 4.5)])
def test_weights_take_their_bits_and_a_scale(tmp_path: Path, kind: str, bits: float) -> None:
    checkpoint = save_checkpoint(tmp_path, "Llama", hidden_size=64, intermediate_size=256, num_attention_heads=4)
    model = make_runner(checkpoint.path, dtype="bfloat16", quantization=kind).model
    assert model.model.layers[0].mlp.down_proj.weight.nbytes == 64 * 256 * bits / 8
    assert model.lm_head.weight.nbytes == VOCAB_SIZE * 64 * 8.5 / 8


@needs_native
@pytest.mark.parametrize(
    ("kind", "seeds"), [*(pytest.param(kind, 12, marks=pytest.mark.slow) for kind in ("int8", "int4")), ("int4", 2)]
)
def test_the_bundled_model_loses_no_more_than_in_the_common_format(
    tmp_path: Path, kind: Quantization, seeds: int
) -> None:
    model = bundled_model()
    texts = sampled_texts(model, count=16, length=40)
    pairs = [measure(model, tmp_path, kind, texts)]
    # Which way a few numbers are rounded moves the error by a twentieth: in 8 bits, of one rounding ours may be larger.
    for seed in range(seeds):
        model = bundled_model()
        rescale(model, seed)
        pairs.append(measure(model, tmp_path, kind, texts))
    ratios = [ours.error / theirs.error for ours, theirs in pairs]
    # In 8 bits the formats are alike, so that only chance decides: two standard errors of the mean.
    assert geometric_mean(ratios) <= {"int8": 1.03, "int4": 1}[kind]
    assert max(ratios) <= {"int8": 1.2, "int4": 0.9}[kind]
    assert fmean(math.log(ours.perplexity / theirs.perplexity) for ours, theirs in pairs) <= 0.001


def test_without_native_kernels_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint: Checkpoint = save_checkpoint(tmp_path, "Llama")

    def missing_library() -> None:
        raise native_path.LibraryMissing("they were not built")

    with pytest.raises(ConfigError, match="--quantization int8 needs the native CPU kernels"):
        make_runner(checkpoint.path, dtype="float16", quantization="int8")
    monkeypatch.setattr(native_path, "load_library", missing_library)
    with pytest.raises(ConfigError, match="--quantization int4 needs the native CPU kernels"):
        make_runner(checkpoint.path, quantization="int4")


@needs_native
def test_capacity_counts_operations_not_bytes_and_hidden_states_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    reserved: list[int] = []

    def requests(device: str, threads: int, dtype: str, flops_per_token: int) -> int:
        counted.append(flops_per_token)
        return default_max_running_requests(device, threads, dtype, flops_per_token)

    def pool(config: ModelConfig, device: str, budget: MemoryBudget, **options: Any) -> int:
        reserved.append(budget.forward)
        return fit_pool(config, device, budget, **options)

    monkeypatch.setattr(runner_memory, "default_max_running_requests", requests)
    monkeypatch.setattr(runner_memory, "fit_pool", pool)
    checkpoint = save_checkpoint(tmp_path, "Qwen2", tie_word_embeddings=True, **WIDER)
    for kind in ("none", "int8", "int4"):
        make_runner(checkpoint.path, dtype="bfloat16", quantization=kind, max_prefill_tokens=512)
    assert counted == [2 * sum(each.numel() for each in checkpoint.reference.parameters() if each.ndim == 2)] * 3
    # float32 in place of bfloat16
    assert [each - reserved[0] for each in reserved] == [0, *[2 * 512 * WIDER["hidden_size"]] * 2]
