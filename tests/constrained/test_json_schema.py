from __future__ import annotations

import json
from itertools import chain, islice
from typing import Any

import jsonschema
import numpy as np
import pytest

from bough.constrained.base import GrammarError
from bough.constrained.json_schema import SchemaError, prepare
from bough.constrained.llguidance_backend import LLGuidanceBackend
from bough.sampling.sampling_params import SCHEMA_OPTIONS, leniently
from tests.constrained.following import allows, random_walk, spec_of
from tests.constrained.schema_corpus import corpus, documents

CORPUS = corpus()
SAMPLE = [name for i, name in enumerate(CORPUS) if i % 9 == 0 and not name.startswith("hostile")]
DOCUMENTS = documents()


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


REFUSED = {
    "arrays/24": "uniqueItems",
    "arrays/25": "contains",
    "objects/17": "propertyNames",
    "objects/23": "dependentRequired",
    "objects/24": "if",
    "combinations/13": "oneOf",
    "combinations/14": "oneOf",
    "combinations/17": "oneOf",
    "combinations/22": "incompatible types",
    "combinations/23": "not",
    "combinations/24": "not",
    "references/5": "#/$defs/a",
    "references/6": "missing",
    "references/7": "example.org",
}
"""Schemas that cannot be enforced or followed, and what the error names."""

UNJUDGED = {
    "formats/5": "hostname, which the validator does not check",
    "constants/11": "-0.0, which is written as such",
}


def test_nothing_is_refused_but_what_cannot_be_enforced(backend: LLGuidanceBackend) -> None:
    refused: dict[str, str] = {}
    for name, schema in CORPUS.items():
        if not name.startswith("hostile"):
            try:
                backend.compile(spec_of("json_schema", json.dumps(schema)))
            except GrammarError as error:
                refused[name] = error.message
    assert refused.keys() == REFUSED.keys()
    assert all(REFUSED[name] in message for name, message in refused.items())


def test_what_comes_out_is_valid_and_exactly_what_is_valid_is_accepted(backend: LLGuidanceBackend) -> None:
    for name in [name for name in SAMPLE if name not in REFUSED]:
        schema = CORPUS[name]
        grammar = backend.compile(spec_of("json_schema", json.dumps(schema)))
        cls = jsonschema.Draft202012Validator
        validator = cls(schema, format_checker=cls.FORMAT_CHECKER)
        # Large ones come to an end only where what is open is closed soon.
        bold = (random_walk(grammar, np.random.default_rng(seed), 150) for seed in range(2))
        shy = (random_walk(grammar, np.random.default_rng(seed), 600, closing=0.95) for seed in range(20))
        texts = list(islice((text for text in chain(bold, shy) if text is not None), 2))
        assert texts, "no output comes to its end"
        for text in texts:
            validator.validate(json.loads(text))
        for document in DOCUMENTS:
            accepted = allows(grammar, json.dumps(document, ensure_ascii=False))
            assert accepted == validator.is_valid(document) or (name in UNJUDGED and not accepted), document


def test_one_of_that_excludes_itself_is_any_of() -> None:
    cases = [
        [{"type": "string"}, {"type": "integer"}, {"type": "null"}],
        [{"const": 1}, {"enum": ["a", None]}],
        [obj(k={"const": "a"}), obj(k={"const": "b"})],
        [obj(k={"enum": ["a", "c"]}), obj(k={"const": "b"}), {"type": "array"}],
        [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
    ]
    for options in cases:
        defs = {"a": obj(k={"const": "a"}), "b": obj(k={"$ref": "#/$defs/tag"}), "tag": {"const": "b"}}
        schema = {"$defs": defs, "type": "array", "items": {"oneOf": options}}
        assert prepare(schema)["items"].keys() == {"anyOf"}
        assert "oneOf" in schema["items"]


def test_one_of_that_may_overlap_stays() -> None:
    cases = [
        [{"type": "number"}, {"type": "integer"}],
        [{"const": 1}, {"const": 1.0}],
        [{"const": [1, {"a": 2}]}, {"const": [1.0, {"a": 2.0}]}],
        [obj(k={"const": "a"}), obj(k={"const": "a"})],
        [obj(k={"const": "a"}), {"type": "object", "properties": {"k": {"const": "b"}}}],
        [{"minimum": 1}, {"maximum": 0}],
        [True, {"type": "string"}],
    ]
    for options in cases:
        assert prepare({"oneOf": options}) == {"oneOf": options}


def test_references_to_nothing_are_named_or_left_out() -> None:
    for to in ["#/missing", "#/oneOf/0", "#/oneOf/\N{SUPERSCRIPT TWO}", "other.json", "#there"]:
        schema = {"oneOf": [{"$ref": to}, {"type": "string"}]}
        with pytest.raises(SchemaError, match=r"\$ref.*#/oneOf/0"):
            prepare(schema)
        assert prepare(leniently(schema)) == {"anyOf": [{}, {"type": "string"}]}


def test_names_of_properties_and_values_are_not_keywords() -> None:
    schema = {
        "properties": {"oneOf": {"type": "string"}, "format": {"type": "null"}},
        "const": {"oneOf": [{"type": "string"}, {"type": "null"}], "format": "date"},
    }
    assert prepare(schema) == schema


def test_formats(backend: LLGuidanceBackend) -> None:
    cases = [
        ("date", ["2024-02-29", "2000-02-29", "0001-01-01", "1999-12-31"], ["2023-02-29", "1900-02-29", "0000-01-01"]),
        ("date", ["2023-04-30"], ["2023-04-31", "2023-13-01", "2023-1-1", "2023-01-00"]),
        ("date-time", ["2024-02-29T23:59:59Z", "2024-01-01T00:00:00.5+01:00"], ["2024-01-01", "2024-01-01T24:00:00Z"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
        ("ipv4", ["127.0.0.1"], ["256.0.0.1"]),
    ]
    for format_name, good, bad in cases:
        grammar = backend.compile(spec_of("json_schema", {"type": "string", "format": format_name}))
        assert [text for text in good if not allows(grammar, json.dumps(text))] == []
        assert [text for text in bad if allows(grammar, json.dumps(text))] == []


def test_formats_that_nobody_enforces_are_annotations(backend: LLGuidanceBackend) -> None:
    for name in ["password", "binary", "int32", "regex", "uri-reference", "my-own"]:
        grammar = backend.compile(spec_of("json_schema", {"type": "string", "format": name, "maxLength": 3}))
        assert allows(grammar, '"abc"')
        assert not allows(grammar, '"abcd"')


def test_keywords_that_say_nothing_are_no_reason_to_refuse(backend: LLGuidanceBackend) -> None:
    for schema in [{"type": "array", "uniqueItems": False}, {"type": "object", "unevaluatedProperties": True}]:
        backend.compile(spec_of("json_schema", schema))


def test_lenient_schemas_are_enforced_as_far_as_possible(backend: LLGuidanceBackend) -> None:
    cases = [
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        {"type": "integer", "not": {"const": 3}},
        {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}, "unevaluatedProperties": False},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    ]
    for schema in cases:
        with pytest.raises(GrammarError):
            backend.compile(spec_of("json_schema", schema))
        grammar = backend.compile(spec_of("json_schema", leniently(schema)))
        assert not allows(grammar, '"a"')
        assert leniently(True) is True
        assert leniently({SCHEMA_OPTIONS: {}, **schema})[SCHEMA_OPTIONS] == {}  # type: ignore[index]


def test_properties_are_not_counted_where_one_name_may_come_twice(backend: LLGuidanceBackend) -> None:
    cases = [
        {"minProperties": 2},
        {"type": ["object", "null"], "additionalProperties": {"type": "integer"}, "minProperties": 2},
        {"type": "object", "patternProperties": {"^[ab]$": {}}, "additionalProperties": False, "minProperties": 2},
        {"type": "object", "required": ["a"], "minProperties": 3},
        {"allOf": [{"type": "object"}, {"minProperties": 2}]},
        {"properties": {"a": {"$ref": "#/$defs/x", "minProperties": 2}}, "$defs": {"x": {"type": "object"}}},
    ]
    for schema in cases:
        with pytest.raises(GrammarError, match="minProperties"):
            backend.compile(spec_of("json_schema", schema))
        assert not allows(backend.compile(spec_of("json_schema", leniently(schema))), '"a')


def test_properties_are_counted_where_each_name_comes_once(backend: LLGuidanceBackend) -> None:
    cases = [
        ({"minProperties": 1}, ['{"a": 1}', "1"], ["{}"]),
        ({"type": "object", "required": ["a"], "minProperties": 2}, ['{"a": 1, "b": 1}'], ['{"a": 1, "a": 1}']),
        ({"type": "object", "maxProperties": 1}, ['{"a": 1}', "{}"], ['{"a": 1, "a": 1}', '{"a": 1, "b": 1}']),
        ({"type": "string", "minProperties": 2}, ['"a"'], ["{}"]),
        (obj(a={}, b={}) | {"minProperties": 2, "required": ["a", "b"]}, ['{"a": 1, "b": 1}'], ['{"a": 1}']),
    ]
    for schema, good, bad in cases:
        grammar = backend.compile(spec_of("json_schema", schema))
        assert [text for text in good if not allows(grammar, text)] == []
        assert [text for text in bad if allows(grammar, text)] == []


def test_strange_values_have_clear_errors(backend: LLGuidanceBackend) -> None:
    cases = [
        ({"oneOf": [obj(a={}) | {"properties": None}, obj(a={})]}, "properties must be an object"),
        ({"oneOf": [obj(a={}) | {"properties": [1]}, obj(a={})]}, "properties must be an object"),
        ({"type": "number", "minimum": 10**400}, "minimum must be"),
        ({"type": "integer", "maximum": -(10**400)}, "maximum must be"),
        ({"type": "number", "minimum": 1e-300}, "minimum must be"),
        ({"type": "number", "exclusiveMinimum": 1.7e308}, "exclusiveMinimum must be"),
        ({"properties": {"a": {"multipleOf": 1e-300}}}, "multipleOf must be"),
        ({"type": "string", "maxLength": 2**40}, "maxLength must be"),
        ({"const": 10**400}, r"const .*1(0{31}), "),
        ({"enum": [float("inf")]}, "cannot be read"),
    ]
    for schema, problem in cases:
        with pytest.raises(GrammarError, match=problem):
            backend.compile(spec_of("json_schema", schema))


def test_bounds_are_enforced_up_to_those_that_no_number_reaches(backend: LLGuidanceBackend) -> None:
    for kind in ["number", "integer"]:
        for bound in [1e-30, 0.1, 12345, 2**53, 10**17, 2**63 - 1, 1.7e308, 10**400]:
            within = {"type": kind, "minimum": -bound, "maximum": bound}
            grammar = backend.compile(spec_of("json_schema", within))
            assert allows(grammar, "0")
            assert not allows(grammar, "9" * 400)
            if bound <= 10**17:
                backend.compile(spec_of("json_schema", {"type": kind, "minimum": bound}))
                backend.compile(spec_of("json_schema", {"type": kind, "exclusiveMaximum": -bound}))


def number(**bounds: Any) -> dict[str, Any]:
    return {"type": "number", **bounds}


NUMBER_OR_TEXT = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
NESTED_ONE_OF = {"$defs": {"t": {"oneOf": [obj(a=NUMBER_OR_TEXT), {"type": "null"}]}}}
ONE_OF = {"x": {"oneOf": [{"type": "integer"}, {"type": "string"}]}, "y": {"$ref": "#/properties/x/oneOf/0"}}


def test_what_the_engine_would_read_otherwise(backend: LLGuidanceBackend) -> None:
    cases = [
        (number(exclusiveMinimum=0, maximum=0.5), "0", "0.25"),
        (number(exclusiveMinimum=0, exclusiveMaximum=0.3), "0", "0.2"),
        (number(exclusiveMinimum=1, maximum=1.5), "1", "1.5"),
        (number(minimum=-1.5, exclusiveMaximum=-1), "-1", "-1.2"),
        (number(exclusiveMinimum=5, maximum=5.5, multipleOf=0.5), "5", "5.5"),
        (number(exclusiveMinimum=123456789, maximum=123456789.5), "123456789", "123456789.5"),
        (number(exclusiveMinimum=0), "0", "0.0000000001"),
        ({"allOf": [number(exclusiveMinimum=0), number(maximum=0.5)]}, "0", "0.5"),
        (number(exclusiveMinimum=0, anyOf=[{"maximum": 0.5}]), "0", "0.5"),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 3}, "0", "1"),
        ({**obj(a={"type": "integer"})}, '{"a":1,"\\u0061":"x"}', '{"a":1,"b":"x"}'),
        (obj(a={"const": "\u0001"}), '{"a":"x"}', '{"a":"\\u0001"}'),
        ({"type": "string", "pattern": "^[^[]*$"}, '"a[b"', '"ab"'),
        ({"type": "string", "pattern": "^[!-/:-@[-`{-~]$"}, '"a"', '"["'),
        ({"type": "string", "pattern": "^[&&]$"}, '"a"', '"&"'),
        ({"type": "string", "pattern": "^[+--]$"}, '"a"', '","'),
        ({"type": "string", "pattern": r"^[\w\-\.~~]+$"}, '"a!"', '"a~"'),
        ({"type": "string", "pattern": r"^[^\]-a]$"}, '"]"', '"b"'),
        ({"type": "string", "pattern": "^[^]$"}, '"ab"', '"a"'),
        ({"type": "string", "pattern": '^[^"]+$'}, r'"a\"c"', r'"é\n\tb\\"'),
        ({"type": "string", "pattern": '^[^"]$'}, r'"\""', r'"\\"'),
        ({"type": "string", "pattern": r"^[^\\]+$"}, r'"a\\c"', r'"a\"c"'),
        ({"type": "string", "pattern": r'^[^<>:"/\\|?*]+$'}, r'"a\\c"', '"a.txt"'),
        ({"type": "string", "pattern": r'^[^\d"]+$'}, r'"a\"c"', r'"a\\c"'),
        ({"type": "string", "pattern": r"^[^!-/]+$"}, r'"a\"c"', r'"a\\c"'),
        ({"type": "string", "pattern": r"^[^\u0022\x5c]+$"}, r'"a\\c"', '"b"'),
        ({"type": "string", "pattern": r"^[\x00-\x21\x23-\x7f]+$"}, r'"a\"c"', r'"a\\c"'),
        ({"type": "string", "pattern": r"^[^\p{P}]+$"}, r'"a\"c"', r'"é\n"'),
        ({"type": "string", "pattern": r"^\P{P}+$"}, r'"a\"c"', r'"é\n"'),
        ({"type": "string", "pattern": r"^[^a]+$"}, '"a"', r'"\"\\"'),
        ({"type": "string", "pattern": r"^[\s\S]$"}, '""', r'"\""'),
        (
            {"type": "object", "patternProperties": {'^[^"]+$': {}}, "additionalProperties": False},
            r'{"\"":1}',
            '{"a":1}',
        ),
        ({"const": 2**53}, str(2**53 + 1), str(2**53)),
        ({"enum": [10**20, 2**53 + 2]}, str(10**20 + 1), str(10**20)),
        ({"type": "integer", "minimum": 2**53 + 1, "maximum": 2**53 + 4}, str(2**53), str(2**53 + 2)),
        ({"type": "integer", "maximum": 2**53 + 1, "minimum": 2**53 - 1}, str(2**53 + 2), str(2**53)),
        ({"type": "string", "pattern": r"^\[[\u0061-\u0063]\]$"}, '"[d]"', '"[c]"'),
        (
            {"type": "object", "patternProperties": {"^[&&]$": {"type": "integer"}}, "additionalProperties": False},
            '{"a":1}',
            '{"&":1}',
        ),
        ({"type": "string", "format": "time"}, '"22:00:60Z"', '"22:00:59Z"'),
        (obj(**ONE_OF), '{"x":1,"y":"a"}', '{"x":1,"y":2}'),
        ({"$ref": "#/$defs/t/oneOf/0/properties/a/oneOf/1", **NESTED_ONE_OF}, "1", '"a"'),
        ({"$ref": "#/components/oneOf/0", "components": {"oneOf": [{"type": "null"}]}}, "1", "null"),
        ({"type": "string", "minLength": 2.0}, '"a"', '"ab"'),
        ({"type": "array", "maxItems": 1.0}, "[1,2]", "[1]"),
    ]
    for schema, wrong, right in cases:
        compiled = backend.compile(spec_of("json_schema", json.dumps(schema)))
        assert allows(compiled, right)
        assert not allows(compiled, wrong)


def test_numbers_that_the_engine_would_write_otherwise_are_refused(backend: LLGuidanceBackend) -> None:
    for member in [{"const": 2**53 + 1}, {"enum": ["a", {"id": [-12345678901234567890]}]}]:
        schema = {"type": "object", "properties": {"a": member}, "required": ["a"]}
        with pytest.raises(GrammarError, match=r"(const .*9007199254740993|enum .*-12345678901234567890), .*a string"):
            backend.compile(spec_of("json_schema", json.dumps(schema)))
        compiled = backend.compile(spec_of("json_schema", json.dumps({**schema, "x-guidance": {"lenient": True}})))
        assert allows(compiled, '{"a":9007199254740993}')


def test_patterns_beyond_the_engine_are_left_out_where_that_may_be(backend: LLGuidanceBackend) -> None:
    for pattern in ["^(?!a).*$", "^(?=.*[0-9]).{8,}$", r"(?<=x)y", r"^(a|b)\1$"]:
        schema = {"type": "string", "pattern": pattern, "maxLength": 3}
        with pytest.raises(GrammarError, match=r"pattern"):
            backend.compile(spec_of("json_schema", json.dumps(schema)))
        compiled = backend.compile(spec_of("json_schema", json.dumps({**schema, "x-guidance": {"lenient": True}})))
        assert allows(compiled, '"abc"')
        assert not allows(compiled, '"abcd"')


def test_a_wrong_type_is_told(backend: LLGuidanceBackend) -> None:
    for wrong in [5, True, {"a": 1}]:
        with pytest.raises(GrammarError, match="type must be a string or array of strings"):
            backend.compile(spec_of("json_schema", json.dumps({"type": wrong, "exclusiveMinimum": 0})))
