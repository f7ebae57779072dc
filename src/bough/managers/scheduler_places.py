"""How many outputs the scheduler has, as far as the front end knows, and whether it has a place for another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bough.errors import Overloaded
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReqState


class SchedulerPlaces:
    """Counts outputs from the moment that they are sent until they are gone or given up.

    Args:
        limit: so many the scheduler computes and lets wait; ``None``: any number.

    Attributes:
        num_taken: outputs that it has, without those that were given up.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.num_taken = 0

    @property
    def are_taken(self) -> bool:
        """Whether another output would be refused."""
        return self._limit is not None and self.num_taken >= self._limit

    def take(self, states: Sequence[ReqState]) -> None:
        """These outputs are sent."""
        self.num_taken += len(states)

    def leave(self, state: ReqState) -> None:
        """An output, sent or not, was given up, or is gone without having been."""
        self.num_taken -= state.sent

    def check(self, requests: Iterable[GenerateRequest]) -> None:
        """Refuse requests for which there is no place now; the scheduler would say the same, later.

        What could never have one is another error, which it says.

        Raises:
            Overloaded: if there is none.
        """
        if self._limit is None or not self.are_taken:
            return
        if all(len(request.rids) <= self._limit for request in requests):
            raise Overloaded("the waiting queue is full", code="queue_full")
