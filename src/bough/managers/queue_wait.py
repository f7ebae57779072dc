"""When a client that is refused because too much waits had better come back."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST_RETRY_AFTER = 60.0
"""Most seconds that a client is told to wait. OpenAI's clients go by their own schedule where they are told more."""

MEMORY_SECONDS = 60.0
"""What was long before the latest of this says nothing any more."""

_WEIGHT = 1 / 8
"""Of the latest output in the average: after ten others three quarters of it are theirs."""


class QueueWait:
    """How long the outputs that were begun of late had waited, as a moving average.

    An output that came now would wait about as long if there were room: in that time a full queue empties.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = 0.0
        self._noted_at = -float("inf")

    def note(self, seconds: float) -> None:
        """An output has been begun that had waited for so long."""
        weight = 1.0 if self._is_forgotten else _WEIGHT
        self._seconds += weight * (seconds - self._seconds)
        self._noted_at = self._clock()

    @property
    def retry_after(self) -> float:
        """Seconds after which to try again, from 1 to :data:`LONGEST_RETRY_AFTER`; 1 where nothing is known."""
        return 1.0 if self._is_forgotten else min(max(self._seconds, 1.0), LONGEST_RETRY_AFTER)

    @property
    def _is_forgotten(self) -> bool:
        return self._clock() - self._noted_at > MEMORY_SECONDS
