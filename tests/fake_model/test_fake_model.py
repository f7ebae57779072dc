from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.step_runs import runs_of
from tests.tables import table
from tests.thoroughness import examples

from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import (
    FUTURE_TOKEN,
    ForwardMode,
    FurtherSteps,
    NewRequest,
    ReqSlot,
    RowLogprobs,
    StepPlan,
    TableWrite,
)
from bough_fake.model import FakeModel, expected_tokens
from bough_fake.runner import FakeModelRunner, StepDuration
from bough_fake.worker import FakeWorker

VOCAB_SIZE = 1000
GREEDY = SamplingParams(temperature=0.0)


def make_worker(**fields: Any) -> FakeWorker:
    return FakeWorker(
        **{
            "vocab_size": VOCAB_SIZE,
            "max_total_num_tokens": 256,
            "max_running_requests": 8,
            "context_len": 64,
            "verify": True,
            **fields,
        }
    )


def new(slot: int, params: SamplingParams = GREEDY, seed: int = 0, output_ids: Sequence[int] = ()) -> NewRequest:
    return NewRequest(ReqSlot(slot), params, seed, (), 1, np.array(output_ids, dtype=np.int32))


def plan(
    rows: Sequence[tuple[int, int, Sequence[int], Sequence[int]]],
    *,
    num_decode_rows: int = 0,
    sample: Sequence[bool] | None = None,
    **fields: Any,
) -> StepPlan:
    """Rows are (request slot, prefix length, input ids, KV slots)."""
    return StepPlan(
        step_id=1,
        mode=ForwardMode.MIXED,
        num_decode_rows=num_decode_rows,
        req_slots=np.array([row[0] for row in rows], dtype=np.int32),
        prefix_lens=np.array([row[1] for row in rows], dtype=np.int32),
        extend_lens=np.array([len(row[2]) for row in rows], dtype=np.int32),
        input_ids=np.array([token for row in rows for token in row[2]], dtype=np.int32),
        out_slots=np.array([slot for row in rows for slot in row[3]], dtype=np.int32),
        sample=np.array(sample if sample is not None else [True] * len(rows)),
        **fields,
    )


def run(worker: FakeWorker, *args: Any, **fields: Any) -> list[int]:
    return worker.forward_batch_generation(plan(*args, **fields)).tokens.tolist()


def test_a_greedy_request_gets_the_expected_tokens() -> None:
    worker, prompt = make_worker(), [5, 17, 900, 3]
    tokens = run(worker, [(2, 0, prompt, [9, 4, 7, 30])], new_requests=(new(2),))
    for step in range(10):
        tokens += run(worker, [(2, 4 + step, [FUTURE_TOKEN], [40 + step])], num_decode_rows=1)
    assert tokens == expected_tokens(prompt, 11, VOCAB_SIZE)


def test_expected_tokens_depend_on_every_token_and_its_place() -> None:
    prompts = [[1, 2, 3, 4], [1, 2, 4, 3], [2, 2, 3, 4], [1, 2, 3], [1, 2, 3, 4, 0], [0, 1, 2, 3, 4]]
    answers = [tuple(expected_tokens(prompt, 4, VOCAB_SIZE)) for prompt in prompts]
    assert len(set(answers)) == len(answers)
    assert expected_tokens([1, 2, 3, 4, *answers[0]], 4, VOCAB_SIZE) == expected_tokens([1, 2, 3, 4], 8, VOCAB_SIZE)[4:]
    assert all(0 <= token < VOCAB_SIZE for answer in answers for token in answer)


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32 - 1), verify=st.booleans())
def test_chunks_batches_prefix_reuse_and_retraction_change_no_token(seed: int, verify: bool) -> None:
    rng = np.random.default_rng(seed)
    worker = make_worker(verify=verify, max_total_num_tokens=4096)
    free = rng.permutation(np.arange(1, 4097)).tolist()
    shared = rng.integers(0, VOCAB_SIZE, int(rng.integers(1, 6))).tolist()
    shared_slots = [free.pop() for _ in shared]
    run(worker, [(7, 0, shared, shared_slots)], new_requests=(new(7),))

    count = 5
    prompts = [shared + rng.integers(0, VOCAB_SIZE, int(rng.integers(1, 8))).tolist() for _ in range(count)]
    outputs: list[list[int]] = [[] for _ in prompts]
    computed: list[int | None] = [None] * count  # None: waiting
    while min(len(output) for output in outputs) < 6:
        decodes, extends = [], []
        news, writes = [], []
        for i in rng.permutation(count)[: rng.integers(1, count + 1)].tolist():
            history = prompts[i] + outputs[i]
            if computed[i] is None:
                news.append(new(i, output_ids=outputs[i]))
                writes.append(TableWrite(ReqSlot(i), 0, np.array(shared_slots, dtype=np.int32)))
                computed[i] = len(shared)
            begin = computed[i]
            if outputs[i] and begin == len(history) - 1:
                decodes.append((i, begin, [FUTURE_TOKEN], [free.pop()]))
            else:
                chunk = int(rng.integers(1, len(history) - begin + 1))
                extends.append((i, begin, history[begin : begin + chunk], [free.pop() for _ in range(chunk)]))
        rows = decodes + extends
        sample = [begin + len(ids) == len(prompts[i]) + len(outputs[i]) for i, begin, ids, _ in rows]
        step = plan(
            rows,
            num_decode_rows=len(decodes),
            sample=sample,
            new_requests=tuple(news),
            table_writes=tuple(writes),
        )
        got = runs_of(worker.forward_batch_generation(step))
        for (i, begin, ids, _), is_sample, tokens in zip(rows, sample, got, strict=True):
            computed[i] = begin + len(ids) if rng.random() < 0.9 else None
            assert len(tokens) == is_sample
            outputs[i] += tokens
    for prompt, output in zip(prompts, outputs, strict=True):
        assert output == expected_tokens(prompt, len(output), VOCAB_SIZE)


def test_requests_that_are_not_greedy_follow_their_seed() -> None:
    worker, prompt = make_worker(), [1, 2, 3]
    drawn = SamplingParams(temperature=1.0)
    seeds = [4, 5, 4]
    rows = [(slot, 0, prompt, [10 * slot + 1, 10 * slot + 2, 10 * slot + 3]) for slot in range(3)]
    first = run(worker, rows, new_requests=tuple(new(slot, drawn, seeds[slot]) for slot in range(3)))
    outputs = [[token] for token in first]
    for step in range(12):
        rows = [(slot, 3 + step, [FUTURE_TOKEN], [100 + 3 * step + slot]) for slot in range(3)]
        for output, token in zip(outputs, run(worker, rows, num_decode_rows=3), strict=True):
            output.append(token)
    model = FakeModel(VOCAB_SIZE)
    assert outputs == [model.expected_tokens(prompt, 13, seed=seed) for seed in seeds]
    assert outputs[0] == outputs[2] != outputs[1]


# --- wrong plans ---


def prepared(**fields: Any) -> FakeWorker:
    """Requests 0 and 1 with the prompts 1 2 3 and 4 5 6 at the slots 11 12 13 and 21 22 23."""
    worker = make_worker(**fields)
    run(worker, [(0, 0, [1, 2, 3], [11, 12, 13]), (1, 0, [4, 5, 6], [21, 22, 23])], new_requests=(new(0), new(1)))
    return worker


@table("where", [0, 1, 2])
def test_an_overwritten_slot_of_a_prefix_is_found(where: int) -> None:
    worker = prepared()
    run(worker, [(2, 0, [7], [11 + where])], new_requests=(new(2),))
    with pytest.raises(RuntimeError, match="which holds another history"):
        run(worker, [(0, 3, [FUTURE_TOKEN], [14])], num_decode_rows=1)


def test_without_checks_a_wrong_last_slot_changes_the_output() -> None:
    worker = prepared(verify=False)
    run(worker, [(2, 0, [7], [13])], new_requests=(new(2),))
    got = run(worker, [(0, 3, [FUTURE_TOKEN], [14])], num_decode_rows=1)
    assert got != expected_tokens([1, 2, 3], 2, VOCAB_SIZE)[1:]


def test_a_wrongly_shared_prefix_changes_the_output() -> None:
    worker = prepared()
    write = TableWrite(ReqSlot(3), 0, np.array([11, 12], dtype=np.int32))
    right = run(worker, [(3, 2, [9], [31])], new_requests=(new(3),), table_writes=(write,))
    assert right == expected_tokens([1, 2, 9], 1, VOCAB_SIZE)
    write = TableWrite(ReqSlot(3), 0, np.array([21, 22], dtype=np.int32))
    wrong = run(worker, [(3, 2, [9], [31])], new_requests=(new(3),), table_writes=(write,))
    assert wrong != right


WRONG_PLANS = {
    "a request slot has two rows": {"rows": [(0, 3, [7], [14]), (0, 3, [7], [15])]},
    "a KV slot is written twice": {"rows": [(0, 3, [7], [14]), (1, 3, [7], [14])]},
    "outside the pool": {"rows": [(0, 3, [7], [0])]},
    "outside the vocabulary": {"rows": [(0, 3, [VOCAB_SIZE], [14])]},
    "positions 3 to 4 are not set": {"rows": [(0, 4, [7], [14])]},
    "overwritten in the same step": {"rows": [(0, 3, [7], [14]), (1, 3, [7], [12])]},
    "an extend row has future tokens": {"rows": [(0, 3, [FUTURE_TOKEN], [14])]},
    "no token was sampled yet": {
        "rows": [(4, 3, [FUTURE_TOKEN], [14])],
        "num_decode_rows": 1,
        "new_requests": (new(4),),
        "table_writes": (TableWrite(ReqSlot(4), 0, np.array([11, 12, 13], dtype=np.int32)),),
    },
    "leaves a gap": {
        "rows": [(0, 3, [7], [14])],
        "table_writes": (TableWrite(ReqSlot(0), 5, np.array([11], dtype=np.int32)),),
    },
    "a decode row is not one": {"rows": [(0, 3, [7, 8], [14, 15])], "num_decode_rows": 1},
    "no new token": {"rows": [(0, 3, [], []), (1, 3, [1], [24])]},
    "longer than the request table": {"rows": [(0, 3, [7] * 62, list(range(60, 122)))]},
}


@table("rule", WRONG_PLANS)
def test_a_wrong_plan_is_refused(rule: str) -> None:
    worker = prepared()
    with pytest.raises(RuntimeError, match=rule):
        run(worker, **WRONG_PLANS[rule])
    # and nothing of it was done
    got = run(worker, [(0, 3, [FUTURE_TOKEN], [14])], num_decode_rows=1)
    assert got == expected_tokens([1, 2, 3], 2, VOCAB_SIZE)[1:]


def test_a_reused_request_slot_must_be_filled_anew() -> None:
    worker = prepared()
    with pytest.raises(RuntimeError, match="not set"):
        run(worker, [(0, 2, [7], [14])], new_requests=(new(0),))


def test_tokens_must_lie_in_pages_in_order() -> None:
    worker = make_worker(page_size=4)
    run(worker, [(0, 0, [1, 2, 3], [8, 9, 10])], new_requests=(new(0),))
    for slot in (12, 7):
        with pytest.raises(RuntimeError, match="pages in order"):
            run(worker, [(0, 3, [FUTURE_TOKEN], [slot])], num_decode_rows=1)
    with pytest.raises(RuntimeError, match="outside the pool"):
        run(worker, [(1, 0, [1], [0])], new_requests=(new(1),))
    assert run(worker, [(0, 3, [FUTURE_TOKEN], [11])], num_decode_rows=1) == expected_tokens([1, 2, 3], 2, 1000)[1:]
    # position 4 starts a page, anywhere
    run(worker, [(0, 4, [FUTURE_TOKEN], [4])], num_decode_rows=1)


# --- end of sequence, logprobs, time ---


def test_end_of_sequence_comes_never_or_as_often_as_asked() -> None:
    states = np.random.default_rng(0).integers(0, 2**63, 20_000).astype(np.uint64)
    never = FakeModel(100, eos_token_ids=(0, 7)).next_tokens(states)
    assert not {0, 7} & set(never.tolist())
    assert len(set(never.tolist())) == 98
    often = FakeModel(100, eos_token_ids=(7,), eos_probability=0.25).next_tokens(states)
    assert abs((often == 7).mean() - 0.25) < 0.02
    with pytest.raises(ValueError, match="end-of-sequence"):
        FakeModel(100, eos_probability=0.5)
    with pytest.raises(ValueError, match="ordinary"):
        FakeModel(1, eos_token_ids=(0,))


def test_logprobs_are_deterministic_and_agree_with_each_other() -> None:
    worker, prompt = make_worker(), [5, 6, 7, 8]
    request = RowLogprobs(1, 1, np.array([7, 8], dtype=np.int32), 3, (0, 7))
    rows = [(3, 0, [1], [50]), (2, 0, prompt, [1, 2, 3, 4])]
    result = worker.forward_batch_generation(plan(rows, new_requests=(new(2), new(3)), logprobs=(request,)))
    (answer,) = result.logprobs
    model = FakeModel(VOCAB_SIZE)
    token = expected_tokens(prompt, 1, VOCAB_SIZE)[0]
    assert runs_of(result)[1] == [token]
    assert answer.row == 1
    assert answer.sampled_logprob == pytest.approx(np.log(0.5))
    assert answer.sampled_top is not None
    assert answer.sampled_top[1].tolist() == [(token + i) % VOCAB_SIZE for i in range(3)]
    np.testing.assert_allclose(answer.sampled_top[0], np.log([0.5, 0.25, 0.125]), rtol=1e-6)
    assert answer.target_top is not None
    assert answer.target_top[1][:, 0].tolist() == [
        model.expected_tokens(prompt[:2], 1)[0],
        model.expected_tokens(prompt[:3], 1)[0],
    ]
    assert answer.target_chosen is not None
    assert answer.target_chosen[0, 1] == answer.target_logprobs[0], "both are of the token 7 after 5 6"
    assert answer.sampled_chosen is not None
    assert answer.sampled_chosen.shape == (2,)
    # A chunk that does not end its prompt has no sampled token.
    chunk = plan([(2, 4, [9], [5])], sample=[False], logprobs=(replace(request, row=0, first=0),))
    chunk = replace(chunk, logprobs=(RowLogprobs(0, 0, np.array([1], dtype=np.int32), 0, ()),))
    (answer,) = worker.forward_batch_generation(chunk).logprobs
    assert (answer.sampled_logprob, answer.sampled_top, answer.target_top) == (None, None, None)
    assert answer.target_logprobs.shape == (1,)


def test_a_virtual_clock_adds_up_and_a_real_one_waits() -> None:
    duration = StepDuration(per_step=0.5, per_token=0.25, per_token_context=0.01, clock="virtual")
    worker = make_worker(duration=duration)
    result = worker.forward_batch_generation(plan([(0, 0, [1, 2, 3], [1, 2, 3])], new_requests=(new(0),)))
    assert result.seconds == pytest.approx(0.5 + 0.75 + 0.01 * (1 + 2 + 3))
    decode = worker.forward_batch_generation(plan([(0, 3, [FUTURE_TOKEN], [4])], num_decode_rows=1))
    assert decode.seconds == pytest.approx(0.5 + 0.25 + 0.01 * 4)
    assert worker.model_runner.virtual_seconds == pytest.approx(result.seconds + decode.seconds)
    waiting = make_worker(duration=StepDuration(per_step=0.02))
    begin = time.perf_counter()
    waiting.forward_batch_generation(plan([(0, 0, [1], [1])], new_requests=(new(0),)))
    assert time.perf_counter() - begin >= 0.02


def test_worker_info_says_what_was_asked_for() -> None:
    info = make_worker(context_len=1000, page_size=2).get_worker_info()
    assert (info.max_total_num_tokens, info.max_running_requests, info.page_size) == (256, 8, 2)
    assert (info.max_req_len, info.max_req_input_len, info.context_len, info.vocab_size) == (256, 255, 1000, VOCAB_SIZE)


@table("params", [GREEDY, SamplingParams()])
def test_the_calls_of_a_decode_step_do_not_grow_with_its_rows(params: SamplingParams) -> None:
    calls = []
    for count in (1, 256):
        runner = FakeModelRunner(FakeModel(8192), max_running_requests=256, max_total_num_tokens=4096, max_req_len=64)
        rows = [(slot, 0, [slot], [slot + 1]) for slot in range(count)]
        runner.forward_batch_generation(plan(rows, new_requests=tuple(new(slot, params) for slot in range(count))))
        decode = plan([(slot, 1, [FUTURE_TOKEN], [slot + 257]) for slot in range(count)], num_decode_rows=count)
        calls.append(_count_calls(lambda runner=runner, decode=decode: runner.forward_batch_generation(decode)))
    assert calls[0] == calls[1] < 60


def _count_calls(function: Callable[[], object]) -> int:
    """Python and C functions that a call enters."""
    entered = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal entered
        entered += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return entered


def test_further_steps_are_those_of_the_plans_that_follow() -> None:
    worker, one_by_one = make_worker(), make_worker()
    prompts = [[5, 6, 7], [8, 9, 10, 11]]
    begin = plan([(0, 0, prompts[0], [1, 2, 3]), (1, 0, prompts[1], [4, 5, 6, 7])], new_requests=(new(0), new(1)))
    for each in (worker, one_by_one):
        each.forward_batch_generation(begin)
    rows = [(0, 3, [FUTURE_TOKEN], [8]), (1, 4, [FUTURE_TOKEN], [9])]
    further = FurtherSteps(np.array([[10, 11], [12, 13]], dtype=np.int32), np.ones(2, dtype=np.bool_), 60.0)
    run_of_three = plan(rows, num_decode_rows=2, further=further)
    result = worker.forward_batch_generation(run_of_three)
    assert (run_of_three.num_steps, result.num_steps) == (3, 3)
    runs = runs_of(result)
    assert runs == [expected_tokens(prompt, 4, VOCAB_SIZE)[1:] for prompt in prompts]
    single, singles = replace(run_of_three, further=None), []
    for number in range(3):
        singles.append(one_by_one.forward_batch_generation(replace(single, further=None)).tokens.tolist())
        if number < 2:
            run_of_three = single = run_of_three.following()
    assert singles == [list(tokens) for tokens in zip(*runs, strict=True)]
    assert run_of_three.further is None


def test_further_steps_are_reported_each_if_that_is_wanted() -> None:
    worker = make_worker()
    worker.forward_batch_generation(plan([(0, 0, [5, 6], [1, 2])], new_requests=(new(0),)))
    further = FurtherSteps(np.array([[4], [5]], dtype=np.int32), np.ones(1, dtype=np.bool_), 60.0, reports_each=True)
    results = [worker.forward_batch_generation(plan([(0, 2, [FUTURE_TOKEN], [3])], num_decode_rows=1, further=further))]
    while results[-1].goes_on:
        results.append(worker.forward_further())
    with pytest.raises(RuntimeError, match="no step is to follow"):
        worker.forward_further()
    assert [each.num_steps for each in results] == [1, 1, 1]
    assert [int(each.tokens[0]) for each in results] == expected_tokens([5, 6], 4, VOCAB_SIZE)[1:]


def test_further_steps_end_with_one_that_ends_a_row_or_when_there_is_news() -> None:
    def steps(*, checks_eos: bool, news: bool) -> int:
        worker = make_worker(eos_token_ids=(2,), eos_probability=1.0)
        worker.model_runner.stops_early = lambda: news
        worker.forward_batch_generation(plan([(0, 0, [5], [1])], new_requests=(new(0),)))
        further = FurtherSteps(np.array([[3], [4]], dtype=np.int32), np.array([checks_eos]), 60.0)
        decode = plan([(0, 1, [FUTURE_TOKEN], [2])], num_decode_rows=1, further=further)
        return worker.forward_batch_generation(decode).num_steps

    assert steps(checks_eos=False, news=False) == 3
    assert steps(checks_eos=True, news=False) == 1
    assert steps(checks_eos=False, news=True) == 1
