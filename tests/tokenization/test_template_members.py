"""Detection of the members of tools and the names of earlier thoughts that templates read."""

from __future__ import annotations

from typing import Any

import pytest

from bough.errors import BadRequest
from bough.tokenization.chat_template import ChatTemplate
from bough.tokenization.template_tools import MEMBERS, WHOLE, filled, without
from bough.tokenization.tokenizer import SpecialTokens

MESSAGES = """{%- for m in messages %}{{- '<' ~ m.role ~ '>' ~ (m.content or '') }}{%- endfor %}"""
READS = {
    ("function", "description"): "{{ '(' + f.description + ')' }}",
    ("parameters", "type"): "{{ '(' + f.parameters.type + ')' }}",
    ("parameters", "properties"): "{% for k, v in f.parameters.properties.items() %}{{ '(' ~ k ~ ')' }}{% endfor %}",
    ("parameters", "required"): "{% for k in f.parameters.required + [] %}{{ '(' ~ k ~ ')' }}{% endfor %}",
    ("property", "type"): "{% for k, v in f.parameters.properties.items() %}{{ '(' + v.type + ')' }}{% endfor %}",
    (
        "property",
        "description",
    ): "{% for k, v in f.parameters.properties | items %}{{ '(' + v.description + ')' }}{% endfor %}",
}
QUESTION = {"role": "user", "content": "a"}
BARE: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"enum": [1]}}}},
    },
    {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "h", "description": None, "parameters": {}}},
]


def template(source: str) -> ChatTemplate:
    return ChatTemplate({"default": source}, SpecialTokens(bos="<s>", eos="</s>"))


def with_tools(reads: str) -> ChatTemplate:
    listed = f"{{%- for t in tools or [] %}}{{%- set f = t.function %}}{{{{- '[' ~ f.name }}}}{reads}]{{%- endfor %}}"
    return template(listed + MESSAGES)


def test_a_member_that_a_template_reads_is_there_if_empty() -> None:
    for member in READS:
        made = with_tools(READS[member])
        shown = made.render([QUESTION], tools=BARE)
        assert shown.endswith("<user>a")
        assert all(f"[{name}" in shown for name in "fgh")
        assert "None" not in shown.replace("h(None)", "")
        assert "(string)" in with_tools(READS["property", "type"]).render([QUESTION], tools=[WHOLE])


def test_what_no_template_asks_for_is_not_added() -> None:
    made = with_tools("{{ f | tojson }}")
    for tool in BARE:
        assert "description" not in made.render([QUESTION], tools=[{**tool, "function": {"name": "f"}}])
    for each in MEMBERS:
        assert filled(without(each), ()) != WHOLE
        assert filled(WHOLE, MEMBERS) == WHOLE
    assert filled(BARE[0], ()) is BARE[0]


def test_a_template_that_goes_through_tools_that_are_not_there_is_given_an_empty_list() -> None:
    made = template("{%- set n = tools | selectattr('type') | list | length %}{{- n }}" + MESSAGES)
    assert made.render([QUESTION]) == "0<user>a"
    assert made.render([QUESTION], tools=BARE) == "3<user>a"


def test_errors_that_come_from_the_tools_name_them() -> None:
    fails = "{%- if tools %}{%- for t in tools %}{%- if t.function.name == 'h' %}CALL{% endif %}{% endfor %}{% endif %}"
    for call in ("{{ raise_exception('no h') }}", "{{ 1 + t.function.name }}"):
        made = template(fails.replace("CALL", call) + MESSAGES)
        with pytest.raises(BadRequest) as error:
            made.render([QUESTION], tools=BARE)
        assert error.value.param == "tools"
        assert "messages" not in error.value.message
        assert made.render([QUESTION], tools=BARE[:2]) == "<user>a"
    with pytest.raises(BadRequest) as error:
        template(MESSAGES + "{{ raise_exception('never') }}").render([QUESTION], tools=BARE)
    assert error.value.param == "messages"


THOUGHTS = {
    "reasoning_content": "{{- '<t>' ~ m.reasoning_content ~ '</t>' if m.reasoning_content else '' }}",
    "reasoning": "{{- '<t>' ~ m.reasoning ~ '</t>' if m.reasoning is defined else '' }}",
    "thinking": "{{- '<t>' ~ m.thinking ~ '</t>' if m.thinking else '' }}",
    "with calls only": "{{- '<t>' ~ m.thinking ~ '</t>' if m.thinking and m.tool_calls else '' }}",
    "parts": "{%- for p in m.content if p.type == 'thinking' %}{{- '<t>' ~ p.thinking ~ '</t>' }}{%- endfor %}",
}


def test_earlier_thoughts_come_under_the_name_that_the_template_reads() -> None:
    for name in THOUGHTS:
        text = (
            "{%- if m.content is string %}{{- m.content }}{%- else %}"
            "{%- for p in m.content or [] if p.type == 'text' %}{{- p.text }}{%- endfor %}{%- endif %}"
        )
        made = template(f"{{%- for m in messages %}}{{{{- '<' ~ m.role ~ '>' }}}}{THOUGHTS[name]}{text}{{%- endfor %}}")
        call = {"id": "probe7f3a", "type": "function", "function": {"name": "f", "arguments": {}}}
        answer = {"role": "assistant", "content": "b", "reasoning_content": "Hm.", "tool_calls": [call]}
        assert made.render([QUESTION, answer]) == "<user>a<assistant><t>Hm.</t>b"
        assert made.render([QUESTION, {"role": "assistant", "content": "b"}]) == "<user>a<assistant>b"


def test_a_template_that_shows_no_thoughts_is_left_alone() -> None:
    answer = {"role": "assistant", "content": "b", "reasoning_content": "Hm."}
    assert template(MESSAGES).render([QUESTION, answer]) == "<user>a<assistant>b"
