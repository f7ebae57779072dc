"""A bound on the memory that prompts take which wait to be computed."""

from __future__ import annotations

from collections.abc import Sequence

from bough.errors import Overloaded
from bough.managers.embedding_struct import EmbeddingRequest
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReqState

MIN_BYTES = 1024
"""What an output counts at least, whatever its prompt: the records that each process keeps of it."""

_TOKEN_BYTES = 4


class WaitingPrompts:
    """Adds up what waits, from the arrival of a request to the first result of each of its outputs.

    Args:
        limit: most bytes that may wait. A request that comes when nothing waits is always taken.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.num_bytes = 0

    def add(self, requests: Sequence[GenerateRequest], states: Sequence[ReqState]) -> None:
        """Requests have come.

        Args:
            requests: of one call.
            states: of their outputs, in order.

        Raises:
            Overloaded: if too much waits already; then nothing was added.
        """
        sizes: list[int] = []
        for request in requests:
            sizes.append(max(_size_of(request), MIN_BYTES))
            sizes += [MIN_BYTES] * (len(request.rids) - 1)
        arriving = sum(sizes)
        if self.num_bytes and self.num_bytes + arriving > self._limit:
            raise Overloaded(
                f"too much waits to be computed: prompts of {self.num_bytes} bytes, these have {arriving}, and at most "
                f"{self._limit} may wait (--max-queued-bytes); try again later",
                code="queue_full",
            )
        self.num_bytes += arriving
        for state, size in zip(states, sizes, strict=True):
            state.waiting_bytes = size

    def remove(self, state: ReqState) -> None:
        """An output waits no more. Doing it twice does nothing."""
        self.num_bytes -= state.waiting_bytes
        state.waiting_bytes = 0


def _size_of(request: GenerateRequest) -> int:
    num_bytes = _TOKEN_BYTES * len(request.input_ids or ()) + len(request.text or "")
    if isinstance(request, EmbeddingRequest):
        num_bytes += len(request.text_pair or "")
    return num_bytes
