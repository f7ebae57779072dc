"""The events that an answer is taken apart into, and the functions that it may call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

from bough.errors import BadRequest
from bough.sampling.sampling_params import LENIENTLY
from bough.schema_keywords import kind_named, says_nothing

MAX_NAME_CHARS = 256
"""Longest name of a function."""

NAME_CHARACTERS = r"^\s<>\"'`{}\[\]()=,;|\\\x00-\x1f\x7f"
"""Inside of a character class: what names are made of. They stand bare in several formats, so nothing that ends one."""

_NAME = re.compile(f"[{NAME_CHARACTERS}]+")


@dataclass(frozen=True, slots=True)
class Content:
    """Text for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text of the model's thoughts."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """The model calls a function that the request offers; ``index`` counts the calls of this answer from 0.

    Calls do not overlap: the arguments come next, before any other event.
    """

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallArguments:
    """A piece of the JSON text of a call's arguments; the pieces of a call, joined, are the whole text.

    That text is an object, unless the answer was cut off or the model wrote something else.
    """

    index: int
    fragment: str


ParsedEvent = Content | Reasoning | ToolCallStart | ToolCallArguments


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that the model may call; if ``strict``, only with arguments, an object, that fit the schema."""

    name: str
    description: str | None
    parameters: dict[str, Any]
    strict: bool

    @property
    def arguments_schema(self) -> dict[str, Any]:
        """JSON schema of the arguments that says that they are an object, which ``parameters`` may leave unsaid.

        Unless the function is ``strict``, it is enforced as far as that is possible.
        """
        return {**({} if self.strict else LENIENTLY), "type": "object", **self.parameters}

    @classmethod
    def from_openai(cls, tool: Any, where: str = "tools[0]") -> ToolSpec:
        """A tool as chat completions describe it: ``{"type": "function", "function": {"name": …}}``.

        Raises:
            BadRequest: naming the member at fault, in ``where``.
        """
        if not isinstance(tool, dict):
            raise _bad(where, "must be an object")
        kind = tool.get("type", "function")
        if kind != "function":
            raise _bad(f"{where}.type", f'must be "function", not {str(kind)[:64]!r}')
        where = f"{where}.function"
        function = tool.get("function")
        if not isinstance(function, dict):
            raise _bad(where, "must be an object with a name")
        return cls.from_function(function, where)

    @classmethod
    def from_function(cls, function: Mapping[str, Any], where: str, *, schema: str = "parameters") -> ToolSpec:
        """A tool out of an object with ``name``, ``description``, ``strict``, and the arguments' schema in ``schema``.

        Raises:
            BadRequest: naming the member at fault, in ``where``.
        """
        name = function.get("name")
        if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
            allowed = (
                f"must be 1 to {MAX_NAME_CHARS} characters without spaces, brackets, quotes, '=', ',', ';' and '|'"
            )
            raise _bad(f"{where}.name", allowed)
        description = function.get("description")
        if description is not None and not isinstance(description, str):
            raise _bad(f"{where}.description", "must be a string")
        strict = function.get("strict")
        if strict is not None and not isinstance(strict, bool):
            raise _bad(f"{where}.strict", "must be true or false")
        parameters = _parameters(function.get(schema), f"{where}.{schema}")
        return cls(name, description, parameters, bool(strict))


def parse_tools(tools: Sequence[Any], where: str = "tools") -> tuple[ToolSpec, ...]:
    """All tools of a request. Raises :class:`BadRequest` naming the member at fault; also if two have the same name."""
    specs: dict[str, ToolSpec] = {}
    for index, tool in enumerate(tools):
        spec = ToolSpec.from_openai(tool, f"{where}[{index}]")
        if spec.name in specs:
            raise _bad(f"{where}[{index}].function.name", f"{spec.name!r} is the name of an earlier tool")
        specs[spec.name] = spec
    return tuple(specs.values())


def _parameters(schema: Any, where: str) -> dict[str, Any]:
    """The schema of the arguments, as far as parsers rely on it; its keywords are the grammar compiler's to judge."""
    if schema is None or schema in ({}, []):
        return {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        raise _bad(where, "must be a JSON schema, which is an object")
    if not _may_be_object(schema.get("type")):
        raise _bad(f"{where}.type", 'must be "object"')
    result: dict[str, Any] = {key: value for key, value in schema.items() if not says_nothing(key, value)}
    if "type" in result:
        result["type"] = "object"
    properties = result.get("properties")
    if properties is not None and not isinstance(properties, dict):
        raise _bad(f"{where}.properties", "must be an object")
    for name, each in (properties or {}).items():
        if not isinstance(each, (dict, bool, NoneType)):
            raise _bad(f"{where}.properties.{name[:64]}", "must be a JSON schema: an object, or true or false")
    required = result.get("required")
    if required is not None and not (isinstance(required, list) and all(isinstance(each, str) for each in required)):
        raise _bad(f"{where}.required", "must be a list of strings")
    if properties and None in properties.values():
        result["properties"] = {name: {} if each is None else each for name, each in properties.items()}
    return result


def _may_be_object(kind: Any) -> bool:
    """True if the type in the schema of a tool's arguments allows an object."""
    names = kind if isinstance(kind, list) else [kind]
    return any(name in (None, "") or (isinstance(name, str) and kind_named(name) == "object") for name in names)


def _bad(where: str, problem: str) -> BadRequest:
    return BadRequest(f"{where} {problem}", param=where, code="invalid_value")
