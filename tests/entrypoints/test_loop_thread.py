from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from bough.entrypoints.loop_thread import LoopThread
from bough.errors import EngineDead


async def answer() -> int:
    return 42


def during_the_next_submit(monkeypatch: pytest.MonkeyPatch, happening: Callable[[], object]) -> None:
    """Let something happen on the submitting thread while it submits, as the collector and signals do."""
    submit = asyncio.run_coroutine_threadsafe

    def interrupted(*args):
        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", submit)
        happening()
        return submit(*args)

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)


def outcome_of(work: Callable[[], object]) -> object:
    """What ``work`` returns or raises, on a thread that may hang."""
    outcomes: list[object] = []

    def run() -> None:
        try:
            outcomes.append(work())
        except EngineDead as error:
            outcomes.append(error.message)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert outcomes, "it hangs"
    return outcomes[0]


def test_collector_may_close_a_stream_while_another_is_submitted(monkeypatch):
    loop = LoopThread("test")
    closed: list[object] = []
    during_the_next_submit(monkeypatch, lambda: closed.append(loop.submit(answer()).result(5)))
    assert outcome_of(lambda: loop.call(answer())) == 42
    assert closed == [42]
    loop.close()  # a test that failed would wait for it for ever


def test_signal_handler_may_close_the_loop_while_work_is_submitted(monkeypatch):
    loop = LoopThread("test")
    during_the_next_submit(monkeypatch, loop.close)
    assert outcome_of(lambda: loop.call(answer())) == "the engine was shut down"
    assert outcome_of(lambda: loop.call(answer())) == "the engine was shut down"


def test_a_loop_that_closes_is_no_cancellation_of_coroutines_that_wait_for_it():
    loop = LoopThread("test")
    begun, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    async def close_meanwhile() -> str:
        waiting = asyncio.create_task(loop.wait_async(loop.submit(work())))
        await asyncio.to_thread(begun.wait, 5)
        await asyncio.to_thread(loop.close)
        with pytest.raises(EngineDead) as caught:
            await waiting
        return caught.value.message

    assert asyncio.run(close_meanwhile()) == "the engine was shut down"
    assert cancelled.is_set()


def test_who_waits_for_a_loop_may_be_cancelled():
    loop = LoopThread("test")
    cancelled = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    async def wait_for_answer_and_leave() -> int:
        value = await loop.wait_async(loop.submit(answer()))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(loop.wait_async(loop.submit(work())), 0.1)
        return value

    assert asyncio.run(wait_for_answer_and_leave()) == 42
    assert cancelled.wait(5)
    loop.close()
