from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bough.config.model_config import ModelConfig
from bough.config.pooling import PoolingConfig
from bough.errors import StartupError
from bough.model_executor.capacity import (
    MemoryBudget,
    decode_pieces_room,
    default_max_running_requests,
    default_threads,
    fewer_tokens,
    fit_pool,
    fit_requests,
)
from tests.config.test_model_config import config_of
from tests.tables import table

GIB = 2**30


@pytest.fixture
def config(tmp_path: Path) -> ModelConfig:
    return config_of(tmp_path)  # 4096 positions


def fit(config: ModelConfig, device: str = "cpu", **changes: Any) -> int:
    available = changes.pop("available", 10 * GIB)
    weights = changes.pop("weights", 8 * GIB)
    options = {"page_size": 16, "max_running_requests": 10**6, "mem_fraction_static": None, "max_total_tokens": None}
    budget = MemoryBudget(
        available=available, weights=weights, forward=2 * GIB, per_request=changes.pop("per_request", 0), per_token=1024
    )
    return fit_pool(config, device, budget, **{**options, **changes})


def test_cpu_takes_two_fifths_of_what_is_left(config: ModelConfig) -> None:
    assert fit(config) == int(8 * GIB * 0.4) // 1024 // 16 * 16


def test_cuda_takes_nine_tenths(config: ModelConfig) -> None:
    assert fit(config, "cuda") == int(8 * GIB * 0.9) // 1024 // 16 * 16


def test_what_each_request_takes_beside_its_tokens_is_left_out(config: ModelConfig) -> None:
    assert fit(config, "cuda", max_running_requests=4096, per_request=2**20) == int(4 * GIB * 0.9) // 1024 // 16 * 16


def test_small_model_on_a_cpu_stays_small(config: ModelConfig) -> None:
    assert fit(config, weights=1024) == 256 * 2**20 // 1024
    assert fit(config, weights=GIB) == 2 * GIB // 1024


def test_no_more_than_all_requests_can_use(config: ModelConfig) -> None:
    assert fit(config, max_running_requests=3) == 3 * 4096


def test_wishes_of_the_user_are_not_bounded_by_what_requests_can_use(config: ModelConfig) -> None:
    assert fit(config, max_running_requests=1, max_total_tokens=100_000) == 100_000
    assert fit(config, max_running_requests=1, mem_fraction_static=0.5) == 4 * GIB // 1024


def test_share_is_obeyed_beyond_the_default_bounds(config: ModelConfig) -> None:
    assert fit(config, weights=1024, mem_fraction_static=0.5) == 4 * GIB // 1024


def test_capacity_in_tokens_is_obeyed(config: ModelConfig) -> None:
    assert fit(config, max_total_tokens=1000) == 992
    assert fit(config, max_total_tokens=20) == 16


def test_capacity_that_does_not_fit_is_refused_with_the_numbers(config: ModelConfig) -> None:
    with pytest.raises(StartupError, match=r"needs 8\.00 GiB, but only 7\.20 GiB .* 10\.00 GiB .* 8\.00 GiB, .* 2\.00"):
        fit(config, max_total_tokens=8 * 2**20)


def test_too_little_memory_is_refused_with_the_numbers(config: ModelConfig) -> None:
    with pytest.raises(StartupError, match=r"1\.90 GiB are .* holds 0 tokens of 1024 bytes .* 1024 are needed"):
        fit(config, available=int(1.9 * GIB))


@table(
    "device, threads, dtype, flops, expected",
    [
        ("cpu", 2, "bfloat16", 2 * 500_000_000, 60),
        ("cpu", 2, "float32", 2 * 500_000_000, 15),
        ("cpu", 2, "bfloat16", 2 * 8_000_000_000, 8),
        ("cpu", 64, "bfloat16", 2 * 8_000_000_000, 120),
        ("cpu", 2, "float32", 2 * 100_000, 256),
        ("cuda", 2, "bfloat16", 2 * 8_000_000_000, 256),
    ],
)
def test_default_number_of_requests_follows_the_machine(
    device: str, threads: int, dtype: str, flops: int, expected: int
) -> None:
    assert default_max_running_requests(device, threads, dtype, flops) == expected


def test_tiny_model_leaves_cores_to_the_rest_of_the_server(tmp_path: Path) -> None:
    assert default_threads(config_of(tmp_path), 8) == 1
    large = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14}
    assert default_threads(config_of(tmp_path, large), 8) == 8


def test_requests_are_bounded_by_the_pool() -> None:
    assert fit_requests(None, 256, 10**6, 16) == 256
    assert fit_requests(None, 256, 1280, 16) == 10
    assert fit_requests(None, 256, 16, 16) == 1
    assert fit_requests(40, 256, 1280, 16) == 40
    assert fit_requests(100, 256, 1280, 16) == 80


def test_scratch_memory_of_decode_rows_is_for_all_that_can_run_and_for_many_that_share(config: ModelConfig) -> None:
    mixer = replace(config.layers[0].mixer, num_heads=32, head_dim=128)
    long = replace(config, layers=(replace(config.layers[0], mixer=mixer),), context_len=2**17)
    unshared = 10**6 // 256 + 256
    assert decode_pieces_room(long, 10**6, 256) == 2**27 // (4 * 32 * 129) > unshared
    assert decode_pieces_room(long, 10**7, 256) == 10**7 // 256 + 256
    assert decode_pieces_room(replace(long, context_len=1000), 10**7, 256) == 4 * 256
    assert decode_pieces_room(long, 512, 3) == 2 * 3
    assert decode_pieces_room(replace(long, pooling=PoolingConfig(method="last", normalize=True, dim=64)), 512, 3) == 0


def test_a_pool_that_leaves_too_little_becomes_smaller_by_as_much() -> None:
    assert fewer_tokens(1600, 1, 1024, 16) == 1584
    assert fewer_tokens(1600, 160 * 1024, 1024, 16) == 1440
    with pytest.raises(StartupError, match="--cuda-graph-max-bs"):
        fewer_tokens(1600, 1599 * 1024, 1024, 16)
