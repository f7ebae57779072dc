"""Stop patterns: compiled once, searched in linear time, with a test for "may this become a match?".

Matching is RE2's, which takes time linear in the text whatever the pattern. RE2 cannot say whether the end of a text
is the beginning of a match, so a second pattern is derived that matches exactly the beginnings of what the first one
matches (:mod:`bough.tokenization.regex_prefixes`); its leftmost match that reaches the end of the text is what has to
be held back.

A match counts if it is at most :data:`MAX_MATCH_CHARS` long. Without such a bound, ``<tag>.*</tag>`` would hold back
all text after a tag that is never closed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import re2

from bough.errors import BadRequest
from bough.tokenization.regex_prefixes import parse

MAX_MATCH_CHARS = 512
"""Longest match of a stop pattern, and so the most text that a pattern can hold back."""

MAX_PROGRAM_SIZE = 1024
"""Most instructions that all patterns of a request may compile to: time per character grows with it when the
automaton has too many states to be kept."""

_MAX_MEMORY = 1 << 20
"""Bytes that RE2 may spend on one program and its automaton's states."""


class RegexMatch(NamedTuple):
    """Where a pattern matches, in characters."""

    start: int
    end: int
    pattern: str


class StopRegex:
    """The stop patterns of a request, in RE2's syntax, as one program. Immutable, safe to share between threads.

    Raises:
        BadRequest: if a pattern is invalid, can match the empty text, or compiles to too large a program.
    """

    def __init__(self, patterns: Sequence[str], param: str) -> None:
        whole, beginnings = [], []
        self.looks_ahead = False
        """True if a match depends on the character after it, so that it is known one character later."""
        self._single: list[tuple[str, Any]] = []
        for pattern in patterns:
            shown = f"{param}: {_shorten(pattern)}"
            try:
                _compile(pattern)
            except (re2.error, UnicodeEncodeError) as error:
                raise BadRequest(f"{shown} is not a valid pattern: {_message(error)}", param=param) from None
            tree = parse(pattern)
            if tree.uses_bytes:
                raise BadRequest(f"{shown} uses \\C, which could match half a character", param=param)
            if tree.can_be_empty:
                raise BadRequest(f"{shown} matches the empty text, so it would stop every output at once", param=param)
            self.looks_ahead = self.looks_ahead or tree.looks_ahead
            whole.append(tree.whole)
            beginnings.append(tree.beginnings)
            self._single.append((pattern, _compile(tree.whole)))
        try:
            self._any = _compile("|".join(f"(?:{source})" for source in whole))
            self._beginning = _compile(rf"(?:{'|'.join(beginnings)})\z")
        except re2.error as error:
            raise BadRequest(f"{param}: the patterns are too complex: {_message(error)}", param=param) from None
        size = max(
            program
            for regexp in (self._any, self._beginning)
            for program in (regexp.programsize, regexp.reverseprogramsize)
        )
        # RE2 reports a program that it could not build within its memory as one of negative size.
        smallest = min(self._any.reverseprogramsize, self._beginning.reverseprogramsize)
        if size > MAX_PROGRAM_SIZE or smallest < 0:
            raise BadRequest(
                f"{param}: the patterns are too complex; write them with smaller repetition counts", param=param
            )

    def find(self, before: str, text: str, *, at_end: bool) -> RegexMatch | None:
        """The match that is complete first, and of those that are complete there the one that begins first.

        Args:
            before: the character before ``text``; empty if the text begins there.
            text: at most ``2 * MAX_MATCH_CHARS`` characters.
            at_end: whether nothing follows. Otherwise a pattern that looks ahead cannot match up to the very end.
        """
        data = (before + text).encode()
        offset = len(before.encode())
        last = len(text) - (self.looks_ahead and not at_end)
        limit = len(data) - (len(text[last:].encode()) if last < len(text) else 0)
        if last <= 0 or self._any.search(data, offset, limit) is None:
            return None
        # The byte after each character; a match within the first i characters stays one with more of them, so the
        # first end can be searched by halves, as long as no match can be too long.
        ends = list(accumulate((len(char.encode()) for char in text[:last]), initial=offset))
        if last <= MAX_MATCH_CHARS:
            end = bisect_left(ends, True, key=lambda limit: self._any.search(data, offset, limit) is not None)
            return self._identify(data, ends, 0, end)
        for end in range(1, last + 1):
            first = max(0, end - MAX_MATCH_CHARS)
            if self._any.search(data, ends[first], ends[end]) is not None:
                return self._identify(data, ends, first, end)
        return None

    def _identify(self, data: bytes, ends: list[int], first: int, end: int) -> RegexMatch:
        starts = []
        for index, (pattern, regexp) in enumerate(self._single):
            match = regexp.search(data, ends[first], ends[end])
            if match is not None:
                starts.append((match.start(), index, pattern))
        start, _, pattern = min(starts)
        return RegexMatch(bisect_left(ends, start), end, pattern)

    def first_possible(self, before: str, text: str) -> int:
        """Where the part of ``text`` begins that more text could make a match. Nothing in it is one yet."""
        skipped = max(0, len(text) - MAX_MATCH_CHARS + 1)
        head = before + text[:skipped]
        data = (head + text[skipped:]).encode()
        match = self._beginning.search(data, len(head.encode()))
        return len(text) if match is None else len(data[: match.start()].decode()) - len(before)


@lru_cache(maxsize=32)
def compile_stop_regex(patterns: tuple[str, ...], param: str = "sampling_params.stop_regex") -> StopRegex:
    """Compile the patterns of a request; call it where the request comes in, to refuse bad ones there.

    Raises:
        BadRequest: see :class:`StopRegex`.
    """
    return StopRegex(patterns, param)


def _compile(source: str) -> Any:
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    return re2.compile(source, options)


def _message(error: Exception) -> str:
    text = error.args[0] if isinstance(error, re2.error) and error.args else str(error)
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


def _shorten(pattern: str) -> str:
    shown = ascii(pattern) if not pattern.isprintable() else repr(pattern)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
