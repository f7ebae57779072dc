from __future__ import annotations

import math
import time

import pytest

from bough.scheduler import deadlines
from tests.scheduler.harness import Harness, prompt_of


class Clock:
    """Time as the deadlines see it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        real = time.monotonic
        monkeypatch.setattr(deadlines.time, "monotonic", lambda: real() + self._ahead)

    def pass_(self, seconds: float) -> None:
        self._ahead += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_who_waits_too_long_is_refused_and_who_has_begun_is_not(clock: Clock) -> None:
    harness = Harness(max_running_requests=1, queue_timeout=5.0)
    (running,) = harness.submit(prompt_of(10), max_new_tokens=30)
    (waiting,) = harness.submit(prompt_of(10, 1), max_new_tokens=30)
    harness.step()
    clock.pass_(6)
    harness.step()
    reason = harness.outputs[waiting].finish_reason
    assert reason is not None
    assert (reason.type, reason.status_code, reason.code) == ("abort", 503, "queue_timeout")
    harness.run()
    assert harness.outputs[running].token_ids == harness.expected(prompt_of(10), 30)
    stats = harness.scheduler.reports.stats()
    assert (stats.num_queue_timeouts_total, stats.num_timeouts_total) == (1, 0)


def test_request_whose_time_is_over_ends_with_what_there_is(clock: Clock) -> None:
    for overlap in [False, True]:
        harness = Harness(overlap=overlap)
        (timed,) = harness.submit(prompt_of(10), max_new_tokens=30, timeout=3.0)
        (other,) = harness.submit(prompt_of(10, 1), max_new_tokens=30)
        for _ in range(5):
            harness.step()
        clock.pass_(4)
        harness.run()
        harness.close()
        output = harness.outputs[timed]
        assert output.finish_reason is not None
        assert (output.finish_reason.type, output.finish_reason.status_code) == ("abort", None)
        assert 0 < len(output.token_ids) < 30
        assert output.token_ids == harness.expected(prompt_of(10), 30)[: len(output.token_ids)]
        assert harness.outputs[other].token_ids == harness.expected(prompt_of(10, 1), 30)
        assert harness.scheduler.reports.stats().num_timeouts_total == 1


def test_request_that_has_nothing_when_its_time_is_over_fails(clock: Clock) -> None:
    harness = Harness(max_running_requests=1, request_timeout=2.0)
    harness.submit(prompt_of(10), max_new_tokens=30)
    (waiting,) = harness.submit(prompt_of(10, 1), timeout=100.0)
    harness.step()
    clock.pass_(3)
    harness.run()
    reason = harness.outputs[waiting].finish_reason
    assert reason is not None
    assert (reason.status_code, reason.code) == (504, "timeout"), "the server's limit is shorter than its own"


def test_time_counts_from_the_arrival_in_the_main_process() -> None:
    cases = [
        ({"queue_timeout": 5.0}, {}, "queue_timeout"),
        ({"request_timeout": 5.0}, {}, "timeout"),
        ({}, {"timeout": 5.0}, "timeout"),
    ]
    for options, fields, code in cases:
        harness = Harness(**options)
        now = time.monotonic()
        (late,) = harness.submit(prompt_of(10), arrival_time=now - 6, **fields)
        (timely,) = harness.submit(prompt_of(10, 1), arrival_time=now, **fields)
        (later_than_now,) = harness.submit(prompt_of(10, 2), arrival_time=math.nan, **fields)
        harness.run()
        reason = harness.outputs[late].finish_reason
        assert reason is not None
        assert reason.code == code
        assert not harness.outputs[late].token_ids
        for rid in (timely, later_than_now):
            assert len(harness.outputs[rid].token_ids) == 8


def test_deadlines_of_requests_that_have_ended_are_forgotten() -> None:
    harness = Harness(queue_timeout=3600.0)
    for seed in range(deadlines.MAX_STALE_ENTRIES + 50):
        harness.submit(prompt_of(2, seed), max_new_tokens=1)
        harness.run()
    assert len(harness.scheduler.arrivals.deadlines._heap) <= deadlines.MAX_STALE_ENTRIES + 3


def test_an_id_that_is_used_again_has_a_time_of_its_own(clock: Clock) -> None:
    harness = Harness()
    harness.submit(prompt_of(10), rid="same", timeout=3.0)
    harness.run()
    del harness.outputs["same"]
    harness.submit(prompt_of(10), rid="same", max_new_tokens=30)
    harness.step()
    clock.pass_(10)
    harness.run()
    assert harness.outputs["same"].token_ids == harness.expected(prompt_of(10), 30)
