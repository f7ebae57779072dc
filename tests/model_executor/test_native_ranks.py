"""Several ranks compute the bits of one, natively: logits, tokens, logprobs, whatever the rows of a step are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from msgspec.structs import replace

from bough.config.engine_args import bundled_model_path
from bough.constrained.masks import TokenMasks
from bough.kernels.native_group import RankLost
from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import RowLogprobs
from tests.model_executor.native_ranks import first_of_ranks
from tests.model_executor.plan_builder import GREEDY, PlanBuilder, RecordingRunner, int32, make_runner
from tests.model_loader.test_quantized_source import make as make_quantized
from tests.models.checkpoints import save_checkpoint
from tests.models.gguf_files import write_gguf
from tests.native import needs_native
from tests.step_runs import runs_of
from tests.tables import table

pytestmark = needs_native

NUMERICS: list[dict[str, Any]] = [
    {"dtype": "float32"},
    {"dtype": "bfloat16", "threads": 2},
    {"dtype": "bfloat16", "quantization": "int8", "kv_cache_dtype": "int8"},
    {"dtype": "float32", "quantization": "int4"},
]
HEADS = {"num_attention_heads": 6, "num_key_value_heads": 3, "hidden_size": 120, "intermediate_size": 200}
"""Of 3 ranks, each has one head of keys; no width is a multiple of 96."""

PARAMS = [
    GREEDY,
    SamplingParams(temperature=1.3, top_p=0.9),
    SamplingParams(temperature=0.0, repetition_penalty=1.4, logit_bias={5: 2.0}),
    GREEDY,
]


def prompt(runner: RecordingRunner, length: int, seed: int) -> list[int]:
    return random.Random(seed).choices(range(runner.config.vocab_size), k=length)


def observed(runner: RecordingRunner) -> list[Any]:
    """Everything that comes of steps of all kinds."""
    builder, results = PlanBuilder(runner), []
    vocab = runner.config.vocab_size
    sequences = [builder.add(prompt(runner, 20 + 9 * row, row)) for row in range(len(PARAMS))]
    long = builder.add(prompt(runner, 90, 10))
    runner.recording = True
    builder.generate(long, 3, chunks=[1, 40, 30])
    results.append(torch.stack(long.logits))
    # Prompts beside rows that decode, the last with a part of its prompt that another one has computed.
    cached = builder.add(long.tokens[:32] + prompt(runner, 11, 12), prefix_of=long, prefix_len=32)
    for row, sequence in enumerate(sequences):
        builder.step([(sequence, sequence.prompt_len), (long, 1)], new_params=PARAMS[row])
    builder.step([(cached, 11), (sequences[0], 1)])
    results.append(torch.stack([*cached.logits, *long.logits]))
    runner.recording = False
    rows = sequences[:3]
    for further in (0, 6):
        told = builder.step([(each, 1) for each in rows], further=further)
        results.append((runs_of(told), told.failed_rows))
    # Logprobs of a prompt and of tokens.
    asked = builder.add(prompt(runner, 30, 13))
    targets = int32(*asked.tokens[1:], 0)[:29]
    requests = (RowLogprobs(0, 0, targets, 3, (1, 2)),)
    results.append(repr(builder.step([(asked, 30)], logprobs=requests).logprobs))
    results.append(repr(builder.step([(asked, 1)], logprobs=(RowLogprobs(0, 0, int32(), 2, ()),), further=3).logprobs))
    # Choices among some tokens, late.
    plan = builder.plan([(each, 1) for each in (sequences[0], sequences[3])])
    allowed = np.random.default_rng(3).integers(0, 2**32, (2, -(-vocab // 32)), dtype=np.uint32)
    masked = runner.forward_batch_generation(replace(plan, masks=TokenMasks(int32(0, 1), allowed)))
    results.append((runs_of(masked), masked.failed_rows))
    results.append([each.output for each in (*sequences, long, cached, asked)])
    return results


def expect_equal(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if isinstance(theirs, torch.Tensor):
            assert torch.equal(ours, theirs), index
        else:
            assert ours == theirs, index


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.model_executor.cpu_graph_runner.MAX_PIECE_TOKENS", 32)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("options", NUMERICS, ids=str)
def test_two_ranks_compute_the_bits_of_one(options: dict[str, Any]) -> None:
    path = bundled_model_path()
    expected = observed(make_runner(path, **options))
    with first_of_ranks(path, 2, **options) as runner:
        assert runner.kv_pool.num_kv_heads == 1
        expect_equal(observed(runner), expected)


@pytest.mark.usefixtures("small_pieces")
@table(
    "family, world, changes",
    [
        ("Qwen2", 3, {**HEADS, "tie_word_embeddings": True}),
        ("Llama", 2, HEADS),
        ("Qwen3", 3, {**HEADS, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 24}),
        ("Gemma3", 2, {**HEADS, "head_dim": 16, "layer_types": ["sliding_attention", "full_attention"] * 2}),
    ],
)
def test_heads_and_widths_need_not_be_equal(tmp_path: Path, family: str, world: int, changes: dict[str, Any]) -> None:
    layers = {"num_hidden_layers": len(changes.get("layer_types", "123")), "vocab_size": 157}
    path = save_checkpoint(tmp_path / family, family, seed=5, **layers, **changes).path
    for options in NUMERICS[1:3]:
        expected = observed(make_runner(path, **options))
        with first_of_ranks(path, world, **options) as runner:
            expect_equal(observed(runner), expected)


MIXTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "alone": ("Qwen3Moe", {"num_experts": 5, "num_experts_per_tok": 3, "moe_intermediate_size": 72, "head_dim": 24}),
    "gated": (
        "Qwen2Moe",
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 80}
        | {"shared_expert_intermediate_size": 104, "decoder_sparse_step": 1},
    ),
    "beside": (
        "Glm4Moe",
        {"n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 72, "n_shared_experts": 1}
        | {"first_k_dense_replace": 1, "n_group": 3, "topk_group": 2, "head_dim": 24},
    ),
    "biased": (
        "GptOss",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 72, "head_dim": 24}
        | {"sliding_window": 8},
    ),
}


@pytest.mark.usefixtures("small_pieces")
@table("mixture, world", [("alone", 3), ("gated", 2), ("beside", 2), ("biased", 2)])
def test_experts_whole_or_in_parts(tmp_path: Path, mixture: str, world: int) -> None:
    family, changes = MIXTURES[mixture]
    sizes = {"hidden_size": 120, "intermediate_size": 200, "num_attention_heads": 6, "num_key_value_heads": 3}
    sizes |= {"num_hidden_layers": 2, "vocab_size": 157}
    path = save_checkpoint(tmp_path / mixture, family, seed=6, **{**sizes, **changes}).path
    for options in NUMERICS[1:]:
        expected = observed(make_runner(path, **options))
        for splits_experts in (True, False):
            with first_of_ranks(path, world, splits_experts=splits_experts, **options) as runner:
                assert runner.threads is not None
                expect_equal(observed(runner), expected)


@pytest.mark.usefixtures("small_pieces")
@table("case", ["gptq 4 bits", "gptq 4 bits, order of activations", "awq", "packed 4 bits, zero points"])
def test_codes_of_a_checkpoint_are_cut_before_they_are_unpacked(tmp_path: Path, case: str) -> None:
    path = make_quantized(tmp_path / case, case).path
    expected = observed(make_runner(path))
    with first_of_ranks(path, 2) as runner:
        expect_equal(observed(runner), expected)


@pytest.mark.usefixtures("small_pieces")
def test_rows_of_a_gguf_file_are_cut_before_they_are_put_in_order(tmp_path: Path) -> None:
    original = save_checkpoint(tmp_path / "hf", "Llama", hidden_size=256, intermediate_size=512)
    path = write_gguf(tmp_path / "model.gguf", original, Kind.Q4_K).path
    expected = observed(make_runner(path))
    with first_of_ranks(path, 2) as runner:
        expect_equal(observed(runner), expected)


def test_a_step_that_does_not_fit_is_refused_before_another_rank_knows_of_it() -> None:
    with first_of_ranks(bundled_model_path(), 2) as runner:
        builder = PlanBuilder(runner)
        sequence = builder.add(prompt(runner, 9, 0))
        plan = builder.plan([(sequence, 9)])
        plan.out_slots[3] = runner.kv_pool.num_slots
        with pytest.raises(ValueError, match="slot that does not exist"):
            runner.forward_batch_generation(plan)
        plan.out_slots[3] = plan.out_slots[2] + 1
        assert runs_of(runner.forward_batch_generation(plan))[0]


def test_steps_of_a_group_that_has_failed_raise() -> None:
    with first_of_ranks(bundled_model_path(), 2) as runner:
        builder = PlanBuilder(runner)
        sequence = builder.add(prompt(runner, 9, 0))
        builder.step([(sequence, 9)])
        assert runner.ranks.native is not None
        runner.ranks.native.fail()
        with pytest.raises(RankLost):
            builder.step([(sequence, 1)])
