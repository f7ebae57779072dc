from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from bough.layers.sampler import Sampler
from bough.sampling.device_state import SamplingState
from bough.sampling.sampling_params import ALL_TOKENS, SamplingParams
from bough.step_plan import RowLogprobs
from tests.sampling.naive import (
    CPU,
    edited_logits,
    make_sampler,
    model_like_logits,
    new_request,
    probabilities,
    same_params,
    slots_of,
)
from tests.tables import table
from tests.thoroughness import examples

NO_TARGETS = np.zeros(0, dtype=np.int32)
GREEDY = SamplingParams(temperature=0.0)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors here are small, and threads that wait for each other are slow on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def brief(value: object) -> str:
    """A test id: the fields that are not default."""
    if not isinstance(value, SamplingParams):
        return str(value)
    default = SamplingParams()
    fields = [name for name in value.__struct_fields__ if getattr(value, name) != getattr(default, name)]
    return "-".join(f"{name}={getattr(value, name)}" for name in fields) or "default"


def chi_square_limit(degrees: int) -> float:
    """Exceeded by chance about once in 10^5 (Wilson and Hilferty's approximation)."""
    return degrees * (1 - 2 / (9 * degrees) + 4.26 * (2 / (9 * degrees)) ** 0.5) ** 3


def chi_square(counts: np.ndarray, expected: np.ndarray) -> tuple[float, int]:
    """The statistic and its degrees of freedom, rare tokens pooled."""
    rare = expected < 5
    pooled_expected = np.append(expected[~rare], expected[rare].sum())
    pooled_counts = np.append(counts[~rare], counts[rare].sum())
    used = pooled_expected > 0
    assert pooled_counts[~used].sum() == 0
    return float(((pooled_counts - pooled_expected)[used] ** 2 / pooled_expected[used]).sum()), int(used.sum()) - 1


DISTRIBUTIONS = [
    SamplingParams(),
    SamplingParams(temperature=0.5),
    SamplingParams(temperature=3.0),
    SamplingParams(top_k=5),
    SamplingParams(top_p=0.8),
    SamplingParams(min_p=0.05),
    SamplingParams(top_k=30, top_p=0.9, temperature=1.5),
    SamplingParams(top_k=30, min_p=0.02),
    SamplingParams(top_p=0.95, min_p=0.01, temperature=0.7),
    SamplingParams(top_k=12, top_p=0.9, min_p=0.01),
    SamplingParams(logit_bias={3: 4.0, 7: -100.0}, top_p=0.97),
]


@table("vocab_size", [50, 1000])
@table("params", DISTRIBUTIONS)
def test_samples_follow_the_exact_distribution(params: SamplingParams, vocab_size: int) -> None:
    rows, steps = 500, 6
    sampler = same_params(vocab_size, params, rows)
    logits = model_like_logits(1, vocab_size) / 4
    counts = np.zeros(vocab_size)
    for _ in range(steps):
        tokens = sampler.sample(logits.repeat(rows, 1), slots_of(rows)).next_token_ids
        counts += np.bincount(tokens.numpy(), minlength=vocab_size)
    expected = probabilities(edited_logits(logits[0].numpy(), params), params)
    assert counts[expected == 0].sum() == 0
    statistic, degrees = chi_square(counts, expected * rows * steps)
    assert degrees > 0
    assert statistic < chi_square_limit(degrees)


@table("vocab_size", [1, 50, 64, 1000, 8191])
def test_greedy_takes_the_largest_logit_with_the_lowest_id(vocab_size: int) -> None:
    logits = torch.randint(-9, 9, (30, vocab_size)).float()
    for params in (GREEDY, SamplingParams(top_k=1, temperature=5.0)):
        sampler = same_params(vocab_size, params, 30)
        output = sampler.sample(logits.clone(), slots_of(30))
        assert output.next_token_ids.tolist() == [int(np.argmax(row)) for row in logits.numpy()]
        assert output.finite.all()
        assert output.logprobs is None


@st.composite
def any_params(draw: st.DrawFn, vocab_size: int) -> SamplingParams:
    ids = st.integers(0, vocab_size - 1)
    penalised = draw(st.booleans())
    return SamplingParams(
        temperature=draw(st.sampled_from([0.0, 0.0, 1.0, 0.6, 1.8])),
        top_k=draw(st.sampled_from([ALL_TOKENS, ALL_TOKENS, 1, 3, 40, 700])),
        top_p=draw(st.sampled_from([1.0, 1.0, 0.9, 0.3])),
        min_p=draw(st.sampled_from([0.0, 0.0, 0.05])),
        frequency_penalty=draw(st.sampled_from([0.0, 0.5])) if penalised else 0.0,
        repetition_penalty=draw(st.sampled_from([1.0, 1.2])) if penalised else 1.0,
        repetition_window=draw(st.sampled_from([None, -1, 2, 64])),
        min_new_tokens=draw(st.sampled_from([0, 3])),
        logit_bias=draw(st.none() | st.dictionaries(ids, st.floats(-100, 100), max_size=3)),
    )


@settings(max_examples=examples(25))
@given(data=st.data(), vocab_size=st.sampled_from([50, 1000, 8192, 9001]), seed=st.integers(0, 2**32 - 1))
def test_a_request_gets_the_same_tokens_alone_among_neighbours_and_after_a_retraction(
    data: st.DataObject, vocab_size: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    count, steps = data.draw(st.integers(2, 12)), 5
    params = [data.draw(any_params(vocab_size)) for _ in range(count)]
    logits = [model_like_logits(count, vocab_size, seed + step) for step in range(steps)]
    given = [{"seed": seed + i, "masked": [0, 1], "prompt_ids": [*range(i, 3 * i)]} for i in range(count)]
    requests = [new_request(i, params[i], **given[i]) for i in range(count)]

    batch = make_sampler(vocab_size, requests)
    together = []
    for step in range(steps):
        order = rng.permutation(count)
        tokens = batch.sample(logits[step][order].clone(), order.astype(np.int32)).next_token_ids
        together.append(tokens[np.argsort(order)].tolist())

    slots = max(2, count)
    for i in range(count):
        lone = make_sampler(vocab_size, [requests[i]], slots=slots)
        slot, output = i, []
        retracted_at = int(rng.integers(0, steps))
        for step in range(steps):
            if step == retracted_at:
                slot = int(rng.integers(slots))
                lone._state.admit(new_request(slot, params[i], **given[i], output_ids=output))
            row = logits[step][i : i + 1].clone()
            output += lone.sample(row, np.array([slot], dtype=np.int32)).next_token_ids.tolist()
        assert output == [tokens[i] for tokens in together]


@table("vocab_size", [1000, 50_257, 151_936])
def test_the_number_of_threads_and_rows_changes_no_token(vocab_size: int) -> None:
    rows = 12
    params = [
        SamplingParams(temperature=0.3 + 0.2 * i, top_p=(1.0, 0.9, 1.0, 0.5)[i % 4], top_k=(-1, -1, 40, 1)[i % 4])
        for i in range(rows)
    ]
    requests = [new_request(i, params[i], seed=i) for i in range(rows)]
    logits = model_like_logits(rows, vocab_size)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(make_sampler(vocab_size, requests).sample(logits.clone(), slots_of(rows)).next_token_ids)
    finally:
        torch.set_num_threads(threads)
    halves = make_sampler(vocab_size, requests)
    results.append(
        torch.cat(
            [
                halves.sample(logits[part].clone(), slots_of(rows)[part]).next_token_ids
                for part in (slice(0, 5), slice(5, rows))
            ]
        )
    )
    assert all(torch.equal(result, results[0]) for result in results)


def test_devices_that_must_not_be_asked_draw_the_same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, vocab_size = 40, 3000
    params = [
        SamplingParams(temperature=0.5 + 0.1 * i, top_p=(0.9, 1.0, 0.4)[i % 3], top_k=(-1, 30, 900, 5)[i % 4])
        for i in range(rows)
    ]
    requests = [new_request(i, params[i], seed=i) for i in range(rows)]
    samplers = [make_sampler(vocab_size, requests) for _ in range(2)]
    monkeypatch.setattr(samplers[1], "_on_cpu", False)
    for step in range(4):
        logits = model_like_logits(rows, vocab_size, step) / 3
        tokens = [sampler.sample(logits.clone(), slots_of(rows)).next_token_ids for sampler in samplers]
        assert torch.equal(tokens[0], tokens[1])


def test_seeds_reproduce_and_differ() -> None:
    logits = model_like_logits(1, 1000)
    seeds = [11, 12, 11]
    sampler = make_sampler(
        1000, [new_request(slot, SamplingParams(temperature=2.0), seed=seed) for slot, seed in enumerate(seeds)]
    )
    streams = np.array(
        [sampler.sample(logits.repeat(3, 1), slots_of(3)).next_token_ids.tolist() for _ in range(30)]
    ).T.tolist()
    assert streams[0] == streams[2] != streams[1]
    assert len(set(streams[0])) > 10


def test_truncation_that_cuts_nothing_off_changes_no_token() -> None:
    logits = torch.from_numpy(np.random.default_rng(0).normal(0, 1, (64, 1000)).astype(np.float32))
    drawn = [
        same_params(1000, params, 64).sample(logits.clone(), slots_of(64)).next_token_ids
        for params in (SamplingParams(), SamplingParams(top_k=1000), SamplingParams(min_p=1e-30))
    ]
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])


@table("params", [GREEDY, SamplingParams(), SamplingParams(top_p=0.9), SamplingParams(top_k=7)])
@table("bad", [float("nan"), float("inf"), -float("nan")])
def test_a_row_that_is_not_finite_is_reported_and_hurts_no_other(params: SamplingParams, bad: float) -> None:
    logits = model_like_logits(6, 1000)
    expected = same_params(1000, params, 6).sample(logits.clone(), slots_of(6)).next_token_ids
    logits[2, 500] = bad
    logits[4] = float("-inf")
    output = same_params(1000, params, 6).sample(logits.clone(), slots_of(6))
    assert output.finite.tolist() == [True, True, False, True, False, True]
    healthy = [0, 1, 3, 5]
    assert output.next_token_ids[healthy].tolist() == expected[healthy].tolist()
    assert int(output.next_token_ids.min()) >= 0
    assert int(output.next_token_ids.max()) < 1000


def test_single_minus_infinities_are_fine_and_never_drawn() -> None:
    logits = torch.full((200, 130), float("-inf"))
    logits[:, 129] = 1.0
    logits[:, 5] = 1.0
    for params in (SamplingParams(), SamplingParams(top_p=0.99), SamplingParams(top_k=100), SamplingParams(min_p=0.1)):
        output = same_params(130, params, 200).sample(logits.clone(), slots_of(200))
        assert output.finite.all()
        assert set(output.next_token_ids.tolist()) == {5, 129}


def test_a_bias_of_100_forces_and_minus_100_forbids() -> None:
    logits = model_like_logits(64, 1000)
    forced = same_params(1000, SamplingParams(logit_bias={77: 100.0}), 64).sample(logits.clone(), slots_of(64))
    assert forced.next_token_ids.tolist() == [77] * 64
    top = int(logits[0].argmax())
    one_row = logits[:1].repeat(64, 1)
    forbidden = same_params(1000, SamplingParams(logit_bias={top: -100.0}), 64).sample(one_row, slots_of(64))
    assert top not in forbidden.next_token_ids.tolist()


def test_stop_tokens_come_no_earlier_than_min_new_tokens() -> None:
    logits = torch.zeros(1, 100)
    logits[0, 9] = 50.0
    params = SamplingParams(temperature=0.0, min_new_tokens=3)
    sampler = make_sampler(100, [new_request(0, params, masked=[9, 50])])
    tokens = [sampler.sample(logits.clone(), slots_of(1)).next_token_ids.item() for _ in range(5)]
    assert tokens == [0, 0, 0, 9, 9]


def test_the_sampled_token_is_remembered_for_its_slot() -> None:
    state = SamplingState(10, 100, CPU)
    for slot in range(10):
        state.admit(new_request(slot, GREEDY, output_ids=[slot + 50]))
    sampler = Sampler(state)
    logits = torch.zeros(2, 100)
    logits[0, 7] = logits[1, 8] = 1.0
    sampler.sample(logits, np.array([9, 4], dtype=np.int32))
    assert state.last_token.tolist() == [50, 51, 52, 53, 8, 55, 56, 57, 58, 7]


def test_no_rows_and_wrong_shapes() -> None:
    sampler = same_params(100, SamplingParams(top_p=0.5), 2)
    output = sampler.sample(torch.zeros(0, 100), slots_of(0))
    assert output.next_token_ids.shape == output.finite.shape == (0,)
    for shape in ((2, 99), (1, 100), (3, 100)):
        with pytest.raises(ValueError, match="logits"):
            sampler.sample(torch.zeros(shape), slots_of(2))


# --- logprobs ---


@table("params", [*DISTRIBUTIONS, GREEDY])
def test_logprobs_are_of_the_edited_and_divided_logits_before_truncation(params: SamplingParams) -> None:
    vocab_size, rows = 1000, 5
    logits = model_like_logits(rows, vocab_size)
    requests = (
        RowLogprobs(3, 0, NO_TARGETS, 2, (5, 6, 7)),
        RowLogprobs(0, 0, NO_TARGETS, 0, ()),
        RowLogprobs(4, 0, NO_TARGETS, 4, (9,)),
    )
    output = same_params(vocab_size, params, rows).sample(logits.clone(), slots_of(rows), requests)
    plain = same_params(vocab_size, params, rows).sample(logits.clone(), slots_of(rows))
    assert torch.equal(output.next_token_ids, plain.next_token_ids), "asking must not change the token"
    answers = output.logprobs
    assert answers is not None
    assert output.requests == requests
    temperature = 1.0 if params.is_greedy else params.temperature
    for i, request in enumerate(requests):
        row = torch.from_numpy(edited_logits(logits[request.row].numpy(), params)) / temperature
        expected = torch.log_softmax(row, -1)
        token = output.next_token_ids[request.row]
        close: Callable[..., None] = np.testing.assert_allclose
        close(answers.targets[i].item(), expected[token].item(), rtol=1e-5, atol=1e-5)
        order = np.lexsort((np.arange(vocab_size), -row.float().numpy()))[: request.top_n]
        assert answers.top_ids[i, : request.top_n].tolist() == order.tolist()
        close(answers.top_values[i, : request.top_n].numpy(), expected[order].numpy(), rtol=1e-5, atol=1e-5)
        ids = list(request.token_ids)
        close(answers.chosen[i, : len(ids)].numpy(), expected[ids].numpy(), rtol=1e-5, atol=1e-5)


def test_many_requesting_rows_of_a_large_vocabulary_are_answered_in_tiles() -> None:
    vocab_size, rows = 70_000, 9
    logits = model_like_logits(rows, vocab_size)
    requests = tuple(RowLogprobs(row, 0, NO_TARGETS, 1, ()) for row in reversed(range(rows)))
    output = same_params(vocab_size, GREEDY, rows).sample(logits.clone(), slots_of(rows), requests)
    assert output.logprobs is not None
    expected = torch.log_softmax(logits.double(), -1).max(-1)
    torch.testing.assert_close(output.logprobs.targets, expected.values.float().flip(0), rtol=1e-5, atol=1e-6)
    assert torch.equal(output.logprobs.top_ids[:, 0], expected.indices.flip(0))


# --- cost, by count ---


class OperationCounter(TorchDispatchMode):
    """Counts operations that compute; views cost little and are left out."""

    VIEWS = frozenset({"view", "slice", "unsqueeze", "squeeze", "alias", "detach", "lift_fresh"})

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = func.overloadpacket.__name__
        if name not in self.VIEWS:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


@table(
    "params, most",
    [
        (GREEDY, 10),
        (SamplingParams(), 46),
        (SamplingParams(temperature=0.7), 48),
        (SamplingParams(top_k=40), 11),
        (SamplingParams(top_p=0.9), 21),
    ],
)
def test_a_step_takes_few_operations_however_many_rows(params: SamplingParams, most: int) -> None:
    sampler = same_params(8192, params, 64)
    for rows in (64, 1):
        logits = model_like_logits(rows, 8192)
        with OperationCounter() as counter:
            sampler.sample(logits, slots_of(rows))
        assert len(counter.names) <= most, counter.names
        assert not {"sort", "topk", "_local_scalar_dense"} & set(counter.names)


def test_an_all_greedy_step_reads_the_logits_once() -> None:
    sampler = same_params(8192, GREEDY, 64)
    logits = model_like_logits(64, 8192)

    class FullPasses(OperationCounter):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if any(isinstance(arg, torch.Tensor) and arg.numel() == logits.numel() for arg in args):
                return super().__torch_dispatch__(func, types, args, kwargs)
            return func(*args, **(kwargs or {}))

    with FullPasses() as counter:
        sampler.sample(logits, slots_of(64))
    # The index_select reads one block of each row.
    assert counter.names == ["amax", "index_select"]
