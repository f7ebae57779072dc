"""What is wrong with a JSON value, and where, by its declaration.

msgspec refuses values and says why in words for programmers in Python, which may change with its version. They are
read in :func:`fault_in_json` alone, where there is no value to look at.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from bough.errors import BadRequest

MAX_SHOWN_CHARS = 40
"""Most characters of a value that an error repeats."""

MAX_NAME_CHARS = 64
"""Most characters of a client's name of a member that an error repeats."""

TRUNCATED = "it ends too early"
"""What :func:`fault_in_json` says of JSON that is not complete."""

_KINDS = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "array": "an array",
    "object": "an object",
    "null": "null",
}

_NAMES = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    NoneType: "null",
    None: "null",
    list: "array",
    tuple: "array",
    dict: "object",
}

_PARTS = {"str": "character", "array": "element", "object": "member"}
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "more than"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "less than"),
}
_LENGTHS = {"min_length": (operator.ge, "at least"), "max_length": (operator.le, "at most")}


class Alternative(NamedTuple):
    """One of the types that a declaration allows.

    Attributes:
        name: in :data:`_KINDS`; ``any`` for anything.
    """

    kind: Any
    bounds: tuple[Meta, ...]
    name: str

    @property
    def is_struct(self) -> bool:
        """True if it is an object with declared members."""
        return isinstance(self.kind, type) and issubclass(self.kind, msgspec.Struct)

    def takes(self, name: str) -> bool:
        """Return whether values of a kind of JSON can be meant."""
        return self.name in (name, "any") or (self.name == "float" and name == "int")


class Fault(NamedTuple):
    """The first thing in a value that is not as declared.

    Attributes:
        place: path from the value to it, like ``[0].role``; empty for the value itself.
        problem: its description, which follows the path of what it is about.
        known: names that there are in its place, if it is an unknown member.
    """

    place: str
    problem: str
    known: tuple[str, ...] | None = None


NOT_POSSIBLE = Fault("", " has a value that is not possible")
"""Stands for a fault that is not found."""


def alternatives(declared: Any) -> list[Alternative]:
    """The types that a declaration allows, in order."""
    if get_origin(declared) is Annotated:
        inner, *bounds = get_args(declared)
        return [each._replace(bounds=(*each.bounds, *bounds)) for each in alternatives(inner)]
    if get_origin(declared) in (Union, UnionType):
        return [each for kind in get_args(declared) for each in alternatives(kind)]
    if get_origin(declared) is Literal:
        name = _NAMES[type(get_args(declared)[0])]
    elif isinstance(declared, type) and issubclass(declared, msgspec.Struct):
        name = "object"
    else:
        name = _NAMES.get(get_origin(declared) or declared, "any")
    return [] if declared is msgspec.UnsetType else [Alternative(declared, (), name)]


def meant(declared: Any, value: Any) -> Alternative | None:
    """The type of a declaration that a decoded value is meant for; ``None`` if it can be none, or it names none."""
    given = name_of(value)
    found = [each for each in alternatives(declared) if each.takes(given)]
    if len(found) > 1 and found[0].is_struct:
        tag = value.get(found[0].kind.__struct_config__.tag_field)
        found = [each for each in found if each.kind.__struct_config__.tag == tag]
    return found[0] if found else None


def fits(value: Any, declared: Any) -> bool:
    """Return whether a decoded value is as declared."""
    try:
        msgspec.convert(value, declared, str_keys=True)
    except msgspec.ValidationError:
        return False
    return True


@functools.cache
def members_of(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The members of an object, by their names in JSON."""
    return {each.encode_name: each for each in msgspec.structs.fields(kind)}


def fault_of(value: Any, declared: Any) -> Fault | None:
    """The first thing in a decoded value that is not as declared; ``None`` if none is found.

    The work is msgspec's: in a long list it is asked for ever shorter parts.
    """
    if fits(value, declared):
        return None
    chosen = meant(declared, value)
    if chosen is None:
        return _no_type(value, declared)
    kind, bounds, _ = chosen
    for bound in bounds:
        if problem := _beyond(value, bound):
            return Fault("", problem)
    if get_origin(kind) is Literal:
        return Fault("", f" must be one of {', '.join(map(str, get_args(kind)))}{got(value)}")
    if isinstance(value, (list, tuple)):
        return _fault_in_list(value, get_args(kind)[0])
    if isinstance(value, dict):
        return _fault_in_struct(value, kind) if chosen.is_struct else _fault_in_dict(value, kind)
    return None


def _no_type(value: Any, declared: Any) -> Fault:
    """The fault of a value of another type than is declared, or of an object that does not say which one it is."""
    choices = alternatives(declared)
    if isinstance(value, dict) and (structs := [each.kind for each in choices if each.is_struct]):
        place = f".{structs[0].__struct_config__.tag_field}"
        if place[1:] not in value:
            return Fault(place, " is required")
        tags = ", ".join(str(each.__struct_config__.tag) for each in structs)
        return Fault(place, f" must be one of {tags}{got(value[place[1:]])}")
    words: list[str] = []
    for name in dict.fromkeys(each.name for each in choices):
        words += ["true", "false"] if name == "bool" else [_KINDS[name]]
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return Fault("", f" must be {listed}{got(value)}")


def _beyond(value: Any, bound: Meta) -> str | None:
    """The description of a value that is beyond a bound."""
    name = name_of(value)
    for attribute, (holds, relation) in _BOUNDS.items():
        limit = getattr(bound, attribute)
        if limit is not None and name in ("int", "float") and not holds(value, limit):
            return f" must be {relation} {str(limit).removesuffix('.0')}{got(value)}"
    for attribute, (holds, relation) in _LENGTHS.items():
        limit = getattr(bound, attribute)
        if limit is not None and name in _PARTS and not holds(len(value), limit):
            return f" must have {relation} {limit} {_PARTS[name]}{'' if limit == 1 else 's'}, got {len(value)}"
    if bound.pattern is not None and isinstance(value, str) and re.search(bound.pattern, value) is None:
        return f" must match the pattern {bound.pattern!r}{got(value)}"
    return None


def _fault_in_list(values: Sequence[Any], declared: Any) -> Fault | None:
    index = _first(len(values), lambda begin, end: fits(values[begin:end], list[declared]))
    fault = fault_of(values[index], declared) if values else None
    return None if fault is None else fault._replace(place=f"[{index}]{fault.place}")


def _fault_in_dict(members: dict[Any, Any], kind: Any) -> Fault | None:
    items, (names, values) = list(members.items()), get_args(kind)
    name, value = items[_first(len(items), lambda begin, end: fits(dict(items[begin:end]), kind))]
    place = f".{str(name)[:MAX_NAME_CHARS]}"
    if (fault := fault_of(value, values)) is not None:
        return fault._replace(place=place + fault.place)
    if any(each.name == "int" for each in alternatives(names)) and re.fullmatch(r"-?\d{1,20}", str(name)):
        name = int(name)
    fault = fault_of(name, names)
    return None if fault is None else Fault(place, f": the name{fault.problem}")


def _fault_in_struct(members: dict[str, Any], kind: type[msgspec.Struct]) -> Fault | None:
    declared, config = members_of(kind), kind.__struct_config__
    for name, value in members.items():
        if name in declared:
            fault = fault_of(value, declared[name].type)
        elif config.forbid_unknown_fields and name != config.tag_field:
            fault = Fault("", " is unknown", tuple(declared))
        else:
            continue
        if fault is not None:
            return fault._replace(place=f".{name[:MAX_NAME_CHARS]}{fault.place}")
    missing = (name for name, each in declared.items() if each.required and name not in members)
    return next((Fault(f".{name}", " is required") for name in missing), None)


def _first(count: int, holds: Callable[[int, int], bool]) -> int:
    """The first of ``count`` things that is at fault, where one of them is; ``holds`` says of a range that none is."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if holds(low, middle):
            low = middle
        else:
            high = middle
    return low


def wrong_field(param: str, value: Any, declared: Any, *, is_wrapped: bool = False) -> BadRequest:
    """The error for a field at the path ``param`` whose ``value`` is not as declared; ``is_wrapped``: it is a list only
    here, of the single value given."""
    fault = fault_of(value, declared) or NOT_POSSIBLE
    place = fault.place.removeprefix("[0]") if is_wrapped else fault.place
    return BadRequest(f"{param}{place}{fault.problem}", param=param)


def name_of(value: Any) -> str:
    """The kind of a decoded value, by its key in :data:`_KINDS`, or the name of another type of Python's."""
    return _NAMES.get(type(value), type(value).__name__)


def kind_of(value: Any) -> str:
    """The kind of a decoded value, such as ``an array``."""
    name = name_of(value)
    return _KINDS.get(name, f"`{name}`")


def got(value: Any) -> str:
    """The end of a message: the value itself if it is short, else its kind."""
    if name_of(value) in ("bool", "int", "float", "str", "null") and len(str(value)) <= MAX_SHOWN_CHARS:
        text = msgspec.json.encode(value).decode()
        if len(text) <= MAX_SHOWN_CHARS:
            return f", got {text}"
    return f", got {kind_of(value)}"


def fault_in_json(error: Exception) -> str:
    """Where and why JSON cannot be read, in a few words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not valid UTF-8"
    if isinstance(error, msgspec.ValidationError):  # without a declaration, there is no other
        return "a number is out of range"
    text = str(error)
    return TRUNCATED if text == "Input data was truncated" else text.removeprefix("JSON is malformed: ")
