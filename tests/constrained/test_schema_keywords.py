"""Outputs follow each keyword as the table of keywords says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.constrained.base import GrammarError
from bough.constrained.llguidance_backend import Grammar, LLGuidanceBackend
from bough.constrained.translate import Translator
from bough.constrained.vocabulary import Vocabulary, engine_tokenizer
from bough.sampling.sampling_params import leniently
from bough.schema_keywords import KEYWORDS
from tests.constrained.following import spec_of
from tests.thoroughness import examples

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b"<end>"], [256], [256], 256, None)
BACKEND = LLGuidanceBackend(engine_tokenizer(BYTES, str.encode), Translator())
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
NODE = {"type": "object", "properties": {"v": {"type": "integer"}, "n": {"$ref": "#/$defs/n"}}}


def compiled(schema: Any) -> Grammar:
    return BACKEND.compile(spec_of("json_schema", json.dumps(schema)))


def follows(grammar: Grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return all(matcher.accept(byte) for byte in text.encode()) and matcher.is_accepting


def accepted(grammar: Grammar, value: Any) -> bool:
    return follows(grammar, json.dumps(value, ensure_ascii=False))


SAMPLES: dict[str, tuple[Any, Any, Any]] = {
    "type": ({"type": "integer"}, 1, "a"),
    "const": ({"const": "a"}, "a", "b"),
    "enum": ({"enum": ["a", 1]}, 1, "b"),
    "properties": ({"properties": {"a": {"type": "null"}}}, {"a": None}, {"a": 1}),
    "required": ({"required": ["a"]}, {"a": 1}, {}),
    "additionalProperties": ({"additionalProperties": False}, {}, {"a": 1}),
    "patternProperties": ({"patternProperties": {"^a": {"type": "null"}}}, {"ab": None, "b": 1}, {"ab": 1}),
    "minProperties": ({"minProperties": 1}, {"a": 1}, {}),
    "maxProperties": ({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 1}),
    "items": ({"items": {"type": "null"}}, [None], [1]),
    "prefixItems": ({"prefixItems": [{"type": "null"}]}, [None, 1], [1]),
    "additionalItems": ({**DRAFT_7, "items": [True], "additionalItems": False}, [1], [1, 2]),
    "minItems": ({"minItems": 2}, [1, 2], [1]),
    "maxItems": ({"maxItems": 1}, [1], [1, 2]),
    "minLength": ({"minLength": 2}, "ab", "a"),
    "maxLength": ({"maxLength": 1}, "a", "ab"),
    "pattern": ({"pattern": "^a$|^$"}, "", "b"),
    "format": ({"format": "ipv4"}, "127.0.0.1", "a"),
    "minimum": ({"minimum": 2}, 2, 1),
    "maximum": ({"maximum": 2}, 2, 3),
    "exclusiveMinimum": ({"exclusiveMinimum": 2}, 3, 2),
    "exclusiveMaximum": ({"exclusiveMaximum": 2}, 1, 2),
    "multipleOf": ({"multipleOf": 5}, 10, 11),
    "allOf": ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, 2, 1),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"const": "a"}]}, "a", "b"),
    "oneOf": ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, 1, None),
    "$ref": ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, None, 1),
    "$dynamicRef": ({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a", "type": "null"}}}, None, 1),
    "$recursiveRef": ({"type": "array", "items": {"$recursiveRef": "#"}}, [[]], [1]),
    "not": ({"not": {"type": "string"}}, 1, "a"),
    "if": ({"if": {"type": "string"}, "then": {"const": "a"}}, "a", "b"),
    "then": ({"if": {"type": "string"}, "then": {"const": "a"}}, "a", "b"),
    "else": ({"if": {"type": "string"}, "else": {"const": 1}}, 1, 2),
    "uniqueItems": ({"uniqueItems": True}, [1, 2], [1, 1]),
    "contains": ({"contains": {"const": 1}}, [1], [2]),
    "minContains": ({"contains": {"const": 1}, "minContains": 2}, [1, 1], [1]),
    "maxContains": ({"contains": {"const": 1}, "maxContains": 1}, [1], [1, 1]),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, {"a": 1}, {"ab": 1}),
    "dependencies": ({**DRAFT_7, "dependencies": {"a": ["b"]}}, {"b": 1}, {"a": 1}),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, {"b": 1}, {"a": 1}),
    "dependentSchemas": ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"b": 1}, {"a": 1}),
    "unevaluatedItems": ({"prefixItems": [True], "unevaluatedItems": False}, [1], [1, 2]),
    "unevaluatedProperties": ({"properties": {"a": True}, "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
}
"""For each keyword that asserts something a schema, a value that follows it and one that does not."""

OF_KEYWORDS_KEPT_IN_PART: dict[str, list[tuple[Any, Any]]] = {
    "const": [({"const": 2**53 + 1}, 2**53 + 1)],
    "enum": [({"enum": ["a", {"id": -12345678901234567890}]}, {"id": -12345678901234567890})],
    "patternProperties": [
        ({"patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 5}}}, {"ab": 7, "cb": 5, "a": 1}),
        ({"patternProperties": {"^(?!a)": {"type": "integer"}}, "additionalProperties": False}, {"b": 1}),
        ({"patternProperties": {r"\bx": {"type": "null"}}, "additionalProperties": {"type": "integer"}}, {"x": None}),
        ({"patternProperties": {"^.{1,255}$": {"type": "integer"}}}, {"a": 1}),
        ({"patternProperties": {"a^b": {"type": "null"}}}, {"x": 1}),
    ],
    "minProperties": [
        ({"properties": {"a": True, "b": True}, "minProperties": 1}, {"a": 1}),
        ({"properties": {"a": True, "b": True}, "required": ["b"], "minProperties": 2}, {"a": 1, "b": 1}),
        ({"properties": {"a": {"type": "string"}}, "minProperties": 2}, {"a": "x", "c": 1}),
        ({"minProperties": 2}, {"a": 1, "b": 2}),
        ({"allOf": [{"properties": {"a": True}}, {"minProperties": 1}]}, {"a": 1}),
        ({"$ref": "#/$defs/a", "properties": {"a": True}, "$defs": {"a": {"minProperties": 1}}}, {"a": 1}),
    ],
    "maxProperties": [
        ({"properties": {"a": True, "b": True}, "maxProperties": 1}, {"b": 1}),
        (
            {"properties": {"a": True, "b": True, "c": True}, "additionalProperties": False, "maxProperties": 2},
            {"a": 1},
        ),
    ],
    "pattern": [
        *(({"pattern": pattern}, "ab") for pattern in ("^(?!b)", r"\bab\b", "(?<=a)b", r"^(?:a|(x))b\1?$", "(a|^)*b")),
        ({"pattern": "("}, "ab"),
        ({"pattern": r"\Aab\Z"}, "ab"),
    ],
    "minimum": [({"minimum": 10**400}, 10**400)],
    "maximum": [({"maximum": 1e-300}, 0)],
    "exclusiveMinimum": [({"exclusiveMinimum": 1e-300}, 1)],
    "exclusiveMaximum": [({"exclusiveMaximum": -(10**300)}, -1)],
    "multipleOf": [({"multipleOf": 12345678901}, 12345678901), ({"multipleOf": 1e-300}, 1)],
    "oneOf": [({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, "a")],
    "$ref": [
        ({"$ref": "other.json"}, 1),
        ({"properties": {"a": {"$ref": "#/$defs/no"}}}, {"a": 1}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, 1),
    ],
}
"""Schemas with what the table says is not kept, and a value, which no other keyword speaks against."""


def test_keywords_are_kept_or_left_out_as_the_table_says() -> None:
    for keyword in [name for name, known in KEYWORDS.items() if known.fate != "annotation"]:
        schema, right, wrong = SAMPLES[keyword]
        loose = compiled(leniently(schema))
        assert accepted(loose, right)
        if KEYWORDS[keyword].fate == "left out":
            assert accepted(loose, wrong)
            with pytest.raises(GrammarError, match=r"cannot enforce .*\(at #"):
                compiled(schema)
            assert accepted(compiled({key: value for key, value in schema.items() if key[:2] == "$s"}), wrong)
        else:
            for grammar in (loose, compiled(schema)):
                assert accepted(grammar, right)
                assert not accepted(grammar, wrong)


def test_what_is_not_kept_of_a_keyword_is_refused_by_name_or_left_out() -> None:
    in_part = {name for name, known in KEYWORDS.items() if known.fate == "in part"}
    assert OF_KEYWORDS_KEPT_IN_PART.keys() == in_part - {"format"}
    for keyword, schemas in OF_KEYWORDS_KEPT_IN_PART.items():
        for schema, right in schemas:
            assert accepted(compiled(leniently(schema)), right), (schema, right)
            nested = {"type": "array", "items": schema}
            if "#/$defs" not in json.dumps(schema):
                assert accepted(compiled(leniently(nested)), [right]), schema
            with pytest.raises(GrammarError) as refusal:
                compiled(schema)
            assert keyword in refusal.value.message or "exclude each other" in refusal.value.message, schema


def test_annotations_and_unknown_keywords_are_ignored() -> None:
    names = [name for name, known in KEYWORDS.items() if known.fate == "annotation" and name[-1] != "s"]
    schema = {"type": "integer", **dict.fromkeys([*names, "nullable", "x-order"], "x"), "$defs": {"a": {"not": {}}}}
    assert accepted(compiled(schema), 1)
    assert not accepted(compiled(schema), "a")
    formats = {"type": "string", "format": "int32", "deprecated": True, "$vocabulary": {}, "examples": [1]}
    assert accepted(compiled(formats), "a")


SAY_NOTHING = [
    {"uniqueItems": False},
    {"not": False},
    {"then": False},
    {"else": False},
    {"if": {"type": "string"}},
    {"minContains": 2},
    {"maxContains": 0},
    {"propertyNames": True},
    {"dependentRequired": {}},
    {"dependencies": {}},
    {"dependentSchemas": {}},
    {"unevaluatedItems": True},
    {"unevaluatedProperties": {}},
    {"minProperties": 0},
    {"properties": {"a": True}, "required": ["a"], "minProperties": 1},
    {"properties": {"a": True}, "additionalProperties": False, "maxProperties": 1},
    {"type": ["array", "object"], "properties": {"a": True}, "minProperties": 0},
    {"patternProperties": {"^.{1,255}$": {}}},
    {"patternProperties": {"a": {}, "b": True}},
]


def test_keywords_that_say_nothing_are_no_reason_to_refuse() -> None:
    for schema in SAY_NOTHING:
        assert accepted(compiled(schema), {"a": 1}), schema


VALID_AND_NOT: list[tuple[Any, list[Any], list[Any]]] = [
    # Members that are not asked for are not made up.
    (
        {"type": "object", "minProperties": 1, "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
        [{"name": "Ann"}, {"name": "Ann", "age": 7}, {"age": 7}],
        [{"name": 1}, 1],
    ),
    # References through names that the engine gets in another form.
    (
        {
            "properties": {"a": {"$ref": "#/patternProperties/%5B-a-z%5D%2B"}},
            "patternProperties": {"[-a-z]+": {"type": "integer"}},
            "additionalProperties": False,
        },
        [{"a": 1}, {"b-c": 1}],
        [{"a": "1"}, {"B": 1}],
    ),
    (
        {"properties": {"x/y~": {"type": "null"}}, "additionalProperties": {"$ref": "#/properties/x~1y~0"}},
        [{"x/y~": None, "z": None}],
        [{"z": 1}],
    ),
    ({"$ref": "#/components/a%25b", "components": {"a%b": {"type": "null"}}}, [None], [1]),
    ({"oneOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/oneOf/1"}}]}, [None, [[]]], [[None]]),
    ({"$id": "http://a.b/c", "$ref": "d#x", "$defs": {"e": {"$id": "d", "$anchor": "x", "type": "null"}}}, [None], [1]),
    # Nothing beside a reference counts up to draft 7.
    (
        {
            **DRAFT_7,
            "properties": {"s": {"type": "string", "$ref": "#/d"}, "t": {"$ref": "#/d", "minimum": 5}},
            "d": {"type": "integer"},
        },
        [{"s": 1, "t": 1}],
        [{"s": "a"}],
    ),
    ({**DRAFT_7, "$ref": "#/definitions/a", "type": "string", "definitions": {"a": {"type": "null"}}}, [None], ["a"]),
    ({"$ref": "#/d", "minimum": 5, "d": {"type": "integer"}}, [5], [4, "a"]),
    # Combinations that lead back to themselves.
    ({"$defs": {"n": NODE}, "$ref": "#/$defs/n", "required": ["v"]}, [{"v": 1, "n": {"n": {}}}], [{"n": {}}]),
    (
        {"type": "object", "properties": {"c": {"$ref": "#", "required": ["d"]}, "d": {"type": "null"}}},
        [{"c": {"c": {"d": None}, "d": None}}, {}],
        [{"c": {}}, {"c": {"d": 1}}, {"c": {"c": {}, "d": None}}],
    ),
    (
        {
            "$defs": {
                "n": {**NODE, "allOf": [{"$ref": "#/$defs/m"}]},
                "m": {"properties": {"m": {"$ref": "#/$defs/n"}}},
            },
            "$ref": "#/$defs/n",
            "properties": {"k": {"type": "null"}},
        },
        [{"v": 1, "m": {"v": 2}}, {"n": {"m": {}}}],
        [{"v": "1"}, {"m": {"v": "2"}}, {"n": {"m": {"v": "x"}}}],
    ),
    # Older forms.
    ({**DRAFT_4, "minimum": 2, "exclusiveMinimum": True, "type": "integer"}, [3], [2]),
    ({**DRAFT_4, "maximum": 2.5, "exclusiveMaximum": False}, [2.5], [3]),
    (
        {**DRAFT_7, "items": [{"type": "null"}], "additionalItems": {"type": "integer"}},
        [[None, 1], []],
        [[1], [None, "a"]],
    ),
    # Patterns as they are in the wild.
    ({"pattern": r"^\${[a-z]}|a{,2}$"}, ["${b}", "xa{,2}"], ["b", "a"]),
    ({"pattern": r"(^|\s)foo(\s|$)"}, ["foo", "a foo b"], ["afoo"]),
    ({"patternProperties": {"^[a-z]{1,9}$": {"type": "null"}, "^x-": {}}}, [{"a": None, "x-y": 1}], [{"a": 1}]),
]


def test_what_is_valid_is_accepted_and_nothing_else() -> None:
    for strictly in [True, False]:
        for schema, right, wrong in VALID_AND_NOT:
            if strictly and "minProperties" in schema:
                continue
            grammar = compiled(schema if strictly else leniently(schema))
            assert [value for value in right if not accepted(grammar, value)] == [], schema
            assert [value for value in wrong if accepted(grammar, value)] == [], schema


def test_numbers_may_end_before_the_last_digit_of_their_bound() -> None:
    for form in ["{}", '{{"items": {}}}', '{{"anyOf": [{}, {{"type": "null"}}]}}']:
        for bounds, right, wrong in (
            ({"minimum": 0, "maximum": 2.75}, ["2.7", "2.70", "2.75", "2.5", "2", "0.1"], ["2.76", "2.8", "-1"]),
            ({"maximum": 12.255}, ["12.2", "12.25", "12.255", "12", "-3.5"], ["12.3", "12.26"]),
            ({"minimum": 2.7, "maximum": 2.75}, ["2.7", "2.75", "2.71"], ["2.6", "2", "2.76"]),
            ({"minimum": -2.75}, ["-2.7", "-2.75", "-2", "9"], ["-2.8", "-3"]),
            ({"exclusiveMaximum": 2.75, "minimum": 1}, ["2.7", "2.74"], ["2.75", "0.5"]),
            ({"maximum": 2.75, "multipleOf": 0.25}, ["2.5", "2.75", "-0.5"], ["2.7", "3"]),
            ({"multipleOf": 0.125}, ["2.5", "0.375", "0.75", "3", "-0.5"], ["2.7", "0.15"]),
            ({"multipleOf": 0.02}, ["2.5", "0.02", "1", "1.2"], ["0.03", "1.25"]),
            ({"maximum": 2.75, "anyOf": [{"minimum": 2.71}, {"const": 1}]}, ["1", "2.72"], ["2.7", "2"]),
        ):
            grammar = compiled(json.loads(form.format(json.dumps({"type": "number", **bounds}))))
            wrapped = [f"[{each}]" if "items" in form else each for each in (*right, *wrong)]
            assert [text for text in wrapped if follows(grammar, text)] == wrapped[: len(right)], bounds


WRONG = [
    {"type": "strin"},
    {"minLength": "5"},
    {"minItems": -1},
    {"maxItems": 1.5},
    {"required": "a"},
    {"properties": {"a": "string"}},
    {"items": 5},
    {"anyOf": {"type": "string"}},
    {"enum": "a"},
    {"pattern": 5},
    {"$ref": 5},
    {"maximum": "10"},
]


def test_what_is_no_schema_is_refused_by_name_in_either_case() -> None:
    for schema in WRONG:
        for each in (schema, leniently(schema), leniently({"not": {}, "properties": {"x": schema}})):
            with pytest.raises(GrammarError, match=f"{next(iter(schema)).replace('$', '.')}|must be a schema"):
                compiled(each)


def test_members_that_are_not_set_say_nothing_unless_a_schema_is_strict() -> None:
    """Serialisers write null for them, PHP and Lua a list for an empty object."""
    unset = [(key, None) for key, known in KEYWORDS.items() if known.form != "any"]
    empty = [("properties", []), ("patternProperties", []), ("additionalProperties", []), ("items", []), ("$defs", [])]
    for key, value in [*unset, *empty]:
        own = {"type": "integer", **(SAMPLES[key][0] if key in ("then", "else", "minContains") else {}), key: value}
        around = {"type": "object", "properties": {"a": {**own, "type": "integer"}}, "required": ["a"]}
        for schema in (around, {"anyOf": [around, {"type": "null"}]}, {"$ref": "#/$defs/x", "$defs": {"x": around}}):
            assert accepted(compiled(leniently(schema)), {"a": 1}), (key, value)
        assert not accepted(compiled(leniently(around)), {"a": "x"}), (key, value)
        if value is None and key in ("enum", "properties", "required", "items", "anyOf", "minimum", "pattern"):
            with pytest.raises(GrammarError):
                compiled(around)
    assert accepted(compiled(leniently({"properties": {"a": None}})), {"a": 1})


def test_types_may_have_the_names_of_other_languages_unless_a_schema_is_strict() -> None:
    values: list[Any] = [[], True, 1, None, 1.5, {}, "x"]
    for names, fits in (
        (("ARRAY", "list", "List[str]"), [[]]),
        (("bool", "BOOLEAN"), [True]),
        (("int", "INTEGER", "long"), [1]),
        (("float", "NUMBER", "double"), [1, 1.5]),
        (("dict", "OBJECT", "map"), [{}]),
        (("str", "STRING", "text"), ["x"]),
        (("any", ""), values),
    ):
        for name in names:
            grammar = compiled(leniently({"type": name}))
            assert [value for value in values if accepted(grammar, value)] == fits, name
            listed = compiled(leniently({"type": [name, "null"]}))
            assert all(accepted(listed, value) for value in [None, *fits]), name
            with pytest.raises(GrammarError, match="no type"):
                compiled({"type": name})


NOTHING_FITS = [
    {"type": "object", "required": ["a"], "additionalProperties": False},
    {"type": "object", "properties": {"a": False}, "required": ["a"]},
    {"allOf": [{"type": "string"}, {"type": "integer"}]},
    {"type": "integer", "minimum": 5, "maximum": 1},
    {"type": "string", "enum": [1]},
    {"type": "string", "minLength": 3, "maxLength": 2},
    {"enum": []},
    {"anyOf": []},
    {"type": "array", "items": False, "minItems": 1},
    {"properties": {"a": {"required": True, "type": "any"}}},
    {
        "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
        "$defs": {k: {"properties": {"c": {"$ref": f"#/$defs/{k}"}}} for k in "ab"},
    },
]


def test_no_schema_is_refused_that_is_not_strict() -> None:
    for schema in NOTHING_FITS:
        assert not follows(compiled(leniently(schema)), "x"), schema


NAMES = st.sampled_from(["a", "b", "ab", "c-d"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([0.5, 2.7, 2.75, "", "a", "ab", "2024-02-29"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)
PATTERNS = st.sampled_from(["^a", "b$", "^$|a", r"\ba", "(?=a)", "^[^-]{1,3}$", "a{", ".", "(?!b)a", "a^"])
COUNTS = st.integers(0, 3)
NUMBERS = st.sampled_from([0, 1, 2.75, -1.25, 5, 10**18, 1e-40])
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/no", "http://x.y/z", "#/anyOf/0"])


def schemas() -> st.SearchStrategy[Any]:
    return st.recursive(st.booleans() | leaf(), branch, max_leaves=6)


def leaf() -> st.SearchStrategy[Any]:
    kinds = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
    return st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
            "$ref": REFERENCES,
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "pattern": PATTERNS,
            "format": st.sampled_from(["date", "email", "nothing"]),
            **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), COUNTS),
            **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), COUNTS),
            **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
            "multipleOf": st.sampled_from([1, 2.5, 0.01]),
            "uniqueItems": st.booleans(),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
        },
    )


def branch(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    one = ("items", "additionalProperties", "not", "if", "then", "contains", "propertyNames", "unevaluatedProperties")
    grown = st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(one, inner),
            **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several),
            **dict.fromkeys(("properties", "$defs", "dependentSchemas"), st.dictionaries(NAMES, inner, max_size=3)),
            "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
        },
    )
    return st.tuples(leaf(), grown).map(lambda parts: {**parts[0], **parts[1]})


def in_every_order(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict):
        yield dict(reversed(value.items()))


@settings(max_examples=examples(150), deadline=None)
@given(schemas().filter(lambda each: isinstance(each, dict)), st.lists(VALUES, max_size=4))
def test_lenient_schemas_are_never_refused_and_strict_ones_are_kept(schema: dict[str, Any], values: list[Any]) -> None:
    loose = compiled(leniently(schema))
    try:
        exact = compiled(schema)
    except GrammarError:
        return
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    for value in values:
        try:
            is_valid = validator.is_valid(value)
        except (RecursionError, jsonschema.exceptions._WrappedReferencingError):
            return
        assert is_valid or not accepted(exact, value), (schema, value)
        if is_valid and any(accepted(exact, each) for each in in_every_order(value)):
            assert any(accepted(loose, each) for each in in_every_order(value)), (schema, value)
