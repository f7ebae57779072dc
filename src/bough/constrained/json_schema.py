"""JSON schemas as they come, and as the grammar engine can enforce them.

The engine refuses what it cannot enforce, so that an output which comes out is valid. One thing it cannot see for
itself is that the alternatives of ``oneOf`` exclude each other, which is the usual case: they differ in type, or in
the value of a property that all of them require. Such a ``oneOf`` is an ``anyOf``, and is handed on as one.
Another is the calendar, in which not every month has 31 days. Formats that it does not know are annotations (JSON
Schema 2020-12, Validation, 7.2.1) and left out, and so are keywords with the value that says nothing.

Its bounds of fractions are wrong where an exclusive one is a whole number and the other is less than one away: such a
bound becomes one that is not exclusive, a little further in. Patterns are those of ECMA-262 (JSON Schema 2020-12,
Core, 6.4), whose classes the engine would read otherwise.

It does not see either that a name comes twice in an object, unless ``properties`` or ``required`` list it: an object of
two members may have but one property then. So ``minProperties`` is refused where that would matter.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from bough.json_pointer import MAX_REFERENCES, follow, is_pointer
from bough.sampling.sampling_params import SCHEMA_OPTIONS

MAX_ONE_OF = 512
"""Most alternatives that are compared with each other."""

_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"))
"""Formats that the engine enforces."""

_SAY_NOTHING = {"uniqueItems": False, "unevaluatedProperties": True, "unevaluatedItems": True}

_LOWER_BOUNDS = ("minimum", "exclusiveMinimum")
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum")
_INWARD = 1e-9
"""How far a bound moves that becomes inclusive."""

_COMBINE = ("allOf", "anyOf", "oneOf", "$ref")
"""By what the bounds of several schemas come together."""

_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
LARGEST_BOUND = 10**17
"""Numbers that have bounds at all are no larger than this: with more digits the engine cannot count."""

SMALLEST_BOUND = 1e-30
LARGEST_LENGTH = 2**31
_EXACT = 2**53

_YEAR = r"(?:[1-9]\d{3}|0[1-9]\d{2}|00[1-9]\d|000[1-9])"
_LEAP_YEAR = r"(?:\d{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
_DATE = rf"(?:{_YEAR}-{_DAY}|{_LEAP_YEAR}-02-29)"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
STRICTER_FORMATS = {"date": f"^{_DATE}$", "time": f"^{_TIME}$", "date-time": f"^{_DATE}T{_TIME}$"}
"""RFC 3339, and besides a day that the calendar has, in a year that programs can represent, and no leap second."""

_CLASS_ATOM = re.compile(r"(?s)\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]+\}|[pP]\{[^}]*\}|c[A-Za-z]|.)|[^\\]")
_OF_THE_ENGINE = "[&~-^"
"""Characters of a class that mean something else to the engine, some of them where there are two."""

_BEYOND_THE_ENGINE = re.compile(r"\(\?<?[=!]|\\[1-9k]")
"""Look-around and back-references."""

_BACKSLASH = ord("\\")
_CONTROLS = (1 << 32) - 1
_ESCAPED = 1 << ord('"') | 1 << _BACKSLASH
_CONTROL_ESCAPES = {"0": 0, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_UP_TO_BACKSLASH = (2 << _BACKSLASH) - 1
_WORD = sum(1 << ord(char) for char in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS, _SPACES = sum(1 << ord(char) for char in "0123456789"), sum(1 << code for code in (9, 10, 11, 12, 13, 32))
_SETS = {
    f"\\{name}": each & _UP_TO_BACKSLASH
    for small, has in (("d", _DIGITS), ("w", _WORD), ("s", _SPACES))
    for name, each in ((small, has), (small.upper(), ~has))
}
"""Characters up to the backslash that classes in classes have, as bits."""

_SCHEMAS = ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_EXCLUSIVE = (("exclusiveMinimum", "minimum", max, 1), ("exclusiveMaximum", "maximum", min, -1))
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


class SchemaError(ValueError):
    """What is wrong with a schema."""


def prepare(schema: Any) -> tuple[Any, bool]:
    """A schema for the grammar engine.

    Args:
        schema: an object or a boolean; not changed.

    Returns:
        The schema with every ``oneOf`` that excludes itself made an ``anyOf``, dates made patterns and what says
        nothing left out, and whether it is to be read leniently.

    Raises:
        SchemaError: the schema has a number out of reach, or says something about the engine that clients have no say
            in.
    """
    lenient = False
    if isinstance(schema, dict) and SCHEMA_OPTIONS in schema:
        options = schema[SCHEMA_OPTIONS]
        if not isinstance(options, dict) or not options.keys() <= {"lenient"}:
            raise SchemaError(f'{SCHEMA_OPTIONS} may only hold "lenient"')
        lenient = options.get("lenient") is True
        schema = {key: value for key, value in schema.items() if key != SCHEMA_OPTIONS}
    return _Rewriter(schema, lenient).rewrite(schema), lenient


class _Rewriter:
    def __init__(self, root: Any, lenient: bool) -> None:
        self._root = root
        self._lenient = lenient
        text = json.dumps(root)
        self._combines = any(f'"{name}":' in text for name in _COMBINE)

    def rewrite(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        if not self._lenient and _may_count_twice(schema):
            raise SchemaError(
                "cannot enforce minProperties where names are free, since one may come twice; list as many but one in "
                "required, or leave that out"
            )
        result: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
                as_name = ecma_classes if key == "patternProperties" else str
                result[key] = {as_name(name): self.rewrite(each) for name, each in value.items()}
            elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
                result[key] = [self.rewrite(each) for each in value]
            elif key in _SCHEMAS:
                result[key] = self.rewrite(value)
            elif key in ("const", "enum") and (number := _inexact(value)) is not None:
                # What is read leniently may be any value here.
                if not self._lenient:
                    raise SchemaError(
                        f"{key} has {str(number)[:32]}, which the engine would write as another number (it has floats "
                        "of 64 bits); make it a string, or leave it out"
                    )
            elif key not in _SAY_NOTHING or value is not _SAY_NOTHING[key]:
                result[key] = _within_reach(key, value) if _is_number(value) else value
        if isinstance(result.get("pattern"), str):
            result["pattern"] = ecma_classes(result["pattern"])
            if self._lenient and _BEYOND_THE_ENGINE.search(result["pattern"]):
                del result["pattern"]
        if isinstance(result.get("$ref"), str):
            result["$ref"] = self._as_renamed(result["$ref"])
        self._make_inclusive(result)
        name = result.get("format")
        if isinstance(name, str) and name not in _FORMATS:
            del result["format"]
        elif isinstance(name, str) and name in STRICTER_FORMATS and "pattern" not in result:
            del result["format"]
            # Without a type a format only concerns strings; the engine reads a pattern the same way.
            result["pattern"] = STRICTER_FORMATS[name]
        if self._is_renamed(schema):
            result = {("anyOf" if key == "oneOf" else key): value for key, value in result.items()}
        return result

    def _is_renamed(self, schema: dict[str, Any]) -> bool:
        """Whether the ``oneOf`` of a schema becomes an ``anyOf``."""
        options = schema.get("oneOf")
        return isinstance(options, list) and "anyOf" not in schema and self._exclusive(options)

    def _as_renamed(self, reference: str) -> str:
        """A pointer into the schema as it came, for the one that is made of it."""
        if "/oneOf" not in reference or not is_pointer(reference):
            return reference
        parts = reference.split("/")
        renamed = list(parts)
        place, schema = 1, self._root
        while place < len(parts) and isinstance(schema, dict):
            key = parts[place]
            if key == "oneOf" and self._is_renamed(schema):
                renamed[place] = "anyOf"
            is_list = key in _LISTS_OF_SCHEMAS and isinstance(schema.get(key), list)
            if not is_list and key not in _MAPS_OF_SCHEMAS and key not in _SCHEMAS:
                break  # what is there is not read as schemas
            place += 2 if is_list or key in _MAPS_OF_SCHEMAS else 1
            schema = follow(self._root, "/".join(parts[:place]))
        return "/".join(renamed)

    def _make_inclusive(self, schema: dict[str, Any]) -> None:
        """Move bounds of fractions that the engine would not enforce."""
        given = schema.get("type")
        if given is not None and "number" not in (given if isinstance(given, (str, list)) else ()):
            return
        bounds = {name: schema[name] for name in (*_LOWER_BOUNDS, *_UPPER_BOUNDS) if _is_number(schema.get(name))}
        lower = max((bounds[name] for name in _LOWER_BOUNDS if name in bounds), default=-math.inf)
        upper = min((bounds[name] for name in _UPPER_BOUNDS if name in bounds), default=math.inf)
        if upper - lower >= 1 and not self._combines:
            return
        for exclusive, inclusive, tighter, sign in _EXCLUSIVE:
            value = bounds.get(exclusive)
            if value is not None and value == int(value):
                moved = value + sign * max(_INWARD, 8 * math.ulp(value))
                del schema[exclusive]
                schema[inclusive] = tighter(moved, bounds.get(inclusive, moved))

    def _exclusive(self, options: list[Any]) -> bool:
        """Whether no value can match two of the schemas."""
        if not 1 <= len(options) <= MAX_ONE_OF:
            return False
        resolved = [self._resolve(option) for option in options]
        if not all(isinstance(option, dict) for option in resolved):
            return False
        if _disjoint([self._values(option) for option in resolved]):
            return True
        # By type alone, or, among the objects, by the value of a property that all of them have.
        objects = [option for option in resolved if _types(option) == {"object"}]
        others = [option for option in resolved if _types(option) != {"object"}]
        if len(objects) > 1 and not any(_disjoint(tags) for tags in self._tags(objects)):
            return False
        return _disjoint([_types(option) for option in others] + ([{"object"}] if objects else []))

    def _tags(self, objects: list[dict[str, Any]]) -> Iterator[list[set[str] | None]]:
        """For each property that all objects require: the values that it may have in each of them."""
        required = [frozenset(_required(option)) for option in objects]
        for name in dict.fromkeys(_required(objects[0])):
            if not all(name in each for each in required):
                continue
            properties = [option.get("properties") for option in objects]
            yield [
                self._values(self._resolve(each.get(name))) if isinstance(each, dict) else None for each in properties
            ]

    def _values(self, schema: Any) -> set[str] | None:
        """The values that a schema lists, as JSON text; ``None`` if it does not."""
        if not isinstance(schema, dict):
            return None
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(values, list):
            return None
        # 1 and 1.0 are the same value to JSON Schema.
        return {_canonical(value) for value in values}

    def _resolve(self, schema: Any) -> Any:
        for _ in range(MAX_REFERENCES):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema
            target = follow(self._root, schema["$ref"])
            if target is None or len(schema.keys() - {"description", "title", "$comment"}) > 1:
                return None
            schema = target
        return None


def ecma_classes(pattern: str) -> str:
    """A regular expression of ECMA-262 with its classes written so that they mean the same to the engine."""
    result: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith(("\\p{", "\\P{"), at) and (atom := _CLASS_ATOM.match(pattern, at)) is not None:
            result.append(rf"[{atom[0]}&&[^\x00]]")
            at = atom.end()
        elif char == "\\":
            result.append(pattern[at : at + 2])
            at += 2
        elif char != "[":
            result.append(char)
            at += 1
        elif pattern.startswith("[^]", at):
            result.append("(?s:.)")
            at += 3
        else:
            negated = pattern.startswith("[^", at)
            inside, characters, at = _class_inside(pattern, at + 1 + negated)
            result.append("[^" if negated else "[")
            result.append(inside)
            if not pattern.startswith("]", at):
                break
            if characters is None or _has_escapes(~characters if negated else characters):
                result.append(r"\x00" if negated else r"&&[^\x00]")
            result.append("]")
            at += 1
    return "".join(result)


def _has_escapes(characters: int) -> bool:
    """Whether the engine would let escaped quotes and backslashes through a class that does not have them.

    It takes a class that has all control characters for one in which whatever has to be escaped may stand. Without
    U+0000 it is none.
    """
    return characters & _CONTROLS == _CONTROLS and characters & _ESCAPED != _ESCAPED


def _class_inside(pattern: str, at: int) -> tuple[str, int | None, int]:
    """What follows ``[`` or ``[^``, up to the bracket that closes the class.

    Returns:
        The text; which of the characters up to the backslash it has, as bits, or ``None`` if Unicode's properties say
        that; and where the bracket is.
    """
    items: list[str] = []
    characters, is_known = 0, True
    while at < len(pattern) and pattern[at] != "]":
        low = _CLASS_ATOM.match(pattern, at)
        if low is None:  # a backslash at the very end
            break
        at = low.end()
        items.append(_class_atom(low[0]))
        first = last = _code_point(low[0])
        if pattern.startswith("-", at) and not pattern.startswith("-]", at):
            high = _CLASS_ATOM.match(pattern, at + 1)
            if high is not None:
                items.append(f"-{_class_atom(high[0])}")
                at = high.end()
                last = _code_point(high[0])
        if first is None or last is None:
            characters |= _SETS.get(low[0], 0)
            is_known &= low[0] in _SETS
        elif first <= _BACKSLASH:
            characters |= (2 << min(last, _BACKSLASH)) - (1 << first)
    if at < len(pattern) and pattern[at] != "]":
        items.append(pattern[at:])
        at = len(pattern)
    return "".join(items), characters if is_known else None, at


def _code_point(atom: str) -> int | None:
    """Of the one character that a part of a class stands for; ``None`` if it stands for others."""
    if len(atom) == 1:
        return ord(atom)
    kind, digits = atom[1], atom[2:].strip("{}")
    if kind in "dDwWsSpP":
        return None
    if kind in "xu" and digits:
        return int(digits, 16)
    if kind == "c" and digits:
        return ord(digits) & 31
    return _CONTROL_ESCAPES.get(kind, ord(kind))


def _class_atom(atom: str) -> str:
    return f"\\{atom}" if atom in _OF_THE_ENGINE else atom


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _may_count_twice(schema: dict[str, Any]) -> bool:
    """Whether names that come twice could make up for properties that ``minProperties`` asks for."""
    least = schema.get("minProperties", 0)
    # One name besides those that are required is never one that has come already.
    if not _is_number(least) or least <= len({*_required(schema)}) + 1:
        return False
    if "const" in schema or "enum" in schema or "object" not in (_types(schema) or {"object"}):
        return False
    return schema.get("additionalProperties") is not False or bool(schema.get("patternProperties"))


def _within_reach(key: str, value: float) -> float:
    """The number of a keyword, such that the engine can enforce it: bounds of 64-bit integers become tighter."""
    if key in _LENGTHS and value > LARGEST_LENGTH:
        raise SchemaError(f"{key} must be at most {LARGEST_LENGTH}")
    if key in _LENGTHS and isinstance(value, float) and value.is_integer():
        return int(value)
    if key not in (*_LOWER_BOUNDS, *_UPPER_BOUNDS, "multipleOf"):
        return value
    if value and abs(value) < SMALLEST_BOUND:
        raise SchemaError(f"{key} must be 0 or of a size of at least {SMALLEST_BOUND:g}")
    if key in _LOWER_BOUNDS and value < -LARGEST_BOUND:
        return -LARGEST_BOUND
    if key in _UPPER_BOUNDS and value > LARGEST_BOUND:
        return LARGEST_BOUND
    if abs(value) > LARGEST_BOUND:
        raise SchemaError(f"{key} must be of a size of at most {LARGEST_BOUND:g}")
    # The engine's bounds are floats of 64 bits, which may only be further in.
    if key in _LOWER_BOUNDS and float(value) < value:
        return int(math.nextafter(value, math.inf))
    if key in _UPPER_BOUNDS and float(value) > value:
        return int(math.nextafter(value, -math.inf))
    return value


def _inexact(value: Any) -> int | None:
    """A whole number in a value that the engine, whose numbers are floats of 64 bits, would write as another one."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, (list, dict)):
            pending.extend(each.values() if isinstance(each, dict) else each)
        elif isinstance(each, int) and abs(each) > _EXACT:
            digits = Decimal(repr(float(each))) if abs(each) <= sys.float_info.max else None
            if digits != each:
                return each
    return None


def _disjoint(sets: list[set[str] | None]) -> bool:
    seen: set[str] = set()
    for each in sets:
        if each is None or not seen.isdisjoint(each):
            return False
        seen |= each
    return True


def _required(schema: dict[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _types(schema: dict[str, Any]) -> set[str] | None:
    """JSON types that a schema allows, integers counted as numbers; ``None`` if it does not say."""
    given = schema.get("type")
    if given is None and "const" in schema:
        return {_type_of(schema["const"])}
    if given is None and isinstance(schema.get("enum"), list):
        return {_type_of(value) for value in schema["enum"]}
    names = given if isinstance(given, list) else [given]
    types = {"number" if name == "integer" else name for name in names if isinstance(name, str)}
    return types if names and all(isinstance(name, str) for name in names) else None


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "number"


def _canonical(value: Any) -> str:
    return json.dumps(_level(value), sort_keys=True)


def _level(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_level(each) for each in value]
    if isinstance(value, dict):
        return {key: _level(each) for key, each in value.items()}
    return value
