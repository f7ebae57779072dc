"""When clients are told to come back: as late as outputs have had to wait, within bounds."""

from __future__ import annotations

import pytest

from bough.errors import Overloaded
from bough.ipc.messages import FinishReason
from bough.managers.native_output import failure_of
from bough.managers.queue_wait import LONGEST_RETRY_AFTER, MEMORY_SECONDS, QueueWait


def after(*waits: float) -> float:
    wait = QueueWait()
    for seconds in waits:
        wait.note(seconds)
    return wait.retry_after


def test_it_is_a_second_until_something_is_known_and_where_nothing_waits() -> None:
    assert after() == 1.0
    assert after(*[0.2] * 50) == 1.0


def test_it_is_what_outputs_have_waited_of_late() -> None:
    assert after(*[20.0] * 60) == pytest.approx(20.0, rel=1e-3)
    assert after(*[50.0] * 60, *[5.0] * 60) == pytest.approx(5.0, rel=1e-2)
    assert after(*[8.0] * 60, 40.0) == pytest.approx(12.0, rel=1e-2), "one says little"


def test_the_first_wait_counts_and_what_was_long_ago_does_not() -> None:
    now = 100.0
    wait = QueueWait(lambda: now)
    wait.note(30.0)
    assert wait.retry_after == 30.0
    now += MEMORY_SECONDS
    assert wait.retry_after == 30.0
    now += 1.0
    assert wait.retry_after == 1.0
    wait.note(4.0)
    assert wait.retry_after == 4.0


def test_it_has_a_bound() -> None:
    assert after(*[3600.0] * 60) == LONGEST_RETRY_AFTER


def test_a_queue_that_the_scheduler_finds_full_or_too_slow_is_told_alike() -> None:
    wait = QueueWait()
    wait.note(7.0)

    def told(code: str) -> float:
        failure = failure_of(FinishReason(type="abort", message="no", status_code=503, code=code), wait)
        assert isinstance(failure, Overloaded)
        return failure.retry_after

    assert told("queue_full") == told("queue_timeout") == 7.0
    assert told("overloaded") == 1.0
