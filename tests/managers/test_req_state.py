"""Whoever waits for outputs gets all news in order, though some are dealt with the moment they arrive."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.errors import RequestFailed
from bough.ipc.messages import FinishReason, OutputDelta
from bough.managers.generation import Generation
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import Outbox, ReadySignal, ReqState, write_all
from bough.managers.scheduler_queue import SchedulerQueue
from bough.observability.metrics import STAGES
from bough.sampling.sampling_params import SamplingParams

REQUEST = GenerateRequest(rids=["r"], prompt_param="text", sampling_params=SamplingParams())


def make_generation(outputs: int = 1) -> tuple[Generation, ReadySignal]:
    request = GenerateRequest(
        rids=[str(index) for index in range(outputs)],
        prompt_param="text",
        sampling_params=SamplingParams(),
        stream=True,
    )
    signal = ReadySignal()
    states = [ReqState(rid, index, request, signal, 0.0) for index, rid in enumerate(request.rids)]
    signal.expect(outputs, lambda: None)
    return Generation(states, signal, SchedulerQueue(None)), signal


def push(state: ReqState, token: int, *, last: bool = False, may_sink: bool = True) -> None:
    outbox: Outbox | None = [] if may_sink else None
    state.push(OutputDelta(state.rid, [token], "", FinishReason("length") if last else None), outbox)


def on_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """A test that needs an event loop."""

    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Sink:
    """Notes what it takes; refuses while ``closed``."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.closed = False

    def ready(self) -> bool:
        return True

    def take(self, state: ReqState, delta: OutputDelta, outbox: Outbox) -> bool:
        if not self.closed:
            self.taken += delta.token_ids
        return not self.closed


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@on_loop
async def test_the_waiter_sleeps_until_the_end_while_its_sink_takes_everything() -> None:
    generation, _ = make_generation()
    sink = Sink()
    waiting = asyncio.create_task(generation.deltas(sink))
    await turn()
    for token in range(5):
        push(generation.states[0], token)
        await turn()
    assert sink.taken == [0, 1, 2, 3, 4]
    assert not waiting.done()
    push(generation.states[0], 5, last=True)
    assert [delta.token_ids for _, delta in await waiting] == [[5]], "the last one is the waiter's"
    assert generation.unfinished == 0


@on_loop
async def test_nothing_overtakes_what_was_left_to_the_waiter() -> None:
    generation, _ = make_generation(2)
    sink = Sink()
    waiting = asyncio.create_task(generation.deltas(sink))
    await turn()
    first, second = generation.states
    sink.closed = True
    push(first, 1)
    sink.closed = False
    push(first, 2)
    push(second, 3)
    assert [delta.token_ids for _, delta in await waiting] == [[1], [2], [3]]
    push(second, 4)  # nobody waits at present
    assert sink.taken == []
    assert [delta.token_ids for _, delta in await generation.deltas(sink)] == [[4]]


@on_loop
async def test_a_failure_reaches_the_waiter_and_its_sink_gets_no_more() -> None:
    generation, signal = make_generation()
    sink = Sink()
    waiting = asyncio.create_task(generation.deltas(sink))
    await turn()
    signal.fail(RequestFailed("gone"))
    push(generation.states[0], 1)
    with pytest.raises(RequestFailed, match="gone"):
        await waiting
    assert sink.taken == []


@on_loop
async def test_a_waiter_that_has_left_leaves_no_sink_behind() -> None:
    generation, signal = make_generation()
    waiting = asyncio.create_task(generation.deltas(Sink()))
    await turn()
    waiting.cancel()
    await turn()
    assert signal.sink is None


@given(st.lists(st.sampled_from(["push", "lag", "close", "open", "turn"]), max_size=40), st.integers(1, 3))
def test_all_comes_once_and_in_order_however_sink_and_waiter_alternate(steps: list[str], outputs: int) -> None:
    async def run() -> None:
        generation, _ = make_generation(outputs)
        sink = Sink()
        got = sink.taken

        async def wait() -> None:
            while generation.unfinished:
                for _, delta in await generation.deltas(sink):
                    got.extend(delta.token_ids)

        waiting = asyncio.create_task(wait())
        sent = 0
        for step in steps:
            if step in ("push", "lag"):
                push(generation.states[sent % outputs], sent, may_sink=step == "push")
                sent += 1
            elif step == "turn":
                await turn()
            else:
                sink.closed = step == "close"
        for state in generation.states:
            push(state, sent, last=True)
            sent += 1
        await waiting
        for index in range(outputs):
            mine = [token for token in got if token < sent - outputs and token % outputs == index]
            assert mine == sorted(mine)
        assert sorted(got) == list(range(sent))

    asyncio.run(run())


class TestStages:
    """Where the time of an output went, without gaps."""

    @staticmethod
    def finished(**times: float) -> ReqState:
        state = ReqState("r", 0, REQUEST, ReadySignal(), created_time=1.0)
        state.sent = True
        for name, value in {"sent_time": 2.0, "queue_time": 1.0, "finished_time": 9.0, **times}.items():
            setattr(state, name, value)
        return state

    def test_each_begins_where_the_one_before_has_ended(self) -> None:
        stages = self.finished(first_token_time=5.0, last_token_time=8.0).stages()
        assert stages == {
            "tokenize": (1.0, 2.0),
            "queue": (2.0, 3.0),
            "prefill": (3.0, 5.0),
            "decode": (5.0, 8.0),
            "detokenize": (8.0, 9.0),
        }
        assert list(stages) == list(STAGES)

    def test_a_vector_is_not_decoded(self) -> None:
        assert list(self.finished(last_token_time=8.0).stages()) == ["tokenize", "queue", "prefill", "detokenize"]

    def test_what_has_not_happened_is_left_out(self) -> None:
        assert ReqState("r", 0, REQUEST, ReadySignal(), created_time=1.0).stages() == {}
        assert list(self.finished().stages()) == ["tokenize", "queue"]


class Connection(asyncio.WriteTransport):
    """Keeps what is written; a broken one raises."""

    def __init__(self, *, broken: bool = False) -> None:
        self.parts: list[bytes | bytearray | memoryview] = []
        self.broken = broken
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.broken:
            raise RuntimeError("unusable")
        self.parts.append(data)

    def abort(self) -> None:
        self.aborted = True


def test_a_connection_that_cannot_be_written_to_is_cut_and_costs_the_others_nothing() -> None:
    first, broken, last = Connection(), Connection(broken=True), Connection()
    outbox: Outbox = [(first, b"1"), (broken, b"2"), (last, b"3"), (first, b"4")]
    write_all(outbox)
    assert (first.parts, last.parts, outbox) == ([b"1", b"4"], [b"3"], [])
    assert (first.aborted, broken.aborted, last.aborted) == (False, True, False)
