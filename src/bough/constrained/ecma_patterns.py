"""Translate the regular expressions of JSON schemas (ECMA-262) to the dialect of the grammar engine.

JSON Schema 2020-12, Core, 6.4.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

from llguidance import LLMatcher

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions


_CLASS_ATOM = re.compile(r"(?s)\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]+\}|[pP]\{[^}]*\}|c[A-Za-z]|.)|[^\\]")
_OF_THE_ENGINE = "[&~-^"
"""Characters in a class that have a special meaning only to the engine, some of them only when doubled."""

_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")

_ANY_REPEATED = re.compile(r"(?s)\\.|\[[^\]]*\]|\.\{(?:\d+,)?(\d+)\}")

MAX_REPEATED_ANY = 100
"""Most repetitions of "any character" in a pattern that the engine can negate."""

MAX_COMPARED = 24
"""Most patterns of property names that are compared pairwise; more are all assumed to overlap."""

_BACKSLASH = ord("\\")
_CONTROLS = (1 << 32) - 1
_ESCAPED = 1 << ord('"') | 1 << _BACKSLASH
_CONTROL_ESCAPES = {"0": 0, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_UP_TO_BACKSLASH = (2 << _BACKSLASH) - 1
_WORD = sum(1 << ord(char) for char in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS, _SPACES = sum(1 << ord(char) for char in "0123456789"), sum(1 << code for code in (9, 10, 11, 12, 13, 32))
_SETS = {
    f"\\{name}": each & _UP_TO_BACKSLASH
    for small, has in (("d", _DIGITS), ("w", _WORD), ("s", _SPACES))
    for name, each in ((small, has), (small.upper(), ~has))
}
r"""Members of class escapes such as ``\d``, up to the backslash, as bits."""


def ecma_classes(pattern: str) -> str:
    """Rewrite the character classes of an ECMA-262 regular expression so that the engine reads them alike."""
    result: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith(("\\p{", "\\P{"), at) and (atom := _CLASS_ATOM.match(pattern, at)) is not None:
            result.append(rf"[{atom[0]}&&[^\x00]]")
            at = atom.end()
        elif char == "\\":
            result.append(pattern[at : at + 2])
            at += 2
        elif char == "{" and _QUANTIFIER.match(pattern, at) is None:
            result.append(r"\{")
            at += 1
        elif char != "[":
            result.append(char)
            at += 1
        elif pattern.startswith("[^]", at):
            result.append("(?s:.)")
            at += 3
        else:
            negated = pattern.startswith("[^", at)
            inside, characters, at = _class_inside(pattern, at + 1 + negated)
            result.append("[^" if negated else "[")
            result.append(inside)
            if not pattern.startswith("]", at):
                break
            if characters is None or _has_escapes(~characters if negated else characters):
                result.append(r"\x00" if negated else r"&&[^\x00]")
            result.append("]")
            at += 1
    return "".join(result)


def _has_escapes(characters: int) -> bool:
    """True if the engine would accept escaped quotes and backslashes for a class that does not contain them.

    The engine takes a class with all control characters to accept every character that JSON escapes. Without U+0000 the
    class does not count as one.
    """
    return characters & _CONTROLS == _CONTROLS and characters & _ESCAPED != _ESCAPED


def _class_inside(pattern: str, at: int) -> tuple[str, int | None, int]:
    """Read a class from after ``[`` or ``[^`` up to its closing bracket.

    Returns:
        The translated text; its characters up to the backslash, as bits, or ``None`` if a Unicode property decides
        that; and the index of the bracket.
    """
    items: list[str] = []
    characters, is_known = 0, True
    while at < len(pattern) and pattern[at] != "]":
        low = _CLASS_ATOM.match(pattern, at)
        if low is None:  # a trailing backslash
            break
        at = low.end()
        items.append(_class_atom(low[0]))
        first = last = _code_point(low[0])
        if pattern.startswith("-", at) and not pattern.startswith("-]", at):
            high = _CLASS_ATOM.match(pattern, at + 1)
            if high is not None:
                items.append(f"-{_class_atom(high[0])}")
                at = high.end()
                last = _code_point(high[0])
        if first is None or last is None:
            characters |= _SETS.get(low[0], 0)
            is_known &= low[0] in _SETS
        elif first <= _BACKSLASH:
            characters |= (2 << min(last, _BACKSLASH)) - (1 << first)
    if at < len(pattern) and pattern[at] != "]":
        items.append(pattern[at:])
        at = len(pattern)
    return "".join(items), characters if is_known else None, at


def _code_point(atom: str) -> int | None:
    """Return the code point of a class member that is a single character, otherwise ``None``."""
    if len(atom) == 1:
        return ord(atom)
    kind, digits = atom[1], atom[2:].strip("{}")
    if kind in "dDwWsSpP":
        return None
    if kind in "xu" and digits:
        return int(digits, 16)
    if kind == "c" and digits:
        return ord(digits) & 31
    return _CONTROL_ESCAPES.get(kind, ord(kind))


def _class_atom(atom: str) -> str:
    return f"\\{atom}" if atom in _OF_THE_ENGINE else atom


def engine_problem(schema: Any, *, lenient: bool = False) -> str:
    """Return the engine's objection to a schema; empty if it accepts the schema."""
    options: JsonCompileOptions = {"lenient": lenient, "coerce_one_of": lenient}
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)
    return LLMatcher.validate_grammar(grammar, None)


def pattern_problem(pattern: str) -> str:
    """Return the engine's objection to a pattern; empty if it accepts the pattern."""
    return engine_problem({"type": "string", "pattern": pattern})


def is_costly_to_exclude(pattern: str) -> bool:
    """True if negating the pattern takes the engine too much work."""
    return any(int(match[1]) > MAX_REPEATED_ANY for match in _ANY_REPEATED.finditer(pattern) if match[1])


def overlapping(patterns: list[str]) -> list[list[str]]:
    """Group the patterns so that no text matches two patterns in different groups."""
    if len(patterns) < 2 or not _overlap(patterns):
        return [[each] for each in patterns]
    if len(patterns) > MAX_COMPARED:
        return [patterns]
    group = {each: {each} for each in patterns}
    for one, other in combinations(patterns, 2):
        if group[one] is not group[other] and _overlap([one, other]):
            joined = group[one] | group[other]
            group.update(dict.fromkeys(joined, joined))
    distinct = {id(each): each for each in group.values()}.values()
    return [[each for each in patterns if each in members] for members in distinct]


def _overlap(patterns: list[str]) -> bool:
    """True if some text matches two of the patterns, or the engine cannot tell."""
    return bool(engine_problem({"type": "object", "patternProperties": dict.fromkeys(patterns, True)}))
