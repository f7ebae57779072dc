from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bough.kernels.triton import sampling
from bough.layers.sampler import Sampler
from bough.sampling.device_state import SamplingState
from bough.sampling.sampling_params import SamplingParams
from tests.kernels.triton import cases
from tests.kernels.triton.test_attention import RANDOM_SHAPES
from tests.sampling.naive import masks_of, model_like_logits, new_request, slots_of


@given(
    rows=st.integers(1, 3),
    vocab_size=st.integers(2, 1500),
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


@pytest.mark.parametrize("vocab_size", [1, 700, 1023, 1024, 1025, 2500])
def test_totals_of_weights_are_those_of_float64(device: torch.device, vocab_size: int) -> None:
    assert cases.log_totals(np.random.default_rng(vocab_size), device, vocab_size=vocab_size) <= 1


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
    rows = 10
    logits = torch.tensor([0.5, 0.2, 0.2, 0.1]).log().expand(rows, 4).contiguous().to(device)
    uniform = (np.arange(rows) + 0.5) / rows
    draws = np.tile([1.0, 0.0, 1.0, 0.85, np.inf, -np.inf], (rows, 1))
    draws[:, 1] = uniform
    tokens, _ = sampling.choose_tokens(logits, torch.from_numpy(draws).to(device))
    # The three likeliest reach 0.85 together; the fourth is dropped.
    assert np.bincount(tokens.cpu().numpy(), minlength=4) == pytest.approx(
        [rows / 1.8, rows / 4.5, rows / 4.5, 0], abs=1
    )


MANY_PARAMS = [
    SamplingParams(temperature=0.0, frequency_penalty=0.5),
    SamplingParams(),
    SamplingParams(temperature=0.5, top_p=0.9),
    SamplingParams(temperature=2.0, top_k=40, repetition_penalty=1.3),
    SamplingParams(min_p=0.05, min_new_tokens=2),
    SamplingParams(top_k=20, top_p=0.8, min_p=0.01, presence_penalty=1.0, logit_bias={3: 5.0}),
]


def sampled_tokens(device: torch.device, steps: int, vocab_size: int) -> list[list[int]]:
    """What the sampler chooses for requests of all kinds, step by step."""
    count = len(MANY_PARAMS)
    state = SamplingState(count, vocab_size, device)
    for slot, params in enumerate(MANY_PARAMS):
        state.admit(new_request(slot, params, seed=slot, masked=[0, 1]))
    sampler, tokens = Sampler(state), []
    allowed = np.random.default_rng(0).random((2, vocab_size)) < 0.5
    for step in range(steps):
        logits = model_like_logits(count, vocab_size, step).to(device)
        output = sampler.sample(logits, slots_of(count), masks=masks_of(allowed, [1, 3]))
        assert output.finite.all()
        tokens.append(output.next_token_ids.tolist())
    return tokens


def test_a_seed_gives_the_tokens_of_torchs_sampler(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sampled_tokens(torch.device("cpu"), 4, 300)
    for user in ("layers.sampler", "sampling.penalties", "sampling.mask_rows"):
        monkeypatch.setattr(f"bough.{user}.kernels_for", lambda x, name: sampling)
    assert sampled_tokens(device, 4, 300) == expected
