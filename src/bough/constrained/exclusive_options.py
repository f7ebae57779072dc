"""Decide if the alternatives of a ``oneOf`` exclude each other, as they mostly do.

They do if they differ in type, or in the value of a property that all of them require.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from bough.schema_keywords import TYPE_OF_PYTHON, required_names

MAX_ONE_OF = 512
"""Most alternatives that are compared with each other."""

Resolve = Callable[[Any], Any]
"""Replaces a schema that is only a reference by its target; returns ``None`` if that fails."""


def exclusive(options: list[Any], resolve: Resolve) -> bool:
    """True if no value can match two of the schemas."""
    if not 1 <= len(options) <= MAX_ONE_OF:
        return False
    resolved = [resolve(option) for option in options]
    if not all(isinstance(option, dict) for option in resolved):
        return False
    if _disjoint([_values(option) for option in resolved]):
        return True
    # Compare types first, then, among objects, the values of a property that all of them require.
    objects = [option for option in resolved if types_of(option) == {"object"}]
    others = [option for option in resolved if types_of(option) != {"object"}]
    if len(objects) > 1 and not any(_disjoint(tags) for tags in _tags(objects, resolve)):
        return False
    return _disjoint([types_of(option) for option in others] + ([{"object"}] if objects else []))


def types_of(schema: dict[str, Any]) -> set[str] | None:
    """Return the JSON types that a schema allows, counting integers as numbers; ``None`` if it does not say."""
    given = schema.get("type")
    if given is None and "const" in schema:
        return {_type_of(schema["const"])}
    if given is None and isinstance(schema.get("enum"), list):
        return {_type_of(value) for value in schema["enum"]}
    names = given if isinstance(given, list) else [given]
    types = {"number" if name == "integer" else name for name in names if isinstance(name, str)}
    return types if names and all(isinstance(name, str) for name in names) else None


def _tags(objects: list[dict[str, Any]], resolve: Resolve) -> Iterator[list[set[str] | None]]:
    """Yield, for each property that all objects require, the values allowed in each of them."""
    required = [frozenset(required_names(option)) for option in objects]
    for name in dict.fromkeys(required_names(objects[0])):
        if not all(name in each for each in required):
            continue
        properties = [option.get("properties") for option in objects]
        yield [_values(resolve(each.get(name))) if isinstance(each, dict) else None for each in properties]


def _values(schema: Any) -> set[str] | None:
    """Return the values that a schema lists, as JSON text; ``None`` if it lists none."""
    if not isinstance(schema, dict):
        return None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list):
        return None
    # JSON Schema treats 1 and 1.0 as equal.
    return {json.dumps(_level(value), sort_keys=True) for value in values}


def _disjoint(sets: list[set[str] | None]) -> bool:
    seen: set[str] = set()
    for each in sets:
        if each is None or not seen.isdisjoint(each):
            return False
        seen |= each
    return True


def _type_of(value: Any) -> str:
    """Return the JSON type of a value; integers are numbers, since 1 and 1.0 are equal."""
    kind = TYPE_OF_PYTHON[type(value)]
    return "number" if kind == "integer" else kind


def _level(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_level(each) for each in value]
    if isinstance(value, dict):
        return {key: _level(each) for key, each in value.items()}
    return value
