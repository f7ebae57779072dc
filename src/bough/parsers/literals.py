"""Python literals, as models write them, turned into JSON values. Nothing is ever evaluated."""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

MAX_DEPTH = 64
"""Deepest nesting of brackets that is read."""

MAX_CHARS = 64 * 1024
"""Longest text that is read as Python: its parser holds up everybody else for as long as it takes."""

_NAMES = {"true": True, "false": False, "null": None, "none": None}
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_INFINITE = "Infinity"
_ERRORS = (SyntaxError, ValueError, TypeError, MemoryError, RecursionError, OverflowError, Warning)
_STRING = re.compile(r"""(?s)([rR]?)('''|\"\"\"|'|")(?:\\.|[^\\])*?(?:\2|\\?\Z)""")
_ESCAPE = re.compile(r"(?s)\\(.)")
_KNOWN_ESCAPES = frozenset("\n\\'\"abfnrtvxuUN01234567")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BRACKETS = re.compile(r"[(\[{]")


class NotALiteral(ValueError):
    """A text is no literal."""


def parse_literal(text: str) -> Any:
    """Return the value of a literal: a string, number, boolean, ``None``, or a list, tuple or dict of these.

    A non-finite number becomes a string: its text, or its name if it is inside a container.

    Raises:
        NotALiteral: if the text is something else, or too long or too deep.
    """
    node = _parse(text)
    try:
        value = _literal_value(node)
    except RecursionError:
        raise NotALiteral from None
    is_number = isinstance(value, str) and value in (_INFINITE, f"-{_INFINITE}")
    return text.strip() if is_number and not text.rstrip().endswith(("'", '"')) else value


def _parse(text: str) -> ast.expr:
    if len(text) > MAX_CHARS:
        raise NotALiteral
    if len(_BRACKETS.findall(text)) > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise NotALiteral
    try:
        return ast.parse(_STRING.sub(_known_escapes, text.strip()), mode="eval").body
    except _ERRORS:
        raise NotALiteral from None


def _known_escapes(string: re.Match[str]) -> str:
    """Python takes the backslash of an unknown escape for itself; written twice, it does so without a warning."""
    return string.group() if string[1] else _ESCAPE.sub(_known_escape, string.group())


def _known_escape(match: re.Match[str]) -> str:
    return match.group() if match[1] in _KNOWN_ESCAPES else f"\\\\{match[1]}"


def _depth(text: str) -> int:
    """An upper bound of how deeply brackets are nested."""
    depth = deepest = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    return deepest


def _literal_value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (str, int, float))):
        return _INFINITE if isinstance(node.value, float) and math.isinf(node.value) else node.value
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, ast.Name) and node.id.lower() in _NOT_FINITE:
        return node.id
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal_value(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        keys = [None if key is None else _literal_value(key) for key in node.keys]
        if not all(isinstance(key, str) for key in keys):
            raise NotALiteral
        return {key: _literal_value(value) for key, value in zip(keys, node.values, strict=True)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _literal_value(node.operand)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(value, str) and (isinstance(node.operand, ast.Name) or value == _INFINITE):
            return f"-{value}" if isinstance(node.op, ast.USub) else value
    raise NotALiteral


def to_json(value: Any) -> str:
    """The JSON text of a value, which can be encoded. Raises :class:`NotALiteral` at a number that JSON has not."""
    try:
        return without_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (ValueError, RecursionError):
        raise NotALiteral from None


def refuse_constant(name: str) -> None:
    """Raise ``ValueError``; for ``json.loads``, which reads ``NaN`` and ``Infinity``: they are no JSON."""
    raise ValueError(name)


def without_surrogates(text: str) -> str:
    r"""The text with pairs of surrogates joined, and halves of such pairs replaced by U+FFFD.

    Escapes leave them behind, Python's ``"\ud83d\ude00"`` even where they are a pair; no encoding can carry them.
    """
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
