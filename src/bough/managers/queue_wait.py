"""When a client that is refused because too much waits had better come back."""

from __future__ import annotations

LONGEST_RETRY_AFTER = 60.0
"""Most seconds that a client is told to wait. OpenAI's clients go by their own schedule where they are told more."""

_WEIGHT = 1 / 8
"""Of the latest output in the average: after ten others three quarters of it are theirs."""


class QueueWait:
    """How long outputs have waited of late, as a moving average.

    An output that came now would wait about as long if there were room: in that time a full queue empties.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def note(self, seconds: float) -> None:
        """An output has been begun that had waited for so long."""
        self._seconds += _WEIGHT * (seconds - self._seconds)

    @property
    def retry_after(self) -> float:
        """Seconds after which to try again, from 1 to :data:`LONGEST_RETRY_AFTER`; 1 where nothing is known."""
        return min(max(self._seconds, 1.0), LONGEST_RETRY_AFTER)
