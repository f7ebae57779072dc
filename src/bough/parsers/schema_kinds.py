"""The JSON types that a schema speaks of, through references and alternatives."""

from __future__ import annotations

from typing import Any

from bough.json_pointer import follow
from bough.schema_keywords import TYPE_OF_PYTHON, kind_named

MAX_SCHEMAS = 512
"""Most schemas that are looked at for one value: a hostile schema may nest or fan out without end."""

_MAX_DEPTH = 32
VALUES_LIKE_A_SCHEMA = 128
"""Members of a list that take about as long as a schema."""

_EVERY_NUMBER = frozenset({"integer", "number"})


def kinds_of(schema: Any, root: Any) -> frozenset[str]:
    """The JSON types that a schema speaks of; an empty set if it does not say, or nothing fits it.

    ``integer`` is among them where ``number`` is. References are relative to ``root``.
    """
    return _Search(root).kinds(schema, 0) or frozenset()


def is_of_kind(value: Any, kinds: frozenset[str]) -> bool:
    """True if a decoded value is of one of the types."""
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return True
    return TYPE_OF_PYTHON[type(value)] in kinds


class _Search:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = MAX_SCHEMAS

    def kinds(self, schema: Any, depth: int) -> frozenset[str] | None:
        """The types that a schema leaves; ``None`` if it does not say, or there is too much to look at."""
        self._left -= 1
        if schema is False:
            return frozenset()
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._left < 0:
            return None
        told = [self._named(schema.get("type")), self._listed(schema)]
        if "$ref" in schema:
            told.append(self.kinds(follow(self._root, schema["$ref"]), depth + 1))
        for each in list_of(schema, "allOf"):
            told.append(self.kinds(each, depth + 1))
            if self._left < 0:
                break
        told += (self._either(list_of(schema, key), depth + 1) for key in ("anyOf", "oneOf"))
        result: frozenset[str] | None = None
        for each in told:
            if each is not None:
                # Parts that contradict each other leave what the first of them says.
                result = each if result is None else (result & each) or result
        return result

    def _listed(self, schema: dict[str, Any]) -> frozenset[str] | None:
        values = [schema["const"]] if "const" in schema else list_of(schema, "enum")
        if not values or not self._may_take(len(values)):
            return None
        return _with_integers({TYPE_OF_PYTHON[kind] for kind in set(map(type, values)) if kind in TYPE_OF_PYTHON})

    def _either(self, alternatives: list[Any], depth: int) -> frozenset[str] | None:
        kinds: frozenset[str] = frozenset()
        for each in alternatives:
            own = self.kinds(each, depth)
            if own is None or self._left < 0:
                return None
            kinds |= own
        return kinds or None

    def _named(self, kind: Any) -> frozenset[str] | None:
        names = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
        if not self._may_take(len(names)):
            return None
        return _with_integers({kind_named(each) for each in names if isinstance(each, str)}) or None

    def _may_take(self, num_values: int) -> bool:
        self._left -= num_values // VALUES_LIKE_A_SCHEMA
        return self._left >= 0


def _with_integers(kinds: set[str]) -> frozenset[str]:
    return _EVERY_NUMBER | kinds if "number" in kinds else frozenset(kinds)


def list_of(schema: dict[str, Any], key: str) -> list[Any]:
    """What a keyword lists; nothing if that is no list."""
    value = schema.get(key)
    return value if isinstance(value, list) else []
