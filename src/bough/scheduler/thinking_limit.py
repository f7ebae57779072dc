"""The bound on the thoughts of one output: when to look at it, and which tokens have to come then."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from bough.ipc.messages import ThoughtMarkers
from bough.step_plan import IntArray

LOOK_TOKENS = 512
"""Most tokens that are read in one go: half a millisecond. Thoughts that have ended before are known to have, too."""

NEVER = 2**31 - 1
"""Output length that none reaches."""

_NOTHING: IntArray = np.zeros(0, dtype=np.int32)


class _Place(Enum):
    """Position in an output, relative to its thoughts."""

    START = "start"
    """Nothing has come but white space, or what may be the beginning of a marker."""
    INSIDE = "inside"
    OUTSIDE = "outside"
    """There may be more thoughts."""
    BEHIND = "behind"
    """There are none any more."""


class ThinkingLimit:
    """Ends the thoughts of one output once they have as many tokens as they may have.

    The output is not read as it grows, so that steps can be planned ahead; only where the bound could be reached.

    Args:
        budget: most tokens between the markers; 0 for no thoughts.
        markers: of the model, and what ends its thoughts.
        piece: bytes of the text that a token stands for, special tokens included.
        bare: whether nothing comes behind the marker but what the model chooses.

    Attributes:
        check_at: output length at which to :meth:`look`. Nothing is to be planned beyond it before.
        forced: the token that has to come next; ``None`` for whatever the model chooses.
    """

    def __init__(self, budget: int, markers: ThoughtMarkers, piece: Callable[[int], bytes], *, bare: bool) -> None:
        self._budget = budget
        self._markers = markers
        self._piece = piece
        self._start = markers.start.encode()
        self._ends = tuple(end.encode() for end in markers.ends)
        self._behind = () if bare else markers.behind
        self._place = _Place.OUTSIDE if markers.recur and not markers.begun else _Place.START
        self._read = 0
        """Tokens that were read."""
        self._used = 0
        """Those of them that count."""
        self._tail = b""
        """Text in which the next marker may have begun."""
        self._never = markers.never.encode()
        self._tail_bytes = max(2, *map(len, (self._start, self._never, *self._ends))) - 1
        self._left: tuple[int, ...] = ()
        """Tokens that have to come before the model chooses again."""
        self._num_closed = 0
        self.check_at = 0
        self.forced: int | None = None
        self._decide(_NOTHING)

    def look(self, output: IntArray) -> None:
        """Read what is new of the whole output ``[n]``, and say what comes next."""
        for token in output[self._read :].tolist():
            self._take(self._piece(token))
        if self._left:
            self._left = self._left[1:]
            if not self._left and self._place is _Place.INSIDE:
                self._end()
        self._decide(output)

    def _take(self, text: bytes) -> None:
        """Read one token."""
        self._read += 1
        self._tail += text
        if self._place is _Place.START:
            self._begin()
        elif self._place is _Place.INSIDE:
            self._find_end()
            self._used += self._place is _Place.INSIDE
        elif self._place is _Place.OUTSIDE:
            if self._start in self._tail:
                self._place, self._tail = _Place.INSIDE, self._tail.partition(self._start)[2]
            elif self._never and self._never in self._tail:
                self._place = _Place.BEHIND
        if self._place is _Place.BEHIND:
            self._tail = b""
        elif self._place is not _Place.START:
            self._tail = self._tail[-self._tail_bytes :]

    def _begin(self) -> None:
        """Find out whether thoughts begin with what there is; a marker may come even where the prompt has one."""
        self._tail = self._tail.lstrip()
        if self._tail.startswith(self._start):
            self._place, self._tail, self._used = _Place.INSIDE, self._tail[len(self._start) :], 0
            self._find_end()
        elif self._start.startswith(self._tail):
            self._used = self._read if self._markers.begun else 0
        elif self._markers.begun:
            self._place, self._used = _Place.INSIDE, self._read
            self._find_end()
        else:
            self._place = _Place.BEHIND

    def _find_end(self) -> None:
        for end in self._ends:
            if end in self._tail:
                self._tail = self._tail.partition(end)[2]
                self._end()
                return

    def _end(self) -> None:
        self._place = _Place.OUTSIDE if self._markers.recur else _Place.BEHIND

    def _decide(self, output: IntArray) -> None:
        """Say what comes next, and when to look again: as soon as there can be one token too many."""
        room = self._budget - self._used
        if self._left:
            room = 1
        elif self._place is _Place.BEHIND:
            room = NEVER
        elif self._place is _Place.START and (self._tail or not self._markers.begun):
            # What may be a marker has to show; one that is still to come takes a token at least.
            room = 1 if self._read else room + 1
        elif self._place is _Place.OUTSIDE:
            room = max(room + (self._read == 0), 1)
        elif room <= 0:
            self._close(output)
            room = 1
        self.forced = self._left[0] if self._left else None
        self.check_at = NEVER if room >= NEVER else self._read + min(room, LOOK_TOKENS)

    def _close(self, output: IntArray) -> None:
        """Have the thoughts end; of a marker that the model has begun only the rest has to come."""
        close = self._markers.close
        for begun in range(min(len(close) - 1, len(output)), 0, -1):
            if tuple(output[-begun:].tolist()) == close[:begun]:
                close = close[begun:]
                break
        self._left = close + self._behind
        if self._num_closed and self._behind:
            self._left += self._markers.at_last
        self._num_closed += 1
