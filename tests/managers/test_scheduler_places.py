"""Places of the scheduler: when they are taken, and who is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bough.errors import Overloaded
from bough.managers.scheduler_places import SchedulerPlaces


def states(*sent: bool) -> Any:
    return [SimpleNamespace(sent=each) for each in sent]


def requests(*sizes: int) -> Any:
    return [SimpleNamespace(rids=["x"] * size) for size in sizes]


def test_places_are_taken_at_the_limit_and_free_once_an_output_is_gone() -> None:
    places = SchedulerPlaces(3)
    places.acquire(states(True, True))
    assert not places.are_taken
    places.acquire(states(True, True))
    assert places.are_taken
    assert places.num_taken == 4
    unsent, *sent = states(False, True, True)
    places.release(unsent)
    assert places.are_taken
    for state in sent:
        places.release(state)
    assert not places.are_taken
    assert places.num_taken == 2


def test_without_a_limit_there_is_always_a_place() -> None:
    places = SchedulerPlaces(None)
    places.acquire(states(*[True] * 100))
    assert not places.are_taken


def test_requests_that_would_never_fit_are_left_to_the_scheduler() -> None:
    places = SchedulerPlaces(3)
    with pytest.raises(Overloaded) as raised:
        places.refuse(requests(1, 3))
    assert raised.value.code == "queue_full"
    places.refuse(requests(1, 4))
