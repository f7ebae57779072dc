from __future__ import annotations

import json
from typing import Any

import pytest

from bough.errors import BadRequest
from bough.sampling.sampling_params import (
    MAX_CHOICES,
    MAX_GRAMMAR_BYTES,
    MAX_GRAMMAR_DEPTH,
    GrammarSpec,
    SamplingParams,
    json_problem,
)
from tests.tables import table


def checked(**fields: Any) -> SamplingParams:
    params = SamplingParams.from_dict(fields)
    params.validate(None)
    return params


def nested(levels: int) -> str:
    return '{"not":' * (levels - 1) + "{}" + "}" * (levels - 1)


@table(
    "fields, grammar",
    [
        ({}, None),
        ({"json_schema": "", "regex": "", "ebnf": None, "choice": [], "structural_tag": ""}, None),
        ({"json_schema": '{"type": "object"}'}, ("json_schema", '{"type": "object"}')),
        ({"json_schema": {"type": "object"}}, ("json_schema", '{"type":"object"}')),
        ({"json_schema": "true"}, ("json_schema", "true")),
        ({"json_schema": False}, ("json_schema", "false")),
        ({"regex": "a+"}, ("regex", "a+")),
        ({"ebnf": 'root ::= "a"'}, ("ebnf", 'root ::= "a"')),
        ({"structural_tag": {"triggers": []}}, ("structural_tag", '{"triggers":[]}')),
        ({"choice": ["a", '"b"']}, ("choice", r'["a","\"b\""]')),
    ],
)
def test_grammar_of_a_request(fields: dict[str, Any], grammar: tuple[str, str] | None) -> None:
    assert checked(**fields).grammar == (None if grammar is None else GrammarSpec(*grammar))


@table(
    "fields, param, problem",
    [
        ({"json_schema": "{}", "regex": "a"}, "regex", "cannot be combined with json_schema"),
        ({"json_schema": "{"}, "json_schema", "not valid JSON"),
        ({"json_schema": "[]"}, "json_schema", "object or a boolean"),
        ({"structural_tag": "true"}, "structural_tag", "object"),
        ({"json_schema": nested(MAX_GRAMMAR_DEPTH + 1)}, "json_schema", f"at most {MAX_GRAMMAR_DEPTH}"),
        ({"json_schema": "[" * 100_000}, "json_schema", f"at most {MAX_GRAMMAR_DEPTH}"),
        ({"regex": "a" * (MAX_GRAMMAR_BYTES + 1)}, "regex", f"at most {MAX_GRAMMAR_BYTES}"),
        ({"json_schema": json.dumps({"const": "é" * MAX_GRAMMAR_BYTES})}, "json_schema", "bytes"),
        ({"choice": ["a", "a"]}, "choice", "different"),
        ({"choice": ["a", ""]}, "choice", "not empty"),
        ({"choice": [str(i) for i in range(MAX_CHOICES + 1)]}, "choice", str(MAX_CHOICES)),
        ({"choice": "ab"}, "choice", "array"),
        ({"choice": [1]}, "choice", "string"),
        ({"regex": "\ud800"}, "regex", "surrogate"),
        ({"choice": ("a", "\ud800")}, "choice", "surrogate"),
        ({"regex": 5}, "regex", "string"),
    ],
)
def test_impossible_grammars_are_refused_naming_the_field(fields: dict[str, Any], param: str, problem: str) -> None:
    with pytest.raises(BadRequest, match=problem) as raised:
        checked(**fields)
    assert raised.value.param == f"sampling_params.{param}"


@table(
    "fields, message",
    [
        ({"temperature": "hot"}, 'sampling_params.temperature must be a number, got "hot"'),
        ({"top_k": "5"}, 'sampling_params.top_k must be an integer, got "5"'),
        ({"stop": 5}, "sampling_params.stop must be a string, got 5"),
        ({"stop": ["a", {}]}, "sampling_params.stop[1] must be a string, got an object"),
        ({"ignore_eos": []}, "sampling_params.ignore_eos must be true or false, got an array"),
        ({"logit_bias": {"5": "much"}}, 'sampling_params.logit_bias.5 must be a number, got "much"'),
        ({"logit_bias": {"a": 1}}, 'sampling_params.logit_bias.a: the name must be an integer, got "a"'),
    ],
)
def test_values_of_the_wrong_type_are_refused_in_words_of_json(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        checked(**fields)
    assert raised.value.message == message
    assert raised.value.param == f"sampling_params.{next(iter(fields))}"


def test_the_deepest_schema_passes_and_brackets_in_strings_do_not_count() -> None:
    checked(json_schema=nested(MAX_GRAMMAR_DEPTH))
    checked(json_schema={"const": "[" * 1000 + '\\"{'})


def test_a_string_that_never_ends_is_read_once() -> None:
    """From each quote in it to the end it would be minutes."""
    text = '{"a": "' + '\\"' * 120_000
    with pytest.raises(BadRequest, match="not valid JSON"):
        SamplingParams(json_schema=text).validate(None)
    assert json_problem('{"a": "[[{\\"", "b": [[1]]}', may_be_boolean=False, max_depth=3) is None
    assert json_problem('{"b": [[[1]]]}', may_be_boolean=False, max_depth=3) is not None


@table(
    "name, hint",
    [
        ("max_tokens", "; did you mean max_new_tokens?"),
        ("min_tokens", "; did you mean min_new_tokens?"),
        ("seed", "; did you mean sampling_seed?"),
        ("temprature", "; did you mean temperature?"),
        ("colour", ""),
    ],
)
def test_an_unknown_field_is_refused_with_what_it_may_mean(name: str, hint: str) -> None:
    with pytest.raises(BadRequest) as caught:
        SamplingParams.from_dict({name: 1})
    assert caught.value.message == f"sampling_params.{name} is not a known sampling parameter{hint}"
    assert caught.value.code == "unknown_parameter"


@table(
    "field, value, shown",
    [
        ("stop_token_ids", (3, 999), "[3, 999]"),
        ("allowed_token_ids", (999,), "[999]"),
        ("logit_bias", {3: 1.0, 999: 2.0}, '{"3": 1.0, "999": 2.0}'),
    ],
)
def test_a_token_that_does_not_exist_is_named_in_words_of_json(field: str, value: Any, shown: str) -> None:
    with pytest.raises(BadRequest) as caught:
        SamplingParams(**{field: value}).validate(vocab_size=100)
    expected = f"sampling_params.{field} must be token ids in [0, 100), which 999 is not, got {shown}"
    assert caught.value.message == expected


@table(
    "fields, is_greedy",
    [({}, False), ({"temperature": 0}, True), ({"top_k": 1}, True), ({"top_p": 0}, True), ({"top_p": 0.01}, False)],
)
def test_greedy_requests(fields: dict[str, Any], is_greedy: bool) -> None:
    assert checked(**fields).is_greedy == is_greedy
