"""Native kernels: a request has the same tokens and logprobs, in every bit, wherever and whenever it is computed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bough import LLMEngine
from bough.errors import ConfigError
from tests.determinism.surroundings import GREEDY, PENALISED, SAMPLED, Answer, Case, Surroundings, random_chunks
from tests.models.checkpoints import save_checkpoint
from tests.models.microscaled_checkpoints import save_microscaled_checkpoint
from tests.models.test_against_transformers import LONGROPE, ROUTED, SCALED
from tests.models.vector_checkpoints import VectorScheduler, save_vector_checkpoint
from tests.native import needs_native

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}, "kind": {"enum": ["tree", "shrub"]}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}

SIZES = {"num_hidden_layers": 2, "max_position_embeddings": 2048}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    # Inputs of products that are cut into blocks; norms of heads.
    "grouped": (
        "Qwen3",
        {"hidden_size": 256, "intermediate_size": 1472, "num_attention_heads": 8, "head_dim": 64, "vocab_size": 700},
    ),
    # Nothing is a multiple of anything; a window.
    "windowed": (
        "Mistral",
        {"hidden_size": 240, "intermediate_size": 650, "num_attention_heads": 6, "num_key_value_heads": 3}
        | {"head_dim": 40, "sliding_window": 300, "vocab_size": 333},
    ),
    # All heads of queries share one of keys; each has its own.
    "shared": ("Llama", {"hidden_size": 192, "num_attention_heads": 16, "num_key_value_heads": 1, "head_dim": 96}),
    # A part of each head is rotated, by factors for long contexts; projections are stored as one.
    "partial": (
        "Phi3",
        {"hidden_size": 192, "num_attention_heads": 3, "num_key_value_heads": 1, "original_max_position_embeddings": 64}
        | {"rope_parameters": {**LONGROPE, "short_factor": [1.0] * 24, "long_factor": [1.5] * 24}},
    ),
    # Two rotations, windows in some layers, norms around each part of a block.
    "sandwich": (
        "Gemma3",
        {"hidden_size": 192, "intermediate_size": 330, "head_dim": 48, "query_pre_attn_scalar": 40, "vocab_size": 345}
        | {"sliding_window": 200, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    # Queries are scaled; some layers do not rotate.
    "scaled": ("Ministral3", {"hidden_size": 160, "head_dim": 40, "rope_parameters": SCALED}),
    "unrotated": ("SmolLM3", {"hidden_size": 128, "no_rope_layers": [1, 0], "vocab_size": 299}),
    # Experts, each for some of the tokens; beside a network for all of them, behind a dense layer.
    "experts": (
        "Qwen3Moe",
        {"hidden_size": 208, "num_experts": 7, "num_experts_per_tok": 3, "moe_intermediate_size": 72, "head_dim": 40}
        | {"vocab_size": 301, "norm_topk_prob": True},
    ),
    "shared_experts": (
        "Glm4Moe",
        {**ROUTED, "hidden_size": 176, "n_routed_experts": 8, "n_group": 4, "topk_group": 2, "intermediate_size": 200},
    ),
    # Sinks, windows in some layers, biases throughout, values that are gated change as well.
    "sinks": (
        "GptOss",
        {"hidden_size": 176, "intermediate_size": 72, "num_attention_heads": 6, "num_key_value_heads": 2}
        | {"head_dim": 40, "sliding_window": 200, "num_local_experts": 5, "num_experts_per_tok": 2}
        | {"vocab_size": 311, "rope_parameters": {**SCALED, "llama_4_scaling_beta": 0.0}},
    ),
    "single": ("Qwen2", {"hidden_size": 192, "num_attention_heads": 3, "num_key_value_heads": 3, "vocab_size": 517}),
}
NUMERICS: list[dict[str, Any]] = [
    {"dtype": "float32"},
    {"dtype": "bfloat16"},
    {"dtype": "bfloat16", "kv_cache_dtype": "int8"},
    {"dtype": "float32", "kv_cache_dtype": "bf16"},
    {"dtype": "bfloat16", "quantization": "int8"},
    {"dtype": "bfloat16", "quantization": "int4"},
    {"dtype": "float32", "quantization": "int8", "kv_cache_dtype": "int8"},
    {"dtype": "float32", "quantization": "int4", "kv_cache_dtype": "int8"},
]
MACHINES: list[dict[str, Any]] = [{"cpu_threads": 1}, {"cpu_threads": 2, "disable_overlap_schedule": False}]
CROWDED_MACHINE = {"cpu_threads": 3, "chunked_prefill_size": 37, "disable_radix_cache": True}
"""Threads outnumber cores, and take over each other's work again and again: it gets little to do."""


def shown(options: dict[str, Any]) -> str:
    return "-".join(map(str, options.values()))


@contextmanager
def engine_with(**options: Any) -> Iterator[LLMEngine]:
    defaults = {"max_running_requests": 40, "max_total_tokens": 40_000, "page_size": 1, "log_level": "error"}
    with LLMEngine(**{**defaults, **options}) as engine:
        yield engine


def in_all_surroundings(
    engine: LLMEngine, case: Case, expected: Answer, others: int, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Assert that ``case`` is answered with ``expected`` in all of them."""
    around = Surroundings(engine, longest=len(case.prompt), seed=seed)
    assert around.alone(case) == expected
    assert around.among(case, others) == expected
    assert around.among(case.without_logprobs(), others // 4).tokens == expected.tokens
    with random_chunks(monkeypatch, seed):
        assert around.among(case, others // 4) == expected
    for length in random.Random(seed).sample(range(1, len(case.prompt)), 3):
        assert around.cached(case, length) == expected.of_output()


def a_generated_token_is_one_of_a_prompt(engine: LLMEngine, case: Case, expected: Answer) -> None:
    """Assert that what was generated greedily, given as a prompt, has the logprobs that it was generated with."""
    whole = Case([*case.prompt, *expected.tokens[0]], GREEDY, 1)
    assert Surroundings(engine).alone(whole).prompt_logprobs[len(case.prompt) :] == expected.logprobs[0]


@pytest.fixture(scope="module")
def sapling() -> Iterator[LLMEngine]:
    with engine_with(cpu_threads=1, enable_deterministic_inference=True, page_size=16) as engine:
        yield engine


@needs_native
@pytest.mark.parametrize("params", [GREEDY, {**PENALISED, "n": 2}], ids=["greedy", "sampled"])
def test_a_request_is_answered_alike_in_all_surroundings(
    sapling: LLMEngine, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(Surroundings(sapling, seed=3).ids(280), params, 8)
    expected = Surroundings(sapling).alone(case)
    in_all_surroundings(sapling, case, expected, 8, monkeypatch, seed=1)
    if params is GREEDY:
        a_generated_token_is_one_of_a_prompt(sapling, case, expected)


@needs_native
def test_requests_without_a_seed_get_that_of_the_server_and_samples_those_that_follow(sapling: LLMEngine) -> None:
    assert sapling.server_args.random_seed == 42
    around = Surroundings(sapling)
    prompt = around.ids(9)
    unseeded = Case(prompt, {"temperature": 1.5, "n": 2}, 20)
    assert around.alone(unseeded) == around.alone(unseeded)
    assert around.alone(unseeded) == around.alone(Case(prompt, {**unseeded.params, "sampling_seed": 42}, 20))
    second = around.alone(Case(prompt, {"temperature": 1.5, "sampling_seed": 43}, 20))
    assert around.alone(unseeded).tokens[1] == second.tokens[0]


@needs_native
def test_an_output_that_follows_a_grammar_is_the_same_with_logprobs_and_with_what_needs_no_sampling(
    sapling: LLMEngine,
) -> None:
    around = Surroundings(sapling, longest=50)
    assert sapling.tokenizer is not None
    prompt = sapling.tokenizer.encode("The tree in the garden, as JSON: ")
    case = Case(list(prompt), {**SAMPLED, "json_schema": json.dumps(SCHEMA), "ignore_eos": False}, 40)
    expected = around.alone(case)
    assert around.among(case, 4) == expected
    assert around.alone(case.without_logprobs()).tokens == expected.tokens
    assert around.among(case.without_logprobs(), 4).tokens == expected.tokens


def test_torch_on_a_cpu_is_refused() -> None:
    with pytest.raises(ConfigError, match="torch would compute, whose products depend on how many rows there are"):
        LLMEngine(dtype="float16", device="cpu", enable_deterministic_inference=True)


@pytest.mark.parametrize(("architecture", "options"), [("BertModel", {}), ("Qwen2Model", {"is_embedding": True})])
def test_models_that_make_vectors_are_refused(tmp_path: Path, architecture: str, options: dict[str, Any]) -> None:
    save_vector_checkpoint(tmp_path, architecture)
    with pytest.raises(ConfigError, match="it is for models that generate text"):
        VectorScheduler(tmp_path, enable_deterministic_inference=True, **options)


@needs_native
@pytest.mark.parametrize("machine", MACHINES, ids=shown)
def test_experts_in_mxfp4_give_the_same_bits(
    machine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_microscaled_checkpoint(tmp_path)
    with engine_with(model_path=str(tmp_path), skip_tokenizer_init=True, **machine) as engine:
        case = Case(Surroundings(engine, seed=2).ids(200), GREEDY, 24)
        expected = Surroundings(engine).alone(case)
        in_all_surroundings(engine, case, expected, 8, monkeypatch, seed=1)
        a_generated_token_is_one_of_a_prompt(engine, case, expected)


@pytest.mark.slow
@needs_native
@pytest.mark.parametrize("numerics", NUMERICS, ids=shown)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_types_threads_and_schedules_give_the_same_bits(
    shape: str, numerics: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, sizes = SHAPES[shape]
    save_checkpoint(tmp_path, family, **{**SIZES, **sizes})
    options = {"model_path": str(tmp_path), "skip_tokenizer_init": True, **numerics}
    cases: list[Case] = []
    expected: list[Answer] = []
    for seed, machine in enumerate(MACHINES):
        with engine_with(**options, **machine) as engine:
            around = Surroundings(engine)
            if not cases:
                prompt = around.ids(around.rng.randint(600, 1100))
                cases = [Case(prompt, GREEDY, 24), Case(prompt[:300], {**SAMPLED, "n": 3}, 12)]
                cases += [Case(prompt[:70], PENALISED, 24), Case(prompt[:100], GREEDY, 150)]
                expected = [around.alone(case) for case in cases]
            for case, answer, others in zip(cases, expected, (31 >> seed, 8, 8), strict=False):
                in_all_surroundings(engine, case, answer, others, monkeypatch, seed)
            a_generated_token_is_one_of_a_prompt(engine, cases[0], expected[0])
    with engine_with(**options, **CROWDED_MACHINE) as engine:
        assert Surroundings(engine, longest=100).among(cases[1], 3) == expected[1]
    small = {"max_total_tokens": 2600, "schedule_conservativeness": 0.0}
    with engine_with(**options, **MACHINES[NUMERICS.index(numerics) % 2], **small) as engine:
        assert Surroundings(engine).crowd(cases[-1], 16) == [expected[-1]] * 16
        assert engine.get_stats().num_retracted_total > 0
