"""When requests have waited, or taken, too long."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from typing import Literal

from bough.scheduler.req import Req
from bough.scheduler.requests import Requests

Limit = Literal["queue", "request"]

MAX_STALE_ENTRIES = 1024
"""Entries beyond twice as many as there are requests, before those of requests that have ended are dropped."""


class Deadlines:
    """The times at which requests have to have started, or ended; they count from the arrival in the main process.

    Args:
        requests: those that are alive; the others' times are forgotten.
        queue_timeout: seconds that a request may wait for its first step; ``None`` for ever.
        request_timeout: seconds that it may take in all, if it does not ask for less itself; ``None`` for ever.
    """

    def __init__(self, requests: Requests, *, queue_timeout: float | None, request_timeout: float | None) -> None:
        self._requests = requests
        self._queue_timeout = queue_timeout
        self._request_timeout = request_timeout
        self._heap: list[tuple[float, int, Limit, str]] = []

    def add(self, req: Req, timeout: float | None) -> None:
        """A new request, which may take ``timeout`` seconds."""
        limits = [each for each in (timeout, self._request_timeout) if each is not None]
        if limits:
            self._push(req, min(limits), "request")
        if self._queue_timeout is not None:
            self._push(req, self._queue_timeout, "queue")

    def expired(self) -> Iterator[tuple[Req, Limit]]:
        """Requests that are too late, and for what; each once. Costs next to nothing if there are none."""
        while self._heap and self._heap[0][0] <= time.monotonic():
            _, order, limit, rid = heapq.heappop(self._heap)
            for req in self._requests.find(rid, exact=True):
                if req.order == order and (limit == "request" or req.first_step_time is None):
                    yield req, limit

    @property
    def seconds_left(self) -> float:
        """Until the next of these times, which may be that of a request that has ended; infinity if there is none."""
        return self._heap[0][0] - time.monotonic() if self._heap else math.inf

    def _push(self, req: Req, seconds: float, limit: Limit) -> None:
        heapq.heappush(self._heap, (req.created_time + seconds, req.order, limit, req.rid))
        if len(self._heap) > 2 * len(self._requests) + MAX_STALE_ENTRIES:
            alive = {req.order for req in self._requests}
            self._heap = [entry for entry in self._heap if entry[1] in alive]
            heapq.heapify(self._heap)
