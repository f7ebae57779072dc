"""Limit the memory of large answers that clients have not read yet: logprobs and complete response bodies."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from bough.errors import Overloaded
from bough.ipc.messages import OutputDelta

PATIENCE = 5.0
"""Seconds after which a client that is still reading its answer may be disconnected to free memory for others."""

SMALL_ANSWER_BYTES = 2**20
"""Size up to which an answer does not count towards the total."""

_ENTRY_BYTES = 128
"""Bytes of one logprob entry: a tuple, a float, an integer and a reference."""

ENCODED_SHARE = 4
"""Factor by which a logprob entry shrinks when encoded."""

logger = logging.getLogger(__name__)


class HeldAnswers:
    """Total memory of a server's large answers, at most ``limit`` bytes.

    If it exceeds the limit, the largest answer that a client has been reading for longer than
    :data:`PATIENCE` is dropped, or else the largest one that is growing. A single answer may exceed the limit.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._large: set[HeldAnswer] = set()
        self.num_bytes = 0

    def count(self, answer: HeldAnswer, num_bytes: int) -> None:
        """Set the size of an answer; this may drop it or others."""
        before = self._counted(answer)
        answer.num_bytes = num_bytes
        counted = self._counted(answer)
        self.num_bytes += counted - before
        if not counted:
            self._large.discard(answer)
            return
        self._large.add(answer)
        while counted > before and self.num_bytes > self._limit and len(self._large) > 1:
            slow = [each for each in self._large if each.is_slow]
            victim = max(slow or (each for each in self._large if not each.is_read), key=lambda each: each.num_bytes)
            victim.give_up(
                Overloaded(
                    f"answers that are being made or read exceed {self._limit} bytes together "
                    "(--max-pending-answer-size); try again later, or ask for fewer logprobs"
                )
            )
            if victim is answer:
                return

    @staticmethod
    def _counted(answer: HeldAnswer) -> int:
        return answer.num_bytes if answer.num_bytes > SMALL_ANSWER_BYTES else 0


@dataclass(slots=True, eq=False)
class HeldAnswer:
    """Memory of one answer, until it is :meth:`released <release>`; ``is_read`` while it is sent to the client."""

    _answers: HeldAnswers | None
    num_bytes: int = 0
    failure: Overloaded | None = None
    is_read: bool = False
    _cut: Callable[[], None] | None = None
    _since: float = 0.0

    @property
    def is_slow(self) -> bool:
        """True if the client has had enough time to read it."""
        return self.is_read and time.monotonic() - self._since > PATIENCE

    def hold(self, num_bytes: int) -> Overloaded | None:
        """Add bytes (negative to subtract); return an error if the answer must be dropped."""
        if self._answers is not None:
            self._answers.count(self, self.num_bytes + num_bytes)
        return self.failure

    def read(self, num_bytes: int, cut: Callable[[], None]) -> Overloaded | None:
        """Count the response body, ``num_bytes`` long, which replaces the data that it was made from.

        ``cut`` closes the connection. Returns an error if the answer must be dropped.
        """
        if self.hold(num_bytes - self.num_bytes) is None:
            self.is_read, self._cut, self._since = True, cut, time.monotonic()
        return self.failure

    def give_up(self, failure: Overloaded) -> None:
        """Stop counting the answer. Its data is dropped when it next grows; a client reading it is disconnected."""
        self.failure = failure
        if self._cut is not None:
            logger.warning("Cutting off a client that is slow to read %d bytes: others need room", self.num_bytes)
            self._cut()
        self.release()

    def release(self) -> None:
        """Stop counting the answer because it was sent or is no longer needed. Further calls do nothing."""
        if self._answers is not None:
            self._answers.count(self, 0)
            self._answers = None


def logprob_bytes(delta: OutputDelta) -> int:
    """Return the memory of the logprobs in a delta, in bytes."""
    entries = [*(delta.logprobs or ()), *(delta.input_logprobs or ())]
    return _ENTRY_BYTES * sum(1 + len(entry.top or ()) + len(entry.chosen or ()) for entry in entries)
