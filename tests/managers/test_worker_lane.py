"""The order in which a worker thread does its jobs, and its end."""

from __future__ import annotations

import threading
import time
import weakref
from concurrent.futures import Future
from typing import Any

import pytest

from bough.errors import EngineDead
from bough.managers.worker_lane import PATIENCE, WorkerLane


class Busy:
    """Keeps a lane busy until told, so that what is submitted meanwhile waits."""

    def __init__(self, lane: WorkerLane) -> None:
        self._gate, self._started = threading.Event(), threading.Event()
        self.future = lane.submit(0.0, self._wait)
        assert self._started.wait(5)

    def _wait(self) -> None:
        self._started.set()
        self._gate.wait(5)

    def end(self) -> None:
        self._gate.set()


def submit_noting(lane: WorkerLane, done: list[str], name: str, seconds: float) -> Future[Any]:
    return lane.submit(seconds, lambda: done.append(name))


def test_short_jobs_overtake_long_ones_but_none_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, done = WorkerLane("test"), []
    now = time.monotonic()
    busy = Busy(lane)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    submit_noting(lane, done, "long", 1.0)
    submit_noting(lane, done, "middle", 0.1)
    now += 0.5
    submit_noting(lane, done, "short", 0.01)
    now += PATIENCE
    last = submit_noting(lane, done, "late", 0.0)
    busy.end()
    last.result(5)
    assert done == ["short", "middle", "long", "late"]
    lane.close()


def test_a_job_that_nobody_waits_for_any_more_is_not_begun() -> None:
    lane, done = WorkerLane("test"), []
    busy = Busy(lane)
    assert submit_noting(lane, done, "given up", 0.0).cancel()
    last = submit_noting(lane, done, "wanted", 0.0)
    busy.end()
    last.result(5)
    assert done == ["wanted"]
    lane.close()


def test_of_a_job_that_nobody_waits_for_any_more_nothing_is_kept() -> None:
    class Text:
        def read(self) -> None: ...

    lane, text = WorkerLane("test"), Text()
    busy, alive = Busy(lane), weakref.ref(text)
    given_up = lane.submit(0.0, text.read)
    del text
    assert alive() is not None
    given_up.cancel()
    assert alive() is None
    busy.end()
    lane.close()


def test_an_error_is_handed_over_and_the_lane_goes_on() -> None:
    lane = WorkerLane("test")
    failed: Future[float] = lane.submit(0.0, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failed.result(5)
    assert lane.submit(0.0, lambda: 7).result(5) == 7
    lane.close()


def test_close_drops_what_has_not_begun_and_does_not_wait_for_what_has() -> None:
    lane, done = WorkerLane("closed"), []
    busy = Busy(lane)
    dropped = submit_noting(lane, done, "dropped", 0.0)
    lane.close()
    with pytest.raises(EngineDead):
        dropped.result(0)
    with pytest.raises(EngineDead):
        lane.submit(0.0, lambda: None).result(0)
    assert not busy.future.done()
    busy.end()
    lane.join(5)
    assert busy.future.done()
    assert not done
    assert "closed" not in {thread.name for thread in threading.enumerate()}


def test_a_lane_whose_thread_could_not_be_started_starts_it_with_the_next_job(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = WorkerLane("test")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _cannot_start)
        with pytest.raises(RuntimeError):
            lane.submit(0.0, lambda: 1)
    assert lane.submit(0.0, lambda: 2).result(5) == 2
    lane.close()
    lane.join(5)


def _cannot_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
