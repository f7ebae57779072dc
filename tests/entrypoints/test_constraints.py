"""Strict tools: whatever is called, its arguments fit, and whatever is said besides is free."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bough.entrypoints.chat.constraints import ANY_OBJECT, constrained
from bough.entrypoints.chat.job import ToolChoice, ToolUse
from bough.entrypoints.chat.tools import Choice, distinct, make_tool_use
from bough.errors import BadRequest
from bough.parsers.argument_schemas import closed
from bough.parsers.base import ToolSpec
from bough.parsers.dialect import make_dialect
from bough.parsers.reasoning import Thoughts
from bough.parsers.tool_formats import TOOL_FORMATS
from bough.sampling.sampling_params import MAX_GRAMMAR_BYTES, SamplingParams
from tests.constrained.following import allows, bundled_backend, spec_of

POSSIBLE = Thoughts.POSSIBLE
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
STRICT = ToolSpec("get_weather", None, CITY, True)
LOOSE = ToolSpec("now", None, CITY, False)


def tag_of(name: str, tools: tuple[ToolSpec, ...] = (STRICT, LOOSE), reasoning: str | None = None, **use: Any) -> Any:
    dialect = make_dialect(None, tool_call_parser=name, reasoning_parser=reasoning or "none")
    params, field = constrained(
        SamplingParams(), None, ToolUse(tools, ToolChoice.AUTO, **use), dialect, thoughts=POSSIBLE
    )
    assert field == "tools"
    assert params.structural_tag is not None
    return bundled_backend().compile(spec_of("structural_tag", params.structural_tag))


def test_calls_of_strict_tools_fit_and_the_rest_is_free() -> None:
    grammar = tag_of("hermes")
    call = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'
    good, other = call.format("get_weather", '{"city": "Wien"}'), call.format("now", '{"x": [1]}')
    for text in ("", "It is nine.", good, f"I look it up.\n{good}", f"{good}\n{other}", f"So: {other} and {good} ok"):
        assert allows(grammar, text), text
    for arguments in ('{"town": "Wien"}', '{"city": 1}', "{}"):
        assert not allows(grammar, "Look. " + call.format("get_weather", arguments))
    assert not allows(grammar, call.format("other", "{}"))


def test_thoughts_are_free() -> None:
    grammar = tag_of("hermes", reasoning="qwen3")
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Wien"}}\n</tool_call>'
    assert allows(grammar, f"<think>\nHm.\n</think>\n\n{call}")
    assert allows(grammar, "<think>\nHm.\n</think>\n\nNine.")
    assert allows(grammar, "Nine.")
    assert not allows(grammar, "<think>\nHm.\n</think>\n\n<tool_call>\nno")
    assert allows(grammar, f"<think>\nWith <tool_call> I call, as in {call}.\n</think>\n\nNine.")
    assert allows(grammar, f"<think>\n<tool_call>\n</think>\n\n{call}")
    assert not allows(grammar, f"<think>\nThis one is only thought: {call}")


def test_structural_tags_of_either_form_come_behind_thoughts_or_calls_instead() -> None:
    for named in [{}, {"type": "structural_tag"}]:
        older = {
            **named,
            "structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}],
            "triggers": ["<f>"],
        }
        tags = [{"begin": "<f>", "content": {"type": "json_schema", "json_schema": {"type": "integer"}}, "end": "</f>"}]
        newer = {**named, "format": {"type": "triggered_tags", "triggers": ["<f>"], "tags": tags}}
        dialect = make_dialect(None, tool_call_parser="hermes", reasoning_parser="qwen3")
        for tag in (older, newer):
            params = SamplingParams.from_dict({"structural_tag": tag})
            for use in (ToolUse(), ToolUse((LOOSE,), ToolChoice.AUTO)):
                made, field = constrained(params, "response_format", use, dialect, thoughts=POSSIBLE)
                assert field == "response_format"
                grammar = bundled_backend().compile(spec_of("structural_tag", made.structural_tag))
                assert allows(grammar, "<think>\nHm.\n</think>\n\nIt is <f>1</f>.")
                assert not allows(grammar, "<think>\nHm.\n</think>\n\nIt is <f>x</f>.")
        params = SamplingParams.from_dict({"structural_tag": {**older, "format": {}}})
        with pytest.raises(BadRequest, match="format") as raised:
            constrained(params, "response_format", ToolUse(), dialect, thoughts=POSSIBLE)
        assert raised.value.param == "response_format"


def test_every_format_leaves_room_for_an_answer() -> None:
    for name in TOOL_FORMATS:
        grammar = tag_of(name)
        if name == "gpt-oss":
            assert allows(grammar, "<|channel|>final<|message|>It is {nine}.")
            continue
        for text in ("", "It is {nine} [so they say].", "\n 9"):
            assert allows(grammar, text), text


_KIMI = "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
_DEEPSEEK = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"


def test_wrong_arguments_are_impossible() -> None:
    cases = [
        ("llama3", '{"name": "get_weather", "parameters": ', "}"),
        ("mistral", "[TOOL_CALLS]get_weather[ARGS]", ""),
        ("kimi_k2", _KIMI, "<|tool_call_end|><|tool_calls_section_end|>"),
        ("deepseekv31", _DEEPSEEK, "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
    ]
    for name, begin, end in cases:
        grammar = tag_of(name)
        assert allows(grammar, f'{begin}{{"city": "Wien"}}{end}')
        assert not allows(grammar, f'{begin}{{"town": "Wien"}}{end}')


def test_tools_that_are_not_strict_take_any_arguments_beside_those_that_are() -> None:
    cases = [
        (
            "qwen3_coder",
            "<tool_call>\n<function=now>\n<parameter=any>\n5 o'clock\n</parameter>\n</function>\n</tool_call>",
        ),
        ("glm45", "<tool_call>now\n<arg_key>any</arg_key>\n<arg_value>5</arg_value>\n</tool_call>"),
        ("pythonic", '[now(any="5", other=[1])]'),
    ]
    for name, call in cases:
        assert allows(tag_of(name), call)


def test_tools_that_are_not_strict_leave_the_answer_free() -> None:
    dialect = make_dialect(None, tool_call_parser="hermes")
    params = SamplingParams()
    assert constrained(params, None, ToolUse((LOOSE,), ToolChoice.AUTO), dialect, thoughts=POSSIBLE) == (
        params,
        None,
    )
    off = ToolUse((STRICT,), ToolChoice.NONE)
    assert constrained(params, None, off, dialect, thoughts=POSSIBLE) == (params, None)


def schema_of(num_bytes: int) -> dict[str, Any]:
    return {"type": "object", "description": "x" * num_bytes}


def test_limits_are_those_of_what_the_client_sent() -> None:
    for choice in [ToolChoice.AUTO, ToolChoice.REQUIRED]:
        dialect = make_dialect(None, tool_call_parser="hermes")
        fits = tuple(ToolSpec(f"f{i}", None, schema_of(MAX_GRAMMAR_BYTES - 100), True) for i in range(2))
        params, _ = constrained(SamplingParams(), None, ToolUse(fits, choice), dialect, thoughts=POSSIBLE)
        params.validate(None, tag_is_ours=True)
        deep: dict[str, Any] = {"type": "string"}
        for _ in range(28):
            deep = {"type": "object", "properties": {"a": deep}}
        params, _ = constrained(
            SamplingParams(), None, ToolUse((ToolSpec("f", None, deep, True),), choice), dialect, thoughts=POSSIBLE
        )
        params.validate(None, tag_is_ours=True)
        large = ToolUse((ToolSpec("f", None, schema_of(MAX_GRAMMAR_BYTES), True),), choice)
        with pytest.raises(BadRequest, match=r"tools\[0\]: .*bytes") as error:
            constrained(SamplingParams(), None, large, dialect, thoughts=POSSIBLE)
        assert error.value.code == "invalid_grammar"


def test_a_tool_is_named_by_its_place_in_the_request() -> None:
    large = ToolSpec("large", None, schema_of(MAX_GRAMMAR_BYTES), True)
    dialect = make_dialect(None, tool_call_parser="hermes")
    all_but_one = make_tool_use(distinct([None, LOOSE, large]), Choice(), parallel=True)
    chosen = make_tool_use(distinct([LOOSE, STRICT, large]), Choice(allowed=("large",)), parallel=True)
    for use in (all_but_one, chosen):
        with pytest.raises(BadRequest, match=r"^tools\[2\]: the schema of 'large'") as error:
            constrained(SamplingParams(), None, use, dialect, thoughts=POSSIBLE)
        assert error.value.param == "tools[2]"


def test_tools_that_are_not_strict_are_held_to_what_can_be_enforced() -> None:
    dialect = make_dialect(None, tool_call_parser="hermes", reasoning_parser="none")
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}},
    }

    def compiled(strict: bool, choice: ToolChoice) -> Any:
        use = ToolUse((ToolSpec("f", None, schema, strict),), choice)
        params, _ = constrained(SamplingParams(), None, use, dialect, thoughts=POSSIBLE)
        return bundled_backend().compile(spec_of("structural_tag", params.structural_tag))

    call = '<tool_call>\n{"name": "f", "arguments": {"a": [1, 1]}}\n</tool_call>'
    assert allows(compiled(False, ToolChoice.REQUIRED), call)
    for choice in (ToolChoice.REQUIRED, ToolChoice.AUTO):
        with pytest.raises(BadRequest, match="uniqueItems"):
            compiled(True, choice)


def test_tools_that_may_be_anything_are_not_looked_into() -> None:
    dialect = make_dialect(None, tool_call_parser="hermes")
    huge = ToolUse((ToolSpec("f", None, schema_of(MAX_GRAMMAR_BYTES), False),), ToolChoice.AUTO)
    assert constrained(SamplingParams(), None, huge, dialect, thoughts=POSSIBLE)[1] is None


def test_a_schema_near_the_limit_passes_inside_thoughts_too() -> None:
    dialect = make_dialect(None, reasoning_parser="qwen3")
    schema = json.dumps(schema_of(MAX_GRAMMAR_BYTES - 100))
    params = SamplingParams(json_schema=schema)
    params.validate(None)
    wrapped, field = constrained(params, "response_format", ToolUse(), dialect, thoughts=POSSIBLE)
    assert field == "response_format"
    wrapped.validate(None, tag_is_ours=True)


def test_required_calls_make_up_no_properties() -> None:
    def grammar_of(**parameters: Any) -> Any:
        tool = ToolSpec("f", None, {"type": "object", **parameters}, False)
        use = ToolUse((tool,), ToolChoice.REQUIRED)
        params, _ = constrained(SamplingParams(), None, use, make_dialect(None), thoughts=POSSIBLE)
        assert params.structural_tag is not None
        return bundled_backend().compile(spec_of("structural_tag", params.structural_tag))

    def call(arguments: str) -> str:
        return f'[{{"name": "f", "parameters": {arguments}}}]'

    named = {"a": {"type": "integer"}, "in": {"type": "object", "properties": {"b": {}}}}
    narrow = grammar_of(properties=named)
    for arguments, allowed in (
        ('{"a": 1, "in": {"b": 2}}', True),
        ("{}", True),
        ('{"c": 1}', False),
        ('{"in": {"c": 2}}', False),
    ):
        assert allows(narrow, call(arguments)) is allowed, arguments
    assert not allows(grammar_of(properties={}), call('{"c": 1}'))
    for opening in ({"additionalProperties": True}, {"patternProperties": {"c": {}}}, {"required": ["c"]}):
        assert allows(grammar_of(properties=named, **opening), call('{"c": 1}')), opening
    assert allows(grammar_of(), call('{"c": 1}'))


def test_what_a_schema_requires_may_be_nonsense() -> None:
    for required in [5, "c", {"a": 1}, [1], ["c"], [{}], None]:
        schema = {"properties": {"a": {"properties": {"b": {}}, "required": required, "items": [1]}}}
        assert "additionalProperties" not in closed(schema)["properties"]["a"]
        assert closed(schema)["additionalProperties"] is False


def test_an_answer_on_channels_names_one_first_unless_it_has_begun() -> None:
    for reasoning_parser in ["gpt-oss", "none"]:
        dialect = make_dialect(None, tool_call_parser="gpt-oss", reasoning_parser=reasoning_parser)
        params = SamplingParams.from_dict({"json_schema": ANY_OBJECT})
        made, _ = constrained(params, "json_schema", ToolUse(), dialect, thoughts=POSSIBLE)
        assert "<|channel|>final<|message|>" in made.structural_tag
        assert constrained(params, "json_schema", ToolUse(), dialect, thoughts=Thoughts.NONE) == (params, "json_schema")
