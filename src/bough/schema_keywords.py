"""Keywords of JSON Schema, drafts 4 to 2020-12: their values, and how far outputs follow each of them.

docs/structured.md shows this table; :mod:`bough.constrained.json_schema` implements it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

Fate = Literal["kept", "in part", "left out", "annotation"]
"""Degree to which outputs follow a keyword: fully; except for the keyword's ``limits``; not at all; or not applicable,
because the keyword has no effect on values."""

Form = Literal[
    "any",
    "boolean",
    "number",
    "count",
    "string",
    "names",
    "types",
    "values",
    "schema",
    "schemas",
    "map",
    "schema or schemas",
    "map or names",
]
"""Kind of a keyword's JSON value: a count is a non-negative whole number, ``map`` is an object of schemas."""


class Keyword(NamedTuple):
    """Facts about a keyword."""

    fate: Fate
    form: Form = "any"
    limits: str = ""
    """values or uses that are treated as if the keyword were left out"""
    neutral: tuple[Any, ...] = ()
    """values with which the keyword has no effect"""


_LARGE = "numbers beyond 10^17, or closer to 0 than 10^-30"
_INEXACT = "integers beyond 2^53 that a 64-bit float cannot hold; use strings for such ids"
_PATTERN = r"look-around, `\b`, back-references, `^` and `$` in the middle"
_COUNTED = (
    "bounds beside optional properties, unless no others are allowed and the bound concerns one of them; "
    "bounds in combined schemas"
)

KEYWORDS: dict[str, Keyword] = {
    "type": Keyword("kept", "types"),
    "const": Keyword("in part", "any", _INEXACT),
    "enum": Keyword("in part", "values", _INEXACT),
    "properties": Keyword("kept", "map"),
    "required": Keyword("kept", "names"),
    "additionalProperties": Keyword("kept", "schema"),
    "patternProperties": Keyword(
        "in part",
        "map",
        f"{_PATTERN}; which of several overlapping patterns applies; more than 100 times `.`, if any name is allowed",
    ),
    "minProperties": Keyword(
        "in part",
        "count",
        f"{_COUNTED}; more than one property besides the required ones, if any name is allowed",
        (0,),
    ),
    "maxProperties": Keyword("in part", "count", _COUNTED),
    "items": Keyword("kept", "schema or schemas"),
    "prefixItems": Keyword("kept", "schemas"),
    "additionalItems": Keyword("kept", "schema"),
    "minItems": Keyword("kept", "count"),
    "maxItems": Keyword("kept", "count"),
    "minLength": Keyword("kept", "count"),
    "maxLength": Keyword("kept", "count"),
    "pattern": Keyword("in part", "string", _PATTERN),
    "format": Keyword("in part", "string", "formats not listed below, which are annotations"),
    "minimum": Keyword("in part", "number", _LARGE),
    "maximum": Keyword("in part", "number", _LARGE),
    "exclusiveMinimum": Keyword("in part", "number", _LARGE, (False,)),
    "exclusiveMaximum": Keyword("in part", "number", _LARGE, (False,)),
    "multipleOf": Keyword("in part", "number", "more than nine digits"),
    "allOf": Keyword("kept", "schemas"),
    "anyOf": Keyword("kept", "schemas"),
    "oneOf": Keyword("in part", "schemas", "exclusion between alternatives that may overlap"),
    "$ref": Keyword("in part", "string", "references to other documents, or to nothing"),
    "$dynamicRef": Keyword("left out", "string"),
    "$recursiveRef": Keyword("left out", "string"),
    "not": Keyword("left out", "schema", neutral=(False,)),
    "if": Keyword("left out", "schema"),
    "then": Keyword("left out", "schema"),
    "else": Keyword("left out", "schema"),
    "uniqueItems": Keyword("left out", "boolean", neutral=(False,)),
    "contains": Keyword("left out", "schema"),
    "minContains": Keyword("left out", "count", neutral=(1,)),
    "maxContains": Keyword("left out", "count"),
    "propertyNames": Keyword("left out", "schema", neutral=(True, {})),
    "dependencies": Keyword("left out", "map or names", neutral=({},)),
    "dependentRequired": Keyword("left out", "any", neutral=({},)),
    "dependentSchemas": Keyword("left out", "map", neutral=({},)),
    "unevaluatedItems": Keyword("left out", "schema", neutral=(True, {})),
    "unevaluatedProperties": Keyword("left out", "schema", neutral=(True, {})),
    "$defs": Keyword("annotation", "map"),
    "definitions": Keyword("annotation", "map"),
    **dict.fromkeys(
        (
            *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"),
            *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
            *("contentEncoding", "contentMediaType", "contentSchema"),
        ),
        Keyword("annotation"),
    ),
}

ENFORCED_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")
)

MAX_COUNTED_CHARS = 1024
"""Largest bound of the length of a string without quotes: each character up to it is a state of the automaton."""

IN_PLACE = ("allOf", "anyOf", "oneOf")
"""Keywords whose schemas apply to the same value."""

JSON_TYPES = ("null", "boolean", "number", "integer", "string", "array", "object")

TYPE_OF_PYTHON: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    float: "number",
    int: "integer",
    str: "string",
    list: "array",
    dict: "object",
}
"""JSON type of a decoded value, by its Python type."""

ANY_TYPE = ("any", "")
"""Type names that allow any value in lenient schemas."""

_OTHER_NAMES = {
    name: kind
    for kind, names in {
        "array": "arr array list seq sequence set tuple",
        "boolean": "bool boolean",
        "integer": "int integer long short uint unsigned",
        "null": "none nonetype null",
        "number": "decimal double float num number",
        "object": "dict dictionary map mapping obj object",
        "string": "char enum str string text varchar",
    }.items()
    for name in names.split()
}
_WORD = re.compile("[a-z]+")

_NEEDS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
"""Keywords that have no effect without another one."""


def asserts(schema: dict[str, Any], keyword: str) -> bool:
    """True if a keyword of the schema can make a value invalid."""
    known = KEYWORDS.get(keyword)
    if known is None or known.fate == "annotation":
        return False
    if keyword == "if":
        return "then" in schema or "else" in schema
    if _NEEDS.get(keyword, keyword) not in schema:
        return False
    value = schema[keyword]
    # The type must match, too: in Python, False equals 0.
    return not any(type(value) is type(each) and value == each for each in known.neutral)


def subschemas(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield the schemas directly below a schema, each with the last part of its pointer."""
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        form = KEYWORDS[key].form if key in KEYWORDS else "any"
        if isinstance(value, list) and form in ("schemas", "schema or schemas"):
            yield from ((f"/{key}/{index}", each) for index, each in enumerate(value))
        elif isinstance(value, dict) and form in ("map", "map or names"):
            yield from ((f"/{key}/{escaped(name)}", each) for name, each in value.items())
        elif form in ("schema", "schema or schemas"):
            yield f"/{key}", value


def required_names(schema: dict[str, Any]) -> list[str]:
    """Return the names of the properties that a schema requires."""
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def kind_named(name: str) -> str:
    """Return the JSON type for a type name, which may be the term of Python or another language.

    Unknown names are returned unchanged.
    """
    word = _WORD.match(name.lower())
    return name if word is None else _OTHER_NAMES.get(word[0], name)


def says_nothing(keyword: str, value: Any) -> bool:
    """True if a keyword has a value that some clients send instead of leaving the keyword out.

    Serialisers write null for a member that is not set; PHP and Lua write an empty list for an empty object.
    """
    form = KEYWORDS[keyword].form if keyword in KEYWORDS else "any"
    return form != "any" and (value is None or (value == [] and form in ("map", "schema", "map or names")))


def escaped(name: str) -> str:
    """Return a key escaped for a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def form_problem(keyword: str, value: Any) -> str | None:
    """Return a description of what a keyword's value must be if it is invalid; nested schemas are not checked."""
    form = KEYWORDS[keyword].form if keyword in KEYWORDS else "any"
    check, wanted = _FORMS[form]
    return None if check(value) else wanted


def is_number(value: Any) -> bool:
    """True if a decoded value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


_FORMS: dict[Form, tuple[Any, str]] = {
    "any": (lambda value: True, ""),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    # Draft 4 has booleans for exclusive bounds; later drafts have numbers.
    "number": (lambda value: isinstance(value, (int, float)), "a number"),
    "count": (lambda value: is_number(value) and value >= 0 and value == int(value), "a whole number from 0 on"),
    "string": (lambda value: isinstance(value, str), "a string"),
    "names": (_is_texts, "a list of strings"),
    "types": (lambda value: isinstance(value, str) or _is_texts(value), "a string or array of strings"),
    "values": (lambda value: isinstance(value, list), "a list"),
    "schema": (_is_schema, "a schema: an object, true or false"),
    "schemas": (lambda value: isinstance(value, list), "a list of schemas"),
    "map": (lambda value: isinstance(value, dict), "an object of schemas"),
    "schema or schemas": (lambda value: _is_schema(value) or isinstance(value, list), "a schema or a list of them"),
    "map or names": (lambda value: isinstance(value, dict), "an object"),
}
