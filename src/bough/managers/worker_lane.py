"""A thread that works off jobs, the shortest first."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from bough.errors import EngineDead
from bough.process_usage import stand_back

T = TypeVar("T")

NICENESS = 5
"""Niceness of the threads, from 0 to 19."""

PATIENCE = 20.0
"""A job lets shorter ones go first for so many times as long as it is expected to take itself."""


class WorkerLane:
    """Runs jobs one at a time, on a thread that begins with the first of them.

    Of the jobs that wait, the one goes next whose arrival plus :data:`PATIENCE` times its expected duration comes
    first: short ones overtake long ones, but none for ever.

    The thread is a daemon: the end of the program does not wait for a job. It has a lower priority than its creator,
    and so have the threads that a job starts.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._wake = threading.Condition()
        self._jobs: list[tuple[float, int, Future[Any]]] = []
        self._work: dict[int, Callable[[], Any]] = {}
        """By number of the job. Nothing is kept of one that is cancelled: it may hold a long text, and its turn may be
        far off."""
        self._count = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, seconds: float, work: Callable[[], T]) -> Future[T]:
        """Queue ``work``, which takes about so many seconds; its result, or what it raises, is the future's.

        Cancelling the future drops it if it has not begun. Raises ``RuntimeError``, with nothing queued, if there is no
        thread and none can be started.
        """
        future: Future[T] = Future()
        with self._wake:
            if self._closed:
                future.set_exception(_ended())
                return future
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._thread = thread
            self._count += 1
            number = self._count
            self._work[number] = work
            heapq.heappush(self._jobs, (time.monotonic() + PATIENCE * seconds, number, future))
            self._wake.notify()
        future.add_done_callback(lambda _: self._work.pop(number, None))
        return future

    def close(self) -> None:
        """Drop what has not begun, whose waiters get :class:`EngineDead`, and end the thread after what has.

        Does not wait for it.
        """
        with self._wake:
            self._closed = True
            jobs, self._jobs = self._jobs, []
            self._wake.notify()
        for *_, future in jobs:
            if future.set_running_or_notify_cancel():
                future.set_exception(_ended())

    def join(self, timeout: float | None = None) -> None:
        """After :meth:`close`: wait for the end of the thread, at most ``timeout`` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        stand_back(NICENESS)
        while True:
            with self._wake:
                while not self._jobs and not self._closed:
                    self._wake.wait()
                if self._closed:
                    return
                _, number, future = heapq.heappop(self._jobs)
            if not future.set_running_or_notify_cancel():
                continue
            work = self._work.pop(number)
            try:
                future.set_result(work())
            except BaseException as error:  # raised where the result is awaited
                future.set_exception(error)
            del work, future  # may hold a long text


def _ended() -> EngineDead:
    return EngineDead("the engine was shut down")
