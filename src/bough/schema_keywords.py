"""Keywords of JSON Schema, drafts 4 to 2020-12: their values, and what becomes of each in an output.

docs/structured.md has the table; :mod:`bough.constrained.json_schema` follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

Fate = Literal["kept", "in part", "left out", "annotation"]
"""An output follows the keyword; it follows it but for what the keyword's ``limits`` say; it follows none of it; or
there is nothing to follow."""

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
"""JSON value of a keyword: a whole number from 0 on is a count, ``map`` is an object of schemas."""


class Keyword(NamedTuple):
    """What is known about a keyword."""

    fate: Fate
    form: Form = "any"
    limits: str = ""
    """what is treated as if it were left out"""
    neutral: tuple[Any, ...] = ()
    """values with which it says nothing"""


_LARGE = "numbers beyond 10^17, or nearer to 0 than 10^-30"
_INEXACT = "whole numbers beyond 2^53 that a 64-bit float cannot hold; make such ids strings"
_PATTERN = r"look-around, `\b`, back-references, `^` and `$` in the middle"
_COUNTED = (
    "bounds where optional properties are listed, unless there can be no others and the bound is about one of these; "
    "bounds in schemas that are combined"
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
        f"{_PATTERN}; of patterns that overlap, which one a name has; more than 100 times `.`, where names are free",
    ),
    "minProperties": Keyword(
        "in part", "count", f"{_COUNTED}; more than one name besides those required, where names are free", (0,)
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
    "format": Keyword("in part", "string", "formats that are not named below, which are annotations"),
    "minimum": Keyword("in part", "number", _LARGE),
    "maximum": Keyword("in part", "number", _LARGE),
    "exclusiveMinimum": Keyword("in part", "number", _LARGE, (False,)),
    "exclusiveMaximum": Keyword("in part", "number", _LARGE, (False,)),
    "multipleOf": Keyword("in part", "number", "more than nine digits"),
    "allOf": Keyword("kept", "schemas"),
    "anyOf": Keyword("kept", "schemas"),
    "oneOf": Keyword("in part", "schemas", "the exclusion, where alternatives may overlap"),
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

IN_PLACE = ("allOf", "anyOf", "oneOf")
"""Keywords whose schemas speak of the same value."""

JSON_TYPES = ("null", "boolean", "number", "integer", "string", "array", "object")

ANY_TYPE = ("any", "")
"""Names of no type in schemas that are read leniently: they allow for any value."""

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
"""Keywords that say nothing without another one."""


def asserts(schema: dict[str, Any], keyword: str) -> bool:
    """Whether a keyword of the schema says something that a value could fail to follow."""
    known = KEYWORDS.get(keyword)
    if known is None or known.fate == "annotation":
        return False
    if keyword == "if":
        return "then" in schema or "else" in schema
    if _NEEDS.get(keyword, keyword) not in schema:
        return False
    value = schema[keyword]
    # By type as well: to Python, False is 0.
    return not any(type(value) is type(each) and value == each for each in known.neutral)


def subschemas(schema: Any) -> Iterator[tuple[str, Any]]:
    """The schemas right below one, each with the end of the pointer that leads there."""
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


def kind_named(name: str) -> str:
    """JSON type that a schema means, which may be written as Python and other languages call it.

    A name that is none of theirs is returned as it is.
    """
    word = _WORD.match(name.lower())
    return name if word is None else _OTHER_NAMES.get(word[0], name)


def says_nothing(keyword: str, value: Any) -> bool:
    """Whether a keyword has a value with which writers of other languages leave it out.

    Null is what serialisers write for a member that is not set, and an empty list what PHP and Lua write for an empty
    object.
    """
    form = KEYWORDS[keyword].form if keyword in KEYWORDS else "any"
    return form != "any" and (value is None or (value == [] and form in ("map", "schema", "map or names")))


def escaped(name: str) -> str:
    """A key as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def form_problem(keyword: str, value: Any) -> str | None:
    """What the value of a keyword must be, if it is not; the schemas in it are not looked at."""
    form = KEYWORDS[keyword].form if keyword in KEYWORDS else "any"
    check, wanted = _FORMS[form]
    return None if check(value) else wanted


def is_number(value: Any) -> bool:
    """Whether a decoded value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


_FORMS: dict[Form, tuple[Any, str]] = {
    "any": (lambda value: True, ""),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    # Draft 4 has booleans where later drafts have exclusive bounds.
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
