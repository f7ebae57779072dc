"""Calls of workers whose callers leave, or do not wait for earlier ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bough.config.ranks import SCHEDULER
from bough.errors import Overloaded
from bough.ipc.call_values import WorkerResult, encode_result, encode_values
from bough.ipc.messages import ControlReply, ControlReq
from bough.managers.health import HealthMonitor
from bough.managers.scheduler_control import SchedulerControl
from bough.managers.worker_calls import WorkerCalls

VALUE = encode_values(None, "None")


class Scheduler:
    """Notes what it is called for, and replies when the test wants it."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self._unanswered: list[ControlReq] = []
        self.control = SchedulerControl(self._take)
        health = HealthMonitor(max_silence=60.0)
        health.set_ready()
        self.workers = WorkerCalls(self.control, health, lambda missing: None)

    def _take(self, request: ControlReq) -> None:
        if request.stage == "run":
            self.methods.append(request.params.get("method", request.method))
        self._unanswered.append(request)

    async def reply(self) -> None:
        """Reply to all that has come."""
        await asyncio.sleep(0.01)
        requests, self._unanswered = self._unanswered, []
        data = {"results": [encode_result(WorkerResult(1, "digest", VALUE))], "num_changed": 1, "num_missing": 0}
        for request in requests:
            self.control.on_reply(ControlReply(request.call_id, SCHEDULER, True, "", data))
        await asyncio.sleep(0.01)


def run(test: Callable[[Scheduler], Awaitable[None]]) -> None:
    async def run_it() -> None:
        await test(Scheduler())

    asyncio.run(run_it())


def test_a_call_begins_after_the_writing_of_one_that_its_caller_has_left() -> None:
    async def test(scheduler: Scheduler) -> None:
        first = asyncio.ensure_future(scheduler.workers.call("first"))
        await asyncio.sleep(0.01)
        first.cancel()
        second = asyncio.ensure_future(scheduler.workers.call("second"))
        for _ in range(8):  # a call and the three stages of writing, of both
            await scheduler.reply()
        assert await second == [None]
        assert scheduler.methods == ["first", "write_loaded_weights", "second", "write_loaded_weights"]
        assert first.cancelled()

    run(test)


def test_the_time_of_a_call_has_the_wait_for_an_earlier_one_and_for_weights() -> None:
    async def test(scheduler: Scheduler) -> None:
        first = asyncio.ensure_future(scheduler.workers.call("first"))
        await asyncio.sleep(0.01)
        with pytest.raises(Overloaded):
            await scheduler.workers.call("second", 0.01)
        for _ in range(4):
            await scheduler.reply()
        assert await first == [None]
        loading = asyncio.ensure_future(scheduler.control.load("load", {}, 60.0))
        await asyncio.sleep(0.01)
        with pytest.raises(Overloaded):
            await scheduler.workers.call("third", 0.01)
        for _ in range(3):
            await scheduler.reply()
        await loading
        assert scheduler.methods == ["first", "write_loaded_weights", "load"]

    run(test)
