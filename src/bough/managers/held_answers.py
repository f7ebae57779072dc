"""A bound on the memory of answers that grow large before their clients have read them: logprobs, and whole bodies."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from bough.errors import Overloaded
from bough.ipc.messages import OutputDelta

PATIENCE = 5.0
"""Seconds after which a client that is still reading its answer may be cut off in favour of others."""

SMALL_ANSWER_BYTES = 2**20
"""Answers up to this size do not count against what all may take together."""

_ENTRY_BYTES = 128
"""Bytes of a logprob: a tuple, a float, an integer and a reference."""

ENCODED_SHARE = 4
"""An encoded logprob takes about a quarter of that."""

logger = logging.getLogger(__name__)


class HeldAnswers:
    """Adds up what the large answers of a server take.

    When they exceed the limit together, the largest of those that clients have been reading for longer than
    :data:`PATIENCE` is given up; if there is none, the largest of those that grow. A single one may always be held.

    Args:
        limit: most bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._large: set[HeldAnswer] = set()
        self.num_bytes = 0

    def count(self, answer: HeldAnswer, num_bytes: int) -> None:
        """An answer takes so many bytes now; it may be given up for that, or others may."""
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


class HeldAnswer:
    """Bytes of one answer, which count until it is :meth:`released <release>`.

    Attributes:
        num_bytes: of it.
        failure: why it was given up.
        is_read: it is complete, and its client reads it.
    """

    __slots__ = ("_answers", "_cut", "_since", "failure", "is_read", "num_bytes")

    def __init__(self, answers: HeldAnswers) -> None:
        self.num_bytes = 0
        self.failure: Overloaded | None = None
        self.is_read = False
        self._answers: HeldAnswers | None = answers
        self._cut: Callable[[], None] | None = None
        self._since = 0.0

    @property
    def is_slow(self) -> bool:
        """Its client has had enough time to read it."""
        return self.is_read and time.monotonic() - self._since > PATIENCE

    def hold(self, num_bytes: int) -> Overloaded | None:
        """Count more bytes, or fewer; returns why it has to be given up, if it has to."""
        if self._answers is not None:
            self._answers.count(self, self.num_bytes + num_bytes)
        return self.failure

    def read(self, num_bytes: int, cut: Callable[[], None]) -> Overloaded | None:
        """Count a body that its client is to read, in place of what it was made of.

        Args:
            num_bytes: of the body.
            cut: ends the connection.

        Returns:
            why it has to be given up, if it has to.
        """
        if self.hold(num_bytes - self.num_bytes) is None:
            self.is_read, self._cut, self._since = True, cut, time.monotonic()
        return self.failure

    def give_up(self, failure: Overloaded) -> None:
        """Stop counting it: what is made of it is dropped when it grows the next time, its reader cut off."""
        self.failure = failure
        if self._cut is not None:
            logger.warning("Cutting off a client that is slow to read %d bytes: others need room", self.num_bytes)
            self._cut()
        self.release()

    def release(self) -> None:
        """It was read, or is not needed any more. Doing it twice does nothing."""
        if self._answers is not None:
            self._answers.count(self, 0)
            self._answers = None


def logprob_bytes(delta: OutputDelta) -> int:
    """Bytes that the logprobs of a delta take."""
    entries = [*(delta.logprobs or ()), *(delta.input_logprobs or ())]
    return _ENTRY_BYTES * sum(1 + len(entry.top or ()) + len(entry.chosen or ()) for entry in entries)
