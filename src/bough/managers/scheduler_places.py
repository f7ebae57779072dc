"""How many outputs the scheduler has, as far as the front end knows, and whether it has a place for another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bough.errors import Overloaded
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReqState


class SchedulerPlaces:
    """Counts outputs from the moment that they are sent until they are given up or finished.

    Args:
        limit: most outputs that the scheduler computes and keeps waiting together; ``None``: any number.

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

    def acquire(self, states: Sequence[ReqState]) -> None:
        """These outputs are sent."""
        self.num_taken += len(states)

    def release(self, state: ReqState) -> None:
        """An output, sent or not, is given up or finished; once for each."""
        self.num_taken -= state.sent

    def refuse(self, requests: Iterable[GenerateRequest], retry_after: float = 1.0) -> None:
        """Say that all places are taken. The scheduler itself refuses requests that are larger than its queue.

        Args:
            requests: of one call.
            retry_after: seconds after which to try again.

        Raises:
            Overloaded: if each request would fit into an empty queue.
        """
        if self._limit is None or all(len(request.rids) <= self._limit for request in requests):
            raise Overloaded("the waiting queue is full", retry_after=retry_after, code="queue_full")
