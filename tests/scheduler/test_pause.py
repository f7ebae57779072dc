"""A scheduler that is paused computes nothing, and then goes on as if nothing had happened."""

from __future__ import annotations

import pytest

from bough.ipc.messages import ControlReq
from bough.scheduler.req import ReqState
from tests.scheduler.harness import Harness, prompt_of


def call(harness: Harness, method: str, **params: str) -> None:
    (reply,) = harness.scheduler.process_input_requests([ControlReq("1", method, params)])
    assert reply.success, reply.message


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("mode", ["retract", "in_place"])
def test_requests_go_on_where_they_were(mode: str, overlap: bool) -> None:
    harness = Harness(overlap=overlap)
    prompts = {rid: prompt_of(30, seed) for seed, rid in enumerate("abc")}
    for rid in "ab":
        harness.submit(prompts[rid], rid=rid, max_new_tokens=20)
    for _ in range(6):
        harness.step()
    call(harness, "pause_generation", mode=mode)
    assert harness.scheduler.internal_state()["paused"]
    states = {req.state for req in harness.scheduler.requests}
    assert states == {ReqState.WAITING if mode == "retract" else ReqState.RUNNING}
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


@pytest.mark.parametrize("overlap", [False, True])
def test_requests_end_if_that_is_wanted(overlap: bool) -> None:
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
    assert harness.scheduler.internal_state()["kv_discrepancy"] is None
    harness.close()
