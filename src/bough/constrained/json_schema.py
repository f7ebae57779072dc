"""Rewrite JSON schemas from requests into schemas that the grammar engine can enforce.

:data:`bough.schema_keywords.KEYWORDS` says how each keyword is treated. The engine gets a new schema without anything
that it would refuse or misread: a keyword that cannot be enforced is refused, or left out if the
schema is lenient. Leaving out a keyword only ever allows more values. Dates become patterns, because the engine
assumes that every month has 31 days. A ``oneOf`` with exclusive alternatives becomes an ``anyOf``.

References point to ``$defs``, which holds every schema that is referred to. The engine cannot combine a schema with
others while it is still reading that schema, as when a reference with sibling keywords leads back to itself. Such a
combination gets its own definition, in which the target is written out and which later references point to.

The engine does not notice duplicate names in an object, unless ``properties`` or ``required`` lists them: an object
with two members may then have only one property. So ``minProperties`` is not enforced where that would matter.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from bough.constrained.ecma_patterns import (
    MAX_REPEATED_ANY,
    ecma_classes,
    is_costly_to_exclude,
    overlapping,
    pattern_problem,
)
from bough.constrained.engine_errors import readable
from bough.constrained.exclusive_options import exclusive, types_of
from bough.constrained.references import Place, References, Target
from bough.constrained.schema_numbers import (
    BOUNDS,
    OutOfReachError,
    inexact,
    make_exact,
    make_numeric,
    within_reach,
)
from bough.sampling.sampling_params import SCHEMA_OPTIONS
from bough.schema_keywords import (
    ANY_TYPE,
    ENFORCED_FORMATS,
    IN_PLACE,
    JSON_TYPES,
    KEYWORDS,
    asserts,
    escaped,
    form_problem,
    is_number,
    kind_named,
    required_names,
    says_nothing,
)

MAX_SCHEMAS = 50_000
"""Most schemas after references are written out; the engine has the same limit."""

MAX_COUNTED_OPTIONS = 64
"""Most optional properties of which one is required: the engine needs a rule for each pair."""

_YEAR = r"(?:[1-9]\d{3}|0[1-9]\d{2}|00[1-9]\d|000[1-9])"
_LEAP_YEAR = r"(?:\d{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
_DATE = rf"(?:{_YEAR}-{_DAY}|{_LEAP_YEAR}-02-29)"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
STRICTER_FORMATS = {"date": f"^{_DATE}$", "time": f"^{_TIME}$", "date-time": f"^{_DATE}T{_TIME}$"}
"""RFC 3339, and besides a day that the calendar has, in a year that programs can represent, and no leap second."""

_IN_SIMPLE = frozenset({"type", "const", "enum", "properties", "required", "additionalProperties", "items"})
_IN_SIMPLE |= {"prefixItems", "additionalItems", "anyOf", "oneOf", "allOf", "$ref"}


class SchemaError(ValueError):
    """What is wrong with a schema."""


class Effort(IntEnum):
    """Amount of a lenient schema that is kept."""

    ALL = 0
    """everything that can be enforced"""
    SIMPLE = 1
    """types, members and values; one of several combined schemas"""
    TYPE = 2
    """the type only"""


def is_lenient(schema: Any) -> bool:
    """True if keywords that cannot be enforced are to be left out.

    Raises:
        SchemaError: the schema sets an engine option that is not open to clients.
    """
    options = schema.get(SCHEMA_OPTIONS, {}) if isinstance(schema, dict) else {}
    if not isinstance(options, dict) or not options.keys() <= {"lenient"}:
        raise SchemaError(f'{SCHEMA_OPTIONS} may only hold "lenient"')
    return options.get("lenient") is True


def prepare(schema: Any, effort: Effort = Effort.ALL) -> Any:
    """Return a schema for the grammar engine: an object or a boolean; of a lenient one as much as ``effort`` says.

    Raises:
        SchemaError: it is not a schema, or contains something that can neither be enforced nor left out.
    """
    lenient = is_lenient(schema)
    if not isinstance(schema, dict):
        return schema
    return _Rewriter(schema, lenient, effort if lenient else Effort.ALL).document()


class _At(NamedTuple):
    """Position of a schema, and how it combines with others.

    Attributes:
        alone: no other schema applies to the same value, nor to a value that contains it.
        within: for combined schemas, ids of the references being written out around this one; otherwise ``None``.
    """

    place: Place
    alone: bool = True
    within: frozenset[int] | None = None

    def below(self, step: str, *, alone: bool = True) -> _At:
        """Return the position of a schema for a part of the value."""
        return _At(self.place._replace(pointer=self.place.pointer + step), self.alone and alone)


class _Rewriter:
    def __init__(self, root: dict[str, Any], lenient: bool, effort: Effort) -> None:
        self._references = References(root)
        self._lenient = lenient
        self._effort = effort
        self._left = MAX_SCHEMAS
        self._names: dict[tuple[int, bool], str] = {}
        self._pending: list[tuple[str, Any, _At]] = []

    def document(self) -> Any:
        """Return the root schema and its definitions."""
        root, place = self._references.root
        result: Any = self._schema(root, _At(place))
        definitions = {}
        while self._pending:
            name, schema, at = self._pending.pop()
            definitions[name] = self._schema(schema, at)
        if (id(root), True) in self._names:
            result = self._reference(self._references.root, True)
        return {**result, "$defs": definitions} if definitions else result

    def _schema(self, schema: Any, at: _At) -> Any:
        """Return a schema rewritten for the engine."""
        self._left -= 1
        if self._left < 0:
            raise SchemaError(
                f"it comes to more than {MAX_SCHEMAS} schemas when references are followed; make it smaller"
            )
        if isinstance(schema, bool):
            return schema
        if schema is None and self._lenient:
            return True
        if not isinstance(schema, dict):
            raise SchemaError(f"{at.place.pointer} must be a schema: an object, true or false")
        at = at._replace(place=self._references.place_of(schema, at.place))
        own = self._own(schema, at)
        if self._effort is Effort.TYPE:
            return {key: own[key] for key in ("type",) if key in own}
        in_place = [key for key in (*IN_PLACE, "$ref") if key in own]
        is_merged = bool(in_place) and (len(own.keys() - {"type"}) > 1 or len(own.get("allOf", ())) > 1)
        if at.within is None and in_place and (is_merged or len(own) > 1):
            if self._leads_into_circle(own, at):
                return self._reference(Target(schema, at.place), at.alone, within=frozenset({id(schema)}))
            at = at._replace(within=frozenset())
        at = at._replace(alone=at.alone and not is_merged)
        result: dict[str, Any] = {}
        for key, value in own.items():
            self._keyword(key, value, own, result, at)
        self._finish(own, result, at)
        return result

    def _own(self, schema: dict[str, Any], at: _At) -> dict[str, Any]:
        """Return the effective keywords that can be enforced, with their values checked."""
        if "$ref" in schema and (at.place.draft <= 7 or self._effort > Effort.ALL):
            schema = {"$ref": schema["$ref"]}
        own = {}
        for key, value in schema.items():
            if not asserts(schema, key) or (self._lenient and says_nothing(key, value)):
                continue
            wanted = form_problem(key, value)
            # Draft 3, which is still common, has a boolean there.
            if wanted is not None and not (self._lenient and key == "required" and isinstance(value, bool)):
                raise SchemaError(f"{key} must be {wanted} (at {at.place.pointer})")
            if wanted is None and (KEYWORDS[key].fate != "left out" or self._cannot(key, at)):
                own[key] = value
        if isinstance(own.get("items"), list):  # before 2020-12
            own["prefixItems"] = own.pop("items")
            if "additionalItems" in own:
                own["items"] = own["additionalItems"]
        elif at.place.draft < 2020:
            own.pop("prefixItems", None)
        own.pop("additionalItems", None)
        if "type" in own:
            self._name_types(own, at)
        if self._effort > Effort.ALL:
            own = {key: value for key, value in own.items() if key in _IN_SIMPLE}
            if "patternProperties" in schema:
                own.pop("additionalProperties", None)
            for key in IN_PLACE:
                if key in own and (len(own) > 1 or key == "allOf"):
                    value = own.pop(key)
                    if not own and value:
                        return self._own(value[0], at) if isinstance(value[0], dict) else {}
        make_numeric(own)
        return own

    def _name_types(self, own: dict[str, Any], at: _At) -> None:
        """Check the types; a lenient schema may use the type names of other languages."""
        names = [own["type"]] if isinstance(own["type"], str) else own["type"]
        if self._lenient:
            names = [name if name in JSON_TYPES else kind_named(name) for name in names]
            if not names or any(name in ANY_TYPE for name in names):
                del own["type"]
                return
            own["type"] = names[0] if len(names) == 1 else list(dict.fromkeys(names))
        for name in names:
            if name not in JSON_TYPES:
                raise SchemaError(f"type: there is no type {name[:80]!r} (at {at.place.pointer})")

    def _keyword(self, key: str, value: Any, own: dict[str, Any], result: dict[str, Any], at: _At) -> None:
        """Write one keyword."""
        if key in ("const", "enum"):
            self._values(key, value, result, at)
        elif key == "properties":
            alone = "patternProperties" not in own
            result[key] = {
                name: self._schema(each, at.below(f"/{key}/{escaped(name)}", alone=alone))
                for name, each in value.items()
            }
        elif key == "patternProperties":
            self._named_by_pattern(value, own, result, at)
        elif key == "additionalProperties":
            result[key] = self._either(result.pop(key, None), self._schema(value, at.below(f"/{key}")))
        elif key == "required":
            result[key] = [name for name in value if not self._is_impossible(name, own)]
        elif key == "items":
            result[key] = self._schema(value, at.below(f"/{key}"))
        elif key == "prefixItems":
            result[key] = [self._schema(each, at.below(f"/{key}/{i}")) for i, each in enumerate(value)]
        elif key in IN_PLACE:
            self._in_place(key, value, result, at)
        elif key == "$ref":
            self._refer(value, result, at)
        elif key == "pattern":
            if (pattern := self._pattern(key, value, at)) is not None:
                result[key] = pattern
        elif is_number(value):
            try:
                result[key] = within_reach(key, value)
            except OutOfReachError as error:
                self._cannot(key, at, must=str(error))
        elif key != "format" or value in ENFORCED_FORMATS:
            result[key] = value

    def _finish(self, own: dict[str, Any], result: dict[str, Any], at: _At) -> None:
        """Write the keywords that depend on several others."""
        name = result.get("format")
        if name in STRICTER_FORMATS and "pattern" not in result:
            # Without a type a format only concerns strings; the engine reads a pattern the same way.
            result["pattern"] = STRICTER_FORMATS[result.pop("format")]
        if any(bound in result for bound in (*BOUNDS, "multipleOf")):
            make_exact(result, is_alone=at.alone)
        if "minProperties" in result or "maxProperties" in result:
            self._count_properties(own, result, at)

    def _cannot(self, keyword: str, at: _At, why: str = "", *, must: str = "") -> bool:
        """Accept that the caller leaves a keyword out. Raises :class:`SchemaError` if it must not be."""
        if not self._lenient:
            problem = (
                f"{keyword} must {must}" if must else f"cannot enforce {keyword}{why and f', {why}'}; leave that out"
            )
            raise SchemaError(f"{problem} (at {at.place.pointer})")
        return False

    def _values(self, key: str, value: Any, result: dict[str, Any], at: _At) -> None:
        number = inexact(value)
        if number is not None:
            # A lenient schema allows any value here.
            size = "which the engine would write as another number (it has floats of 64 bits)"
            self._cannot(key, at, must=f"not have {str(number)[:32]}, {size}; make it a string, or leave it out")
        elif value != [] or key == "const" or not self._lenient:
            result[key] = value

    def _is_impossible(self, name: str, own: dict[str, Any]) -> bool:
        """True if a property is required that the same schema makes impossible, which may be a mistake."""
        is_closed = own.get("additionalProperties") is False and "patternProperties" not in own
        return self._lenient and own.get("properties", {}).get(name, not is_closed) is False

    def _pattern(self, key: str, value: str, at: _At) -> str | None:
        """Return a regular expression for the engine; ``None`` if there is none."""
        pattern = ecma_classes(value)
        problem = pattern_problem(pattern)
        if problem:
            self._cannot(key, at, f"{value[:80]!r}: {readable(problem)}")
            return None
        return pattern

    def _named_by_pattern(self, value: dict[str, Any], own: dict[str, Any], result: dict[str, Any], at: _At) -> None:
        """Write ``patternProperties``, and its effect on properties with other names."""
        key = "patternProperties"
        others = own.get("additionalProperties", True)
        named: dict[str, Any] = {}
        for source, each in value.items():
            below = at.below(f"/{key}/{escaped(source)}", alone="properties" not in own)
            schema = self._schema(each, below)
            pattern = self._pattern(key, source, below)
            if (
                pattern is not None
                and others in (True, {})
                and schema not in (True, {})
                and is_costly_to_exclude(pattern)
            ):
                self._cannot(key, below, f"with more than {MAX_REPEATED_ANY} of any characters where names are free")
                continue
            if pattern is None:
                # The names that it would apply to are unknown.
                if others is not True:
                    result["additionalProperties"] = self._either(result.get("additionalProperties"), schema)
            elif others not in (True, {}) or schema not in (True, {}):
                named[pattern] = schema
        groups = overlapping(list(named))
        if len(groups) < len(named) and not self._lenient:
            self._cannot(key, at, "for some of its patterns overlap")
        result[key] = {}
        for group in groups:
            schemas = [named[pattern] for pattern in group]
            name = group[0] if len(group) == 1 else "|".join(f"(?:{each})" for each in group)
            result[key][name] = schemas[0] if len(group) == 1 else self._either(*schemas)

    @staticmethod
    def _either(*schemas: Any) -> Any:
        """Return a schema that matches if any of the given ones does; ``None`` entries are skipped."""
        given = [each for each in schemas if each is not None]
        if any(each in (True, {}) for each in given):
            return True
        return given[0] if len(given) == 1 else {"anyOf": given}

    def _in_place(self, key: str, value: list[Any], result: dict[str, Any], at: _At) -> None:
        """Write schemas that apply to the same value."""
        if not value and self._lenient:
            return
        pointer = f"{at.place.pointer}/{key}/"
        inner = [
            self._schema(each, at._replace(place=at.place._replace(pointer=f"{pointer}{index}")))
            for index, each in enumerate(value)
        ]
        if key == "allOf":
            result[key] = [*result.get(key, ()), *inner]
        elif key == "oneOf" and not self._lenient and not exclusive(value, lambda each: self._as_one(each, at)):
            result[key] = inner
        elif "anyOf" in result:
            result["allOf"] = [*result.get("allOf", ()), {"anyOf": inner}]
        else:
            result["anyOf"] = inner

    def _as_one(self, schema: Any, at: _At) -> Any:
        """Return the target of a schema that is only a reference, or a schema without one; ``None`` for any other."""
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        if any(asserts(schema, key) for key in schema if key != "$ref"):
            return None
        target = self._references.resolve(schema["$ref"], self._references.place_of(schema, at.place))
        return None if target is None else target.schema

    def _refer(self, reference: str, result: dict[str, Any], at: _At) -> None:
        """Write a reference, or its target."""
        target = self._references.resolve(reference, at.place)
        if target is None:
            self._cannot("$ref", at, _nowhere(reference))
        elif at.within is None or not self._references.is_cyclic(target):
            result.update(self._reference(target, at.alone))
        elif id(target.schema) not in at.within:
            within = at.within | {id(target.schema)}
            result["allOf"] = [
                *result.get("allOf", ()),
                self._schema(target.schema, _At(target.place, at.alone, within)),
            ]
        else:
            self._cannot("$ref", at, "which leads back to itself")

    def _reference(self, target: Target, alone: bool, within: frozenset[int] | None = None) -> dict[str, Any]:
        """Return a reference to a definition, which is created on first use."""
        key = (id(target.schema) if within is None else -id(target.schema), alone)
        if key not in self._names:
            self._names[key] = str(len(self._names))
            self._pending.append((self._names[key], target.schema, _At(target.place, alone, within)))
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _leads_into_circle(self, schema: Any, at: _At) -> bool:
        """True if a schema refers, for the same value, to a schema with cyclic references."""
        if not isinstance(schema, dict):
            return False
        place = self._references.place_of(schema, at.place)
        target = self._references.resolve(schema.get("$ref"), place)
        if target is not None and self._references.is_cyclic(target):
            return True
        return any(
            self._leads_into_circle(each, at)
            for key in IN_PLACE
            for each in (schema.get(key) or ())
            if each is not schema
        )

    def _count_properties(self, own: dict[str, Any], result: dict[str, Any], at: _At) -> None:
        """Keep bounds on the number of properties only if the engine counts every property exactly once."""
        required = set(required_names(result))
        properties = own.get("properties", {})
        optional = [name for name, each in properties.items() if name not in required and each is not False]
        is_closed = result.get("additionalProperties") is False and not result.get("patternProperties")
        least, most = result.get("minProperties", 0), result.get("maxProperties")
        is_object = "object" in (types_of(own) or {"object"})
        if least <= len(required) or not is_object:
            result.pop("minProperties", None)
            least = 0
        if most is not None and (not is_object or (is_closed and most >= len(required) + len(optional))):
            del result["maxProperties"]
            most = None
        if not least and most is None:
            return
        is_listed = "const" in own or "enum" in own
        if optional and is_closed:
            is_counted = least <= len(required) + 1 and most in (None, len(required) + 1)
            is_counted = is_counted and len(optional) <= MAX_COUNTED_OPTIONS
        else:
            # A single name besides the required ones cannot repeat an earlier one.
            is_counted = not optional and (least <= len(required) + 1 or is_closed or is_listed)
        if is_counted and (at.alone or not self._lenient):
            return
        for key in ("minProperties", "maxProperties"):
            if key in result:
                self._cannot(key, at, "since properties are optional, or one name may come twice")
                del result[key]


def _nowhere(reference: str) -> str:
    if reference.startswith("#"):
        return f"{reference[:80]!r} leads to nothing, or back to itself"
    return f"{reference[:80]!r} is not in the schema, and nothing is fetched; put it under $defs"
