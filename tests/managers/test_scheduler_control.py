"""Control calls to one scheduler and to several."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bough.config.ranks import SCHEDULER, ParallelLayout, ProcessKey
from bough.errors import EngineDead, RequestFailed
from bough.ipc.messages import ControlReply, ControlReq
from bough.managers.scheduler_control import OutcomeUnknown, SchedulerControl, merged
from tests.tables import table

ONE, TWO = ParallelLayout(dp_size=2).leaders


def control_of_two(replies: list[ControlReply]) -> SchedulerControl:
    """Calls of it are answered by these replies, whatever their ids."""

    def send(request: ControlReq) -> None:
        for reply in replies:
            reply.call_id = request.call_id
            control.on_reply(reply)

    control = SchedulerControl(send, (ONE, TWO))
    return control


def reply_of(key: ProcessKey, *, success: bool = True, message: str = "", **data: Any) -> ControlReply:
    rules = {"total": "sum", "least": "min", "most": "max", "lens": "union", "paths": "union", "loads": "sums"}
    return ControlReply("", key, success, message, data, rules)


def test_replies_are_told_apart_and_merged_by_their_rules() -> None:
    first = reply_of(ONE, total=3, least=True, most=1.0, lens={"a": 1}, paths=["x"], name="w", loads=[[1, 2], [3]])
    second = reply_of(TWO, total=4, least=False, most=2.0, lens={"b": 2}, paths=["y"], name="v", loads=[[4, 5], [6]])
    control = control_of_two([second, first])  # in whatever order they arrive
    assert asyncio.run(control.call_each("m")) == [first, second]
    expected = {"total": 7, "least": False, "most": 2.0, "lens": {"a": 1, "b": 2}, "paths": ["x", "y"], "name": "w"}
    assert asyncio.run(control.call("m")).data == {**expected, "loads": [[5, 7], [9]]}


def test_a_call_that_fails_on_one_scheduler_has_failed_and_names_it() -> None:
    control = control_of_two([reply_of(ONE), reply_of(TWO, success=False, message="no room")])
    reply = asyncio.run(control.call("m"))
    assert not reply.success
    assert reply.message == "scheduler DP1: no room"


def test_all_schedulers_carry_out_a_call_or_none() -> None:
    stages: list[str] = []
    fails_at = ""

    def send(request: ControlReq) -> None:
        stages.append(request.stage)
        for key in (ONE, TWO):
            control.on_reply(ControlReply(request.call_id, key, key == ONE or request.stage != fails_at))

    control = SchedulerControl(send, (ONE, TWO))
    for fails_at, expected in (
        ("", ["promise", "run", "release"]),
        ("promise", ["promise", "withdraw"]),
        ("run", ["promise", "run", "withdraw"]),
    ):
        stages.clear()
        assert asyncio.run(control.call_all_or_none("m")).success == (not fails_at)
        assert stages == expected


def test_what_is_loaded_is_prepared_on_all_schedulers_before_any_runs() -> None:
    sent: list[str] = []
    answered = True

    def send(request: ControlReq) -> None:
        sent.append(request.stage)
        for key in (ONE, TWO):
            if request.stage != "run" or key == ONE or answered:
                control.on_reply(ControlReply(request.call_id, key, key == ONE or request.stage != fails_at))

    control = SchedulerControl(send, (ONE, TWO))
    for fails_at, expected in (
        ("", ["promise", "prepare", "run", "release"]),
        ("prepare", ["promise", "prepare", "withdraw"]),
    ):
        sent.clear()
        replies = asyncio.run(control.load("m", {}, 60.0))
        assert all(reply.success for reply in replies) == (not fails_at)
        assert sent == expected
    answered, fails_at = False, ""
    with pytest.raises(OutcomeUnknown, match="scheduler DP1 did not answer m"):
        asyncio.run(control.load("m", {}, 0.01))


def test_promises_are_withdrawn_if_one_of_them_does_not_come() -> None:
    sent: list[ControlReq] = []
    control = SchedulerControl(sent.append, (ONE, TWO))
    with pytest.raises(RequestFailed, match="the scheduler DP0 and the scheduler DP1 did not answer m"):
        asyncio.run(control.call_all_or_none("m", timeout=0.01))
    assert [request.stage for request in sent] == ["promise", "withdraw"]
    assert sent[0].call_id == sent[1].call_id


def test_loads_are_made_one_after_the_other_and_calls_wait_for_the_last() -> None:
    stages: list[tuple[str, str]] = []

    def send(request: ControlReq) -> None:
        stages.append((request.method, request.stage))
        for key in (ONE, TWO):
            loop.call_later(0.01, control.on_reply, ControlReply(request.call_id, key, request.method != "b"))

    async def run() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        given_up = asyncio.ensure_future(control.load("a", {}, 60.0))
        refused = asyncio.ensure_future(control.load("b", {}, 60.0))
        last = asyncio.ensure_future(control.load("c", {}, 60.0))
        await asyncio.sleep(0.005)
        call = asyncio.ensure_future(control.call("d"))
        given_up.cancel()
        await asyncio.wait({refused})
        assert control.is_loading
        await last
        assert not control.is_loading
        await call

    loop: asyncio.AbstractEventLoop
    control = SchedulerControl(send, (ONE, TWO))
    asyncio.run(run())
    assert stages == [
        *(("a", "promise"), ("a", "withdraw"), ("b", "promise"), ("b", "withdraw")),
        *(("c", "promise"), ("c", "prepare"), ("c", "run"), ("c", "release"), ("d", "run")),
    ]


@table("replies, missing", [([], "scheduler DP0 and the scheduler DP1"), ([reply_of(ONE)], "scheduler DP1")])
def test_a_missing_reply_names_its_scheduler(replies: list[ControlReply], missing: str) -> None:
    with pytest.raises(RequestFailed, match=f"^the {missing} did not answer m in") as caught:
        asyncio.run(control_of_two(replies).call("m", timeout=0.01))
    assert caught.value.status_code == 504


def test_replies_of_others_and_second_ones_count_for_nothing() -> None:
    control = control_of_two([reply_of(ONE, n=1), reply_of(ONE, n=2), reply_of(SCHEDULER), reply_of(TWO, n=3)])
    assert [reply.data["n"] for reply in asyncio.run(control.call_each("m"))] == [1, 3]


def test_death_ends_calls_that_wait() -> None:
    async def run() -> None:
        control = SchedulerControl(lambda request: None, (ONE, TWO))
        call = asyncio.ensure_future(control.call("m"))
        await asyncio.sleep(0)
        control.fail_all(EngineDead("gone"))
        with pytest.raises(EngineDead, match="gone"):
            await call

    asyncio.run(run())


def test_the_reply_of_one_scheduler_stays_as_it_is() -> None:
    reply = reply_of(SCHEDULER, success=False, message="no room")
    assert merged([reply]) is reply
