"""The scheduler's queue as the front end knows it: its room, and when clients are asked to come back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bough.errors import Overloaded
from bough.ipc.messages import FinishReason
from bough.managers.generation import failure_of
from bough.managers.scheduler_queue import LONGEST_RETRY_AFTER, MEMORY_SECONDS, SchedulerQueue


def states(*sent: bool) -> Any:
    return [SimpleNamespace(sent=each) for each in sent]


def requests(*sizes: int) -> Any:
    return [SimpleNamespace(rids=["x"] * size) for size in sizes]


def after(*waits: float) -> float:
    queue = SchedulerQueue(None)
    for seconds in waits:
        queue.note_wait(seconds)
    return queue.retry_after


def test_it_is_full_at_the_limit_and_has_room_once_an_output_is_gone() -> None:
    queue = SchedulerQueue(3)
    queue.acquire(states(True, True))
    assert not queue.is_full
    queue.check_room(requests(3))
    queue.acquire(states(True, True))
    assert queue.is_full
    assert queue.num_taken == 4
    unsent, *sent = states(False, True, True)
    queue.release(unsent)
    assert queue.is_full
    for state in sent:
        queue.release(state)
    assert not queue.is_full
    assert queue.num_taken == 2


def test_without_a_limit_there_is_always_room() -> None:
    queue = SchedulerQueue(None)
    queue.acquire(states(*[True] * 100))
    assert not queue.is_full
    queue.check_room(requests(1))


def test_requests_that_would_never_fit_are_left_to_the_scheduler() -> None:
    queue = SchedulerQueue(3)
    queue.acquire(states(True, True, True))
    with pytest.raises(Overloaded) as raised:
        queue.check_room(requests(1, 3))
    assert raised.value.code == "queue_full"
    queue.check_room(requests(1, 4))


def test_clients_are_asked_to_wait_as_long_as_outputs_did_of_late() -> None:
    assert after() == 1.0, "nothing is known"
    assert after(*[0.2] * 50) == 1.0
    assert after(*[20.0] * 60) == pytest.approx(20.0, rel=1e-3)
    assert after(*[50.0] * 60, *[5.0] * 60) == pytest.approx(5.0, rel=1e-2)
    assert after(*[8.0] * 60, 40.0) == pytest.approx(12.0, rel=1e-2), "one says little"
    assert after(*[3600.0] * 60) == LONGEST_RETRY_AFTER


def test_the_first_wait_counts_and_what_was_long_ago_does_not() -> None:
    now = 100.0
    queue = SchedulerQueue(None, lambda: now)
    queue.note_wait(30.0)
    assert queue.retry_after == 30.0
    now += MEMORY_SECONDS
    assert queue.retry_after == 30.0
    now += 1.0
    assert queue.retry_after == 1.0
    queue.note_wait(4.0)
    assert queue.retry_after == 4.0


def test_a_queue_that_the_scheduler_finds_full_or_too_slow_is_told_alike() -> None:
    queue = SchedulerQueue(None)
    queue.note_wait(7.0)

    def told(code: str) -> float:
        failure = failure_of(FinishReason(type="abort", message="no", status_code=503, code=code), queue)
        assert isinstance(failure, Overloaded)
        return failure.retry_after

    assert told("queue_full") == told("queue_timeout") == 7.0
    assert told("overloaded") == 1.0
