"""Stop strings and stop patterns, found in a text that arrives in pieces.

The rule, which does not depend on how the text is cut into pieces: the output ends at the first place where a stop
string or pattern is complete. If several are complete there, the one that begins first counts. The text before
it is the output; with ``no_stop_trim`` the matched text is part of it.

Text that may be the beginning of a match is held back until that is decided, so that nothing of a match ever leaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bough.tokenization.stop_regex import MAX_MATCH_CHARS, StopRegex, compile_stop_regex


class StopStep(NamedTuple):
    """Outcome of one push."""

    text: str
    """Text that is final; possibly empty."""
    matched: str | None
    """The stop string or pattern (as the request wrote it) that ended the output."""


class _Match(NamedTuple):
    """A match in the text that is held back, in characters.

    The one counts that is decided first, and of several the one that starts first; of a string and a pattern that
    agree in both, the string.
    """

    decided: int
    """How much of the text shows that it is one."""
    start: int
    end: int
    stop: str


class StopMatcher:
    """Looks for the end of one output: non-empty strings, and RE2 patterns that do not match the empty text.

    Cost of a push is linear in the new text and what is held back, which is bounded: for strings by the length of the
    longest, for patterns by :data:`~bough.tokenization.stop_regex.MAX_MATCH_CHARS`.

    Raises:
        BadRequest: if a pattern is invalid or too large.
    """

    __slots__ = ("_before", "_first_chars", "_first_possible", "_held", "_no_stop_trim", "_regex", "_stops", "matched")

    def __init__(self, stop: Sequence[str] = (), stop_regex: Sequence[str] = (), no_stop_trim: bool = False) -> None:
        self._stops = list(dict.fromkeys(stop))
        """The one that holds text back comes first."""
        self._first_chars = frozenset(string[0] for string in self._stops)
        self._regex: StopRegex | None = compile_stop_regex(tuple(stop_regex)) if stop_regex else None
        self._no_stop_trim = no_stop_trim
        self._held = ""
        self._first_possible = 0
        """Where in the held text a stop string may begin; a pattern may hold back more than that."""
        self._before = ""
        """The last character before the held text, which patterns may look back at."""
        self.matched: str | None = None
        """The stop string or pattern that ended the output; ``None`` while there is none."""

    def push(self, text: str) -> StopStep:
        """Add text. After a match, further text is ignored."""
        if self.matched is not None:
            return StopStep("", self.matched)
        if self._regex is None:
            if not self._held and self._first_chars.isdisjoint(text):
                return StopStep(text, None)
            return self._push(text)
        if len(text) <= MAX_MATCH_CHARS:
            return self._push(text)
        parts = []
        for begin in range(0, len(text), MAX_MATCH_CHARS):
            step = self._push(text[begin : begin + MAX_MATCH_CHARS])
            parts.append(step.text)
            if step.matched is not None:
                break
        return StopStep("".join(parts), self.matched)

    def flush(self) -> str:
        """No more text will come: the text that was held back.

        A pattern that looks at what follows it may match only now that nothing does; then :attr:`matched` is set and
        the text is cut as in :meth:`push`.
        """
        if self._regex is not None and self.matched is None:
            match = self._find_regex(self._held, at_end=True)
            if match is not None:
                return self._finish(self._held, match)
        text, self._held = self._held, ""
        return text

    def _push(self, text: str) -> StopStep:
        num_old = len(self._held)
        text = self._held + text
        match = self._find_string(text, num_old)
        if self._regex is not None:
            found = self._find_regex(text, at_end=False)
            if match is None or (found is not None and found[:2] < match[:2]):
                match = found
        if match is not None:
            return StopStep(self._finish(text, match), self.matched)
        held_from = self._first_possible = self._first_possible_string(text)
        if self._regex is not None:
            held_from = min(held_from, self._regex.first_possible(self._before, text))
            self._before = text[held_from - 1] if held_from else self._before
        self._first_possible -= held_from
        self._held = text[held_from:]
        return StopStep(text[:held_from], None)

    def _finish(self, text: str, match: _Match) -> str:
        self.matched = match.stop
        self._held = ""
        return text[: match.end if self._no_stop_trim else match.start]

    def _find_string(self, text: str, num_old: int) -> _Match | None:
        """The first complete stop string; none of them lies within the first ``num_old`` characters."""
        best: _Match | None = None
        for stop in self._stops:
            limit = len(text) if best is None else best.end
            start = text.find(stop, max(0, num_old - len(stop) + 1), limit)
            if start >= 0:
                end = start + len(stop)
                found = _Match(end, start, end, stop)
                best = found if best is None or found[:2] < best[:2] else best
        return best

    def _first_possible_string(self, text: str) -> int:
        """Where the text that may be the beginning of a stop string begins.

        A place that was ruled out is not tried again. For that to be cheap with many strings, the one that holds most
        must be tried first, since it spares the others all places after its own.
        """
        ruled_out = self._first_possible
        first = len(text)
        stops = self._stops
        for index, stop in enumerate(stops):
            at = text.find(stop[0], max(ruled_out, len(text) - len(stop) + 1), first)
            while at >= 0:
                if stop.startswith(text[at:]):
                    first = at
                    if index:
                        stops[0], stops[index] = stop, stops[0]
                    break
                at = text.find(stop[0], at + 1, first)
        return first

    def _find_regex(self, text: str, *, at_end: bool) -> _Match | None:
        assert self._regex is not None
        found = self._regex.find(self._before, text, at_end=at_end)
        if found is None:
            return None
        decided = found.end + (self._regex.looks_ahead and not at_end)
        return _Match(decided, found.start, found.end, found.pattern)
