"""What the schema of a string asks of text that stands without quotes, as alternatives that can be written down."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from bough.json_pointer import follow
from bough.parsers.schema_kinds import MAX_SCHEMAS, VALUES_LIKE_A_SCHEMA, list_of
from bough.schema_keywords import ANY_TYPE, MAX_COUNTED_CHARS, is_number, kind_named

MAX_ALTERNATIVES = 64
"""Most alternatives that are not merely values."""

_MAX_DEPTH = 32
_PATTERNS = ("pattern", "format")
_LENGTHS = {"minLength": max, "maxLength": min}
_NOT_ENFORCED = ("not", "if", "$dynamicRef")


@dataclass(frozen=True, slots=True)
class StringForm:
    """One form that a string may have.

    Attributes:
        values: the string is one of these; ``None`` for any.
        bounds: ``pattern``, ``format``, ``minLength`` and ``maxLength`` that it follows; of values, which are as long
            as they have to be, only lengths are certain.
    """

    values: tuple[str, ...] | None = None
    bounds: dict[str, Any] = field(default_factory=dict)


def string_forms(schema: Any, root: Any) -> tuple[list[StringForm], bool]:
    """The forms of strings that fit a schema, and true if they are all that it says: if not, they may be wider.

    References are relative to ``root``. No forms: no string fits.
    """
    reader = _Reader(root)
    forms = [bounded for form in reader.forms(schema, 0) if (bounded := reader.bounded(form)).values != ()]
    return forms, reader.is_exact


class _Reader:
    def __init__(self, root: Any) -> None:
        self.is_exact = True
        self._root = root
        self._left = MAX_SCHEMAS

    def forms(self, schema: Any, depth: int) -> list[StringForm]:
        """The forms of strings that fit a schema."""
        self._left -= 1
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._left < 0:
            self.is_exact = self.is_exact and isinstance(schema, bool)
            return [] if schema is False else [StringForm()]
        kind = schema.get("type", "string")
        self._left -= len(kind) // VALUES_LIKE_A_SCHEMA if isinstance(kind, list) else 0
        if self._left < 0:
            self.is_exact = False
            return [StringForm()]
        names = kind if isinstance(kind, list) else [kind]
        if not any(name in ANY_TYPE or (isinstance(name, str) and kind_named(name) == "string") for name in names):
            return []
        self.is_exact = self.is_exact and all(key not in schema for key in _NOT_ENFORCED)
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        listed: tuple[str, ...] | None = None
        self._left -= len(values) // VALUES_LIKE_A_SCHEMA if isinstance(values, list) else 0
        if self._left < 0:
            self.is_exact = False
        elif isinstance(values, list) and values:
            listed = tuple(dict.fromkeys(each for each in values if isinstance(each, str)))
        forms = [StringForm(listed, {key: schema[key] for key in (*_PATTERNS, *_LENGTHS) if key in schema})]
        if listed == ():
            return []
        parts = [[follow(self._root, schema["$ref"])]] if "$ref" in schema else []
        parts += [[each] for each in list_of(schema, "allOf")]
        parts += [list_of(schema, key) for key in ("anyOf", "oneOf") if list_of(schema, key)]
        for alternatives in parts:
            if self._left < 0:
                self.is_exact = False
                break
            apart = self._any_of(alternatives, depth + 1)
            if alternatives is schema.get("oneOf") and not _exclude_each_other(apart):
                self.is_exact = False
            forms = self._both(forms, _joined(apart))
        return forms

    def _any_of(self, alternatives: list[Any], depth: int) -> list[StringForm]:
        """The forms of strings that fit one of the schemas."""
        forms: list[StringForm] = []
        for each in alternatives:
            if self._left < 0:
                self.is_exact = False
                return [StringForm()]
            forms += self.forms(each, depth)
        return forms

    def bounded(self, form: StringForm) -> StringForm:
        """The form with those of its values that are long and short enough; notes what nobody holds it to."""
        bounds: dict[str, Any] = {key: form.bounds[key] for key in _LENGTHS if is_number(form.bounds.get(key))}
        if form.values is None:
            self.is_exact = self.is_exact and all(bound <= MAX_COUNTED_CHARS for bound in bounds.values())
            return form
        self.is_exact = self.is_exact and not any(key in form.bounds for key in _PATTERNS)
        least, most = bounds.get("minLength", 0), bounds.get("maxLength", math.inf)
        return StringForm(tuple(each for each in form.values if least <= len(each) <= most), form.bounds)

    def _both(self, one: list[StringForm], other: list[StringForm]) -> list[StringForm]:
        """What fits one of the former and one of the latter."""
        if other == [StringForm()]:
            return one
        if len(one) * len(other) > MAX_ALTERNATIVES:
            self.is_exact = False
            return one
        return _joined([each for a in one for b in other if (each := self._merged(a, b)).values != ()])

    def _merged(self, one: StringForm, other: StringForm) -> StringForm:
        bounds = {**other.bounds, **one.bounds}
        for key in one.bounds.keys() & other.bounds.keys():
            mine, others = one.bounds[key], other.bounds[key]
            if key in _LENGTHS and is_number(mine) and is_number(others):
                bounds[key] = _LENGTHS[key](mine, others)
            elif mine != others:
                self.is_exact = False
        if one.values is None or other.values is None:
            return StringForm(other.values if one.values is None else one.values, bounds)
        allowed = frozenset(other.values)
        return StringForm(tuple(each for each in one.values if each in allowed), bounds)


def _exclude_each_other(forms: list[StringForm]) -> bool:
    """True if no string is known to fit two of the forms, as far as that is plain to see."""
    values = [value for form in forms for value in form.values or ()]
    return len(forms) < 2 or (all(form.values is not None for form in forms) and len(values) == len(set(values)))


def _joined(forms: list[StringForm]) -> list[StringForm]:
    """The forms, with all that are merely values as one."""
    values = [value for form in forms if form.values is not None and not form.bounds for value in form.values]
    rest = [form for form in forms if form.values is None or form.bounds]
    if StringForm() in rest:
        return [StringForm()]
    return [StringForm(tuple(dict.fromkeys(values))), *rest] if values else rest
