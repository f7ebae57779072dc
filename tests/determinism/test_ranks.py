"""Several processes that share each layer answer with the bits of one: tokens and logprobs of many requests at once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from bough import Engine
from bough.config.engine_args import bundled_model_path
from tests.models.checkpoints import save_checkpoint
from tests.native import needs_native

pytestmark = [needs_native, pytest.mark.slow]

UNEVEN: dict[str, Any] = {
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "hidden_size": 120,
    "intermediate_size": 200,
    "vocab_size": 517,
    "max_position_embeddings": 2048,
}
"""No width is a multiple of 96."""

MIXTURES: dict[str, dict[str, Any]] = {
    "Qwen3Moe": {"hidden_size": 208, "num_experts": 7, "num_experts_per_tok": 3, "moe_intermediate_size": 72}
    | {"head_dim": 40, "vocab_size": 301, "norm_topk_prob": True, "max_position_embeddings": 2048},
    "Glm4Moe": {"hidden_size": 176, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2}
    | {"moe_intermediate_size": 96, "n_shared_experts": 1, "first_k_dense_replace": 1, "intermediate_size": 200}
    | {"head_dim": 24, "vocab_size": 313, "max_position_embeddings": 2048},
    "GptOss": {"hidden_size": 192, "num_local_experts": 6, "num_experts_per_tok": 3, "intermediate_size": 96}
    | {"head_dim": 32, "sliding_window": 24, "vocab_size": 311, "max_position_embeddings": 2048},
}

NUMERICS: list[dict[str, Any]] = [
    {"dtype": "float32"},
    {"dtype": "bfloat16"},
    {"dtype": "bfloat16", "quantization": "int8"},
    {"dtype": "bfloat16", "quantization": "int4"},
    {"dtype": "float32", "kv_cache_dtype": "int8"},
]

PARAMS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 1.2, "top_p": 0.95, "sampling_seed": 3},
    {"temperature": 0.8, "frequency_penalty": 0.3, "repetition_penalty": 1.1, "sampling_seed": 4},
    {"temperature": 1.0, "min_p": 0.05, "sampling_seed": 5},
]


def answers(path: Path | str, **options: Any) -> list[Any]:
    """Answers of an engine with a pool so small that requests are retracted, to prompts that begin alike."""
    rng = random.Random(0)
    defaults: dict[str, Any] = {"model_path": str(path), "device": "cpu", "cpu_threads": 1, "log_level": "error"}
    defaults |= {"max_total_tokens": 2048, "chunked_prefill_size": 100, "schedule_conservativeness": 0.0}
    with Engine(**{**defaults, **options}) as engine:
        beginning = [rng.randrange(5, 300) for _ in range(64)]
        prompts = [beginning[: 32 * (i % 3)] + [rng.randrange(5, 300) for _ in range(20 + 13 * i)] for i in range(16)]
        params = [{**PARAMS[i % len(PARAMS)], "max_new_tokens": 90, "ignore_eos": True} for i in range(16)]
        found: Any = engine.generate(
            input_ids=prompts, sampling_params=params, return_logprob=True, top_logprobs_num=2, logprob_start_len=0
        )
        assert engine.get_server_info()["internal_states"][0]["num_retracted_total"] > 0, (
            "the pool was meant to run out"
        )
    told = ("input_token_logprobs", "output_token_logprobs", "output_top_logprobs")
    return [(each["output_ids"], *(each["meta_info"][name] for name in told)) for each in found]


@pytest.mark.parametrize("numerics", NUMERICS, ids=str)
def test_two_and_four_ranks_of_the_bundled_model(numerics: dict[str, Any]) -> None:
    expected = answers(bundled_model_path(), **numerics)
    assert answers(bundled_model_path(), tp_size=2, **numerics) == expected
    if numerics in NUMERICS[1:3]:
        assert answers(bundled_model_path(), tp_size=4, **numerics) == expected


@pytest.mark.parametrize("numerics", NUMERICS[:4], ids=str)
@pytest.mark.parametrize("family", MIXTURES)
def test_two_ranks_of_a_mixture(tmp_path: Path, family: str, numerics: dict[str, Any]) -> None:
    path = save_checkpoint(tmp_path, family, seed=3, **MIXTURES[family]).path
    options = {"skip_tokenizer_init": True, **numerics}
    expected = answers(path, **options)
    for ep_size in (1, 2):
        assert answers(path, tp_size=2, ep_size=ep_size, **options) == expected


@pytest.mark.parametrize("numerics", NUMERICS[:4], ids=str)
def test_three_ranks_with_unequal_parts(tmp_path: Path, numerics: dict[str, Any]) -> None:
    path = save_checkpoint(tmp_path, "Qwen2", seed=2, **UNEVEN).path
    options = {"skip_tokenizer_init": True, **numerics}
    assert answers(path, tp_size=3, **options) == answers(path, **options)
