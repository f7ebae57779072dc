from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bough.layers.sampler import Sampler
from bough.sampling.device_state import SamplingState
from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import ForcedTokens, ReqSlot
from tests.sampling.naive import CPU, edited_logits, make_sampler, new_request, slots_of
from tests.tables import table
from tests.thoroughness import examples

GREEDY = SamplingParams(temperature=0.0)


def edit(state: SamplingState, logits: torch.Tensor, slots: np.ndarray) -> np.ndarray:
    """What :meth:`SamplingState.apply_logits_bias` makes of a copy of ``logits``."""
    edited = logits.clone()
    state.apply_logits_bias(edited, state.rows(slots))
    return edited.numpy()


@st.composite
def editing_params(draw: st.DrawFn, vocab_size: int) -> SamplingParams:
    ids = st.integers(0, vocab_size - 1)
    return SamplingParams(
        temperature=draw(st.sampled_from([0.0, 0.7])),
        frequency_penalty=draw(st.sampled_from([0.0, 0.0, 0.3, -1.5])),
        presence_penalty=draw(st.sampled_from([0.0, 0.0, 1.25, -2.0])),
        repetition_penalty=draw(st.sampled_from([1.0, 1.0, 1.3, 0.5])),
        repetition_window=draw(st.sampled_from([None, None, 0, 1, 3, 20, -1])),
        min_new_tokens=draw(st.integers(0, 6)),
        logit_bias=draw(st.none() | st.dictionaries(ids, st.sampled_from([-100.0, 100.0, 0.5, -3.0]), max_size=5)),
    )


@settings(max_examples=examples(25))
@given(data=st.data(), vocab_size=st.sampled_from([7, 64, 131]), seed=st.integers(0, 2**32 - 1))
def test_logits_are_edited_as_the_naive_reference_says_over_many_steps(
    data: st.DataObject, vocab_size: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    count = data.draw(st.integers(1, 6))
    params = [data.draw(editing_params(vocab_size)) for _ in range(count)]
    masked = [rng.choice(vocab_size, 2, replace=False).tolist() for _ in range(count)]
    outputs = [rng.integers(0, vocab_size, rng.integers(0, 5)).tolist() for _ in range(count)]
    prompts = [rng.integers(0, vocab_size, rng.integers(1, 50)).tolist() for _ in range(count)]
    state = SamplingState(9, vocab_size, CPU)
    slots = rng.permutation(9)[:count].astype(np.int32)
    for i, slot in enumerate(slots):
        given = {"masked": masked[i], "output_ids": outputs[i], "prompt_ids": prompts[i]}
        state.admit(new_request(int(slot), params[i], **given))
    for _ in range(vocab_size // 2 + 5):  # some outputs outgrow the history
        step = np.sort(rng.choice(count, rng.integers(1, count + 1), replace=False))
        logits = torch.from_numpy(rng.normal(0, 3, (len(step), vocab_size)).astype(np.float32))
        edited = edit(state, logits, slots[step])
        for row, i in enumerate(step):
            expected = edited_logits(logits[row].numpy(), params[i], outputs[i], masked[i], prompts[i])
            np.testing.assert_allclose(edited[row], expected, rtol=1e-5, atol=1e-5)
        tokens = rng.integers(0, vocab_size, len(step))
        state.record(state.rows(slots[step]), torch.from_numpy(tokens))
        for i, token in zip(step, tokens, strict=True):
            outputs[i].append(int(token))
        assert state.last_token[slots[step].astype(np.int64)].tolist() == tokens.tolist()


@table("window", [None, 0, 5, 64, -1])
@table("length", [0, 1, 63, 300])
def test_a_slot_says_the_same_whether_tokens_were_recorded_or_came_along(length: int, window: int | None) -> None:
    vocab_size = 200
    params = SamplingParams(
        temperature=0.8,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        repetition_penalty=1.1,
        repetition_window=window,
        min_new_tokens=65,
    )
    prompt = np.random.default_rng(1).integers(0, vocab_size, 30)
    tokens = np.random.default_rng(0).integers(0, vocab_size, length)
    grown, returned = SamplingState(4, vocab_size, CPU), SamplingState(4, vocab_size, CPU)
    grown.admit(new_request(1, params, seed=5, masked=[3], prompt_ids=prompt))
    for token in tokens:
        grown.record(grown.rows(np.array([1], dtype=np.int32)), torch.tensor([token]))
    returned.admit(new_request(2, params, seed=5, masked=[3], output_ids=tokens, prompt_ids=prompt))
    logits = torch.randn(1, vocab_size)
    rows = [state.rows(np.array([slot], dtype=np.int32)) for state, slot in ((grown, 1), (returned, 2))]
    edited = [logits.clone(), logits.clone()]
    grown.apply_logits_bias(edited[0], rows[0])
    returned.apply_logits_bias(edited[1], rows[1])
    assert torch.equal(edited[0], edited[1])
    draws = [state.draw_params(row, np.array([0])).uniform for state, row in zip((grown, returned), rows, strict=True)]
    assert draws[0].tolist() == draws[1].tolist()
    assert grown.last_token[1] == returned.last_token[2]


def test_tokens_that_were_not_sampled_count_like_others() -> None:
    vocab_size = 50
    params = SamplingParams(temperature=0.8, frequency_penalty=0.3, presence_penalty=0.2, min_new_tokens=4)
    sampled, appended = SamplingState(2, vocab_size, CPU), SamplingState(2, vocab_size, CPU)
    slot = np.array([1], dtype=np.int32)
    for state in (sampled, appended):
        state.admit(new_request(1, params, seed=5, masked=[3]))
    for token in (7, 9, 7, 11):
        sampled.record(sampled.rows(slot), torch.tensor([token]))
    appended.record(appended.rows(slot), torch.tensor([7]))
    appended.append([ForcedTokens(ReqSlot(1), (9, 7))])
    assert appended.last_token[1] == 7
    appended.record(appended.rows(slot), torch.tensor([11]))
    logits = torch.randn(1, vocab_size)
    assert np.array_equal(edit(sampled, logits, slot), edit(appended, logits, slot))
    draws = [state.draw_params(state.rows(slot), np.array([0])).uniform for state in (sampled, appended)]
    assert draws[0].tolist() == draws[1].tolist()


def test_a_new_request_inherits_nothing_from_the_last_one_in_its_slot() -> None:
    vocab_size = 100
    loaded = SamplingParams(temperature=0.5, top_p=0.5, frequency_penalty=2.0, min_new_tokens=10, logit_bias={4: 100.0})
    state = SamplingState(2, vocab_size, CPU)
    logits = torch.randn(1, vocab_size)
    slot = np.array([1], dtype=np.int32)
    for plain_first in (False, True):
        if not plain_first:
            state.admit(new_request(1, loaded, masked=[1, 2], output_ids=[5] * 20))
        state.admit(new_request(1, GREEDY))
        assert np.array_equal(edit(state, logits, slot), logits.numpy())
        unloaded = replace_bias(loaded)
        state.admit(new_request(1, unloaded, masked=[], output_ids=[]))
        assert np.array_equal(edit(state, logits, slot), logits.numpy())
        state.record(state.rows(slot), torch.tensor([5]))
        expected = edited_logits(logits[0].numpy(), unloaded, [5])
        np.testing.assert_allclose(edit(state, logits, slot)[0], expected, rtol=1e-6)


def replace_bias(params: SamplingParams) -> SamplingParams:
    return SamplingParams(temperature=params.temperature, frequency_penalty=params.frequency_penalty)


def test_bans_end_with_the_last_banned_token() -> None:
    state = SamplingState(1, 10, CPU)
    state.admit(new_request(0, SamplingParams(temperature=0.0, min_new_tokens=2), masked=[3, 7, 12]))
    slot = np.array([0], dtype=np.int32)
    banned = []
    for _ in range(4):
        banned.append(np.flatnonzero(np.isinf(edit(state, torch.zeros(1, 10), slot)[0])).tolist())
        state.record(state.rows(slot), torch.tensor([0]))
    assert banned == [[3, 7], [3, 7], [], []]


@table("bias", [{10: 1.0}, {-1: 1.0}])
def test_a_bias_outside_the_vocabulary_is_refused(bias: dict[int, float]) -> None:
    state = SamplingState(1, 10, CPU)
    with pytest.raises(ValueError, match="token ids"):
        state.admit(new_request(0, SamplingParams(logit_bias=bias)))


@table("slot", [-1, 2])
def test_a_slot_outside_the_table_is_refused(slot: int) -> None:
    with pytest.raises(ValueError, match="slot"):
        SamplingState(2, 10, CPU).admit(new_request(slot, GREEDY))


def test_penalty_memory_is_taken_only_by_requests_that_need_it_and_stays_bounded() -> None:
    vocab_size, slots = 1000, 40
    state = SamplingState(slots, vocab_size, CPU)
    for slot in range(slots):
        state.admit(new_request(slot, GREEDY))
    state.record(state.rows(slots_of(slots)), torch.zeros(slots, dtype=torch.int64))
    assert state._penalties.allocated_bytes == 0
    penalised = SamplingParams(temperature=0.0, presence_penalty=1.0)
    state.admit(new_request(3, penalised))
    few = state._penalties.allocated_bytes
    for _ in range(100):  # one slot after the other, all of them in turn
        for slot in range(slots):
            state.admit(new_request(slot, GREEDY))
            state.admit(new_request(slot, penalised))
            state.admit(new_request(slot, GREEDY))
    assert state._penalties.allocated_bytes == few
    for slot in range(slots):
        state.admit(new_request(slot, penalised, output_ids=[slot] * 5000))
    assert few < state._penalties.allocated_bytes <= SamplingState.max_bytes(slots, vocab_size)


def test_an_output_longer_than_the_history_is_still_penalised_exactly() -> None:
    vocab_size = 40  # the history has 10 columns
    params = SamplingParams(temperature=0.0, frequency_penalty=0.5, repetition_penalty=1.5)
    rng = np.random.default_rng(1)
    sampler = make_sampler(vocab_size, [new_request(0, params), new_request(1, params)])
    outputs: list[list[int]] = [[], []]
    for step in range(60):
        at = slots_of(2) if step % 3 else slots_of(1)
        logits = rng.normal(0, 5, (len(at), vocab_size)).astype(np.float32)
        tokens = sampler.sample(torch.from_numpy(logits.copy()), at).next_token_ids.tolist()
        for row, token in enumerate(tokens):
            assert token == int(np.argmax(edited_logits(logits[row], params, outputs[row])))
            outputs[row].append(token)
    assert min(len(output) for output in outputs) > vocab_size / 4


def test_the_same_slots_in_another_order_get_their_own_edits() -> None:
    biases = [{1: 5.0}, {2: 6.0, 3: 7.0}, None]
    state = SamplingState(3, 10, CPU)
    for slot, bias in enumerate(biases):
        state.admit(new_request(slot, replace_params(bias)))
    for order in ([0, 1, 2], [2, 1, 0], [1], [0, 2], [2], [1, 0]):
        edited = edit(state, torch.zeros(len(order), 10), np.array(order, dtype=np.int32))
        for row, slot in enumerate(order):
            expected = np.zeros(10)
            for token, value in (biases[slot] or {}).items():
                expected[token] = value
            assert edited[row].tolist() == expected.tolist()
    edit(state, torch.zeros(1, 10), np.array([1], dtype=np.int32))
    state.admit(new_request(1, replace_params({9: 1.0})))
    assert edit(state, torch.zeros(1, 10), np.array([1], dtype=np.int32))[0].tolist() == [0.0] * 9 + [1.0]


def replace_params(bias: dict[int, float] | None) -> SamplingParams:
    return SamplingParams(temperature=0.0, logit_bias=bias)


def test_state_belongs_to_its_sampler_alone() -> None:
    request = new_request(0, SamplingParams(temperature=1.0), seed=3)
    logits = torch.randn(1, 500)
    one, other = make_sampler(500, [request]), make_sampler(500, [replace(request)])
    assert isinstance(one, Sampler)
    first = one.sample(logits.clone(), slots_of(1)).next_token_ids
    one.sample(logits.clone(), slots_of(1))
    assert torch.equal(other.sample(logits.clone(), slots_of(1)).next_token_ids, first)


def test_slots_of_the_step_before_are_not_sent_again() -> None:
    state = SamplingState(4, 50, torch.device("cpu"))
    sent = state._slots_on_device(np.array([1, 3]))
    assert state._slots_on_device(np.array([1, 3])) is sent
    assert state._slots_on_device(np.array([3, 1])).tolist() == [3, 1]
    assert state._slots_on_device(np.array([1, 3])).tolist() == [1, 3]
