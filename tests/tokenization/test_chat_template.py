from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jinja2
import pytest

from bough.errors import BadRequest, ConfigError
from bough.tokenization import template_budget
from bough.tokenization.chat_template import (
    BUILTIN_TEMPLATES,
    RERANKER_TEMPLATE,
    ChatTemplate,
    check_template_option,
    load_chat_template,
)
from bough.tokenization.template_sandbox import SandboxedTemplate
from bough.tokenization.tokenizer import SpecialTokens, Tokenizer
from tests.tokenization import small_tokenizers as small

SPECIAL = SpecialTokens(bos="<s>", eos="</s>")

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi <b>you</b> & 'me' 😀"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "What is 1 + 1?"},
]

PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}>{% endif %}"

# Nothing of a real model's, but what real templates are made of.
ELABORATE = """
{%- macro show(value, depth=0) -%}
    {%- if value is mapping -%}
        {%- for key, item in value | dictsort %}{{ '  ' * depth ~ key }}:{{ show(item, depth + 1) }}{% endfor -%}
    {%- else -%}
        {{- value | tojson }};
    {%- endif -%}
{%- endmacro -%}
{{- bos_token }}
{%- if tools %}
    {{- '# Tools\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson }}{% if not loop.last %}, {% endif %}
        {{- show(tool) }}
    {%- endfor %}
{%- endif %}
{%- set ns = namespace(last_user=-1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages | length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == "user" and message.content is string %}
        {%- set ns.last_user = index %}
        {%- set ns.found = true %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'system' and not loop.first %}{{ raise_exception('System comes first') }}{% endif %}
    {%- if message['role'] not in ['system', 'user', 'assistant', 'tool'] %}{% continue %}{% endif %}
    {%- if message.role == 'assistant' %}
        {%- generation %}
        {{- '<a>' + message['content'].split('</think>')[-1].lstrip('\\n') + eos_token }}
        {%- endgeneration %}
    {%- else %}
        {{- '<' + message['role'] + '>' + (message.content | trim) }}
    {%- endif %}
    {%- if loop.index0 == ns.last_user %}{{ ' (last of ' ~ loop.length ~ ')' }}{% endif %}
{% endfor %}
{%- if enable_thinking is defined and enable_thinking is false %}{{ '<nothink>' }}{% endif %}
{%- if add_generation_prompt %}{{ '<a>' }}{% endif %}
"""

TOOLS = [
    {
        "type": "function",
        "function": {"name": "wéather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
    },
    {"type": "function", "function": {"name": "a<b>", "description": "x & 'y'"}},
]


def template(source: str, **more: str) -> ChatTemplate:
    return ChatTemplate({"default": source, **more}, SPECIAL)


def test_renders_what_transformers_renders() -> None:
    for source in [PLAIN, ELABORATE]:
        for tools in [None, TOOLS]:
            for prompt in [True, False]:
                for kwargs in [{}, {"enable_thinking": False}]:
                    from transformers.utils.chat_template_utils import render_jinja_template

                    [expected], _ = render_jinja_template(
                        [CHAT],
                        tools,
                        chat_template=source,
                        add_generation_prompt=prompt,
                        bos_token="<s>",
                        eos_token="</s>",
                        **kwargs,
                    )
                    assert (
                        template(source).render(CHAT, tools=tools, add_generation_prompt=prompt, kwargs=kwargs)
                        == expected
                    )


def test_continues_a_message_where_transformers_does() -> None:
    for source in [PLAIN, ELABORATE, "{% for m in messages %}<{{ m.content | trim }}>{% endfor %}"]:
        for ending in ["Well, ", "Well,", "a\n\n"]:
            from transformers.utils.chat_template_utils import render_jinja_template

            chat = [*CHAT, {"role": "assistant", "content": ending}]
            [expected], _ = render_jinja_template(
                [chat], chat_template=source, continue_final_message=True, bos_token="<s>", eos_token="</s>"
            )
            assert template(source).render(chat, continue_final_message=True) == expected


def test_a_message_without_text_cannot_be_continued() -> None:
    for last in ({"role": "assistant", "content": ""}, {"role": "assistant"}):
        with pytest.raises(BadRequest, match="continue_final_message"):
            template(PLAIN).render([*CHAT, last], continue_final_message=True)
    with pytest.raises(BadRequest, match="does not show"):
        template("{{ messages[0].content }}").render(CHAT, continue_final_message=True)


def test_what_a_template_raises_is_told_to_the_client() -> None:
    with pytest.raises(BadRequest, match=r"^System comes first$") as error:
        template("{{ raise_exception('System comes first') }}").render([CHAT[1], CHAT[0]])
    assert error.value.param == "messages"


def test_an_error_in_the_template_is_the_requests_not_the_servers() -> None:
    cases = [
        "{{ messages[0].content.nothing.at_all }}",
        "{{ messages[7].content + 'x' }}",
        "{{ 1 // 0 }}",
        "{{ messages | tojson | int + 'x' }}",
        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{{ ''.__class__.__mro__ }}{{ messages.__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__ }}",
    ]
    for source in cases:
        with pytest.raises(BadRequest):
            template(source).render(CHAT)


def test_deeply_nested_messages_are_an_error() -> None:
    deep: Any = {"x": 1}
    for _ in range(20_000):
        deep = {"x": deep}
    with pytest.raises(BadRequest, match="nested"):
        template("{{ messages | tojson }}").render([{"role": "user", "content": "a", "extra": deep}])


def test_a_template_cannot_take_all_time_or_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% if b %}{% continue %}{% endif %}"
        "{% endfor %}{% endfor %}",
        *(
            f"{{% set ns = namespace(s={start}) %}}{{% for i in range(60) %}}{{% set ns.s = {step} %}}{{% endfor %}}"
            for start, step in (
                ("'ab'", "ns.s ~ ns.s"),
                ("'ab'", "ns.s + ns.s"),
                ("[1]", "ns.s + ns.s"),
                ("'ab'", "'%s%s' % (ns.s, ns.s)"),
                ("'ab'", "'{0}{0}'.format(ns.s)"),
                ("'ab'", "'%s%s' | format(ns.s, ns.s)"),
                ("'ab'", "ns.s.replace('', ns.s)"),
                ("'ab'", "ns.s | replace('a', ns.s)"),
                ("'ab'", "ns.s.join(ns.s)"),
                ("'ab'", "ns.s | join(ns.s)"),
            )
        ),
        "{% set ns = namespace(s='ab') %}{% for i in range(60) %}"
        "{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}",
        "{% macro m(s) %}{{ s }}{{ s }}{% endmacro %}{% set ns = namespace(s='ab') %}"
        "{% for i in range(60) %}{% set ns.s = m(ns.s) %}{% endfor %}",
        "{{ 'x' * 10**9 }}",
        "{{ 10**9 * 'x' }}",
        "{{ [0] * 10**9 }}",
        "{{ 9 ** 99999 }}",
        "{{ 'x'.center(10**9) }}",
        "{{ 'x' | center(10**9) }}",
        "{{ 'x' | indent(10**9, true) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ '{:>{w}}'.format(1, w=1000000000) }}",
        "{{ '{:>{w}}'.format_map({'w': 1000000000}) }}",
        "{{ messages | tojson(indent=1000000000) }}",
        "{{ 'abc'.translate({97: 'x' * 9999}) }}",
        "{{ messages | batch(1000000000, 'x') | list }}",
        "{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}",
        "{{ range(10**9) | list }}",
        "{{ lipsum(10**6) }}",
        "{{ ('\t' * 20000).expandtabs(9999) }}",
        "{{ ('\t' * 9999999).expandtabs() }}",
        "{{ ('x ' * 400000) | wordwrap(1, wrapstring='y' * 900) }}",
        "{% set s = 'x' * 900000 %}{{ [s, s, s, s, s, s, s, s, s, s] * 99 }}",
        "{% set s = 'x' * 900000 %}{{ ([s] * 999) | string }}",
        "{% set s = 'x' * 900000 %}{{ 'a' ~ {'a': [s] * 999} }}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(40) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
    ]
    for source in cases:
        monkeypatch.setattr(template_budget, "MAX_RENDER_SECONDS", 0.02)
        compiled = SandboxedTemplate(source)
        begin = time.thread_time()
        with pytest.raises((jinja2.TemplateError, OverflowError, TypeError)):
            compiled.render({"messages": CHAT})
        assert time.thread_time() - begin < 2.0


def test_a_long_conversation_is_rendered() -> None:
    chat = [{"role": "user" if i % 2 else "assistant", "content": "word " * 20} for i in range(5000)]
    assert template(ELABORATE).render(chat).count("word") == 100_000


def test_variables_with_a_meaning_cannot_be_set_by_the_client() -> None:
    for name in ["messages", "tools", "chat_template", "add_generation_prompt", "tokenize", "bos_token"]:
        with pytest.raises(BadRequest) as error:
            template(PLAIN).render(CHAT, kwargs={name: "x"})
        assert error.value.param == f"chat_template_kwargs.{name}"


def test_the_tool_template_is_taken_for_requests_with_tools() -> None:
    several = template("plain", tool_use="with tools")
    assert several.render(CHAT) == "plain"
    assert several.render(CHAT, tools=TOOLS) == "with tools"
    assert several.render(CHAT, tools=[]) == "plain"
    assert ChatTemplate({"only": "one"}, SPECIAL).render(CHAT) == "one"


PARTS = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
PARTS_ONLY = (
    "{% for m in messages %}[{{ m.role }}]{% for c in m.content %}"
    "{% if c.type == 'text' %}{{ c.text }}{% else %}<image>{% endif %}{% endfor %}{% endfor %}"
)
EITHER = (
    "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for c in m.content %}{{ c['text'] }}{% endfor %}{% endif %}{% endfor %}"
)
EITHER_FOR_USERS = (
    "{% for m in messages %}[{{ m.role }}]{% if m.content is string or m.role != 'user' %}{{ m.content }}{% else %}"
    "{% for c in m.content %}{{ c['text'] }}{% endfor %}{% endif %}{% endfor %}"
)


def test_content_is_given_in_the_form_that_the_template_takes() -> None:
    cases = [
        (PLAIN, PARTS, "[user]one\ntwo\n>"),
        ("{{ messages[0].content.strip() }}", PARTS, "one\ntwo"),
        ("{{ messages | tojson }}", PARTS, '[{"role": "user", "content": "one\\ntwo"}]'),
        (PARTS_ONLY, PARTS, "[user]onetwo"),
        (PARTS_ONLY, "one", "[user]one"),
        (EITHER, PARTS, "[user]onetwo"),
        (EITHER, "one", "[user]one"),
        (PLAIN, None, "[user]\n>"),
        (PLAIN, [], "[user]\n>"),
    ]
    for source, content, shown in cases:
        assert template(source).render([{"role": "user", "content": content}]) == shown


def test_the_form_of_content_is_found_for_each_role() -> None:
    chat = [{"role": "system", "content": PARTS}, {"role": "user", "content": PARTS}]
    assert template(EITHER_FOR_USERS).render(chat) == "[system]one\ntwo[user]onetwo"


def test_content_that_is_not_text_is_refused_naming_it() -> None:
    cases = [
        ([{"type": "image_url", "image_url": {"url": "x"}}], "messages[0].content[0]"),
        ([PARTS[0], {"type": "text"}], "messages[0].content[1]"),
        (["text"], "messages[0].content[0]"),
        (7, "messages[0].content"),
    ]
    for content, param in cases:
        with pytest.raises(BadRequest) as error:
            template(EITHER).render([{"role": "user", "content": content}])
        assert error.value.param == param


def test_rendering_changes_nothing_in_the_messages() -> None:
    chat = [{"role": "user", "content": [dict(PARTS[0])]}, {"role": "assistant", "content": "a"}]
    before = json.dumps(chat)
    template(PLAIN).render(chat, continue_final_message=True)
    assert json.dumps(chat) == before


def test_no_messages_are_refused() -> None:
    with pytest.raises(BadRequest, match="messages"):
        template(PLAIN).render([])


def test_builtin_templates_show_every_message_once_and_open_the_answer() -> None:
    for name in sorted(BUILTIN_TEMPLATES.keys() - {RERANKER_TEMPLATE}):
        tokenizer = Tokenizer(small.byte_level_bpe(), special=SPECIAL)
        chat_template = load_chat_template(tokenizer, name)
        assert chat_template is not None
        text = chat_template.render(CHAT)
        places = [text.index(message["content"]) for message in CHAT]
        assert places == sorted(places)
        assert all(text.count(message["content"]) == 1 for message in CHAT)
        assert "<s>" not in text
        assert chat_template.render(CHAT, add_generation_prompt=False).startswith(text[: places[-1]])
        assert chat_template.render(
            [*CHAT, {"role": "assistant", "content": "It is"}], continue_final_message=True
        ).endswith("It is")


SYSTEMS = [
    {"role": "system", "content": "First."},
    {"role": "system", "content": [{"type": "text", "text": "Second."}]},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Yes?"},
    {"role": "system", "content": "Third."},
    {"role": "system", "content": "Fourth."},
    {"role": "user", "content": "Who are you?"},
    {"role": "system", "content": "Fifth."},
]
SAID = ("First.", "Second.", "Hi", "Yes?", "Third.", "Fourth.", "Who are you?", "Fifth.")
ONE_SYSTEM = """\
{%- for message in messages %}
    {%- if message.role == 'system' and not loop.first %}{{ raise_exception('the system speaks first') }}{% endif %}
    {%- if not loop.first and message.role == 'user' and messages[loop.index0 - 1].role == 'user' %}
        {{- raise_exception('users alternate') }}
    {%- endif %}
    {{- '[' ~ message.role ~ ']' ~ message.content }}
{%- endfor %}"""
LAST_SYSTEM = """\
{%- set ns = namespace(system='') %}
{%- for message in messages if message.role == 'system' %}{% set ns.system = message.content %}{% endfor %}
{{- ns.system }}
{%- for message in messages if message.role != 'system' -%}
    [{{ message.role }}]{{ message.content }}
{%- endfor %}"""


def test_no_system_message_is_lost_among_several() -> None:
    for source in [*sorted(BUILTIN_TEMPLATES.keys() - {RERANKER_TEMPLATE}), ONE_SYSTEM, LAST_SYSTEM]:
        builtin = BUILTIN_TEMPLATES.get(source)
        template = ChatTemplate({"default": source if builtin is None else builtin.read_text()}, SPECIAL)
        text = template.render(SYSTEMS)
        places = [text.index(said) for said in SAID]
        assert places == sorted(places)
        assert all(text.count(said) == 1 for said in SAID)


def test_system_messages_stay_where_the_template_has_a_place_for_them() -> None:
    template = ChatTemplate({"default": BUILTIN_TEMPLATES["chatml"].read_text()}, SPECIAL)
    assert template.render(SYSTEMS).count("<|im_start|>system") == 5
    one = ChatTemplate({"default": ONE_SYSTEM}, SPECIAL).render(SYSTEMS)
    assert one == "[system]First.\n\nSecond.[user]Hi[assistant]Yes?[user]Third.\n\nFourth.\n\nWho are you?\n\nFifth."
    answered = [*SYSTEMS[:4], SYSTEMS[4], {"role": "assistant", "content": "No."}]
    assert ChatTemplate({"default": ONE_SYSTEM}, SPECIAL).render(answered).endswith("[user]Third.[assistant]No.")
    with pytest.raises(BadRequest, match="alternate"):
        ChatTemplate({"default": ONE_SYSTEM}, SPECIAL).render([SYSTEMS[2], SYSTEMS[2]])


def test_templates_can_be_given_by_file(tmp_path: Path) -> None:
    tokenizer = Tokenizer(small.byte_level_bpe(), special=SPECIAL)
    (tmp_path / "mine.jinja").write_text("{{ messages[0].content }}", encoding="utf-8")
    (tmp_path / "mine.json").write_text(json.dumps({"chat_template": "json {{ messages[0].content }}"}))
    (tmp_path / "bad.json").write_text("{}")
    (tmp_path / "bad.jinja").write_text("{% for %}")
    for name, shown in (("mine.jinja", "Be brief."), ("mine.json", "json Be brief.")):
        loaded = load_chat_template(tokenizer, str(tmp_path / name))
        assert loaded is not None
        assert loaded.render(CHAT) == shown
    for name, reason in (("bad.json", "chat_template"), ("bad.jinja", "bad.jinja.*line 1"), ("none", "chatml")):
        with pytest.raises(ConfigError, match=reason):
            load_chat_template(tokenizer, str(tmp_path / name))
        with pytest.raises(ConfigError, match=reason):
            check_template_option(str(tmp_path / name))
    (tmp_path / "readme.md").write_text('Always {{ "the same" }}')
    with pytest.raises(ConfigError, match=r"readme\.md: it is no template of chats"):
        load_chat_template(tokenizer, str(tmp_path / "readme.md"))
    assert load_chat_template(tokenizer) is None


@pytest.mark.parametrize(("name", "meant"), [("chatmll", "chatml"), ("min.jinja", "mine.jinja")])
def test_a_mistyped_template_is_answered_with_one_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, meant: str
) -> None:
    (tmp_path / "mine.jinja").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        check_template_option(name)
    message = str(caught.value)
    assert f"there is no file {tmp_path / name}, nor a built-in template of that name (chatml, " in message
    assert message.endswith(f"; did you mean {meant!r}?")


def test_exactly_one_bos_whether_or_not_the_template_writes_it() -> None:
    tokenizer = Tokenizer(small.sentencepiece_bpe(), special=SPECIAL)
    bos = tokenizer.token_to_id("<s>")
    for source in ("{{ bos_token }}[INST] {{ messages[0].content }}", "[INST] {{ messages[0].content }}"):
        [ids] = tokenizer.encode_rendered([template(source).render(CHAT)])
        assert ids.tolist().count(bos) == 1
        assert ids[0] == bos
    [ids] = tokenizer.encode_rendered([""])
    assert ids.tolist() == [bos]
    without = Tokenizer(small.byte_level_bpe(), special=SPECIAL)
    [ids] = without.encode_rendered(["Hello"])
    assert ids == without.encode("Hello")
