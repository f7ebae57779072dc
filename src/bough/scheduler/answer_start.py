"""Find the start of the answer proper in an output that may begin with thoughts."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from bough.ipc.messages import ThoughtMarkers

_CHANNEL_HEADS = (b"<|", b"to=")
"""Prefixes of an output on channels; any other text is the answer itself."""


class _Place(Enum):
    START = "start"
    """The text so far may still become the marker that begins the thoughts."""
    INSIDE = "inside"
    BEHIND = "behind"
    """The thoughts have ended, followed only by white space or a possible repeat of their end marker."""


class AnswerStart:
    """Reads the tokens of one output, with special ones, up to the first token of its answer.

    A tool call that ends the thoughts is part of the answer.
    """

    __slots__ = ("_calls", "_end", "_markers", "_piece", "_place", "_start", "_tail", "_tail_bytes")

    def __init__(self, markers: ThoughtMarkers, piece: Callable[[int], bytes]) -> None:
        self._markers = markers
        self._piece = piece
        self._start = markers.start.encode()
        # On channels more thoughts may follow an end marker; only the header of the answer decides.
        self._end = (markers.never or markers.ends[0]).encode()
        self._calls = () if markers.never else tuple(end.encode() for end in markers.ends[1:])
        self._place = _Place.INSIDE if markers.begun and not markers.recur else _Place.START
        self._tail = b""
        self._tail_bytes = max(map(len, (self._end, *self._calls))) - 1

    @property
    def is_undecided(self) -> bool:
        """True if text that has come may be part of the answer."""
        return self._place is not _Place.INSIDE

    @property
    def is_behind(self) -> bool:
        """True if the thoughts have ended."""
        return self._place is _Place.BEHIND

    def push(self, token_id: int) -> bytes | None:
        """Read a token; return the answer so far, ``None`` if it has not begun."""
        self._tail += self._piece(token_id)
        if self._place is _Place.START and (answer := self._begin()) is not None:
            return answer
        if self._place is _Place.INSIDE and (answer := self._find_end()) is not None:
            return answer
        return self._skip() if self._place is _Place.BEHIND else None

    def rest(self) -> bytes:
        """Return the answer so far for an output that has ended."""
        return self._tail.lstrip() if self.is_behind else self._tail

    def _begin(self) -> bytes | None:
        text = self._tail.lstrip()
        begins = _CHANNEL_HEADS if self._markers.recur else (self._start,)
        if text.startswith(begins):
            self._place = _Place.INSIDE
        elif not any(begin.startswith(text) for begin in begins):
            return self._tail
        return None

    def _find_end(self) -> bytes | None:
        text = self._tail
        found = [(at, each) for each in (self._end, *self._calls) if (at := text.find(each)) >= 0]
        if not found:
            self._tail = text[-self._tail_bytes :]
            return None
        at, marker = min(found)
        if marker != self._end:
            return text[at:]
        if self._markers.answer:
            _, header, text = text[at:].partition(self._markers.answer.encode())
            if not header:
                self._tail = self._tail[at:]
                return None
        else:
            text = text[at + len(marker) :]
        self._place, self._tail = _Place.BEHIND, text
        return None

    def _skip(self) -> bytes | None:
        text = self._tail.lstrip()
        while text.startswith(self._end):
            text = text[len(self._end) :].lstrip()
        self._tail = text
        return None if self._end.startswith(text) else text
