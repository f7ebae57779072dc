"""When clients are told to come back: as late as outputs have had to wait, within bounds."""

from __future__ import annotations

import pytest

from bough.managers.queue_wait import LONGEST_RETRY_AFTER, QueueWait


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


def test_it_has_a_bound() -> None:
    assert after(*[3600.0] * 60) == LONGEST_RETRY_AFTER
