"""Values of arguments, read by the types that their schema speaks of."""

from __future__ import annotations

import json
import re
from typing import Any

from bough.parsers.json_scanner import finite_json
from bough.parsers.literals import NotALiteral, parse_literal, refuse_constant, to_json
from bough.parsers.schema_kinds import is_of_kind

MAX_TYPED_CHARS = 1 << 20
"""Longest text of a value that is read: that holds up everybody else for as long as it takes."""

_SWITCHES = {"true": True, "false": False, "null": None, "none": None}
_NUMBER_LIKE = re.compile(r"[0-9][0-9A-Za-z_.+-]*")
"""Words that Python takes for a number gone wrong, such as the postcode 01067."""

_SCALARS = frozenset({"boolean", "integer", "number"})


def typed_json(text: str, kinds: frozenset[str]) -> str:
    """The JSON text of a value, of one of the types, if any, that is written without quotes if it is a string.

    It is read as JSON, failing that, if types are given, as a Python literal, as far as the result is of one of the
    types; and as a string otherwise, or if it is longer than :data:`MAX_TYPED_CHARS`. Where a string is allowed, only a
    list or a dictionary in its brackets is taken for a literal: ``(555)`` and ``0x1F`` are texts.
    """
    if len(text) > MAX_TYPED_CHARS:
        return json.dumps(text, ensure_ascii=False)
    read = _read(text.strip(), kinds)
    if read is None or (kinds and not is_of_kind(read[1], kinds)):
        return json.dumps(text, ensure_ascii=False)
    return read[0]


def _read(text: str, kinds: frozenset[str]) -> tuple[str, Any] | None:
    """The value that is written there as JSON text, and itself."""
    finite = finite_json(text)
    try:
        return finite, json.loads(finite, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        pass
    if text.lower() in _SWITCHES:
        value = _SWITCHES[text.lower()]
        return json.dumps(value), value
    if not kinds or ("string" in kinds and not text.startswith(("[", "{"))):
        return None
    try:
        value = parse_literal(text)
        if "string" in kinds and not isinstance(value, (list, dict)):
            return None
        return to_json(value), value
    except NotALiteral:  # or one that JSON has no words for
        return None


def typed_value(literal: str, kinds: frozenset[str]) -> Any:
    """The value of a Python literal, as far as possible of one of the types; of any if there are none.

    A number that has to be a string is the text of it, and a string that must not be one is what is written in it.

    Raises:
        NotALiteral: if it is none.
    """
    literal = literal.strip()
    is_text = "string" in kinds and kinds.isdisjoint(_SCALARS)
    try:
        value = parse_literal(literal)
    except NotALiteral:
        if is_text and _NUMBER_LIKE.fullmatch(literal):
            return literal
        raise
    if is_text and isinstance(value, (bool, int, float)):
        return literal
    if isinstance(value, str) and kinds and "string" not in kinds:
        try:
            inner = parse_literal(value)
        except NotALiteral:
            return value
        return inner if is_of_kind(inner, kinds) else value
    return value
