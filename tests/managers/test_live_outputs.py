"""The life of outputs, whatever happens to them and in whatever order: what they take is given back exactly once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.errors import BadRequest, EngineDead, Overloaded
from bough.ipc.messages import AbortReq, TokenizedGenerateReqInput
from bough.managers import live_outputs
from bough.managers.io_struct import GenerateRequest
from bough.managers.live_outputs import LiveOutputs
from bough.managers.req_state import ReadySignal, ReqState
from bough.managers.request_log import RequestLog
from bough.managers.request_records import RequestRecords
from bough.managers.scheduler_queue import SchedulerQueue
from bough.managers.waiting_prompts import WaitingPrompts
from bough.observability.metrics import Metrics
from bough.sampling.sampling_params import SamplingParams

LIMIT = 1 << 20


class Life:
    """Live outputs beside a scheduler that remembers what it was sent."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.sent: list[Any] = []
        self.metrics = Metrics("model")
        records = RequestRecords(self.metrics.requests, RequestLog(None))
        queue = SchedulerQueue(8)
        self.outputs = LiveOutputs(self.sent.append, records, WaitingPrompts(limit, 1000, queue), queue)

    def add(self, *rids: str) -> list[ReqState]:
        """The outputs of one request, which waits."""
        params = SamplingParams(n=len(rids))
        request = GenerateRequest(rids=list(rids), input_ids=[1, 2, 3], sampling_params=params)
        return self.outputs.add([request], ReadySignal())

    def send(self, states: list[ReqState]) -> int:
        """Send their request; how many ended instead."""
        rids = [state.rid for state in states]
        message = TokenizedGenerateReqInput(
            rids=rids, input_ids=[1, 2, 3], sampling_params=states[0].obj.sampling_params
        )
        return len(self.outputs.send(message, states))

    @property
    def aborts(self) -> list[str]:
        """Ids of which the scheduler was told that they end."""
        return [message.rid for message in self.sent if isinstance(message, AbortReq)]


def test_output_that_nobody_waits_for_keeps_its_id_until_the_last_word_on_it() -> None:
    life = Life()
    states = life.add("a")
    life.send(states)
    life.outputs.leave(states)
    assert life.aborts == ["a"]
    assert life.outputs.queue.num_taken == 0, "its place is free at once"
    assert "a" in life.outputs.by_id

    async def reuse() -> None:
        waiting = asyncio.ensure_future(life.outputs.wait_until_free(["a"]))
        await asyncio.sleep(0)
        assert not waiting.done()
        life.outputs.forget(states[0])
        await waiting

    asyncio.run(reuse())
    assert life.outputs.waiting.num_bytes == 0


def test_call_that_waits_for_its_id_can_be_aborted() -> None:
    life = Life()
    states = life.add("a")
    life.send(states)
    life.outputs.leave(states)

    async def wait() -> set[str]:
        waiting = asyncio.ensure_future(life.outputs.wait_until_free(["a", "b"]))
        await asyncio.sleep(0)
        life.outputs.abort("a")
        life.outputs.forget(states[0])
        return await waiting

    aborted = asyncio.run(wait())
    assert aborted == {"a"}
    request = GenerateRequest(rids=["a"], input_ids=[1], sampling_params=SamplingParams())
    again = life.outputs.add([request], ReadySignal(), aborted)
    num_sent = len(life.sent)
    assert life.send(again) == 1
    assert len(life.sent) == num_sent


def test_id_in_use_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life()
    states = life.add("a")
    with pytest.raises(BadRequest, match="in use"):
        asyncio.run(life.outputs.wait_until_free(["b", "a"]))
    with pytest.raises(BadRequest, match="twice"):
        asyncio.run(life.outputs.wait_until_free(["b", "b"]))
    life.send(states)
    life.outputs.abandon(states[0])
    monkeypatch.setattr(live_outputs, "REUSE_TIMEOUT", 0.01)
    with pytest.raises(BadRequest, match="in use"):
        asyncio.run(life.outputs.wait_until_free(["a"]))


def test_request_is_sent_unless_all_of_it_was_aborted() -> None:
    life = Life()
    both, one = life.add("a", "b"), life.add("c", "d")
    life.outputs.abort("a")
    life.outputs.abort("b")
    life.outputs.abort_one("d")
    assert life.send(both) == 2
    assert life.sent == [], "the scheduler never hears of them"
    assert life.send(one) == 0
    assert life.aborts == ["d"]
    assert life.outputs.queue.num_taken == 2


def test_call_for_which_there_is_no_memory_leaves_nothing_behind() -> None:
    life = Life(limit=3000)
    life.add("a", "b")
    held = life.outputs.waiting.num_bytes
    with pytest.raises(Overloaded):
        life.add("c")
    assert list(life.outputs.by_id) == ["a", "b"]
    assert life.outputs.waiting.num_bytes == held


def test_dead_engine_is_told_nothing() -> None:
    life = Life()
    states = life.add("a")
    life.send(states)
    late = life.add("b")
    num_sent = len(life.sent)
    life.outputs.fail_all(EngineDead("gone"))
    assert not life.outputs.by_id
    assert life.metrics.requests.num_requests == 2
    life.outputs.leave([*states, *late])
    later = life.add("c")
    life.outputs.refuse([later[0].obj], later, EngineDead("gone"))
    assert len(life.sent) == num_sent
    assert not life.outputs.by_id
    assert life.outputs.queue.num_taken == life.outputs.waiting.num_bytes == 0


EVENTS = st.sampled_from(["add", "send", "result", "abort", "leave", "refuse", "last"])


@given(st.lists(st.tuples(EVENTS, st.integers(0, 7)), max_size=60), st.booleans())
def test_what_outputs_take_is_given_back_once(events: list[tuple[str, int]], dies: bool) -> None:
    life = Life()
    outputs = life.outputs
    calls: list[list[ReqState]] = []
    for number, (event, which) in enumerate(events):
        if event == "add":
            calls.append(life.add(*(f"{number}_{sample}" for sample in range(1 + which % 3))))
        if not calls:
            continue
        states = calls[which % len(calls)]
        alive = [state for state in states if outputs.by_id.get(state.rid) is state]
        if event == "send" and len(alive) == len(states) and not any(s.sent or s.abandoned for s in states):
            if life.send(states):
                for state in states:
                    state.finished = True
                    outputs.forget(state)
        elif event == "result":
            for state in alive:
                if state.sent:
                    outputs.waiting.remove(state)
        elif event == "abort":
            outputs.abort(states[0].rid)
        elif event == "leave":
            outputs.leave(states)
        elif event == "refuse":
            outputs.refuse([states[0].obj], states, ValueError("of the front end"))
        elif event == "last" and alive and alive[0].sent:
            alive[0].finished = True
            outputs.forget(alive[0])
        counted = [s for s in outputs.by_id.values() if s.sent and not s.abandoned]
        assert outputs.queue.num_taken == len(counted)
        assert outputs.waiting.num_bytes == sum(state.waiting_bytes for state in outputs.by_id.values())
    if dies:
        outputs.fail_all(EngineDead("gone"))
        assert not outputs.by_id
        assert outputs.queue.num_taken == outputs.waiting.num_bytes == 0
    # Every end is recorded once, but for last words, which the manager tells itself.
    told_here = sum(s.abandoned or (dies and not s.finished) for states in calls for s in states)
    assert life.metrics.requests.num_requests == told_here
