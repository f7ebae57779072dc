"""The native sampler chooses the very tokens that the sampler in torch and numpy chooses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bough.kernels.library import Isa
from bough.kernels.thread_pool import ThreadPool
from bough.layers.sampler import SampleOutput, Sampler
from bough.sampling.device_state import SamplingState
from bough.sampling.mask_rows import RowMasks
from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import NewRequest, RowLogprobs
from tests.sampling.naive import CPU, masks_of, new_request
from tests.tables import table


@pytest.fixture(scope="module", params=[1, 2, 3], ids=lambda threads: f"threads{threads}")
def threads(request: pytest.FixtureRequest) -> ThreadPool:
    return ThreadPool(request.param)


class Twins:
    """The same requests in a native sampler and in the reference."""

    def __init__(self, threads: ThreadPool, vocab_size: int, requests: list[NewRequest]) -> None:
        self.slots = np.array([request.req_slot for request in requests], dtype=np.int32)
        self.states = [SamplingState(int(self.slots.max()) + 1, vocab_size, CPU) for _ in range(2)]
        for state in self.states:
            for request in requests:
                state.admit(request)
        self.native = Sampler(self.states[0], threads)
        self.reference = Sampler(self.states[1])

    def sample(self, logits: np.ndarray, masks: RowMasks | None = None) -> tuple[SampleOutput, SampleOutput]:
        """One step of both, after which they must agree in everything."""
        both = [torch.from_numpy(logits.copy()) for _ in range(2)]
        native = self.native.sample(both[0], self.slots, masks=masks)
        reference = self.reference.sample(both[1], self.slots, masks=masks)
        np.testing.assert_array_equal(native.finite, reference.finite)
        if masks is None:
            torch.testing.assert_close(both[0], both[1], rtol=1e-6, atol=1e-6, equal_nan=True)
        assert ((native.next_token_ids >= 0) & (native.next_token_ids < logits.shape[1])).all()
        valid = reference.finite
        assert native.next_token_ids[valid].tolist() == reference.next_token_ids[valid].tolist()
        for state in self.states:  # where a broken row differs, the engine ends its request
            state.last_token[torch.from_numpy(self.slots).long()] = reference.next_token_ids
        return native, reference


def random_request(rng: np.random.Generator, slot: int, vocab_size: int) -> NewRequest:
    chance = rng.random(4)
    penalties = {
        "frequency_penalty": float(rng.normal()),
        "presence_penalty": float(rng.normal()),
        "repetition_penalty": float(rng.choice([0.5, 1.0, 1.3])),
        "repetition_window": [None, -1, 5][rng.integers(3)],
    }
    params = SamplingParams(
        temperature=float(rng.choice([0.0, 0.3, 1.0, 1.0, 2.5])),
        top_p=float(rng.choice([1.0, 1.0, 0.1, 0.5, 0.9, 0.999])),
        top_k=int(rng.choice([-1, -1, 1, 2, 7, 40, 100, 700])),
        min_p=float(rng.choice([0.0, 0.0, 0.01, 0.5, 1.0])),
        logit_bias={int(i): float(rng.normal() * 5) for i in rng.integers(0, vocab_size, 3)}
        if chance[0] < 0.3
        else None,
        min_new_tokens=3 if chance[1] < 0.3 else 0,
        **(penalties if chance[2] < 0.4 else {}),
    )
    return new_request(
        slot,
        params,
        seed=int(rng.integers(0, 2**63)),
        masked=rng.integers(0, vocab_size, 2).tolist() if params.min_new_tokens else (),
        output_ids=rng.integers(0, vocab_size, int(rng.choice([0, 3, 30]))).tolist(),
        prompt_ids=rng.integers(0, vocab_size, int(rng.choice([1, 10, 40]))).tolist(),
    )


def random_logits(rng: np.random.Generator, rows: int, vocab_size: int) -> np.ndarray:
    """Flat or peaked, often with ties."""
    logits = rng.standard_normal((rows, vocab_size)) * rng.choice([0.1, 1.0, 5.0])
    if rng.random() < 0.3:
        logits = np.round(logits * 2) / 2
    return logits.astype(np.float32)


def random_masks(rng: np.random.Generator, rows: int, vocab_size: int) -> np.ndarray:
    """Booleans: some tokens, few, many, or whole ranges; at least one each."""
    allowed = rng.random((rows, vocab_size)) < rng.choice([0.02, 0.3, 0.98], (rows, 1))
    for row in allowed:
        start = int(rng.integers(0, vocab_size))
        row[start : start + int(rng.choice([1, 1, 200]))] = True
    return allowed


@table("vocab_size", [5, 64, 100, 1000, 5003])
def test_tokens_are_those_of_the_reference(isa: Isa, threads: ThreadPool, vocab_size: int) -> None:
    rng = np.random.default_rng(vocab_size)
    for _ in range(2):
        rows = int(rng.integers(1, 12))
        slots = rng.permutation(rows + 2)[:rows].tolist()
        twins = Twins(threads, vocab_size, [random_request(rng, slot, vocab_size) for slot in slots])
        for _ in range(4):
            twins.sample(random_logits(rng, rows, vocab_size))


@table("vocab_size", [5, 31, 33, 64, 100, 1000, 5003])
def test_masked_rows_choose_as_those_of_the_reference(isa: Isa, threads: ThreadPool, vocab_size: int) -> None:
    rng = np.random.default_rng(vocab_size)
    for _ in range(2):
        rows = int(rng.integers(1, 12))
        twins = Twins(threads, vocab_size, [random_request(rng, slot, vocab_size) for slot in range(rows)])
        for _ in range(4):
            masked = np.flatnonzero(rng.random(rows) < 0.7)
            allowed = random_masks(rng, len(masked), vocab_size)
            logits = random_logits(rng, rows, vocab_size)
            hidden = ~allowed & (rng.random(allowed.shape) < 0.1)
            part = logits[masked]
            part[hidden] = rng.choice([np.nan, np.inf, 1e30], hidden.sum())
            logits[masked] = part
            native, _ = twins.sample(logits, masks_of(allowed, masked.tolist()))
            at = masked[native.finite[masked].numpy()]
            assert allowed[np.isin(masked, at), native.next_token_ids[at]].all()


def test_rows_that_may_have_no_token_or_a_broken_one_are_reported(isa: Isa, threads: ThreadPool) -> None:
    rng = np.random.default_rng(3)
    for temperature in (0.0, 1.0):
        params = SamplingParams(temperature=temperature, top_k=3)
        twins = Twins(threads, 300, [new_request(slot, params, seed=slot) for slot in range(6)])
        allowed = np.ones((4, 300), dtype=np.bool_)
        allowed[0] = False
        allowed[1, 8:] = False
        allowed[2, 200] = False
        allowed[3, 100:299] = False
        logits = random_logits(rng, 6, 300)
        logits[1, 7] = logits[2, 299] = np.nan
        logits[5, 150] = np.nan
        native, _ = twins.sample(logits, masks_of(allowed, [0, 1, 2, 5]))
        assert native.finite.tolist() == [False, False, False, True, True, True]


def test_logprobs_are_of_the_tokens_that_are_allowed(isa: Isa, threads: ThreadPool) -> None:
    rng = np.random.default_rng(3)
    temperatures = (0.3, 1.0, 1.7)
    twins = Twins(
        threads,
        200,
        [new_request(slot, SamplingParams(temperature=t), seed=slot) for slot, t in enumerate(temperatures)],
    )
    allowed = random_masks(rng, 2, 200)
    allowed[:, 7] = False
    requests = tuple(RowLogprobs(row, 0, np.zeros(0, dtype=np.int32), 5, (7,)) for row in (0, 2))
    logits = random_logits(rng, 3, 200)
    outputs = [
        sampler.sample(torch.from_numpy(logits.copy()), twins.slots, requests, masks_of(allowed, [0, 1]))
        for sampler in (twins.native, twins.reference)
    ]
    found, expected = (output.logprobs for output in outputs)
    assert found is not None
    assert expected is not None
    torch.testing.assert_close(found.targets, expected.targets)
    torch.testing.assert_close(found.top_values, expected.top_values)
    assert found.top_ids.tolist() == expected.top_ids.tolist()
    assert found.chosen[0].item() == -np.inf
    assert np.isfinite(found.chosen[1].item())


def test_more_logprobs_than_tokens_are_those_of_all_tokens(isa: Isa, threads: ThreadPool) -> None:
    twins = Twins(threads, 20, [new_request(0, SamplingParams(temperature=0.0), seed=0)])
    logits = torch.from_numpy(random_logits(np.random.default_rng(3), 1, 20))
    request = RowLogprobs(0, 0, np.zeros(0, dtype=np.int32), 30, ())
    found = twins.native.sample(logits.clone(), twins.slots, (request,)).logprobs
    assert found is not None
    expected = torch.log_softmax(logits, -1).sort(descending=True)
    assert found.top_ids.tolist() == expected.indices.tolist()
    torch.testing.assert_close(found.top_values, expected.values)


@table("bad", [np.nan, np.inf])
def test_broken_row_is_reported_and_harms_no_other(isa: Isa, threads: ThreadPool, bad: float) -> None:
    rng = np.random.default_rng(3)
    twins = Twins(threads, 300, [random_request(rng, slot, 300) for slot in range(9)])
    logits = random_logits(rng, 9, 300)
    logits[[2, 5], [0, 299]] = bad
    logits[7] = -np.inf
    native, _ = twins.sample(logits)
    assert np.flatnonzero(~native.finite.numpy()).tolist() == [2, 5, 7]


def test_banned_tokens_are_never_chosen(isa: Isa, threads: ThreadPool) -> None:
    rng = np.random.default_rng(4)
    params = SamplingParams(temperature=1.0, logit_bias={token: float("-inf") for token in range(0, 100, 2)})
    twins = Twins(threads, 100, [new_request(slot, params, seed=slot) for slot in range(20)])
    for _ in range(5):
        native, _ = twins.sample(random_logits(rng, 20, 100))
        assert (native.next_token_ids % 2 == 1).all()


def test_long_output_is_penalised_over_the_whole_vocabulary(isa: Isa, threads: ThreadPool) -> None:
    rng = np.random.default_rng(5)
    params = SamplingParams(temperature=1.0, frequency_penalty=0.3, presence_penalty=-0.2, repetition_penalty=1.2)
    outputs = rng.integers(0, 64, 50).tolist()
    twins = Twins(threads, 64, [new_request(slot, params, seed=slot, output_ids=outputs) for slot in range(4)])
    for _ in range(3):
        twins.sample(random_logits(rng, 4, 64))


def test_frequencies_follow_the_distribution(isa: Isa, threads: ThreadPool) -> None:
    count = 4000
    rng = np.random.default_rng(6)
    row = rng.standard_normal(200).astype(np.float32)
    params = SamplingParams(temperature=0.7, top_p=0.8)
    state = SamplingState(count, 200, CPU)
    for slot in range(count):
        state.admit(new_request(slot, params, seed=slot))
    tokens = Sampler(state, threads).sample(
        torch.from_numpy(np.tile(row, (count, 1))), np.arange(count, dtype=np.int32)
    )
    weights = np.exp(row.astype(np.float64) / 0.7)
    order = np.argsort(-weights)
    kept = order[np.cumsum(weights[order]) - weights[order] < 0.8 * weights.sum()]
    expected = np.zeros(200)
    expected[kept] = weights[kept] / weights[kept].sum() * count
    observed = np.bincount(tokens.next_token_ids.numpy(), minlength=200)
    assert observed[expected == 0].sum() == 0
    chi_squared = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert chi_squared < len(kept) + 5 * np.sqrt(2 * len(kept))
