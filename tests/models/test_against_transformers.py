"""Every family computes what transformers computes, however the work is cut into steps."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from bough.config.architectures import MODEL_MODULES
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, Sequence, make_runner
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.tables import table

LOGIT_TOLERANCE = 1e-4
NEW_TOKENS = 20

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 128}

THETA = {"rope_type": "default", "rope_theta": 1000.0}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1000.0,
    "short_factor": [1.0, 1.1, 1.3, 1.6, 1.6, 1.7],
    "long_factor": [1.0, 2, 5.5, 9.0, 17.5, 30.0],
    "partial_rotary_factor": 0.75,
}
THREE_HEADS = {"num_attention_heads": 3, "num_key_value_heads": 1}
SCALED = {
    **YARN,
    "original_max_position_embeddings": 16,
    "factor": 32.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.4,
}

EXPERTS = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 40,
    "norm_topk_prob": True,
    "head_dim": 24,
    "num_hidden_layers": 2,
}

ROUTED = {
    "n_routed_experts": 6,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 24,
    "head_dim": 24,
    "num_hidden_layers": 2,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5},
}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama-multi-head": ("Llama", {"num_key_value_heads": 4}),
    "llama-multi-query-tied": ("Llama", {"num_key_value_heads": 1, "tie_word_embeddings": True}),
    "llama-biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-head-40": ("Llama", {"head_dim": 40, "num_attention_heads": 3, "num_key_value_heads": 1}),
    "llama-linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 3.0}}),
    "llama-dynamic": ("Llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}),
    "llama-3": ("Llama", {"rope_parameters": LLAMA3, "head_dim": 24}),
    "llama-yarn": ("Llama", {"rope_parameters": YARN, "head_dim": 16}),
    "llama-yarn-options": (
        "Llama",
        {"rope_parameters": {**YARN, "beta_fast": 16.0, "beta_slow": 2.0, "mscale": 0.7, "mscale_all_dim": 0.9}},
    ),
    "mistral-window": ("Mistral", {"sliding_window": 7}),
    "mistral-no-window": ("Mistral", {"sliding_window": None, "head_dim": 80, "hidden_size": 64}),
    "phi3": (
        "Phi3",
        {**THREE_HEADS, "sliding_window": 11, "rope_parameters": {"partial_rotary_factor": 0.75, **THETA}},
    ),
    "phi3-long": ("Phi3", {**THREE_HEADS, "rope_parameters": LONGROPE, "original_max_position_embeddings": 16}),
    "ministral3": ("Ministral3", {"rope_parameters": SCALED, "head_dim": 24, "tie_word_embeddings": True}),
    "smollm3": ("SmolLM3", {"num_hidden_layers": 4, "rope_parameters": THETA}),
    "smollm3-windows": (
        "SmolLM3",
        {
            "no_rope_layers": [0, 1, 0],
            "rope_parameters": THETA,
            "tie_word_embeddings": False,
            "attention_bias": True,
            "mlp_bias": True,
            "use_sliding_window": True,
            "sliding_window": 13,
        },
    ),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen2-some-windows": (
        "Qwen2",
        {
            "use_sliding_window": True,
            "sliding_window": 19,
            "max_window_layers": 1,
            "num_attention_heads": 6,
            "num_key_value_heads": 3,
        },
    ),
    "qwen3": ("Qwen3", {"head_dim": 24, "tie_word_embeddings": True}),
    "qwen2-moe": ("Qwen2Moe", {**EXPERTS, "shared_expert_intermediate_size": 56, "head_dim": 12}),
    "qwen3-moe": ("Qwen3Moe", EXPERTS),
    "qwen3-moe-some-layers": (
        "Qwen3Moe",
        {
            **EXPERTS,
            "num_hidden_layers": 4,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [3],
            "norm_topk_prob": False,
            "num_experts_per_tok": 5,
            "tie_word_embeddings": True,
        },
    ),
    "glm4-moe": (
        "Glm4Moe",
        {
            **ROUTED,
            "n_group": 3,
            "topk_group": 2,
            "routed_scaling_factor": 1.7,
            "use_qk_norm": True,
            "attention_bias": True,
        },
    ),
    "glm4-moe-plain": (
        "Glm4Moe",
        {**ROUTED, "n_shared_experts": 2, "norm_topk_prob": False, "first_k_dense_replace": 0},
    ),
    "gpt-oss": (
        "GptOss",
        {
            "num_local_experts": 6,
            "num_experts_per_tok": 3,
            "intermediate_size": 40,
            "head_dim": 24,
            "sliding_window": 9,
            "rope_parameters": {**YARN, "truncate": False},
        },
    ),
    "gpt-oss-full": (
        "GptOss",
        {
            "num_local_experts": 4,
            "num_experts_per_tok": 1,
            "head_dim": 16,
            "num_hidden_layers": 2,
            "sliding_window": 200,
            "layer_types": ["full_attention", "sliding_attention"],
            "attention_bias": False,
            "tie_word_embeddings": True,
            "rope_parameters": THETA,
        },
    ),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "mixtral-window": ("Mixtral", {"num_local_experts": 3, "num_experts_per_tok": 1, "sliding_window": 9}),
    "gemma3": (
        "Gemma3",
        {
            "head_dim": 24,
            "query_pre_attn_scalar": 40,
            "sliding_window": 13,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "gemma3-linear": (
        "Gemma3",
        {
            "head_dim": 16,
            "tie_word_embeddings": False,
            "attention_bias": True,
            "sliding_window": 30,
            "num_hidden_layers": 4,
            "sliding_window_pattern": 2,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "rope_theta": 1e5, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
            },
        },
    ),
    "qwen3-biases-windows": (
        "Qwen3",
        {
            "head_dim": 16,
            "attention_bias": True,
            "use_sliding_window": True,
            "sliding_window": 33,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
}


@pytest.fixture(scope="module", params=CASES, ids=str)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    family, overrides = CASES[request.param]
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), family, seed=len(request.param), **overrides)


@pytest.fixture(scope="module", params=["native-1", "native-16", "torch-16"])
def runner(request: pytest.FixtureRequest, checkpoint: Checkpoint) -> RecordingRunner:
    """By what computes and the page size."""
    path, _, page_size = request.param.partition("-")
    return make_runner(checkpoint.path, page_size=int(page_size), native=path == "native")


def test_every_family_is_compared() -> None:
    assert {f"{family}ForCausalLM" for family, _ in CASES.values()} == MODEL_MODULES.keys()


def random_prompt(length: int, seed: int = 0) -> list[int]:
    return random.Random(seed * 1000 + length).choices(range(VOCAB_SIZE), k=length)


def assert_as_reference(checkpoint: Checkpoint, sequence: Sequence) -> None:
    """The sampled tokens are the reference's likeliest ones, and the logits they came from are the reference's."""
    reference = checkpoint.logits(sequence.tokens[:-1])[sequence.prompt_len - 1 :]
    ours = torch.stack(sequence.logits)
    assert sequence.output == reference.argmax(-1).tolist()
    assert float((ours - reference).abs().max()) <= LOGIT_TOLERANCE


def test_whole_prompt_then_decode(checkpoint: Checkpoint, runner: RecordingRunner) -> None:
    builder = PlanBuilder(runner)
    sequence = builder.add(random_prompt(45))
    builder.generate(sequence, NEW_TOKENS)
    assert_as_reference(checkpoint, sequence)
    assert len(set(sequence.output)) > 2, "a model that repeats itself shows nothing"


@table("chunks", [[1], [3, 17, 1], [16, 16], [44]])
def test_prompt_in_chunks(checkpoint: Checkpoint, runner: RecordingRunner, chunks: list[int]) -> None:
    builder = PlanBuilder(runner, seed=1)
    sequence = builder.add(random_prompt(45))
    builder.generate(sequence, NEW_TOKENS, chunks=chunks)
    assert_as_reference(checkpoint, sequence)


def test_prefix_from_cache(checkpoint: Checkpoint, runner: RecordingRunner) -> None:
    builder = PlanBuilder(runner, seed=2)
    first = builder.add(random_prompt(45))
    builder.generate(first, 4)
    second = builder.add(first.tokens[:32] + random_prompt(9, seed=3), prefix_of=first, prefix_len=32)
    builder.generate(second, NEW_TOKENS)
    assert_as_reference(checkpoint, second)
    all_but_one = builder.add(first.tokens[:33], prefix_of=first, prefix_len=32)
    builder.generate(all_but_one, NEW_TOKENS)
    assert_as_reference(checkpoint, all_but_one)


def test_mixed_batches_of_uneven_sequences(checkpoint: Checkpoint, runner: RecordingRunner) -> None:
    builder = PlanBuilder(runner, seed=4)
    first, second, third = (builder.add(random_prompt(length, seed=5)) for length in (1, 70, 23))
    builder.step([(first, 1), (second, 30)])
    builder.step([(first, 1), (second, 1), (third, 11)])
    builder.step([(second, 39), (first, 1), (third, 12)])
    for _ in range(NEW_TOKENS):
        builder.step([(third, 1), (first, 1), (second, 1)])
    for sequence in (first, second, third):
        assert_as_reference(checkpoint, sequence)


@table("native", [True, False])
def test_longrope_takes_factors_for_short_contexts_where_no_longer_one_is_served(
    tmp_path_factory: pytest.TempPathFactory, native: bool
) -> None:
    path = tmp_path_factory.mktemp("checkpoint")
    positions = {"max_position_embeddings": 512, "original_max_position_embeddings": 128}
    checkpoint = save_checkpoint(path, "Phi3", **THREE_HEADS, rope_parameters=LONGROPE, **positions)
    builder = PlanBuilder(make_runner(path, context_length=128, native=native))
    sequence = builder.add(random_prompt(45))
    builder.generate(sequence, NEW_TOKENS, chunks=[20])
    assert_as_reference(checkpoint, sequence)
