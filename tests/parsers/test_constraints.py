"""What a constraint lets through is what the parser of the same dialect reads as calls."""

from __future__ import annotations

import itertools
import json

import jsonschema
import numpy as np
import pytest

from bough.errors import BadRequest
from bough.parsers.base import ToolSpec
from bough.parsers.reasoning import Thoughts
from bough.parsers.structural import MAX_CALLS
from bough.parsers.tool_formats import TOOL_FORMATS
from tests.constrained.following import allows, bundled_backend, random_walk, spec_of
from tests.constrained.special_tokens import FIRST_SPECIAL, vocabulary
from tests.parsers.parsing import TOOLS, calls, content, dialect, parser, reasoning, run
from tests.parsers.samples import KINDS, TWO_CALLS

# Cities to choose from: a random way through free text finds no end.
SCHEMA = {
    **TOOLS[0].parameters,
    "properties": {**TOOLS[0].parameters["properties"], "city": {"type": "string", "enum": ["Wien", 'São "Paulo"']}},
}
CHOOSING = (ToolSpec("get_weather", None, SCHEMA, False), TOOLS[1])
SCHEMAS = {tool.name: tool.parameters for tool in CHOOSING}
# Models also write these forms, which they are not constrained to: with words of Python, or without all markers.
OTHER_FORMS = ("llama4", "mistral", "pythonic", "qwen3_coder", "seed_oss", "gpt-oss")


FORCED = [(None, True), (None, False), ("get_weather", True), ("now", False)]


@pytest.mark.parametrize(
    ("forced", "eagerness"),
    [
        pytest.param(FORCED, (True, False), marks=pytest.mark.slow, id="all"),
        pytest.param(FORCED[::2], (True,), id="some"),
    ],
)
def test_constrained_answers_are_calls_with_arguments_that_fit(
    forced: list[tuple[str | None, bool]], eagerness: tuple[bool, ...]
) -> None:
    for name in [*KINDS, "none"]:
        for only, parallel in forced:
            made = dialect(name)
            grammar = bundled_backend().compile(
                spec_of("structural_tag", made.constraint(CHOOSING, name=only, parallel=parallel))
            )
            rng = np.random.default_rng(5)
            walked = [random_walk(grammar, rng, eager=eager) for eager in eagerness]
            while not any(walked):  # at random, ways through some formats find no end
                walked = [random_walk(grammar, rng)]
            for text in filter(None, walked):
                reader = made.parser(CHOOSING, parse_tools=True, separate_reasoning=True, thinking=False, forced=True)
                assert reader is not None
                events = run(reader, [text])
                assert content(events) == ""
                found = calls(events)
                assert found
                assert len(found) == 1 or (parallel and only is None)
                for called, arguments in found:
                    assert only in (None, called)
                    jsonschema.validate(arguments, SCHEMAS[called])


def test_required_calls_come_to_an_end() -> None:
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    several = dialect("hermes").constraint(TOOLS, name=None, parallel=True)
    grammar = bundled_backend().compile(spec_of("structural_tag", several))
    assert allows(grammar, "\n".join([call] * MAX_CALLS))
    assert not allows(grammar, "\n".join([call] * (MAX_CALLS + 1)))


def test_a_constraint_lets_through_what_models_write() -> None:
    for name in sorted(TOOL_FORMATS.keys() - set(OTHER_FORMS)):
        made = dialect(name, "qwen3")
        text = TWO_CALLS[name][-1 if name == "glm47" else 0]
        free = bundled_backend().compile(spec_of("structural_tag", made.constraint(TOOLS, name=None, parallel=True)))
        assert allows(free, text)
        assert allows(free, f"<think>\nHm.\n</think>\n\n{text}")
        assert not allows(free, "Hm.")
        inside = made.constraint(TOOLS, name=None, parallel=True, thoughts=Thoughts.BEGUN)
        grammar = bundled_backend().compile(spec_of("structural_tag", inside))
        assert allows(grammar, f"Hm.\n</think>\n\n{text}")
        events = run(parser(made, thinking=True), [f"Hm.\n</think>\n\n{text}"])
        assert reasoning(events) == "Hm."
        assert len(calls(events)) == 2


# The marks that are special tokens, with ids far beyond the vocabulary of the bundled model.
SPECIAL = {
    "deepseekv3": ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
    "deepseekv31": ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁calls▁end｜>"),
    "glm45": ("<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "</arg_value>"),
    "glm47": ("<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>"),
    "gpt-oss": ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>"),
    "hermes": ("<tool_call>", "</tool_call>"),
    "kimi_k2": ("<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>"),
    "llama3": ("<|python_tag|>",),
    "llama4": ("<|python_start|>", "<|python_end|>"),
    "mistral": ("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"),
    "phi4_mini": ("<|tool_call|>", "<|/tool_call|>"),
    "qwen25": ("<tool_call>", "</tool_call>", "<think>", "</think>"),
    "qwen3_coder": ("<tool_call>", "</tool_call>", "<think>", "</think>"),
}
THOUGHTS = {"gpt-oss": "gpt-oss", "mistral": "mistral"}
CALL_OF_NOW = {
    "deepseekv3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "deepseekv31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "glm45": "<tool_call>now\n</tool_call>",
    "glm47": "<tool_call>now</tool_call>",
    "gpt-oss": "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}",
    "hermes": '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}"
    "<|tool_call_end|><|tool_calls_section_end|>",
    "llama3": '{"name": "now", "parameters": {}}',
    "llama4": "[now()]",
    "mistral": "[TOOL_CALLS]now[ARGS]{}",
    "phi4_mini": '<|tool_call|>[{"name": "now", "arguments": {}}]<|/tool_call|>',
    "qwen25": '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=now>\n</function>\n</tool_call>",
}


def test_marks_that_are_special_tokens_come_as_such() -> None:
    for name in SPECIAL:
        words = vocabulary(SPECIAL[name])
        made = dialect(name, THOUGHTS.get(name, "qwen3"))
        assert made.reasoning_format is not None
        start, end = made.reasoning_format.start, made.reasoning_format.end
        gap = "<|start|>assistant" if name == "gpt-oss" else "\n\n"
        possible, begun = Thoughts.POSSIBLE, Thoughts.BEGUN
        for thoughts, before in ((possible, ""), (possible, f"{start}Hm.{end}{gap}"), (begun, f"Hm.{end}{gap}")):
            tag = made.constraint(TOOLS, name=None, parallel=True, thoughts=thoughts)
            grammar = words.backend.compile(spec_of("structural_tag", tag))
            text = before + CALL_OF_NOW[name]
            ids = words.encode(text)
            assert words.follows(grammar, ids)
            assert not words.follows(grammar, ids[:-1])
            for at, token in enumerate(ids):
                if token == words.ids.get(end):
                    continue  # spelled out it is part of the thoughts, which a call may end
                if token >= FIRST_SPECIAL:
                    spelled = next(each for each, its in words.ids.items() if its == token)
                    assert not words.follows(grammar, [*ids[:at], *spelled.encode(), *ids[at + 1 :]])


def test_bare_strings_fit_their_schema_and_end() -> None:
    cases = [
        ("glm45", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>"),
        ("glm47", "<tool_call>f<arg_key>a</arg_key><arg_value>{}</arg_value></tool_call>"),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>"),
    ]
    more_cases = [
        ({"pattern": r"^\S+$"}, ["x", "<b>"], ["a b"]),
        ({"pattern": "[0-9]"}, ["1", "a1<"], ["a"]),
        ({"minLength": 2, "maxLength": 3}, ["ab", "abc"], ["a", "abcd"]),
        ({"enum": ["a", "ab", ""]}, ["a", "ab", ""], ["b"]),
        ({"format": "date"}, ["2024-01-31"], ["2024-01-32"]),
        ({}, ["", "a\nb"], []),
    ]
    for name, text in cases:
        for schema, good, bad in more_cases:
            for with_special in [True, False]:
                words = vocabulary(SPECIAL[name] if with_special else ())
                parameters = {"type": "object", "properties": {"a": {"type": "string", **schema}}, "required": ["a"]}
                tool = ToolSpec("f", None, parameters, False)
                tag = dialect(name).constraint([tool], name=None, parallel=True)
                grammar = words.backend.compile(spec_of("structural_tag", tag))
                for value in good:
                    answer = text.format(value)
                    assert words.allows(grammar, answer)
                    made = dialect(name).parser([tool], parse_tools=True, separate_reasoning=True, thinking=False)
                    assert made is not None
                    assert calls(run(made, [answer])) == [("f", {"a": value})]
                for value in bad:
                    assert not words.allows(grammar, text.format(value))


def test_ordinary_sets_of_tools_can_be_required() -> None:
    for name in TOOL_FORMATS:
        for num_tools, num_arguments in [(20, 7), (4, 10), (40, 20)]:
            kinds = itertools.cycle(["string", "integer", "boolean", "array"])
            tools = [
                ToolSpec(
                    f"f{index}",
                    "x",
                    {
                        "type": "object",
                        "properties": {f"p{each}": {"type": next(kinds)} for each in range(num_arguments)},
                    },
                    False,
                )
                for index in range(num_tools)
            ]
            made = dialect(name, THOUGHTS.get(name, "qwen3"))
            tag = made.constraint(tools, name=None, parallel=True)
            assert len(tag) < 150 * num_tools * (num_arguments + 2)
            vocabulary(()).backend.compile(spec_of("structural_tag", tag))


def test_arguments_come_in_order_and_may_be_left_out() -> None:
    for name in ["pythonic", "qwen3_coder", "glm45"]:
        properties = {key: {"type": "integer"} for key in "abcd"}
        tool = ToolSpec("f", None, {"type": "object", "properties": properties, "required": ["c"]}, False)
        tag = dialect(name).constraint([tool], name=None, parallel=False)
        grammar = vocabulary(()).backend.compile(spec_of("structural_tag", tag))

        def written(keys: str) -> str:
            if name == "pythonic":
                return f"[f({', '.join(f'{key}=1' for key in keys)})]"
            if name == "qwen3_coder":
                values = "".join(f"<parameter={key}>\n1\n</parameter>\n" for key in keys)
                return f"<tool_call>\n<function=f>\n{values}</function>\n</tool_call>"
            values = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>1</arg_value>\n" for key in keys)
            return f"<tool_call>f\n{values}</tool_call>"

        for keys in ("c", "ac", "bcd", "abcd", "cd"):
            assert vocabulary(()).allows(grammar, written(keys))
        for keys in ("", "ab", "ca", "cc", "abd"):
            assert not vocabulary(()).allows(grammar, written(keys))


def test_arguments_that_are_not_named_may_have_any_name() -> None:
    for name in ["pythonic", "qwen3_coder", "glm45", "hermes"]:
        for values in [True, {"type": "integer"}]:
            tool = ToolSpec("get_weather", None, {"type": "object", "additionalProperties": values}, False)
            made = dialect(name)
            tag = made.constraint([tool], name=None, parallel=False)
            grammar = vocabulary(()).backend.compile(spec_of("structural_tag", tag))
            given = {"days": 3, "nights": 2}
            text = {
                "pythonic": "[get_weather(days=3, nights=2)]",
                "qwen3_coder": "<tool_call>\n<function=get_weather>\n<parameter=days>\n3\n</parameter>\n"
                "<parameter=nights>\n2\n</parameter>\n</function>\n</tool_call>",
                "glm45": "<tool_call>get_weather\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n"
                "<arg_key>nights</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
                "hermes": f'<tool_call>\n{{"name": "get_weather", "arguments": {json.dumps(given)}}}\n</tool_call>',
            }[name]
            assert vocabulary(()).allows(grammar, text)
            reader = made.parser([tool], parse_tools=True, separate_reasoning=True, thinking=False)
            assert reader is not None
            assert calls(run(reader, [text])) == [("get_weather", given)]


def test_a_constraint_grows_with_the_schema_and_no_faster() -> None:
    for name in TOOL_FORMATS:

        def size(num_properties: int) -> int:
            properties = {f"p{index}": {"type": "string"} for index in range(num_properties)}
            tool = ToolSpec("f", None, {"type": "object", "properties": properties}, False)
            return len(dialect(name).constraint([tool], name=None, parallel=True))

        assert size(400) < 2.5 * size(200)


def test_arguments_bring_the_definitions_that_they_refer_to() -> None:
    for name in ["glm45", "qwen3_coder", "pythonic"]:
        definitions = {"d": {"type": "string", "enum": ["x" * 1000]}}
        refers = {"$ref": "#/$defs/d"}

        def constraint(num_properties: int) -> str:
            properties = {f"p{index}": refers for index in range(num_properties)}
            parameters = {"type": "object", "properties": {**properties, "q": {"type": "null"}}, "$defs": definitions}
            return dialect(name).constraint([ToolSpec("f", None, parameters, False)], name=None, parallel=False)

        text = constraint(2)
        assert text.count("x" * 1000) >= 2
        bundled_backend().compile(spec_of("structural_tag", text))
        with pytest.raises(BadRequest) as error:
            constraint(2000)
        assert error.value.param == "tools"


def test_names_that_hold_marks_are_left_out_or_refused() -> None:
    cases = [
        (
            "qwen3_coder",
            "<tool_call>\n<function=f>\n<parameter=a b>\n1\n</parameter>\n</function>\n</tool_call>",
            "x>b",
        ),
        ("glm45", "<tool_call>f\n<arg_key>a b</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", "x</arg_key>"),
        ("pythonic", "[f(a=1)]", "x b"),
    ]
    for name, call, wrong in cases:
        properties = {key: {"type": "integer"} for key in ("a", "a b", wrong)}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        made = dialect(name, "none")
        tag = made.constraint([ToolSpec("f", None, schema, True)], name=None, parallel=False)
        grammar = bundled_backend().compile(spec_of("structural_tag", tag))
        assert allows(grammar, call)
        assert wrong not in tag
        with pytest.raises(BadRequest, match=r"tools: the required property .* of 'f'"):
            made.constraint([ToolSpec("f", None, {**schema, "required": [wrong]}, True)], name=None, parallel=False)
