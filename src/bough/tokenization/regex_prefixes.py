"""From a regular expression to one that matches the beginnings of what it matches.

If ``r`` is a pattern, ``beginnings(r)`` matches every beginning of every text that ``r`` matches, the empty and the
whole one included. It follows the structure of ``r``: a beginning of ``r s`` is one of ``r``, or a match of ``r`` and
a beginning of ``s``; a beginning of ``r*`` is any number of matches of ``r`` and a beginning of ``r``. The size of the
result is at most that of ``r`` times the depth of its groups.

Only the structure of RE2's syntax is read here (https://github.com/google/re2/wiki/Syntax). What one character matches
(classes, escapes) is copied as it stands, and the pattern must be one that RE2 has accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PatternTree:
    """What is known about a pattern.

    Attributes:
        whole: the pattern itself without capturing groups, complete in itself: flags are scoped, quotes are closed.
        beginnings: matches the beginnings of what ``whole`` matches.
        can_be_empty: whether it matches the empty text, at least somewhere.
        looks_ahead: whether a match can depend on what follows it (``$``, ``\\b`` …).
        uses_bytes: whether it contains ``\\C``, which matches one byte.
    """

    whole: str
    beginnings: str
    can_be_empty: bool
    looks_ahead: bool
    uses_bytes: bool


def parse(pattern: str) -> PatternTree:
    """Read a pattern that RE2 accepts."""
    parser = _Parser(pattern)
    root = parser.alternation(flags="")
    return PatternTree(root.whole, root.beginnings, root.can_be_empty, parser.looks_ahead, parser.uses_bytes)


@dataclass(frozen=True, slots=True)
class _Node:
    """Part of a pattern, as in :class:`PatternTree`; ``is_single``: one character, or a condition on a place."""

    whole: str
    beginnings: str
    can_be_empty: bool
    is_single: bool = False


def _char(source: str) -> _Node:
    return _Node(source, f"{source}?", False, is_single=True)


def _assertion(source: str) -> _Node:
    return _Node(source, "", True, is_single=True)


def _sequence(items: list[_Node]) -> _Node:
    rest = items[-1].beginnings if items else ""
    for item in reversed(items[:-1]):
        rest = f"(?:{item.whole}{rest})?" if item.is_single else f"(?:{item.beginnings}|{item.whole}{rest})"
    return _Node("".join(item.whole for item in items), rest, all(item.can_be_empty for item in items))


def _choice(options: list[_Node]) -> _Node:
    return _Node(
        f"(?:{'|'.join(option.whole for option in options)})",
        f"(?:{'|'.join(option.beginnings for option in options)})",
        any(option.can_be_empty for option in options),
    )


def _repeat(item: _Node, least: int, most: int | None) -> _Node:
    whole = f"(?:{item.whole})"
    if most == 0:
        beginnings = ""
    elif most == 1:
        beginnings = item.beginnings
    else:
        beginnings = f"{whole}{_count(0, None if most is None else most - 1)}(?:{item.beginnings})"
    return _Node(f"{whole}{_count(least, most)}", beginnings, least == 0 or item.can_be_empty)


def _count(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    return short or f"{{{least},{'' if most is None else most}}}"


_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}", re.ASCII)
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|(?P<flags>[a-zA-Z\-]*)(?P<end>[:)])))?")
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|.)|x(?:\{[^}]*\}|[0-9A-Fa-f]{2})|0[0-7]{0,2}|[1-7][0-7]{1,2}|.)", re.DOTALL
)
_MEANINGFUL = frozenset(r"\.+*?()|[]{}^$")
_SCOPED_FLAGS = "ims"


class _Parser:
    """Recursive descent over a pattern."""

    def __init__(self, pattern: str) -> None:
        self._source = pattern
        self._at = 0
        self.looks_ahead = False
        self.uses_bytes = False

    def alternation(self, flags: str) -> _Node:
        """Read up to the end of the group. Flags that are set within it hold until its end, across ``|``."""
        options: list[_Node] = []
        items: list[_Node] = []
        source = self._source
        while self._at < len(source) and source[self._at] != ")":
            char = source[self._at]
            if char == "|":
                self._at += 1
                options.append(_sequence(items))
                items = []
            elif char == "(":
                flags = self._group(flags, items)
            elif source.startswith(r"\Q", self._at):
                end = source.find(r"\E", self._at)
                quoted = source[self._at + 2 : len(source) if end < 0 else end]
                items.extend(_char(_scoped(_escape(char), flags)) for char in quoted)
                self._at = len(source) if end < 0 else end + 2
            else:
                items.append(self._single(flags))
            if items:
                items[-1] = self._repeated(items[-1])
        options.append(_sequence(items))
        return options[0] if len(options) == 1 else _choice(options)

    def _group(self, flags: str, items: list[_Node]) -> str:
        """Read a group, or a change of flags. Returns the flags that hold after it."""
        match = _GROUP.match(self._source, self._at)
        assert match is not None
        self._at = match.end()
        inner = flags if match["flags"] is None else _changed(flags, match["flags"])
        if match["end"] == ")":
            return inner
        body = self.alternation(inner)
        self._at += 1
        items.append(_choice([body]))
        return flags

    def _single(self, flags: str) -> _Node:
        source, start = self._source, self._at
        char = source[start]
        if char == "\\":
            match = _ESCAPE.match(source, start)
            assert match is not None
            self._at = match.end()
            kind = match[0][1]
            if kind in "AzbB":
                self.looks_ahead = self.looks_ahead or kind != "A"
                return _assertion(match[0])
            self.uses_bytes = self.uses_bytes or kind == "C"
            return _char(_scoped(match[0], flags))
        if char == "[":
            self._at = self._end_of_class(start)
            return _char(_scoped(source[start : self._at], flags))
        self._at += 1
        if char in "^$":
            self.looks_ahead = self.looks_ahead or char == "$"
            return _assertion(_scoped(char, flags))
        return _char(_scoped(char if char == "." else _escape(char), flags))

    def _end_of_class(self, start: int) -> int:
        source = self._source
        at = start + 1
        if source.startswith("^", at):
            at += 1
        first = True
        while first or source[at] != "]":
            first = False
            if source[at] == "\\":
                at += 2
            elif source.startswith("[:", at) and (end := source.find(":]", at + 2)) >= 0:
                at = end + 2
            else:
                at += 1
        return at + 1

    def _repeated(self, item: _Node) -> _Node:
        source = self._source
        char = source[self._at : self._at + 1]
        least: int
        most: int | None
        if char and char in "*+?":
            self._at += 1
            least, most = int(char == "+"), (1 if char == "?" else None)
        elif match := _COUNT.match(source, self._at):
            self._at = match.end()
            least = int(match[1])
            most = least if match[2] is None else int(match[3]) if match[3] else None
        else:
            return item
        if source.startswith("?", self._at):  # which of several matches is preferred makes no difference here
            self._at += 1
        return _repeat(item, least, most)


def _escape(char: str) -> str:
    return f"\\{char}" if char in _MEANINGFUL else char


def _scoped(source: str, flags: str) -> str:
    return f"(?{flags}:{source})" if flags else source


def _changed(flags: str, change: str) -> str:
    on, _, off = change.partition("-")
    return "".join(flag for flag in _SCOPED_FLAGS if (flag in flags or flag in on) and flag not in off)
