"""A step that fails: the culprit ends with an error, its neighbours are answered as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from bough.scheduler.req import ReqStage
from bough.scheduler.trials import Trials
from bough.scheduler.waiting_queue import WaitingQueue
from bough.step_plan import StepPlan, StepResult
from tests.scheduler.harness import Harness, prompt_of
from tests.thoroughness import examples

POISON = 999


def fail_when(harness: Harness, condition: Callable[[StepPlan], bool]) -> list[int]:
    """Make steps raise; returns a list that grows by the number of rows of each that does."""
    original = harness.worker.worker.forward_batch_generation
    failed: list[int] = []

    def forward(plan: StepPlan) -> StepResult:
        if condition(plan):
            failed.append(plan.num_rows)
            raise RuntimeError("injected")
        return original(plan)

    harness.worker.worker.forward_batch_generation = forward  # type: ignore[method-assign]
    return failed


def has_poison(plan: StepPlan) -> bool:
    return POISON in plan.input_ids


def clean_prompt(length: int, seed: int) -> list[int]:
    return [token % POISON for token in prompt_of(length, seed)]


def outcome(harness: Harness, rid: str) -> str:
    reason = harness.outputs[rid].finish_reason
    assert reason is not None
    return reason.type


def test_a_poisonous_prompt_fails_alone() -> None:
    for overlap in [False, True]:
        harness = Harness(overlap=overlap, max_running_requests=32)
        failed = fail_when(harness, has_poison)
        prompts = [clean_prompt(10 + seed, seed) for seed in range(32)]
        prompts[19][5] = POISON
        rids = [harness.submit(prompt)[0] for prompt in prompts]
        harness.run()
        harness.close()
        for index, (rid, prompt) in enumerate(zip(rids, prompts, strict=True)):
            if index == 19:
                assert outcome(harness, rid) == "abort"
                assert harness.outputs[rid].finish_reason.status_code == 500  # type: ignore[union-attr]
            else:
                assert harness.outputs[rid].token_ids == harness.expected(prompt, 8)
        assert failed == [32, 16, 8, 4, 2, 1]
        assert harness.scheduler.reports.stats().failed_steps_total == len(failed)


def test_what_fails_in_the_middle_of_decoding_fails_alone() -> None:
    for overlap in [False, True]:
        harness = Harness(overlap=overlap, max_running_requests=16)
        prompts = [clean_prompt(10 + seed, seed) for seed in range(16)]
        lengths = {len(prompt) for prompt in prompts}
        assert len(lengths) == 16

        def twelfth_token_of_longest(plan: StepPlan) -> bool:
            """The row whose sequence has reached a length that only the longest prompt comes to."""
            return bool(((plan.prefix_lens + plan.extend_lens) == 25 + 12).any())

        fail_when(harness, twelfth_token_of_longest)
        rids = [harness.submit(prompt, max_new_tokens=12)[0] for prompt in prompts]
        harness.run()
        harness.close()
        for rid, prompt in zip(rids[:-1], prompts[:-1], strict=True):
            assert harness.outputs[rid].token_ids == harness.expected(prompt, 12)
        assert outcome(harness, rids[-1]) in ("abort", "length")


def test_what_fails_in_the_middle_of_a_run_goes_on_where_it_was() -> None:
    for stream in [False, True]:
        for fails_at in [1, 2, 7, 15]:
            harness = Harness(max_steps=16)
            run_further, calls = harness.worker.worker.forward_further, []

            def forward_further() -> StepResult:
                calls.append(None)
                if len(calls) == fails_at:
                    raise RuntimeError("injected")
                return run_further()

            harness.worker.worker.forward_further = forward_further  # type: ignore[method-assign]
            prompts = [clean_prompt(20, seed) for seed in range(3)]
            expected = [harness.expected(prompt, 40) for prompt in prompts]
            # A stop token has each step looked at, though it never comes.
            unused = min(set(range(1000)).difference(*expected))
            rids = [
                harness.submit(each, max_new_tokens=40, stream=stream, stop_token_ids=(unused,))[0] for each in prompts
            ]
            harness.run()
            assert harness.scheduler.reports.stats().failed_steps_total == 1
            num_probes = 1
            assert (
                harness.scheduler.requests.stats.steps_total
                == sum(result.num_steps for _, result in harness.worker.steps) - num_probes
            )
            assert [harness.outputs[rid].token_ids for rid in rids] == expected


def test_nobody_fails_if_smaller_steps_do_not() -> None:
    harness = Harness(max_running_requests=16)
    failed = fail_when(harness, lambda plan: plan.num_rows > 8)
    prompts = [clean_prompt(20, seed) for seed in range(16)]
    rids = [harness.submit(prompt)[0] for prompt in prompts]
    harness.run()
    for rid, prompt in zip(rids, prompts, strict=True):
        assert harness.outputs[rid].token_ids == harness.expected(prompt, 8)
    assert failed


def test_a_failure_that_does_not_come_back_costs_nobody_anything() -> None:
    harness = Harness(max_running_requests=8)
    once = iter([False, False, False, True])
    fail_when(harness, lambda plan: next(once, False))
    prompts = [clean_prompt(20, seed) for seed in range(8)]
    rids = [harness.submit(prompt)[0] for prompt in prompts]
    harness.run()
    for rid, prompt in zip(rids, prompts, strict=True):
        assert harness.outputs[rid].token_ids == harness.expected(prompt, 8)


def test_requests_that_come_and_go_during_a_trial() -> None:
    harness = Harness(max_running_requests=8)
    fail_when(harness, has_poison)
    prompts = [clean_prompt(20, seed) for seed in range(8)]
    prompts[3][2] = POISON
    rids = [harness.submit(prompt)[0] for prompt in prompts]
    harness.step()
    assert harness.scheduler.steps.trials.running
    (late,) = harness.submit(clean_prompt(9, 99))
    harness.abort(rids[0], exact=True)
    harness.abort(rids[3], exact=True)
    harness.run()
    assert not harness.scheduler.steps.trials.running
    assert harness.outputs[late].token_ids == harness.expected(clean_prompt(9, 99), 8)
    for index in (1, 2, 4, 5, 6, 7):
        assert harness.outputs[rids[index]].token_ids == harness.expected(prompts[index], 8)


@given(
    poisoned=st.sets(st.integers(0, 11), max_size=4),
    shared=st.integers(0, 30),
    slots=st.integers(1, 12),
    overlap=st.booleans(),
    chunk=st.sampled_from([None, 4, 16]),
    cache=st.booleans(),
    page_size=st.sampled_from([1, 4]),
)
@settings(max_examples=examples(40))
def test_whoever_is_poisonous_fails_and_nobody_else(
    poisoned: set[int], shared: int, slots: int, overlap: bool, chunk: int | None, cache: bool, page_size: int
) -> None:
    harness = Harness(
        overlap=overlap,
        max_running_requests=slots,
        page_size=page_size,
        disable_radix_cache=not cache,
        **({} if chunk is None else {"chunked_prefill_size": chunk}),
    )
    fail_when(harness, has_poison)
    common = clean_prompt(shared, 77)
    prompts = [[*common, *clean_prompt(5 + 3 * seed, seed)] for seed in range(12)]
    for index in poisoned:
        prompts[index][-2] = POISON
    rids = [harness.submit(prompt)[0] for prompt in prompts]
    harness.run()
    harness.close()
    for index, (rid, prompt) in enumerate(zip(rids, prompts, strict=True)):
        expected = harness.expected(prompt, 8)
        if index in poisoned:
            assert outcome(harness, rid) == "abort"
        elif POISON not in expected:  # it would poison itself when it is computed again
            assert harness.outputs[rid].token_ids == expected


def test_those_for_whom_there_is_no_room_beside_the_cleared_are_next() -> None:
    queue = WaitingQueue("fcfs", lambda req: 0)
    trials = Trials(queue)
    cleared, held_up, other = (Suspect() for _ in range(3))
    trials.accuse({cleared: 8, held_up: 8, other: 8, Suspect(): 8})
    assert queue.only == {cleared, held_up}
    cleared.state = ReqStage.RUNNING
    assert not trials.clear(lambda req: 4)  # it computes still
    assert trials.clear(lambda req: 8 if req is cleared else 0)
    assert queue.only == {held_up}
    assert not trials.clear(lambda req: 0)  # nobody was cleared: room is being made
    assert trials.clear(lambda req: 8)
    assert other in queue.only


def test_who_loses_its_memory_to_one_that_was_cleared_is_next() -> None:
    queue = WaitingQueue("fcfs", lambda req: 0)
    trials = Trials(queue)
    cleared, held_up = (Suspect() for _ in range(2))
    trials.accuse({cleared: 8, held_up: 8, Suspect(): 8, Suspect(): 8})
    cleared.state = held_up.state = ReqStage.RUNNING
    assert not trials.clear(lambda req: 8 if req is cleared else 4, others_hold=True)  # the other one computes still
    held_up.state = ReqStage.WAITING
    assert trials.clear(lambda req: 8 if req is cleared else 4, others_hold=True)
    assert queue.only == {held_up}
    assert not trials.clear(lambda req: 0), "nobody holds any: it cannot be that"


class Suspect:
    """As much of a request as a trial looks at."""

    state = ReqStage.WAITING
