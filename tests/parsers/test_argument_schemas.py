"""What schemas say of single arguments means the same in every form of calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest

from bough import json_pointer
from bough.constrained import bare_strings
from bough.constrained.base import GrammarError
from bough.errors import BadRequest
from bough.json_pointer import follow
from bough.parsers import argument_schemas, schema_kinds, string_schemas
from bough.parsers.base import ToolSpec
from bough.parsers.schema_kinds import MAX_SCHEMAS, VALUES_LIKE_A_SCHEMA, kinds_of
from bough.parsers.schema_references import MAX_REPEATED_CHARS, standing_alone
from bough.parsers.string_schemas import MAX_COUNTED_CHARS, StringForm, string_forms
from tests.constrained.following import allows, bundled_backend, spec_of
from tests.parsers.parsing import calls, dialect, run

BARE = ("glm45", "qwen3_coder")
ONE_BY_ONE = (*BARE, "glm47", "pythonic")
"""Formats that write each argument by itself."""


def written(name: str, values: dict[str, Any]) -> str:
    """A call of ``f``; strings are given as they stand in the answer, other values as what they are."""
    shown = {key: each if isinstance(each, str) else json.dumps(each) for key, each in values.items()}
    if name == "qwen3_coder":
        tags = "".join(f"<parameter={key}>\n{each}\n</parameter>\n" for key, each in shown.items())
        return f"<tool_call>\n<function=f>\n{tags}</function>\n</tool_call>"
    if name.startswith("glm"):
        line = "\n" if name == "glm45" else ""
        tags = "".join(
            f"<arg_key>{key}</arg_key>{line}<arg_value>{each}</arg_value>{line}" for key, each in shown.items()
        )
        return f"<tool_call>f{line}{tags}</tool_call>"
    if name == "pythonic":
        return f"[f({', '.join(f'{key}={each}' for key, each in shown.items())})]"
    assert name == "hermes"
    return f'<tool_call>\n{{"name": "f", "arguments": {json.dumps(values)}}}\n</tool_call>'


def grammar_of(name: str, schema: dict[str, Any], *, strict: bool = False) -> Any:
    tag = dialect(name, "none").constraint([ToolSpec("f", None, schema, strict)], name=None, parallel=False)
    return bundled_backend().compile(spec_of("structural_tag", tag))


def parsed(name: str, schema: dict[str, Any], text: str, *, strict: bool = False) -> Any:
    made = dialect(name).parser(
        (ToolSpec("f", None, schema, strict),), parse_tools=True, separate_reasoning=True, thinking=False
    )
    assert made is not None
    [(_, arguments)] = calls(run(made, [text]))
    return arguments


TREE = {
    "type": "object",
    "properties": {"name": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name", "children"],
}
SIBLING = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}}}
THROUGH = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/list"}, "b": {"type": "integer"}},
    "$defs": {"list": {"type": "array", "items": {"$ref": "#/properties/b"}}},
}
NODE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["value"],
        }
    },
}


def test_schemas_mean_the_same_in_every_form() -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
        (TREE, {"name": 1, "children": [{"name": 2, "children": []}]}, {"name": 1, "children": [[]]}),
        (SIBLING, {"a": 1, "b": 2}, {"a": 1, "b": [2]}),
        (THROUGH, {"a": [1, 2]}, {"a": [[1]]}),
        ({**SIBLING, "required": ["a", "c"]}, {"a": 1, "c": 5}, {"a": 1}),
        (NODE, {"value": 1, "next": {"value": 2}}, {"value": 1, "next": {}}),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "b": False}}, {"a": 1}, {"b": 1}),
    ]
    for name in [*ONE_BY_ONE, "hermes"]:
        for strict in (True, False):
            for schema, good, bad in cases:
                grammar = grammar_of(name, schema, strict=strict)
                assert allows(grammar, written(name, good))
                assert not allows(grammar, written(name, bad))


def test_values_of_any_name_bring_the_definitions_that_they_refer_to() -> None:
    schema = {"additionalProperties": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}
    for name in ONE_BY_ONE:
        grammar = grammar_of(name, schema)
        assert allows(grammar, written(name, {"a": 1}))
        assert not allows(grammar, written(name, {"a": [1]}))


def test_data_that_looks_like_a_reference_is_none() -> None:
    data = {"$ref": "#"}
    root = {"properties": {"$ref": {"const": data}, "enum": {"$ref": "#"}, "a": {"enum": [data], "default": data}}}
    alone = standing_alone(root, root["properties"])
    assert alone["$ref"] == {"const": data}
    assert alone["a"] == {"enum": [data], "default": data}
    assert alone["enum"]["$ref"] == "#/$defs/arguments"
    assert follow(alone["enum"], "#/$defs/arguments/properties/a") == alone["a"]


def test_schemas_that_refer_to_all_of_a_large_one_have_bounds() -> None:
    note = "x" * (MAX_REPEATED_CHARS // 100)
    schema = {"description": note, "properties": {f"p{index}": {"$ref": "#"} for index in range(101)}}
    with pytest.raises(BadRequest) as error:
        grammar_of("qwen3_coder", schema)
    assert error.value.param == "tools"


def test_single_arguments_are_held_to_what_can_be_enforced_unless_they_are_strict() -> None:
    cases = [
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        {"type": "array", "items": {"type": "integer"}, "contains": {"type": "integer"}},
        {"type": "array", "items": {"type": "integer"}, "not": {"maxItems": 0}},
    ]
    for name in ONE_BY_ONE:
        for beyond in cases:
            schema = {"type": "object", "properties": {"a": beyond}}
            assert allows(grammar_of(name, schema), written(name, {"a": [1, 1]}))
            with pytest.raises(GrammarError, match=next(iter(beyond.keys() - {"type", "items"}))):
                grammar_of(name, schema, strict=True)
            others = {"type": "object", "additionalProperties": beyond}
            assert allows(grammar_of(name, others), written(name, {"a": [1, 1]}))


def test_a_required_argument_without_values_is_refused_if_strict() -> None:
    for name in ONE_BY_ONE:
        schema = {"type": "object", "properties": {"a": False, "b": {"type": "integer"}}, "required": ["a"]}
        assert allows(grammar_of(name, schema), written(name, {"b": 1}))
        with pytest.raises(BadRequest, match="required property 'a' of 'f' has no value") as error:
            grammar_of(name, schema, strict=True)
        assert error.value.param == "tools"


def test_what_concerns_all_arguments_is_refused_if_strict() -> None:
    cases = [
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"allOf": [{"properties": {"a": {"minimum": 3}}}]},
        {"oneOf": [{"required": ["a"]}]},
        {"not": {"required": ["a"]}},
        {"not": {}},
        {"minProperties": 1},
        {"maxProperties": 1},
        {"patternProperties": {"^a": {"minimum": 3}}},
        {"dependentRequired": {"a": ["b"]}},
        {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {"minimum": 3}}}}},
        {"$ref": "#/$defs/nowhere"},
    ]
    for name in ONE_BY_ONE:
        for keywords in cases:
            schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, **keywords}
            assert allows(grammar_of(name, schema), written(name, {"a": 5}))
            with pytest.raises(BadRequest, match=r"tools: the strict schema of 'f' .*leave out '[$a-zA-Z]+'") as error:
                grammar_of(name, schema, strict=True)
            assert error.value.param == "tools"


def test_what_says_nothing_of_all_arguments_is_not_refused() -> None:
    for name in ONE_BY_ONE:
        schema = {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": 0,
        }
        idle = {"minProperties": 1, "maxProperties": 1, "allOf": [], "patternProperties": {}, "propertyNames": True}
        assert allows(grammar_of(name, {**schema, **idle}, strict=True), written(name, {"a": 5}))


CODE = {"type": "string", "enum": ["1", "2"]}
DEFINED = {"$defs": {"Code": CODE, "Again": {"$ref": "#/$defs/Code"}}}
STRINGS: list[dict[str, Any]] = [
    {"$ref": "#/$defs/Code"},
    {"$ref": "#/$defs/Again"},
    {"allOf": [{"$ref": "#/$defs/Code"}], "description": "d"},
    {"oneOf": [{"const": "1"}, {"const": "2"}]},
    {"type": "string", "anyOf": [{"enum": ["1"]}, {"const": "2"}]},
    {"type": ["string", "integer"], "enum": ["1", "2"]},
]
MAYBE_STRINGS: list[dict[str, Any]] = [
    {"anyOf": [{"$ref": "#/$defs/Code"}, {"type": "null"}]},
    {"anyOf": [{"enum": ["1", "2"]}, {"type": "null"}]},
    {"anyOf": [{"type": ["string", "null"]}]},
    {"anyOf": [{"anyOf": [{"$ref": "#/$defs/Code"}, False]}, {"const": None}]},
]


def test_types_are_told_by_references_and_alternatives() -> None:
    for name in ONE_BY_ONE:
        for own in [*STRINGS, *MAYBE_STRINGS]:
            schema = {"type": "object", "properties": {"code": own}, **DEFINED}
            assert parsed(name, schema, written(name, {"code": "1"})) == {"code": "1"}
            if own in MAYBE_STRINGS:
                assert parsed(name, schema, written(name, {"code": None})) == {"code": None}


def test_types_are_told_by_patterns_of_names_and_what_the_schema_refers_to() -> None:
    for name in ONE_BY_ONE:
        for schema in (
            {"patternProperties": {"^c": {"type": "string"}}},
            {"$ref": "#/$defs/all", "$defs": {"all": {"properties": {"code": CODE}}}},
        ):
            assert parsed(name, schema, written(name, {"code": "1"})) == {"code": "1"}


def test_strings_without_quotes_follow_references_and_alternatives() -> None:
    for name in BARE:
        for strict in [True, False]:
            for own in STRINGS:
                schema = {"type": "object", "properties": {"code": own}, "required": ["code"], **DEFINED}
                grammar = grammar_of(name, schema, strict=strict)
                for value in ("1", "2"):
                    text = written(name, {"code": value})
                    assert allows(grammar, text)
                    assert parsed(name, schema, text) == {"code": value}
                for value in ("3", '"1"', ""):
                    assert not allows(grammar, written(name, {"code": value}))


def test_strings_that_cannot_be_held_to_their_schema_are_refused_if_strict() -> None:
    for name in BARE:
        for own in (
            {"type": "string", "not": {"const": "x"}},
            {"type": "string", "oneOf": [{"pattern": "^a"}, {"pattern": "a$"}]},
            {"type": "string", "pattern": "^a", "allOf": [{"pattern": "b$"}]},
            {"type": "string", "$ref": "#/nowhere"},
            {"type": "string", "enum": ["axb", "c"], "pattern": "^c"},
            {"type": "string", "maxLength": 1025},
            {"type": "string", "allOf": [{"enum": ["axb"]}, {"format": "date"}]},
        ):
            schema = {"type": "object", "properties": {"a": own}}
            assert allows(grammar_of(name, schema), written(name, {"a": "axb"}))
            with pytest.raises(BadRequest, match="the property 'a' of 'f'") as error:
                grammar_of(name, schema, strict=True)
            assert error.value.param == "tools"


def test_string_forms_are_alternatives() -> None:
    both = {"allOf": [{"minLength": 2}, {"minLength": 3, "maxLength": 9}], "maxLength": 5}
    assert string_forms(both, both) == ([StringForm(None, {"minLength": 3, "maxLength": 5})], True)
    either = {"anyOf": [{"const": "a"}, {"pattern": "^b"}, {"enum": ["c", "a"]}, {"type": "null"}]}
    assert string_forms(either, either) == ([StringForm(("a", "c")), StringForm(None, {"pattern": "^b"})], True)
    assert string_forms({"anyOf": [{"const": "a"}, {}]}, {}) == ([StringForm()], True)
    assert string_forms({"enum": ["a", "b"], "allOf": [{"enum": ["c"]}]}, {}) == ([], True)
    bounded = {"enum": ["a", "bcd", "efghi"], "minLength": 2, "allOf": [{"maxLength": 4}]}
    forms, is_exact = string_forms(bounded, bounded)
    assert ([form.values for form in forms], is_exact) == ([("bcd",)], True)
    assert string_forms({"const": "a", "minLength": 2}, {}) == ([], True)
    assert bare_strings.MAX_COUNTED_CHARS == MAX_COUNTED_CHARS


def test_anchors_come_along_with_the_parts_that_refer_to_them() -> None:
    for name in ONE_BY_ONE:
        schema = {"properties": {"a": {"$ref": "#there"}}, "$defs": {"l": {"$anchor": "there", "type": "integer"}}}
        grammar = grammar_of(name, {"type": "object", **schema}, strict=True)
        assert allows(grammar, written(name, {"a": 5}))
        assert not allows(grammar, written(name, {"a": [5]}))


class Watched(list[Any]):
    """A list that counts how often one of its members is looked at."""

    looks = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            Watched.looks += 1
            yield each

    def __contains__(self, wanted: object) -> bool:
        return any(each == wanted for each in self)


def watched(schema: Any) -> Any:
    """The same schema with lists that are counted."""
    if isinstance(schema, dict):
        return {key: watched(value) for key, value in schema.items()}
    if isinstance(schema, list):
        return Watched([watched(schema[0])] * len(schema) if len(schema) > 2 else map(watched, schema))
    return schema


def test_schemas_without_end_say_nothing_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"allOf": [{"$ref": "#"}] * 1000},
        {"anyOf": [{"type": "string"}] * (MAX_SCHEMAS + 1)},
        {"enum": ["x"] * 1_000_000},
        {"anyOf": [{"$ref": "#/enough"}] * MAX_SCHEMAS, "enough": {"enum": ["x"] * 1_000_000}},
        {"anyOf": [{"$ref": "#/enough"}] * MAX_SCHEMAS, "enough": {"type": ["string"] * 1_000_000}},
        {"allOf": [{"$ref": "#/enough"}] * MAX_SCHEMAS, "enough": {"anyOf": [False] * 1_000_000}},
        {"anyOf": [{"$ref": "#/enough"}] * MAX_SCHEMAS, "enough": {"type": ["number"] * 100_000}},
        {"allOf": [{"$ref": "#" + "/a" * 500_000}] * MAX_SCHEMAS},
    ]
    schemas = chars = 0
    for owner, name in ((schema_kinds._Search, "kinds"), (string_schemas._Reader, "forms")):

        def look(self: Any, *args: Any, really: Any = getattr(owner, name)) -> Any:
            nonlocal schemas
            schemas += 1
            return really(self, *args)

        monkeypatch.setattr(owner, name, look)

    def unquoted(text: str) -> str:
        nonlocal chars
        chars += len(text)
        return unquote(text)

    monkeypatch.setattr(json_pointer, "unquote", unquoted)
    for schema in cases:
        deep: dict[str, Any] = watched(schema)
        for _ in range(50_000):
            deep = {"anyOf": [deep, {"$ref": "#"}]}
        for each in (watched(schema), deep):
            for read in (kinds_of, string_forms):
                schemas = chars = Watched.looks = 0
                says = read(each, each)
                assert says == frozenset() or read is string_forms
                assert schemas <= 2 * MAX_SCHEMAS
                assert Watched.looks <= 2 * MAX_SCHEMAS * VALUES_LIKE_A_SCHEMA
                assert chars <= 100 * MAX_SCHEMAS


def test_references_may_be_nonsense() -> None:
    for reference in [5, None, "", "other", "#x", "#/a", "#/properties/0", "#/required/9", "#/%zz"]:
        root = {"properties": {"a": {"$ref": reference}}, "required": ["a"], "$ref": reference}
        assert kinds_of(root["properties"]["a"], root) == frozenset()
        assert parsed("qwen3_coder", root, written("qwen3_coder", {"a": "1"})) == {"a": 1}


MARKS = {"glm45": "</arg_value>", "glm47": "</arg_value>", "qwen3_coder": "</parameter>"}


def test_free_text_ends_where_the_parser_takes_it_to_end() -> None:
    for name in MARKS:
        for own in [{"type": "string"}, {}, {"anyOf": [{"type": "string"}, {"const": "x"}]}]:
            grammar = grammar_of(name, {"properties": {"a": own}, "required": ["a"]})
            assert allows(grammar, written(name, {"a": "x </param> y"}))
            assert not allows(grammar, written(name, {"a": f"x{MARKS[name]}y"}))


def test_values_that_hold_the_mark_of_their_end_are_left_out() -> None:
    for name in MARKS:
        torn = f"x{MARKS[name]}y"

        def schema_of(values: list[str], **fields: Any) -> dict[str, Any]:
            return {"properties": {"a": {"enum": values}, "b": {"type": "integer"}}, **fields}

        for strict in (True, False):
            grammar = grammar_of(name, schema_of([torn, "c"], required=["a"]), strict=strict)
            assert allows(grammar, written(name, {"a": "c"}))
            assert not allows(grammar, written(name, {"a": torn}))
            assert allows(grammar_of(name, schema_of([torn]), strict=strict), written(name, {"b": 1}))
        required = schema_of([torn], required=["a"])
        assert allows(grammar_of(name, required), written(name, {"a": "c"}))
        with pytest.raises(BadRequest, match="required property 'a' of 'f' has no value"):
            grammar_of(name, required, strict=True)


def test_schemas_that_are_lists_are_refused() -> None:
    for name in [*BARE, "pythonic"]:
        reference = {"$ref": "#/$defs/x"}
        with pytest.raises(BadRequest):
            grammar_of(name, {"additionalProperties": [reference], "$defs": {"x": {}}})
        with pytest.raises(BadRequest):
            grammar_of(name, {**reference, "$defs": {"x": {"properties": {"a": [reference]}}}})


def test_what_a_name_may_be_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        argument_schemas, "kinds_of", lambda schema, root: (asked.append(schema), kinds_of(schema, root))[1]
    )
    schemas = argument_schemas.ArgumentSchemas({"properties": {"a": {"type": "integer"}, "": {"type": "null"}}})
    for _ in range(3):
        assert [schemas.kinds(name) for name in ("a", "", "b", "c")] == [{"integer"}, {"null"}, set(), set()]
    assert len(asked) == 3


def test_strict_strings_of_alternatives_that_overlap_are_refused() -> None:
    cases = [
        [{"const": "a"}, {"enum": ["a", "b"]}],
        [{"type": "string"}, {"const": "a"}],
    ]
    for options in cases:
        schema = {"type": "object", "properties": {"a": {"oneOf": options}}}
        with pytest.raises(BadRequest):
            grammar_of("qwen3_coder", schema, strict=True)
        apart = {"type": "object", "properties": {"a": {"oneOf": [{"const": "c"}, {"enum": ["a", "b"]}]}}}
        grammar_of("qwen3_coder", apart, strict=True)
