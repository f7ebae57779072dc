"""A scheduler that is paused computes nothing, and then goes on as if nothing had happened."""

from __future__ import annotations

import pytest

from bough.ipc.messages import ControlReply, ControlReq, Heartbeat, ShutdownReq, ToScheduler
from bough.scheduler.req import ReqStage
from bough.step_plan import StepPlan, StepResult
from tests.scheduler.harness import Harness, prompt_of


def call(harness: Harness, method: str, **params: str) -> None:
    replies = harness.scheduler.process_input_requests([ControlReq("1", method, params)])
    if not replies:
        harness.step()
        replies = harness.scheduler.process_input_requests([])
    (reply,) = replies
    assert reply.success, reply.message


def test_requests_go_on_where_they_were() -> None:
    for overlap in [False, True]:
        for mode in ["retract", "in_place"]:
            harness = Harness(overlap=overlap)
            prompts = {rid: prompt_of(30, seed) for seed, rid in enumerate("abc")}
            for rid in "ab":
                harness.submit(prompts[rid], rid=rid, max_new_tokens=20)
            for _ in range(6):
                harness.step()
            call(harness, "pause_generation", mode=mode)
            assert harness.scheduler.reports.internal_state()["paused"]
            states = {req.state for req in harness.scheduler.requests}
            assert states == {ReqStage.WAITING if mode == "retract" else ReqStage.RUNNING}
            num_steps = len(harness.worker.steps)
            harness.submit(prompts["c"], rid="c", max_new_tokens=20)
            for _ in range(5):
                assert not harness.step(), "nothing to do"
            assert len(harness.worker.steps) == num_steps
            call(harness, "continue_generation")
            harness.run()
            harness.close()
            for rid, prompt in prompts.items():
                assert harness.outputs[rid].token_ids == harness.expected(prompt, 20)


def test_requests_end_if_that_is_wanted() -> None:
    for overlap in [False, True]:
        harness = Harness(overlap=overlap, max_running_requests=2)
        for seed, rid in enumerate("abcd"):
            harness.submit(prompt_of(30, seed), rid=rid, max_new_tokens=200)
        for _ in range(6):
            harness.step()
        call(harness, "pause_generation", mode="abort")
        assert not harness.scheduler.has_unfinished_requests()
        for rid in "abcd":
            reason = harness.outputs[rid].finish_reason
            assert reason is not None
            assert reason.type == "abort"
            assert reason.status_code is None
        call(harness, "continue_generation")
        harness.submit(prompt_of(30, 9), rid="e")
        harness.run()
        harness.close()
        assert harness.outputs["e"].token_ids == harness.expected(prompt_of(30, 9), 8)


def test_requests_can_be_ended_while_nothing_is_computed() -> None:
    harness = Harness()
    harness.submit(prompt_of(30), rid="a", max_new_tokens=50)
    for _ in range(3):
        harness.step()
    call(harness, "pause_generation", mode="in_place")
    harness.abort("a")
    assert not harness.scheduler.has_unfinished_requests()
    harness.submit(prompt_of(30), rid="late", max_new_tokens=50, timeout=0.0)
    harness.step()
    assert harness.outputs["late"].finish_reason is not None
    call(harness, "continue_generation")
    harness.step()
    assert harness.scheduler.reports.internal_state()["kv_discrepancy"] is None
    harness.close()


def test_the_cache_can_be_flushed_once_all_have_given_their_memory_back() -> None:
    for overlap in [False, True]:
        harness = Harness(overlap=overlap, max_running_requests=2)
        prompts = {rid: prompt_of(30, seed) for seed, rid in enumerate("abc")}
        for rid, prompt in prompts.items():
            harness.submit(prompt, rid=rid, max_new_tokens=20)
        for _ in range(6):
            harness.step()
        call(harness, "pause_generation", mode="in_place")
        (refused,) = harness.scheduler.process_input_requests([ControlReq("2", "flush_cache")])
        assert not refused.success
        call(harness, "pause_generation", mode="retract")
        assert harness.scheduler.requests.kv.usage().evictable
        call(harness, "flush_cache")
        assert harness.scheduler.requests.kv.usage().free == harness.scheduler.requests.kv.usage().total
        call(harness, "continue_generation")
        harness.run()
        harness.close()
        for rid, prompt in prompts.items():
            assert harness.outputs[rid].token_ids == harness.expected(prompt, 20)


def test_a_pause_that_ends_at_once_has_been_one_all_the_same() -> None:
    harness = Harness(overlap=True)
    harness.submit(prompt_of(30), rid="a", max_new_tokens=20)
    harness.submit(prompt_of(30, 1), rid="b", max_new_tokens=20)
    for _ in range(4):
        harness.step()
    assert harness.scheduler.requests.in_flight
    calls: list[ToScheduler] = [
        ControlReq("1", "pause_generation", {"mode": "retract"}),
        ControlReq("2", "continue_generation"),
    ]
    assert harness.scheduler.process_input_requests(calls) == []
    harness.step()
    replies = harness.scheduler.process_input_requests([])
    assert [(reply.call_id, reply.success) for reply in replies] == [("1", True), ("2", True)]
    assert harness.scheduler.reports.stats().num_retracted_total == 2
    assert not harness.scheduler.pause.is_on
    harness.run()
    harness.close()
    assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 20)


def test_a_call_that_comes_when_a_pause_can_begin_does_not_overtake_it() -> None:
    for overlap in [True, "ahead"]:
        harness = Harness(overlap=overlap)
        harness.submit(prompt_of(30), rid="a", max_new_tokens=20)
        for _ in range(4):
            harness.step()
        scheduler = harness.scheduler
        assert scheduler.process_input_requests([ControlReq("1", "pause_generation", {"mode": "in_place"})]) == []
        while scheduler.requests.in_flight:
            harness.step()
        replies = scheduler.process_input_requests([ControlReq("2", "continue_generation")])
        assert [(reply.call_id, reply.success) for reply in replies] == [("1", True), ("2", True)]
        assert not scheduler.pause.is_on
        harness.run()
        harness.close()
        assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 20)


def test_a_device_that_breaks_during_a_pause_ends_the_scheduler() -> None:
    harness = Harness(overlap=True)
    harness.submit(prompt_of(30), max_new_tokens=50)
    original, results = harness.worker.worker.forward_batch_generation, iter([True])

    def forward(plan: StepPlan) -> StepResult:
        if not next(results, False):
            raise RuntimeError("device error")
        return original(plan)

    harness.worker.worker.forward_batch_generation = forward  # type: ignore[method-assign]
    harness.step()
    harness.step()
    assert harness.scheduler.requests.in_flight
    assert harness.scheduler.process_input_requests([ControlReq("1", "pause_generation", {"mode": "in_place"})]) == []
    with pytest.raises(RuntimeError, match="device error"):
        harness.step()
    harness.close()


def test_the_front_end_hears_of_a_pause_before_its_caller() -> None:
    harness = Harness()
    said: list[str] = []

    coming: list[ToScheduler] = [
        ControlReq("1", "pause_generation", {"mode": "in_place"}),
        ControlReq("2", "continue_generation"),
        ShutdownReq(),
    ]

    class Messages:
        heartbeat_due = False
        descriptors = ()

        def recv(self, timeout_s: float) -> list[ToScheduler]:
            return [coming.pop(0)] if coming else []

        def send_to_tokenizer(self, message: ControlReply | Heartbeat) -> None:
            if isinstance(message, ControlReply):
                said.append(f"reply {message.call_id}")
            else:
                assert message.stats is not None
                said.append(f"paused: {message.stats.paused}")

    harness.scheduler.run_event_loop(Messages())
    assert said == ["paused: True", "reply 1", "paused: False", "reply 2"]


def test_a_pause_of_an_unknown_kind_is_none() -> None:
    for params in [{}, {"mode": "bogus"}, {"mode": None}]:
        harness = Harness()
        harness.submit(prompt_of(20), max_new_tokens=10)
        harness.step()
        (reply,) = harness.scheduler.process_input_requests([ControlReq("1", "pause_generation", params)])
        assert not reply.success
        assert "mode must be one of abort, retract, in_place" in reply.message
        assert not harness.scheduler.pause.is_on
        harness.run()


def test_the_accounts_are_checked_when_a_pause_has_ended_all_requests() -> None:
    harness = Harness()
    harness.submit(prompt_of(20), max_new_tokens=10)
    harness.step()
    call(harness, "pause_generation", mode="in_place")
    harness.step()
    harness.scheduler.requests.kv.req_to_token.alloc()
    harness.abort(abort_all=True)
    with pytest.raises(RuntimeError, match="1 of 8 request slots are taken"):
        harness.step()
