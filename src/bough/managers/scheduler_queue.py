"""The scheduler's queue as the front end knows it: how many outputs it has, and how long they wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from bough.errors import Overloaded
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReqState

LONGEST_RETRY_AFTER = 60.0
"""Most seconds that a client is asked to wait. OpenAI's clients follow their own schedule beyond this."""

MEMORY_SECONDS = 60.0
"""Age from which the wait of an output says nothing any more."""

_WEIGHT = 1 / 8
"""Weight of the latest output in the average: after ten others three quarters of it are theirs."""


class SchedulerQueue:
    """Counts outputs from the moment that they are sent until they are given up or finished, and averages their waits.

    At most ``limit`` outputs are computed and kept waiting together; ``None``: any number.
    """

    def __init__(self, limit: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.num_taken = 0
        self._limit = limit
        self._clock = clock
        self._seconds = 0.0
        self._noted_at = -float("inf")

    @property
    def is_full(self) -> bool:
        """True if another output would be refused."""
        return self._limit is not None and self.num_taken >= self._limit

    def acquire(self, states: Sequence[ReqState]) -> None:
        """Count outputs that are sent."""
        self.num_taken += len(states)

    def release(self, state: ReqState) -> None:
        """Forget an output, sent or not, that is given up or finished; once for each."""
        self.num_taken -= state.sent

    def check_room(self, requests: Iterable[GenerateRequest]) -> None:
        """Refuse requests of a call for which there is no room, unless the scheduler's queue is too small for one;
        raises :class:`Overloaded` if the queue is full, and each request would fit into an empty one."""
        if self.is_full and self._limit is not None and all(len(each.rids) <= self._limit for each in requests):
            raise Overloaded("the waiting queue is full", retry_after=self.retry_after, code="queue_full")

    def note_wait(self, seconds: float) -> None:
        """Take the wait of an output that was begun now into the average."""
        weight = 1.0 if self._is_forgotten else _WEIGHT
        self._seconds += weight * (seconds - self._seconds)
        self._noted_at = self._clock()

    @property
    def retry_after(self) -> float:
        """Seconds after which to try again, from 1 to :data:`LONGEST_RETRY_AFTER`; 1 where nothing is known.

        This is the average wait of late: in that time a full queue empties.
        """
        return 1.0 if self._is_forgotten else min(max(self._seconds, 1.0), LONGEST_RETRY_AFTER)

    @property
    def _is_forgotten(self) -> bool:
        return self._clock() - self._noted_at > MEMORY_SECONDS
