"""JSON schemas to judge grammar engines by, made here: some by hand, most by rule, all of them the same every time."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

Schema = Any


def corpus() -> dict[str, Schema]:
    """All schemas by name; the part of a name before the slash is the family."""
    result: dict[str, Schema] = {}
    for family, make in _FAMILIES.items():
        for i, schema in enumerate(make()):
            result[f"{family}/{i}"] = schema
    return result


def documents() -> list[Any]:
    """Documents of every kind; most schemas do not allow most of them."""
    return [
        *(None, True, False, 0, 1, -1, 7, 42, 1.5, -0.25, 1e3, 10**12),
        *("", "a", "abc", "red", "2024-02-29", "user@example.org", "é", "x" * 40, "12", "http://example.org/a"),
        *([], [1], [1, 2, 3], ["a"], [None], [[1]], [1, "a"], [{}], list(range(12))),
        *(
            {},
            {"a": 1},
            {"a": "x"},
            {"name": "Ann"},
            {"name": "Ann", "age": 7},
            {"name": 1},
            {"k": "a"},
            {"k": "b", "v": 1},
        ),
        *({"value": 1, "next": None}, {"value": 1, "next": {"value": 2}}, {"children": []}, {"a": {"a": {"a": 1}}}),
    ]


def _obj(properties: dict[str, Schema], required: list[str] | None = None, **more: Any) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
        **more,
    }


def _types() -> Iterator[Schema]:
    names = ["string", "integer", "number", "boolean", "null", "array", "object"]
    yield from ({"type": name} for name in names)
    yield from ({"type": list(pair)} for pair in itertools.combinations(names, 2))
    yield from (True, {}, {"description": "anything", "title": "T", "$comment": "c", "default": 1, "examples": [1]})


def _numbers() -> Iterator[Schema]:
    bounds = [(0, 9), (-5, 5), (17, 17), (100, 1999), (-1000000, -3), (0, 2**53), (999, 1001), (-1, 0)]
    for low, high in bounds:
        yield {"type": "integer", "minimum": low, "maximum": high}
        yield {"type": "number", "minimum": low, "maximum": high}
        if high - low > 2:
            yield {"type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": high}
            yield {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high}
    yield from ({"type": "integer", "minimum": low} for low in (0, 1, -7, 12345))
    yield from ({"type": "number", "maximum": high} for high in (0, 1.5, -2.25, 1000.001))
    yield from ({"type": "integer", "multipleOf": step} for step in (2, 3, 5, 10))
    yield {"type": "number", "multipleOf": 0.5}
    yield {"type": "integer", "minimum": 10, "maximum": 20, "multipleOf": 5}


def _strings() -> Iterator[Schema]:
    for least, most in ((0, 0), (0, 1), (1, 1), (3, 5), (0, 64), (10, 10), (1, 1000), (5, None), (0, 20000)):
        yield {"type": "string", "minLength": least, **({} if most is None else {"maxLength": most})}
    patterns = [
        *(
            "^[a-z]+$",
            "^[A-Z][a-z]{1,8}$",
            "^(red|green|blue)$",
            "[0-9]",
            "^\\d{3}-\\d{4}$",
            "^.{3}$",
            "^\\w+@\\w+\\.com$",
        ),
        *(
            "^a*b*c*$",
            "^(ab|a)(c|bc)$",
            "^[^\\s]+$",
            "^x",
            "y$",
            "^\\S+$",
            "^[\\u00e0-\\u00ff]+$",
            '^"quoted"$',
            "^\\\\$",
        ),
        *("^(?:[01]\\d|2[0-3]):[0-5]\\d$", "^#[0-9a-fA-F]{6}$", "^(a|b)*a(a|b){6}$", "^[ -~]{0,30}$", "^$"),
    ]
    yield from ({"type": "string", "pattern": pattern} for pattern in patterns)
    yield {"type": "string", "pattern": "^[a-z]*$", "minLength": 2, "maxLength": 4}
    yield {"type": "string", "pattern": "a", "maxLength": 6}


def _formats() -> Iterator[Schema]:
    formats = ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "unknown"]
    yield from ({"type": "string", "format": name} for name in formats)
    yield _obj({"id": {"type": "string", "format": "uuid"}, "day": {"type": "string", "format": "date"}})


def _constants() -> Iterator[Schema]:
    values: list[Any] = ["a", 1, 1.5, None, True, [], {}, [1, "a"], {"a": [1]}, 'say "hi"\n', "é\u2028", -0.0, ""]
    yield from ({"const": value} for value in values)
    yield {"enum": values}
    yield {"enum": ["red", "green", "blue"]}
    yield {"type": "string", "enum": ["a", "ab", "abc"]}
    yield {"enum": [f"value{i}" for i in range(300)]}
    yield {"type": "integer", "enum": [1, 2, 3]}


def _arrays() -> Iterator[Schema]:
    items: list[Schema] = [{"type": "integer"}, {"type": "string", "maxLength": 3}, {"enum": ["x", "y"]}, True]
    for item, (least, most) in itertools.product(items, ((0, 0), (0, 2), (1, None), (2, 2), (3, 7))):
        yield {"type": "array", "items": item, "minItems": least, **({} if most is None else {"maxItems": most})}
    yield {"type": "array", "prefixItems": [{"type": "string", "maxLength": 2}, {"type": "integer"}], "items": False}
    yield {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": {"type": "null"}, "maxItems": 4}
    yield {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 1, "maxItems": 1}
    yield {"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}, "maxItems": 2}
    yield {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    yield {"type": "array", "contains": {"type": "integer"}, "maxItems": 3}


def _objects() -> Iterator[Schema]:
    name, age = {"type": "string", "maxLength": 8}, {"type": "integer", "minimum": 0, "maximum": 150}
    for required in ([], ["name"], ["age"], ["name", "age"]):
        for extra in (False, True, {"type": "boolean"}):
            yield {
                "type": "object",
                "properties": {"name": name, "age": age},
                "required": required,
                "additionalProperties": extra,
            }
    yield {"type": "object", "additionalProperties": {"type": "integer"}}
    yield {"type": "object", "additionalProperties": False}
    yield {"type": "object", "required": ["missing"]}
    yield {"type": "object", "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}
    yield {"type": "object", "patternProperties": {"^x_": {"type": "integer"}, "^y_": {"type": "null"}}}
    yield {"type": "object", "propertyNames": {"pattern": "^[a-z]{1,3}$"}, "additionalProperties": {"type": "integer"}}
    yield {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "integer"}}
    yield _obj({f"p{i}": {"type": "boolean"} for i in range(30)})
    yield _obj({f"p{i}": {"type": "boolean"} for i in range(12)}, [])
    yield _obj({'quo"te': {"type": "null"}, "nl\n": {"type": "null"}, "": {"type": "null"}, "é": {"type": "null"}})
    yield {"type": "object", "properties": {"a": True, "b": False}}
    yield {"type": "object", "dependentRequired": {"a": ["b"]}}
    yield {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
    }


def _combinations() -> Iterator[Schema]:
    text, number, flag = {"type": "string", "maxLength": 4}, {"type": "integer"}, {"type": "boolean"}
    a = _obj({"k": {"const": "a"}, "v": number})
    b = _obj({"k": {"const": "b"}, "w": text})
    for word in ("anyOf", "oneOf"):
        yield {word: [text, number]}
        yield {word: [text, number, flag, {"type": "null"}]}
        yield {word: [a, b]}
        yield {word: [a, b, {"type": "null"}]}
        yield {word: [{"type": "integer", "minimum": 0}, {"type": "integer", "maximum": 10}]}
        yield {word: [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}
        yield _obj({"x": {word: [text, {"type": "array", "items": number, "maxItems": 2}]}})
        yield {"$defs": {"a": a, "b": b}, word: [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}
        yield {"type": "object", "properties": {"x": number}, word: [{"required": ["x"]}, {"properties": {"y": text}}]}
    yield {"allOf": [{"type": "integer", "minimum": 0}, {"maximum": 9}]}
    yield {"allOf": [{"type": "object", "properties": {"x": number}, "required": ["x"]}, {"properties": {"y": text}}]}
    yield {"allOf": [{"type": "string", "pattern": "^[ab]*$"}, {"minLength": 2, "maxLength": 3}]}
    yield {"allOf": [{"anyOf": [text, number]}, {"anyOf": [number, flag]}]}
    yield {"allOf": [{"type": "string"}, {"type": "integer"}]}
    yield {"not": {"type": "string"}}
    yield {"type": "integer", "not": {"const": 3}}


def _references() -> Iterator[Schema]:
    yield {
        "$defs": {
            "node": _obj(
                {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}
            )
        },
        "$ref": "#/$defs/node",
    }
    yield {
        "definitions": {
            "t": _obj({"name": {"enum": ["n"]}, "children": {"type": "array", "items": {"$ref": "#/definitions/t"}}})
        },
        "$ref": "#/definitions/t",
    }
    yield {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}
    yield {"$defs": {"a~b/c": {"type": "null"}}, "$ref": "#/$defs/a~0b~1c"}
    yield {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "boolean"}}, "$ref": "#/$defs/a"}
    yield {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    yield {"$ref": "#/$defs/missing"}
    yield {"$ref": "https://example.org/schema.json"}
    yield {
        "$defs": {
            "even": {
                "anyOf": [
                    {"const": 0},
                    {"type": "array", "items": {"$ref": "#/$defs/odd"}, "minItems": 1, "maxItems": 1},
                ]
            },
            "odd": {"type": "array", "items": {"$ref": "#/$defs/even"}, "minItems": 1, "maxItems": 1},
        },
        "$ref": "#/$defs/even",
    }


def _deep() -> Iterator[Schema]:
    for depth in (3, 8, 15, 25):
        schema: Schema = {"type": "integer"}
        array: Schema = {"type": "boolean"}
        for _ in range(depth):
            schema = _obj({"a": schema})
            array = {"type": "array", "items": array, "minItems": 1, "maxItems": 1}
        yield schema
        yield array


def _hostile() -> Iterator[Schema]:
    yield {"type": "string", "allOf": [{"pattern": f"a{i}"} for i in range(40)]}
    yield {"type": "string", "pattern": "^(([a-z]{1,40}){1,40}){1,40}$"}
    yield {"type": "string", "pattern": "(.*a){12}"}
    yield {"type": "string", "pattern": "(a|b)*a(a|b){18}"}
    yield {"type": "string", "minLength": 100000}
    yield {"type": "string", "maxLength": 10**9}
    yield {"type": "array", "items": {"type": "integer"}, "minItems": 100000}
    yield {"enum": [f"value{i}" for i in range(5000)]}
    yield _obj({f"p{i}": {"type": "string"} for i in range(500)}, [])
    yield {
        "allOf": [{"anyOf": [_obj({f"a{i}{j}": True}, additionalProperties=True) for j in range(4)]} for i in range(7)]
    }
    yield {"oneOf": [_obj({"k": {"const": i}}) for i in range(200)]}
    yield {"anyOf": [{"type": "string", "pattern": f"^a{{0,{i}}}b"} for i in range(100)]}
    chain: dict[str, Schema] = {
        f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"type": "null"}]} for i in range(1500)
    }
    yield {"$defs": {**chain, "d1500": {"type": "string"}}, "$ref": "#/$defs/d0"}
    tree: Schema = {"type": "null"}
    for _ in range(10):
        tree = {"type": "object", "properties": {"a": tree, "b": tree}}
    yield tree
    yield {"type": "number", "minimum": -1e300, "maximum": 1e-300}
    yield {"type": "string", "pattern": "(" * 60 + "a" + ")*" * 60}


def _mixed() -> Iterator[Schema]:
    """What applications send: objects of objects and lists, put together at random."""
    rng = random.Random(20)
    leaves: list[Schema] = [
        {"type": "string", "maxLength": 10},
        {"type": "integer", "minimum": 0, "maximum": 9999},
        {"type": "number"},
        {"type": "boolean"},
        {"enum": ["low", "medium", "high"]},
        {"type": "string", "format": "date"},
        {"type": "string", "pattern": "^[A-Z]{2}[0-9]{3}$"},
        {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
        {"const": "fixed"},
    ]
    words = ["id", "name", "title", "kind", "items", "total", "note", "when", "where", "flags", "owner", "details"]

    def make(depth: int) -> Schema:
        roll = rng.random()
        if depth == 0 or roll < 0.3:
            return rng.choice(leaves)
        if roll < 0.5:
            return {"type": "array", "items": make(depth - 1), "maxItems": rng.randint(1, 3)}
        names = rng.sample(words, rng.randint(1, 5))
        return _obj({name: make(depth - 1) for name in names}, [name for name in names if rng.random() < 0.7])

    for i in range(100):
        names = rng.sample(words, rng.randint(1, 6))
        yield _obj({name: make(1 + i % 4) for name in names})


_FAMILIES = {
    "types": _types,
    "numbers": _numbers,
    "strings": _strings,
    "formats": _formats,
    "constants": _constants,
    "arrays": _arrays,
    "objects": _objects,
    "combinations": _combinations,
    "references": _references,
    "deep": _deep,
    "hostile": _hostile,
    "mixed": _mixed,
}
