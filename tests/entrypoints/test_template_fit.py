"""Conversations with tools, in templates that know less of them than others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bough.entrypoints.chat.template_fit import TemplateFit
from bough.parsers.base import ToolCallStart, parse_tools
from bough.parsers.dialect import make_tool_dialect
from bough.parsers.tool_formats import TOOL_FORMATS
from bough.tokenization.chat_template import ChatTemplate
from bough.tokenization.tokenizer import SpecialTokens
from tests.tokenization.test_template_families import LIKE_GPT_OSS, LIKE_PHI

# Insists on whose turn it is, and has no place for a system.
ALTERNATING = """
{%- for m in messages %}
{%- if m.role not in ('user', 'assistant') %}{{ raise_exception('nobody else speaks here') }}{% endif %}
{%- if (m.role == 'user') != (loop.index0 is even) %}{{ raise_exception('it is not your turn') }}{% endif %}
{{- '[' ~ m.role ~ ']' ~ m.content }}{%- endfor %}"""
# The same, but what the system says is part of what the user says.
WITH_SYSTEM = """
{%- if messages[0].role == 'system' %}{{- '<<' ~ messages[0].content ~ '>>' }}
{%- set messages = messages[1:] %}{%- endif %}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 is even) %}{{ raise_exception('it is not your turn') }}{% endif %}
{{- '[' ~ m.role ~ ']' ~ m.content }}{%- endfor %}"""
# Shows calls in its own way, and is told of no functions.
LIKE_R1 = """
{%- for m in messages %}{{- '[' ~ m.role ~ ']' ~ (m.content or '') }}
{%- for c in m.tool_calls or [] %}
{{- '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' ~ c.type ~ '<｜tool▁sep｜>' ~ c.function.name ~
'\\n```json\\n' ~ c.function.arguments ~ '\\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>' }}{%- endfor %}{%- endfor %}"""
# Takes one call at a time.
SINGLE = """
{%- for m in messages %}{{- '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>' ~ (m.content or '') }}
{%- if m.tool_calls %}{%- if m.tool_calls | length > 1 %}{{ raise_exception('one at a time') }}{% endif %}
{%- set f = m.tool_calls[0].function %}
{{- '{"name": "' ~ f.name ~ '", "parameters": ' ~ f.arguments | tojson ~ '}' }}
{%- endif %}{%- endfor %}"""
# Takes functions by a name of its own.
LIKE_SMOLLM3 = """
{{- '<|im_start|>system\\n' }}{%- if xml_tools or python_tools %}{%- if xml_tools %}{{- '<tools>' }}
{%- for tool in xml_tools[:] %}{{- tool | string }}{%- endfor %}
{{- '</tools> <tool_call>{"name": <name>, "arguments": <json>}</tool_call>' }}{%- endif %}{%- if python_tools %}
{{- '<code>' ~ python_tools ~ '</code>' }}{%- endif %}{%- endif %}
{%- for m in messages %}{{- '<|im_start|>' ~ m.role ~ '\\n' ~ m.content }}{%- endfor %}"""
TOOLS = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
QUESTION = {"role": "user", "content": "When?"}


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "now", "arguments": json.dumps(arguments)}}


def calling(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(text: str, call_id: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": text} | ({} if call_id is None else {"tool_call_id": call_id})


def fit_of(source: str) -> tuple[ChatTemplate, TemplateFit]:
    template = ChatTemplate({"default": source}, SpecialTokens(bos="<s>", eos="</s>"))
    return template, TemplateFit(template, make_tool_dialect(source))


def rendered(source: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] = TOOLS) -> str:
    template, fit = fit_of(source)
    fitted, told = fit.apply(messages, tools, "messages")
    return template.render(fitted, tools=told)


@pytest.mark.parametrize("source", [ALTERNATING, WITH_SYSTEM, LIKE_R1], ids=["alternating", "with system", "R1"])
def test_a_call_is_read_in_the_form_that_the_model_is_told(source: str) -> None:
    shown = rendered(source, [QUESTION])
    example = shown.partition("of its arguments:\n")[2].partition("\n\n" if source is ALTERNATING else "[user]")[0]
    dialect = make_tool_dialect(source)
    parser = dialect.parser(parse_tools(TOOLS), parse_tools=True, separate_reasoning=True, thinking=False, forced=False)
    assert parser is not None
    events = parser.feed(example.removesuffix(">>").replace("the_function", "now"))
    events += [event for piece in parser.finish() for event in piece]
    assert [event.name for event in events if isinstance(event, ToolCallStart)] == ["now"]
    assert shown.index('"name": "now"') < shown.index("When?") or source is LIKE_R1


@pytest.mark.parametrize("source", [ALTERNATING, WITH_SYSTEM], ids=["alternating", "with system"])
def test_several_results_are_one_turn(source: str) -> None:
    messages = [QUESTION, calling(call("a"), call("b", zone="UTC")), result("8:00", "a"), result("7:00", "b")]
    shown = rendered(source, messages)
    assert shown.count("[user]") == 2
    assert shown.endswith(
        '[assistant]<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {"zone": "UTC"}}\n</tool_call>'
        "[user]<tool_response>\n8:00\n</tool_response>\n<tool_response>\n7:00\n</tool_response>"
    )
    later = rendered(source, [*messages, {"role": "user", "content": "And now?"}])
    assert later == f"{shown}\nAnd now?"


@pytest.mark.parametrize("ids", [("b", "a"), (None, None)], ids=["in another order", "without ids"])
def test_calls_come_one_at_a_time_where_the_template_wants_it(ids: tuple[str | None, str | None]) -> None:
    first, second = ("two", "one") if ids[0] else ("one", "two")
    messages = [
        QUESTION,
        calling(call("a", n=1), call("b", n=2)),
        result(first, ids[0]),
        result(second, ids[1]),
        {"role": "assistant", "content": "So."},
    ]
    shown = rendered(SINGLE, messages, [])
    turns = [turn.split("<|end_header_id|>") for turn in shown.split("<|start_header_id|>")[1:]]
    assert turns == [
        ["user", "When?"],
        ["assistant", '{"name": "now", "parameters": {"n": 1}}'],
        ["tool", "one"],
        ["assistant", '{"name": "now", "parameters": {"n": 2}}'],
        ["tool", "two"],
        ["assistant", "So."],
    ]


def test_a_message_with_several_calls_stays_one_where_it_may() -> None:
    messages = [QUESTION, calling(call("a"), call("b")), result("1", "a"), result("2", "b")]
    assert fit_of(LIKE_R1)[1].apply(messages, [], "messages") == (messages, None)


def test_tools_stand_in_the_message_of_the_system_where_the_template_reads_them_there() -> None:
    described = '<|tool|>[{"name": "now", "parameters": {"type": "object", "properties": {}}}]<|/tool|><|end|>'
    told = {"role": "system", "content": "Be brief."}
    for messages, begins in (([told, QUESTION], "<|system|>Be brief."), ([QUESTION], "<|system|>You are ")):
        shown = rendered(LIKE_PHI, messages)
        assert shown.startswith(begins)
        assert shown.endswith(f"{described}<|user|>When?<|end|><|assistant|>")
    again = rendered(LIKE_PHI, [QUESTION, calling(call("a", zone="UTC")), result("8:00", "a")])
    assert '<|assistant|><|tool_call|>[{"name": "now", "arguments": {"zone": "UTC"}}]<|/tool_call|><|end|>' in again
    assert rendered(LIKE_PHI, [QUESTION], []) == "<|user|>When?<|end|><|assistant|>"


def test_tools_have_the_name_that_the_template_has_for_them() -> None:
    shown = rendered(LIKE_SMOLLM3, [QUESTION])
    assert shown.startswith(f"<|im_start|>system\n<tools>{TOOLS[0]}</tools>")
    assert make_tool_dialect(LIKE_SMOLLM3).tool_format is TOOL_FORMATS["qwen25"]
    assert rendered(LIKE_SMOLLM3, [QUESTION], []) == "<|im_start|>system\n<|im_start|>user\nWhen?"
    template, fit = fit_of(LIKE_SMOLLM3)
    fitted, told = fit.apply([QUESTION], TOOLS, "messages")
    own = {"xml_tools": None, "python_tools": "now()"}
    assert "<tools>" not in template.render(fitted, tools=told, kwargs=own), "what the client gives by name counts"
    again = rendered(LIKE_SMOLLM3, [QUESTION, calling(call("a", zone="UTC")), result("8:00", "a")])
    assert '{"name": "now", "arguments": {"zone": "UTC"}}' in again


def test_answers_with_their_thoughts_in_the_text_are_taken_apart_where_they_are_on_channels() -> None:
    thoughts = "<|channel|>analysis<|message|>Hm.<|end|>"
    answer = {"role": "assistant", "content": f"{thoughts}Yes."}
    for messages, shown in (
        ([QUESTION, answer, QUESTION], "<|channel|>final<|message|>Yes.<|end|>"),
        (
            [QUESTION, {**calling(call("a")), "content": thoughts}, result("8:00", "a")],
            f"{thoughts}<|start|>assistant to=functions.now",
        ),
        ([QUESTION, {"role": "assistant", "content": "Yes."}, QUESTION], "<|channel|>final<|message|>Yes.<|end|>"),
        ([QUESTION, {"role": "assistant", "content": None}, QUESTION], "<|channel|>final<|message|><|end|>"),
    ):
        assert f"When?<|end|><|start|>assistant{shown}" in rendered(LIKE_GPT_OSS, messages)
    asked = {"role": "user", "content": f"{thoughts}Yes."}
    assert f"<|start|>user<|message|>{thoughts}Yes.<|end|>" in rendered(LIKE_GPT_OSS, [asked, answer, asked])
