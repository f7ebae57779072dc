"""Both ways to truncate and draw agree with the naive reference and with each other."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.sampling import truncation_cpu
from bough.sampling.device_state import DeviceDrawParams, DrawParams
from bough.sampling.draw import integer_weights
from bough.sampling.sampling_params import ALL_TOKENS, SamplingParams
from bough.sampling.truncation import draw_selected, draw_sorted
from bough.sampling.vocab_blocks import block_maxima
from tests.sampling.naive import CPU, model_like_logits, probabilities
from tests.tables import table
from tests.thoroughness import examples

GRID = 997
"""Random numbers per distribution, evenly spaced: a token of probability p comes up p * GRID times, give or take 1."""


def grid_params(params: SamplingParams, count: int = GRID) -> DrawParams:
    return DrawParams(
        uniform=(np.arange(count) + 0.5) / count,
        inverse_temperature=np.full(count, 1.0 / params.temperature, dtype=np.float32),
        top_p=np.full(count, params.top_p if params.top_p < 1.0 else np.inf),
        top_k=np.full(count, np.inf if params.top_k == ALL_TOKENS else params.top_k),
        log_min_p=np.full(count, np.log(params.min_p) if params.min_p else -np.inf, dtype=np.float32),
    )


def total_of(logits: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    """[1, 1]"""
    scaled = (logits - logits.max()) / params.temperature
    return integer_weights(scaled.exp().double()).sum(-1, keepdim=True)


def draw_on_cpu(logits: torch.Tensor, params: SamplingParams, count: int = GRID) -> np.ndarray:
    """Draw from one row ``[1, V]`` at every point of a grid."""
    totals = np.full(count, int(total_of(logits, params)))
    maxima = block_maxima(logits).numpy()
    at = np.zeros(count, dtype=np.int64)
    return truncation_cpu.draw_truncated(logits.numpy(), maxima, at, grid_params(params, count), totals)


def draw_by_selection(logits: torch.Tensor, params: SamplingParams, count: int = GRID) -> np.ndarray:
    device_params = DeviceDrawParams.upload(grid_params(params, count), CPU)
    repeated = logits.repeat(count, 1)
    totals = total_of(logits, params).repeat(count, 1)
    k = min(params.top_k, logits.shape[1])
    return draw_selected(repeated, block_maxima(repeated), k, device_params, totals).squeeze(1).numpy()


def draw_by_sort(logits: torch.Tensor, params: SamplingParams, count: int = GRID) -> np.ndarray:
    device_params = DeviceDrawParams.upload(grid_params(params, count), CPU)
    totals = total_of(logits, params).repeat(count, 1)
    return draw_sorted(logits.repeat(count, 1), device_params, totals).squeeze(1).numpy()


def check_distribution(tokens: np.ndarray, expected: np.ndarray) -> None:
    counts = np.bincount(tokens, minlength=len(expected))
    assert counts[expected == 0.0].sum() == 0, "a token that is not kept was drawn"
    np.testing.assert_allclose(counts, len(tokens) * expected, atol=1.01)
    assert (np.diff(tokens) >= 0).all(), "tokens do not follow the random number in order of id"


PARAMS = [
    SamplingParams(top_k=2),
    SamplingParams(top_k=50),
    SamplingParams(top_k=700),
    SamplingParams(top_p=0.05),
    SamplingParams(top_p=0.9),
    SamplingParams(top_p=0.9999),
    SamplingParams(min_p=0.1),
    SamplingParams(min_p=1.0),
    SamplingParams(min_p=1e-6),
    SamplingParams(top_k=20, top_p=0.8),
    SamplingParams(top_k=600, top_p=0.99),
    SamplingParams(top_k=5, min_p=0.2),
    SamplingParams(top_p=0.7, min_p=0.05),
    SamplingParams(top_k=40, top_p=0.9, min_p=0.02, temperature=1.7),
    SamplingParams(top_k=40, top_p=0.95, temperature=0.3),
    SamplingParams(top_p=0.5, temperature=50.0),
]


@table("vocab_size", [50, 1000, 8192, 10007])
@table("params", PARAMS)
def test_drawn_tokens_have_the_exact_distribution(params: SamplingParams, vocab_size: int) -> None:
    logits = model_like_logits(1, vocab_size, seed=vocab_size)
    expected = probabilities(logits[0].numpy(), params)
    tokens = draw_on_cpu(logits, params)
    check_distribution(tokens, expected)
    if vocab_size <= 1000:
        assert draw_by_sort(logits, params).tolist() == tokens.tolist()
        if params.top_k != ALL_TOKENS:
            assert draw_by_selection(logits, params).tolist() == tokens.tolist()


@table("params", PARAMS)
def test_flat_distributions_keep_thousands_of_tokens_exactly(params: SamplingParams) -> None:
    logits = torch.from_numpy(np.random.default_rng(3).normal(0, 0.5, (1, 9000)).astype(np.float32))
    check_distribution(draw_on_cpu(logits, params), probabilities(logits[0].numpy(), params))


@settings(max_examples=examples(60))
@given(
    vocab_size=st.sampled_from([3, 64, 100, 700, 8192]),
    levels=st.integers(1, 40),
    banned=st.sampled_from([0.0, 0.5, 0.999]),
    top_k=st.sampled_from([ALL_TOKENS, 1, 2, 7, 64, 65, 500]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_ties_are_kept_by_ascending_id(
    vocab_size: int, levels: int, banned: float, top_k: int, top_p: float, min_p: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    row = (rng.integers(0, levels, (1, vocab_size)) / 8 - levels / 16).astype(np.float32)
    row[rng.random(row.shape) < banned] = -np.inf
    row[0, rng.integers(vocab_size)] = 1.0
    logits = torch.from_numpy(row)
    params = SamplingParams(top_k=top_k, top_p=top_p, min_p=min_p)
    tokens = draw_on_cpu(logits, params, 97)
    if top_p == 1.0:  # else rounding decides which of several equal masses reaches top_p
        check_distribution(tokens, probabilities(row[0], params))
    if vocab_size <= 700:
        assert draw_by_sort(logits, params, 97).tolist() == tokens.tolist()
        if top_k != ALL_TOKENS:
            assert draw_by_selection(logits, params, 97).tolist() == tokens.tolist()


@table("vocab_size", [10, 700, 8192])
@table(
    "params, kept",
    [
        (SamplingParams(top_p=0.5), [3]),
        (SamplingParams(top_p=0.5001), [3, 7]),
        (SamplingParams(min_p=1.0), [3, 7]),
        (SamplingParams(min_p=1.0, top_k=1), [3]),
        (SamplingParams(top_k=2), [3, 7]),
        (SamplingParams(top_p=0.01), [3]),
    ],
)
def test_a_bound_that_is_met_exactly_ends_the_set(params: SamplingParams, kept: list[int], vocab_size: int) -> None:
    logits = torch.full((1, vocab_size), -torch.inf)
    logits[0, 3] = logits[0, 7] = -2.0
    drawn = [draw_on_cpu(logits, params, 8), draw_by_sort(logits, params, 8)]
    if params.top_k != ALL_TOKENS:
        drawn.append(draw_by_selection(logits, params, 8))
    for tokens in drawn:
        assert sorted(set(tokens.tolist())) == kept


def test_nothing_behind_the_last_id_is_drawn_even_if_all_logits_are_low() -> None:
    logits = model_like_logits(1, 9001, seed=2) - 1000.0
    logits[0, 9000] = logits.max()  # the last block is not a whole one
    for params in (SamplingParams(top_p=0.9999, temperature=3.0), SamplingParams(top_k=40), SamplingParams(min_p=0.01)):
        check_distribution(draw_on_cpu(logits, params), probabilities(logits[0].numpy(), params))


def test_a_row_draws_the_same_however_many_blocks_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = model_like_logits(40, 20_000, seed=8)
    maxima = block_maxima(logits).numpy()
    rng = np.random.default_rng(0)
    params = DrawParams(
        uniform=rng.random(40),
        inverse_temperature=rng.uniform(0.3, 2.0, 40).astype(np.float32),
        top_p=np.where(rng.random(40) < 0.5, np.inf, 0.9),
        top_k=np.where(rng.random(40) < 0.5, np.inf, rng.integers(1, 1000, 40)),
        log_min_p=np.where(rng.random(40) < 0.5, -np.inf, np.log(0.01)).astype(np.float32),
    )
    scaled = (logits - logits.max(-1, keepdim=True).values) * torch.from_numpy(params.inverse_temperature)[:, None]
    totals = integer_weights(scaled.exp()).sum(-1).numpy()
    drawn = []
    for blocks in ((), (1,), (2, 3, 5), (64, 1024), (300,)):
        monkeypatch.setattr(truncation_cpu, "_BLOCKS", blocks)
        at = np.arange(40)
        drawn.append(truncation_cpu.draw_truncated(logits.numpy(), maxima, at, params, totals).tolist())
    assert all(tokens == drawn[0] for tokens in drawn)


def test_equal_logits_in_many_rows_take_bounded_memory_and_keep_the_lowest_ids() -> None:
    logits = torch.zeros(32, 64_000)  # every block may hold the likeliest token, in every row
    maxima = block_maxima(logits).numpy()
    params = grid_params(SamplingParams(top_k=3), 32)
    tracemalloc.start()
    try:
        tokens = truncation_cpu.draw_truncated(logits.numpy(), maxima, np.arange(32), params, None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.bincount(tokens).tolist() == [11, 10, 11]
    assert peak < 64 << 20  # all 2 million tokens at once would take several times as much
