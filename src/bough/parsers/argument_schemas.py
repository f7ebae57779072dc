"""What the schema of a function's arguments says of each of them, and values that are read by it."""

from __future__ import annotations

import json
import re
from typing import Any

from bough.errors import BadRequest
from bough.parsers.literals import NotALiteral, parse_literal, refuse_constant, to_json

MAX_REPEATED_CHARS = 1 << 20
"""Characters that the definitions of a schema may come to when each argument that refers to them has its own."""

MAX_TYPED_CHARS = 1 << 20
"""Longest text of a value that is read: that holds up everybody else for as long as it takes."""

_NESTED = ("anyOf", "oneOf", "allOf")
_SPEAKS_OF_OTHERS = frozenset(
    {"additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "minProperties", "not"}
    | {"$ref", "$dynamicRef", "if", "dependentSchemas", "dependentRequired", *_NESTED}
)
_ANNOTATIONS = frozenset({"$comment", "$defs", "default", "definitions", "description", "examples", "title"})
_SWITCHES = {"true": True, "false": False, "null": None, "none": None}
_NUMBER_LIKE = re.compile(r"[0-9][0-9A-Za-z_.+-]*")
"""Words that Python takes for a number gone wrong, such as the postcode 01067."""

_SCALARS = frozenset({"boolean", "integer", "number"})
_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}


def property_schema(schema: dict[str, Any], name: str) -> Any:
    """The schema of one argument. It may refer to definitions that are not part of it."""
    return (schema.get("properties") or {}).get(name, schema.get("additionalProperties", True))


def property_schemas(schema: dict[str, Any]) -> dict[str, Any]:
    """The schemas of all arguments, which can stand alone: with the definitions that they refer to.

    Raises:
        BadRequest: if that makes far more of the schema than it is.
    """
    properties: dict[str, Any] = schema.get("properties") or {}
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    referring = [name for name, own in properties.items() if "$ref" in json.dumps(own)] if shared else []
    if referring and len(referring) * len(json.dumps(shared)) > MAX_REPEATED_CHARS:
        raise BadRequest("tools: too many properties refer to too large definitions in $defs", param="tools")
    return {**properties, **{name: {**properties[name], **shared} for name in referring}}


def writable_schemas(schema: dict[str, Any], key: re.Pattern[str], tool: str) -> dict[str, Any]:
    """Those of :func:`property_schemas` that a format can write without quotes around their names.

    A name that holds a mark of the format would be read as something else, so an answer that is constrained leaves it
    out.

    Args:
        schema: of the arguments.
        key: matches names as a whole that can be written.
        tool: name of the function, for errors.

    Raises:
        BadRequest: as that function; and if an argument that is required cannot be written.
    """
    own = property_schemas(schema)
    must = schema.get("required") or ()
    for name in own:
        if name in must and key.fullmatch(name) is None:
            raise BadRequest(
                f"tools: the required property {name[:80]!r} of {tool!r} has a name that this model's form of calls "
                "cannot write; rename it",
                param="tools",
            )
    return {name: each for name, each in own.items() if key.fullmatch(name) is not None}


def schema_of_others(schema: dict[str, Any]) -> Any:
    """The schema of arguments of any name, if no argument is named; ``False`` if there are none."""
    return False if "properties" in schema else schema.get("additionalProperties", True)


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
    """Whether a schema says nothing of a value but what it is for."""
    return schema is True or (isinstance(schema, dict) and schema.keys() <= _ANNOTATIONS)


def kinds_of(schema: Any) -> set[str]:
    """The JSON types that a schema speaks of; an empty set if it does not say."""
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return {each for each in kind if isinstance(each, str)}
    values = schema.get("enum")
    if values is None and "const" in schema:
        values = [schema["const"]]
    if isinstance(values, list) and values:
        return {_KINDS[type(value)][0] for value in values if type(value) in _KINDS}
    kinds: set[str] = set()
    for key in _NESTED:
        alternatives = schema.get(key)
        for each in alternatives if isinstance(alternatives, list) else ():
            # only flat alternatives: a hostile schema may nest them without end
            kind = each.get("type") if isinstance(each, dict) else None
            if not isinstance(kind, str):
                return set()
            kinds.add(kind)
    return kinds


def typed_json(text: str, schema: Any) -> str:
    """The JSON text of a value that is written without quotes if it is a string.

    It is read as JSON, failing that as a Python literal, as far as the result is of a type that the schema speaks of;
    and as a string otherwise, or if it is longer than :data:`MAX_TYPED_CHARS`.
    """
    if len(text) > MAX_TYPED_CHARS:
        return json.dumps(text, ensure_ascii=False)
    kinds = kinds_of(schema)
    stripped = text.strip()
    candidates = []
    try:
        candidates.append((stripped, json.loads(stripped, parse_constant=refuse_constant)))
    except (ValueError, RecursionError):
        if stripped.lower() in _SWITCHES:
            value = _SWITCHES[stripped.lower()]
            candidates.append((json.dumps(value), value))
        elif kinds and kinds != {"string"}:
            try:
                value = parse_literal(stripped)
                candidates.append((to_json(value), value))
            except NotALiteral:
                pass
    for shown, value in candidates:
        if not kinds or _is_one_of(value, kinds):
            return shown
    return json.dumps(text, ensure_ascii=False)


def typed_value(literal: str, schema: Any) -> Any:
    """The value of a Python literal, as far as possible of the type that the schema speaks of.

    A number that has to be a string is the text of it, and a string that must not be one is what is written in it.

    Raises:
        NotALiteral: if it is none.
    """
    kinds, literal = kinds_of(schema), literal.strip()
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
        return inner if _is_one_of(inner, kinds) else value
    return value


def _is_one_of(value: Any, kinds: set[str]) -> bool:
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return True
    return not kinds.isdisjoint(_KINDS[type(value)])
