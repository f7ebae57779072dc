"""Strings that stand in an answer as they are, without quotes: regular expressions for what their schema asks.

Enforced are ``pattern``, ``minLength`` and ``maxLength`` up to :data:`~bough.schema_keywords.MAX_COUNTED_CHARS`, and
the formats of :data:`FORMATS`, those that are enforced in JSON. Other formats and larger bounds are not.
"""

from __future__ import annotations

import re
from typing import Any

from bough.constrained.ecma_patterns import ecma_classes, pattern_problem
from bough.constrained.json_schema import STRICTER_FORMATS, SchemaError, is_lenient
from bough.schema_keywords import MAX_COUNTED_CHARS

_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_WORD = r"[0-9a-fA-F]{1,4}"
_SHORTENED = "|".join(rf"(?:{_WORD}:){{{before}}}(?::{_WORD}){{1,{7 - before}}}" for before in range(1, 7))
_CALENDAR = r"(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)"
_CLOCK = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_IN_PATH = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_AUTHORITY = rf"//(?:{_LABEL}(?:\.{_LABEL})*(?::\d{{1,5}})?)?"
FORMATS = {
    **STRICTER_FORMATS,
    "uuid": r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "ipv4": rf"^{_BYTE}(?:\.{_BYTE}){{3}}$",
    "ipv6": rf"^(?:(?:{_WORD}:){{7}}{_WORD}|{_SHORTENED}|(?:{_WORD}:){{1,7}}:|:(?::{_WORD}){{1,7}}|::)$",
    "hostname": rf"^{_LABEL}(?:\.{_LABEL})*$",
    "email": rf"^{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*$",
    "duration": rf"^P(?:{_CALENDAR}(?:{_CLOCK})?|{_CLOCK}|\d+W)$",
    "uri": rf"^[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}(?:/{_IN_PATH}*)*|/?(?:{_IN_PATH}+(?:/{_IN_PATH}*)*)?)"
    rf"(?:\?(?:{_IN_PATH}|[/?])*)?(?:#(?:{_IN_PATH}|[/?])*)?$",
}
"""RFC 3339 (with its appendix A), 4122, 2673, 4291, 1123, 5321 and 3986; no more of these than the usual forms, and
labels of a host are counted, but not all of them together."""

_ANCHOR = re.compile(r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|\\?\Z)|([\^$])|[|()]")


def patterns_of(schema: dict[str, Any]) -> list[str]:
    """Regular expressions for a string's schema, all to match the whole string. Raises :class:`SchemaError` if none
    can.
    """
    patterns = []
    pattern, form = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str):
        whole, is_exact = _of_whole_string(ecma_classes(pattern))
        # A lenient schema allows any text here.
        if not is_lenient(schema) or (is_exact and not pattern_problem(whole)):
            patterns.append(whole)
    if isinstance(form, str) and form in FORMATS:
        patterns.append(FORMATS[form])
    least, most = _bound(schema.get("minLength")) or 0, _bound(schema.get("maxLength"))
    if most is not None and most < least:
        if is_lenient(schema):
            return patterns
        raise SchemaError(f"no string has a minLength of {least} and a maxLength of {most}")
    if least or most is not None:
        patterns.append(f"(?s:.{{{least},{'' if most is None else most}}})")
    return patterns


def _bound(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_COUNTED_CHARS:
        return None
    return int(value)


def _of_whole_string(pattern: str) -> tuple[str, bool]:
    """Return a pattern that matches a string as a whole, for one that may match anywhere; true if no stricter.

    If anchors occur inside it, or in only some of its alternatives, it must match the whole string, which is stricter.
    """
    anchors = [match.start() for match in _ANCHOR.finditer(pattern) if match[1]]
    at_start, at_end = 0 in anchors and pattern[0] == "^", bool(anchors) and anchors[-1] == len(pattern) - 1
    at_end = at_end and pattern[-1] == "$"
    if len(anchors) > at_start + at_end:
        return pattern, False
    body = pattern[at_start : len(pattern) - at_end]
    depth, is_choice = 0, False
    for match in _ANCHOR.finditer(body):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        is_choice = is_choice or (match[0] == "|" and depth == 0)
    whole = f"{'' if at_start else '(?s:.*)'}(?:{body}){'' if at_end else '(?s:.*)'}"
    return whole, not (is_choice and (at_start or at_end))
