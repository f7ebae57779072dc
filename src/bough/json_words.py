"""What is wrong with a JSON value, in JSON's words: msgspec, which finds it, speaks of Python's types."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from bough.errors import BadRequest

MAX_SHOWN_CHARS = 40
"""Most characters of a value that an error repeats."""

MAX_PROBLEM_CHARS = 128
"""Most characters of what msgspec says, where it is repeated."""

_KINDS = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
"""By msgspec's name of a type."""

_NAMES = {bool: "bool", int: "int", float: "float", str: "str", list: "array", dict: "object", type(None): "null"}

_PARTS = {"str": "character", "array": "element", "object": "member"}
_RELATIONS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}

_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`(?:, got `(?P<got>[^`]*)`)?")
_PLACE = re.compile(r" - at `(?P<key>key` in `)?\$(?P<place>[^`]{0,128})`\Z")
_BOUND = re.compile(r"Expected `(?P<kind>[^`]*)` (?P<length>of length )?(?P<relation>[<>]=?) (?P<bound>\S+)")
_PATTERN = re.compile(r"Expected `str` matching regex (?P<pattern>.*)", re.DOTALL)


def split_place(text: str) -> tuple[str, str, bool]:
    """What msgspec says without the place at its end; that place, like ``[0].role``; whether it is about a name there.

    What a client has sent may look like a place, so that a longer one is none.
    """
    found = _PLACE.search(text)
    if found is None:
        return text, "", False
    return text[: found.start()], found["place"], found["key"] is not None


def problem_with(param: str, problem: str, given: Any = msgspec.UNSET) -> str:
    """The message of an error, such as ``n must be at least 1, got 0``.

    Args:
        param: path of the value.
        problem: what msgspec says of it, without the place. What is not known here is repeated.
        given: the value, as far as it is known.
    """
    if (expected := _EXPECTED.fullmatch(problem)) is not None:
        return f"{param} must be {_any_of(expected['wanted'])}{_got(expected['got'], given)}"
    if (bound := _BOUND.fullmatch(problem)) is not None:
        limit = f"{_RELATIONS[bound['relation']]} {bound['bound'].removesuffix('.0')}"
        if not bound["length"]:
            return f"{param} must be {limit}{_got(None, given)}"
        part = _PARTS.get(bound["kind"], "element") + ("" if bound["bound"] == "1" else "s")
        size = f", got {len(given)}" if isinstance(given, (str, list, dict)) else ""
        return f"{param} must have {limit} {part}{size}"
    if (pattern := _PATTERN.fullmatch(problem)) is not None:
        return f"{param} must match the pattern {pattern['pattern']}{_got(None, given)}"
    return f"{param}: {problem if len(problem) <= MAX_PROBLEM_CHARS else f'{problem[:MAX_PROBLEM_CHARS]}...'}"


def problem_with_name(param: str, problem: str) -> str:
    """The message of an error about the name of a member; arguments as in :func:`problem_with`."""
    return problem_with(f"{param}: the name", problem.partition(", got `")[0])


def wrong_field(
    param: str, error: msgspec.ValidationError, given: Any = msgspec.UNSET, *, was_wrapped: bool = False
) -> BadRequest:
    """The error for a field that :func:`msgspec.convert` has refused.

    Args:
        param: path of the field.
        error: what msgspec says.
        given: the field's value.
        was_wrapped: whether the field is a single value that was made a list of before it was looked at.
    """
    problem, place, is_key = split_place(str(error))
    exact = param if was_wrapped or "[...]" in place else param + place
    if is_key:
        return BadRequest(problem_with_name(exact, problem), param=param)
    return BadRequest(problem_with(exact, problem, given if exact == param else msgspec.UNSET), param=param)


def wrong_choice(param: str, choices: list[str], given: Any = msgspec.UNSET) -> str:
    """The message for a value that is none of some constants; arguments as in :func:`problem_with`."""
    return f"{param} must be one of {', '.join(choices)}{_got(None, given)}"


def kind_of(value: Any) -> str:
    """What a decoded value is, such as ``an array``."""
    name = _NAMES.get(type(value), type(value).__name__)
    return _KINDS.get(name, f"`{name}`")


def fault_in_json(error: Exception) -> str:
    """Where and why JSON cannot be read, in a few words."""
    text = str(error)
    if text == "Input data was truncated":
        return "it ends too early"
    return text.removeprefix("JSON is malformed: ")


def _any_of(kinds: str) -> str:
    """``true, false or an array`` for ``bool | array``."""
    words: list[str] = []
    for kind in kinds.split(" | "):
        words += ["true", "false"] if kind == "bool" else [_KINDS.get(kind, f"`{kind}`")]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _got(kind: str | None, given: Any) -> str:
    """The end of a message: the value itself if it is short, else what it is; empty if that is not known either.

    Args:
        kind: msgspec's name of the value's type, if it says that; what is of another one is not what it is about.
        given: the value, or ``UNSET``.
    """
    if given is not msgspec.UNSET and kind in (None, _NAMES.get(type(given))):
        if not isinstance(given, (list, dict)):
            text = msgspec.json.encode(given).decode()
            if len(text) <= MAX_SHOWN_CHARS:
                return f", got {text}"
        return f", got {kind_of(given)}"
    return "" if kind is None else f", got {_KINDS.get(kind, f'`{kind}`')}"
