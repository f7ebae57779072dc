"""Text that is read while it is still being written.

A format is a generator that reads from a :class:`Stream` as if all the text were there; where it is not, the generator
waits. No primitive lets the reader see where the text was cut into deltas, which is why an answer that is streamed
comes out like one that is parsed as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from bough.parsers.base import Content, ParsedEvent, Reasoning

MAX_TRIMMED_CHARS = 64
"""Most white space that is left out in front of a marker. More is no layout, but a model that has lost itself: it is
passed on instead of being held back for ever."""

MAX_HELD_CHARS = 64 * 1024
"""Most text that is kept because it may yet become a call. A reader that needs more is told that there is none."""

MAX_STEPS = 250
"""Steps that a reader takes before it lets others have their turn: some milliseconds."""

_FIRST_WINDOW_CHARS = 256
_NOTHING = re.compile(r"(?!)")
_SPACE = re.compile(r"\s*")

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A reader that pauses whenever it needs more text."""


class NotACall(Exception):
    """What looked like the beginning of a call is none."""


@dataclass(slots=True, eq=False)
class Stream:
    """What is known of a text, how far it has been read, and what was made of it.

    A reader that has gone astray can turn back to ``begin``, where the last :meth:`commit` ended. Positions in ``text``
    hold until the next commit.
    """

    text: str = ""
    begin: int = 0
    """All before it is dealt with."""
    pos: int = 0
    """Where to read on."""
    resume: int = 0
    """Where to look for calls again if this is none."""
    ended: bool = False
    cut: bool = False
    """True if it has ended where the writer did not mean it to."""
    ran_out: bool = False
    """True if a reader has asked for more when there was no more."""
    in_call: bool = False
    """True if what is read now is part of a call, or has to become one."""
    events: list[ParsedEvent] = field(default_factory=list)
    idle: Callable[[str], ParsedEvent] | None = None
    """Makes an event of text that has nothing of ``watched`` and does not end in white space, if all that matters now
    is where such a thing comes."""
    watched: re.Pattern[str] = _NOTHING
    steps: int = 0
    """Since the reader went on."""
    tired: bool = False
    """True if the reader has paused for others, and not for more text."""

    @property
    def room(self) -> int:
        """Characters that may be added to ``text`` now; at least one, if the reader waits for more."""
        return self.begin + MAX_HELD_CHARS - len(self.text)

    def commit(self) -> None:
        """All that has been read is dealt with."""
        begin = self.pos
        # Cut off only when that copies no more than it removes, or many small steps would copy all the rest each time.
        if 2 * begin >= len(self.text):
            self.text = self.text[begin:]
            begin = 0
        self.begin = self.pos = self.resume = begin

    def turn_back(self) -> None:
        """Nothing has been read since the last commit."""
        self.pos = self.begin

    def reject(
        self, aside: list[str] | None = None, *, kind: type[Content] | type[Reasoning] = Content, without: str = ""
    ) -> None:
        """Emit text that looked like a call as ``kind``, up to the next possible beginning of a call.

        Args:
            aside: see :meth:`flow`.
            kind: kind of the text in which the call seemed to begin.
            without: marker before that point that is left out, unless something after it was committed.
        """
        if self.resume == self.begin:
            without = ""
        end, self.pos = self.resume - len(without), self.begin
        self.pass_on(kind, end, aside)
        self.pos += len(without)
        self.commit()

    def drop_rest(self) -> None:
        """What has not been dealt with is of no use."""
        self.pos = len(self.text)
        self.commit()

    # --- reading --------------------------------------------------------------------------------------------------

    def more(self) -> Steps[bool]:
        """Wait for text; false if there is none any more, or more than enough is held back (:data:`MAX_HELD_CHARS`)."""
        if self.ended or self.room <= 0:
            self.ran_out = self.ended
            return False
        yield
        return True

    def wait(self, idle: Callable[[str], ParsedEvent] | None, watched: re.Pattern[str]) -> Steps[None]:
        """Wait for text, but let what has nothing of ``watched``, nor a space at its end, go by as ``idle`` makes it.

        Nothing goes by if there is text that has not been dealt with.
        """
        if not self.text:
            self.idle, self.watched = idle, watched
        yield
        self.idle = None

    def step(self) -> Steps[None]:
        """Pause, if there were many steps."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            self.tired = True
            yield
            self.tired = False

    def peek(self) -> Steps[str]:
        """The next character, or an empty string at the end."""
        while self.pos >= len(self.text):
            if not (yield from self.more()):
                return ""
        return self.text[self.pos]

    def skip_space(self) -> Steps[None]:
        """Read past white space."""
        yield from self.step()
        while True:
            match = _SPACE.match(self.text, self.pos)
            assert match is not None
            self.pos = match.end()
            if self.pos < len(self.text) or not (yield from self.more()):
                return

    def take(self, literal: str) -> Steps[bool]:
        """Read past ``literal``, if that comes next."""
        while not self.text.startswith(literal, self.pos):
            rest = self.text[self.pos : self.pos + len(literal)]
            if len(rest) == len(literal) or not literal.startswith(rest) or not (yield from self.more()):
                return False
        self.pos += len(literal)
        return True

    def take_if_next(self, *literals: str) -> Steps[bool]:
        """Commit one of ``literals`` and the white space before it; read nothing if none comes next."""
        yield from self.skip_space()
        for literal in literals:
            if (yield from self.take(literal)):
                self.commit()
                return True
        self.turn_back()
        return False

    def expect(self, literal: str) -> Steps[None]:
        """Read past ``literal``. Raises :class:`NotACall` if something else comes next."""
        if not (yield from self.take(literal)):
            raise NotACall

    def until(self, marker: str, max_chars: int | None = None) -> Steps[str]:
        """The text before the next ``marker``, read past; raises :class:`NotACall` if none is within ``max_chars``."""
        begin = searched = self.pos
        stop = None if max_chars is None else begin + max_chars + len(marker)
        while (found := self.text.find(marker, searched, stop)) < 0:
            searched = max(begin, len(self.text) - len(marker) + 1)
            if (stop is not None and len(self.text) >= stop) or not (yield from self.more()):
                raise NotACall
        self.pos = found + len(marker)
        return self.text[begin:found]

    def run(self, pattern: re.Pattern[str], max_chars: int) -> Steps[str]:
        """Read as many of the characters that a pattern repeats as come. Raises :class:`NotACall` at over
        ``max_chars``.
        """
        begin = self.pos
        while True:
            match = pattern.match(self.text, begin, begin + max_chars + 1)
            assert match is not None
            self.pos = match.end()
            if self.pos - begin > max_chars:
                raise NotACall
            if self.pos < len(self.text) or not (yield from self.more()):
                return match.group()

    # --- passing on -----------------------------------------------------------------------------------------------

    def flow(
        self,
        kind: type[Content] | type[Reasoning],
        markers: tuple[str, ...],
        *,
        trim: bool,
        aside: list[str] | None = None,
    ) -> Steps[str | None]:
        """Pass text on as ``kind`` until one of ``markers``; or put it ``aside``, if it has to wait for something.

        Held back is only what may turn out to be the beginning of a marker and, with ``trim``, the white space in
        front of it (:data:`MAX_TRIMMED_CHARS`). After a marker, everything from there on is uncommitted, and reading
        goes on behind the marker.

        Returns:
            The marker, or ``None`` at the end of the text.
        """
        yield from self.step()
        watched = _watched(markers)
        searched = self.pos
        while True:
            text = self.text
            at, marker = find_first(text, markers, searched)
            if marker is not None:
                end = _before_space(text, self.pos, at) if trim else at
                self.pass_on(kind, end, aside)
                self.pos += at - end + len(marker)
                self.resume = self.pos
                return marker
            held = beginning_of_marker(text, markers, searched)
            end = _before_space(text, self.pos, held) if trim else held
            self.pass_on(kind, end, aside)
            searched = self.pos + held - end
            if self.ended:
                if self.cut and self.in_call:
                    self.drop_rest()
                else:
                    self.pass_on(kind, len(self.text), aside)
                return None
            yield from self.wait(kind if aside is None else None, watched)

    def pass_on(self, kind: type[Content] | type[Reasoning], end: int, aside: list[str] | None = None) -> None:
        """Emit the text from ``pos`` to ``end``, or put it ``aside``, and commit."""
        if end > self.pos:
            text = self.text[self.pos : end]
            if aside is None:
                self.events.append(kind(text))
            else:
                aside.append(text)
        self.pos = max(self.pos, end)
        self.commit()

    def flow_until(
        self,
        emit: Callable[[str], None],
        marker: str | None,
        *,
        drop_newline: bool = False,
        tail: tuple[str, ...] = (),
        openers: tuple[str, ...] = (),
        opens: Callable[[str], Steps[bool]] | None = None,
        idle: Callable[[str], ParsedEvent] | None = None,
    ) -> Steps[bool]:
        """Commit text until ``marker`` and pass it to ``emit``.

        Args:
            emit: receives the text piece by piece.
            idle: the same as ``emit``, but returns the event.
            marker: ``None`` for the end of the text.
            drop_newline: leave out one line break before the marker.
            tail: markers that may end the whole text, with white space between them; such an end counts as ``marker``,
                but is not consumed. Only the first of them is required.
            openers: markers of the next part, which also end the text and are not consumed.
            opens: decides, after an opener, if it is a real one; ``None``: it is.

        Returns:
            True if the marker came; it has then been consumed.
        """
        closers = () if marker is None else (f"\n{marker}", marker) if drop_newline else (marker,)
        markers = (*closers, *openers, *tail[:1])
        watched = _watched(markers)
        searched = self.pos
        while True:
            at, found = find_first(self.text, markers, searched)
            end = at if found is not None else beginning_of_marker(self.text, markers, searched)
            if found is None and self.ended and not self.cut:
                end = len(self.text)
            is_past = found is None or found in closers
            piece = self.text[self.pos : end]
            self.pos = end + len(found or "") if is_past else end
            self.commit()
            searched = self.pos
            if piece:
                emit(piece)
            if found is not None and not is_past:
                is_tail = found in tail
                is_end = True
                if is_tail:
                    is_end = yield from self._is_rest(tail)
                elif opens is not None:
                    self.pos += len(found)
                    is_end = yield from opens(found)
                self.turn_back()
                if not is_end:
                    searched = self.pos + 1
                    continue
                found = None if self.cut and is_tail else found
            if self.cut and found is None:
                self.drop_rest()
            if found is not None or self.ended:
                return found is not None
            yield from self.wait(idle, watched)

    def _is_rest(self, literals: tuple[str, ...]) -> Steps[bool]:
        """True if these, and white space between, are all that is left; of all but the first, as far as they come."""
        yield from self.step()
        yield from self.expect(literals[0])
        for literal in literals[1:]:
            yield from self.skip_space()
            yield from self.take(literal)
        yield from self.skip_space()
        return (yield from self.peek()) == "" and self.ended


@lru_cache(maxsize=64)
def _watched(markers: tuple[str, ...]) -> re.Pattern[str]:
    """The characters that markers begin with."""
    characters = "".join(re.escape(marker[0]) for marker in markers)
    return re.compile(f"[{characters}]") if characters else _NOTHING


def find_first(text: str, markers: Iterable[str], start: int) -> tuple[int, str | None]:
    """Where the first marker is, and which; of several at one place, the one that is named first.

    What lies far behind the first marker is not looked at: there may be as many markers as text.
    """
    window = _FIRST_WINDOW_CHARS
    best, which = len(text), None
    while start < len(text):
        stop = min(start + window, len(text))
        best = stop
        for marker in markers:
            at = text.find(marker, start, best + len(marker) - 1)
            if at >= 0:
                best, which = at, marker
        if which is not None:
            break
        start = stop
        window *= 2
    return best, which


def beginning_of_marker(text: str, markers: Iterable[str], start: int) -> int:
    """Where text begins that more text could make a marker of; its length if there is none."""
    best = len(text)
    for marker in markers:
        at = max(start, len(text) - len(marker) + 1)
        while (at := text.find(marker[0], at, best)) >= 0:
            if marker.startswith(text[at:]):
                best = at
                break
            at += 1
    return best


def _before_space(text: str, start: int, end: int) -> int:
    start = max(start, end - MAX_TRIMMED_CHARS)
    while end > start and text[end - 1].isspace():
        end -= 1
    return end
