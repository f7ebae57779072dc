from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bough.kernels.triton import sampling
from tests.kernels.triton import cases
from tests.kernels.triton.test_attention import RANDOM_SHAPES


@given(
    rows=st.integers(1, 4),
    vocab_size=st.integers(2, 3000),
    spread=st.sampled_from([0.01, 1.0, 10.0]),
    levels=st.sampled_from([0, 0, 1, 4]),
    seed=st.integers(0, 999),
)
@RANDOM_SHAPES
def test_tokens_are_those_of_the_definition(device: torch.device, seed: int, **shape: int) -> None:
    assert cases.choose(np.random.default_rng(seed), device, **shape) == 0


@given(rows=st.integers(1, 4), vocab_size=st.integers(1, 2000), seed=st.integers(0, 999))
@RANDOM_SHAPES
def test_penalties_and_masks(device: torch.device, rows: int, vocab_size: int, seed: int) -> None:
    assert cases.edits(np.random.default_rng(seed), device, rows=rows, vocab_size=vocab_size) <= 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_rows_that_are_not_finite_are_reported_and_get_a_valid_id(device: torch.device, bad: float) -> None:
    logits = torch.zeros(3, 1500, device=device)
    logits[0, 1200] = bad
    logits[1] = float("-inf")
    draws = torch.tensor([[1.0, 0.5, 1.0, 0.9, 1e9, float("-inf")]] * 3, dtype=torch.float64, device=device)
    for given_draws in (None, draws):
        tokens, finite = sampling.choose_tokens(logits, given_draws)
        assert finite.tolist() == [False, False, True]
        assert all(0 <= token < 1500 for token in tokens.tolist())


def test_draws_follow_the_distribution(device: torch.device) -> None:
    rows = 400
    logits = torch.tensor([0.5, 0.2, 0.2, 0.1]).log().expand(rows, 4).contiguous().to(device)
    uniform = (np.arange(rows) + 0.5) / rows
    draws = np.tile([1.0, 0.0, 1.0, 0.85, np.inf, -np.inf], (rows, 1))
    draws[:, 1] = uniform
    tokens, _ = sampling.choose_tokens(logits, torch.from_numpy(draws).to(device))
    # The three likeliest reach 0.85 together; the fourth is dropped.
    assert np.bincount(tokens.cpu().numpy(), minlength=4) == pytest.approx(
        [rows / 1.8, rows / 4.5, rows / 4.5, 0], abs=1
    )
