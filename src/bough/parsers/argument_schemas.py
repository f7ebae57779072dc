"""What the schema of a function's arguments says of each of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from bough.errors import BadRequest
from bough.json_pointer import MAX_REFERENCES, follow
from bough.parsers.base import ToolSpec
from bough.parsers.schema_kinds import kinds_of
from bough.parsers.schema_references import standing_alone
from bough.sampling.sampling_params import LENIENTLY, SCHEMA_OPTIONS
from bough.schema_keywords import JSON_TYPES, required_names

_OF_WHOLE_OBJECTS = (
    *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum", "minProperties", "maxProperties"),
    *("patternProperties", "propertyNames", "unevaluatedProperties"),
    *("dependencies", "dependentRequired", "dependentSchemas"),
)
"""Keywords of objects that arguments do not follow which are written one by one, each by its own schema."""

_NEVER_EMPTY = frozenset({"const", "enum", "not"})
"""Those of them that say something also if their value is empty."""

_SPEAKS_OF_OTHERS = frozenset(
    {"additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "minProperties", "not"}
    | {"$ref", "$dynamicRef", "if", "dependentSchemas", "dependentRequired", "anyOf", "oneOf", "allOf"}
)
_ANNOTATIONS = frozenset(
    {"$comment", "$defs", "default", "definitions", "description", "examples", "title", SCHEMA_OPTIONS}
)
_BESIDE_REFERENCES = frozenset({*_ANNOTATIONS, "$id", "$schema", "id", "required", "type"})
"""Keywords that a schema may have beside a reference, so that both are one schema."""


_ANY_NAME = ""


class ArgumentSchemas:
    """What the schema of a function's arguments, ``root``, says of each of them; ``own`` are its keywords.

    ``own`` has the keywords of the schema that it refers to, too. References are relative to ``root``.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.own = _behind_references(root)
        properties, patterns = self.own.get("properties"), self.own.get("patternProperties")
        self._properties = properties if isinstance(properties, dict) else {}
        self._patterns = patterns if isinstance(patterns, dict) else {}
        self._kinds: dict[str | None, frozenset[str]] = {}  # None: of arguments that are not named

    @property
    def properties(self) -> Collection[str]:
        """Names of arguments that have their own schema."""
        return self._properties

    @property
    def required(self) -> list[str]:
        """Names that have to be there."""
        return required_names(self.own)

    @property
    def named(self) -> list[str]:
        """Names that the schema speaks of, in order; those that it only requires come last."""
        return list(dict.fromkeys([*self._properties, *self.required]))

    def of(self, name: str) -> Any:
        """The schema of one argument, whose references are relative to :attr:`root`."""
        return self._properties.get(name, self.of_others)

    @property
    def of_others(self) -> Any:
        """The schema of arguments that are not named.

        Which of several patterns a name matches is not looked at: that could take for ever.
        """
        others = self.own.get("additionalProperties", True)
        if not self._patterns:
            return others
        return {"anyOf": [*self._patterns.values(), *([others] if isinstance(others, dict) else [])]}

    def kinds(self, name: str) -> frozenset[str]:
        """The JSON types of one argument: see :func:`~bough.parsers.schema_kinds.kinds_of`."""
        place = name if name in self._properties else None
        known = self._kinds.get(place)
        if known is None:
            known = self._kinds[place] = kinds_of(self.of(name), self.root)
        return known


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that an answer may have; its schema stands alone."""

    name: str
    schema: Any
    required: bool


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments that an answer may have which is constrained.

    Attributes:
        named: in the order in which they come.
        others: if no argument is named, the schema of those of any name; ``False`` if there are none.
        is_strict: whether they have to follow all that the schema says.
    """

    named: list[Argument]
    others: Any
    is_strict: bool


def writable_arguments(tool: ToolSpec, key: re.Pattern[str]) -> Arguments:
    """Return the arguments of a tool for a format that writes them one after the other, with unquoted names.

    A constrained answer omits arguments whose name contains a marker of the format, which would be misread, and
    arguments that no value satisfies.

    Args:
        key: matches, as a whole, the names that can be written.

    Raises:
        BadRequest: if the schema expands far beyond its own size; also if the tool is strict, and a required
            argument cannot be written, or the schema sets rules that arguments written this way cannot follow.
    """
    root = tool.arguments_schema
    schemas = ArgumentSchemas(root)
    options = root.get(SCHEMA_OPTIONS)
    is_strict = not (isinstance(options, dict) and options.get("lenient") is True)
    must = frozenset(schemas.required)
    writable: dict[str, Any] = {}
    for name in schemas.named:
        schema = schemas.of(name)
        if schema is False:
            if is_strict and name in must:
                raise no_value(name, tool)
        elif key.fullmatch(name) is not None:
            writable[name] = schema
        elif name in must and is_strict:
            raise BadRequest(
                f"tools: the required property {name[:80]!r} of {tool.name!r} has a name that this model's form of "
                "calls cannot write; rename it",
                param="tools",
            )
    is_free = not schemas.named and "properties" not in schemas.own
    others = schemas.of_others if is_free else False
    if is_strict:
        _check_expressible(schemas.own, tool, len(must), None if others is not False else len(writable))
    alone = standing_alone(root, writable if others is False else {_ANY_NAME: others})
    if not is_strict:
        alone = {name: {**each, **LENIENTLY} if _may_be_too_much(each) else each for name, each in alone.items()}
    if others is not False:
        return Arguments([], alone[_ANY_NAME], is_strict)
    return Arguments([Argument(name, each, name in must) for name, each in alone.items()], False, is_strict)


def no_value(name: str, tool: ToolSpec) -> BadRequest:
    """The error of a required property that has no value."""
    return BadRequest(
        f"tools: the required property {name[:80]!r} of {tool.name!r} has no value that fits its schema and that this "
        "model's form of calls can write",
        param="tools",
    )


def not_exact(name: str, tool: ToolSpec) -> BadRequest:
    """The error of a property whose schema says more than text without quotes can be held to."""
    return BadRequest(
        f"tools: the strict schema of the property {name[:80]!r} of {tool.name!r} cannot be enforced in this model's "
        "form of calls, where strings have no quotes; make it one enum, one pattern or less",
        param="tools",
    )


def _check_expressible(own: dict[str, Any], tool: ToolSpec, num_required: int, num_named: int | None) -> None:
    """Refuse a schema that speaks of the arguments as a whole; ``num_named`` is ``None`` if they may have any name."""
    for keyword in _OF_WHOLE_OBJECTS:
        value = own.get(keyword, True)
        if value is True or (value in ({}, []) and keyword not in _NEVER_EMPTY):
            continue
        is_number = isinstance(value, (int, float))
        if keyword == "minProperties" and is_number and value <= num_required:
            continue
        if keyword == "maxProperties" and is_number and num_named is not None and value >= num_named:
            continue
        raise BadRequest(
            f"tools: the strict schema of {tool.name!r} cannot be enforced in this model's form of calls, which writes "
            f"each argument by itself; leave out {keyword!r}",
            param="tools",
        )


def _behind_references(root: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a schema together with those of the schema that it refers to.

    ``$ref`` is left among them if they are not one schema.
    """
    own = root
    for _ in range(MAX_REFERENCES):
        target = follow(root, own.get("$ref"))
        if not isinstance(target, dict):
            return own
        beside = {key: value for key, value in own.items() if key != "$ref"}
        is_one = beside.keys() <= _BESIDE_REFERENCES and target.get("type", "object") == "object"
        merged = {**target, **beside}
        for key in ("required", "properties"):
            mine, others = beside.get(key), target.get(key)
            if isinstance(mine, list) and isinstance(others, list):
                merged[key] = [*mine, *others]
            elif isinstance(mine, dict) and isinstance(others, dict):
                merged[key] = {**others, **mine}
        if not is_one:
            return {**merged, "$ref": own["$ref"]}
        own = merged
    return own


def _may_be_too_much(schema: Any) -> bool:
    """True if a schema says more of a value than its type, so that it may not be possible to enforce it."""
    if not isinstance(schema, dict):
        return False
    return not schema.keys() <= _ANNOTATIONS | {"type"} or schema.get("type", "null") not in JSON_TYPES


def closed(schema: Any) -> Any:
    """The schema without properties that it does not name, wherever it says nothing of others.

    What fits it fits the schema as well; but a model that may make up names of properties may find no end of them.
    """
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    own = schema.get("properties")
    if isinstance(own, dict):
        result["properties"] = {name: closed(each) for name, each in own.items()}
        required = schema.get("required", [])
        is_named = isinstance(required, list) and all(isinstance(name, str) and name in own for name in required)
        if is_named and _SPEAKS_OF_OTHERS.isdisjoint(schema):
            result["additionalProperties"] = False
    if "items" in schema:
        result["items"] = closed(schema["items"])
    return result


def allows_anything(schema: Any) -> bool:
    """True if a schema says nothing of a value but what it is for."""
    return schema is True or (isinstance(schema, dict) and schema.keys() <= _ANNOTATIONS)
