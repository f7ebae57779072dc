"""Tool calls and their results, in templates made like those of the model families."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bough.errors import BadRequest
from bough.tokenization.chat_template import ChatTemplate
from bough.tokenization.tokenizer import SpecialTokens

SPECIAL = SpecialTokens(bos="<s>", eos="</s>")
ARGUMENTS = {"city": "Ürün", "days": 2}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "How's the weather?",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]

# Wants an object, and prints it as JSON.
LIKE_QWEN = """
{%- if tools %}{{- '<|im_start|>system\\n' }}
{%- for tool in tools %}{{- tool | tojson ~ '\\n' }}{%- endfor %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}{{- '<|im_start|>user\\n<r>' ~ m.content ~ '</r>' }}
{%- else %}{{- '<|im_start|>' ~ m.role }}{%- if m.content %}{{- '\\n' ~ m.content }}{%- endif %}
{%- for c in m.tool_calls or [] %}{%- set f = c.function %}
{{- '\\n<tool_call>\\n{"name": "' ~ f.name ~ '", "arguments": ' ~ f.arguments | tojson ~ '}\\n</tool_call>' }}
{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

# Wants JSON text, and no content beside calls.
LIKE_DEEPSEEK = """
{{- bos_token }}{%- for m in messages %}
{%- if m['role'] == 'user' %}{{- '<U>' + m['content'] }}
{%- elif m['role'] == 'assistant' and m['tool_calls'] is defined %}
{%- for c in m['tool_calls'] %}{{- '<call>' + c['function']['name'] + '<sep>' + c['function']['arguments'] }}
{%- endfor %}
{%- elif m['role'] == 'tool' %}{{- '<out>' + m['content'] }}{%- endif %}
{%- if m['role'] == 'assistant' and m['content'] is not none %}{{- '<A>' + m['content'] + eos_token }}{%- endif %}
{%- endfor %}{%- if add_generation_prompt %}{{- '<A><think>\\n' }}{%- endif %}"""

# Prints the whole function, and insists on ids and on whose turn it is.
LIKE_MISTRAL = """
{{- bos_token }}{%- for m in messages %}
{%- if m.role == 'user' %}{{- '[INST] ' + m.content + '[/INST]' }}
{%- elif m.tool_calls is defined %}{{- '[TOOL_CALLS] [' }}{%- for c in m.tool_calls %}
{%- if c.id | length != 9 %}{{- raise_exception('ids have nine characters') }}{%- endif %}
{%- set out = c.function | tojson %}{{- out[:-1] ~ ', "id": "' ~ c.id ~ '"}' }}{{- ', ' if not loop.last else ']' }}
{%- endfor %}{{- eos_token }}
{%- elif m.role == 'tool' %}{{- '[TOOL_RESULTS] {"content": ' ~ m.content ~ ', "call_id": "' ~ m.tool_call_id ~ '"}' }}
{%- elif m.role == 'assistant' %}{{- ' ' + m.content + eos_token }}
{%- else %}{{- raise_exception('Only user and assistant roles') }}{%- endif %}{%- endfor %}"""

# Begins with messages of its own, the second with what the system says and with the tools. Refuses marks of channels in
# what it is given, and looks for them wherever there is a content. Shows thoughts beside calls alone, and only until an
# answer follows; a message has one call, and no text with it.
LIKE_GPT_OSS = """
{%- macro check(m, key) %}{%- for channel in ['analysis', 'final'] %}
{%- if key in m and '<|channel|>' ~ channel ~ '<|message|>' in m[key] %}
{{- raise_exception('marks of channels in ' ~ key) }}{%- endif %}{%- endfor %}{%- endmacro %}
{{- '<|start|>system<|message|>Channels: analysis, commentary, final.<|end|>' }}
{%- set rules, told = '', messages %}
{%- if messages[0].role in ['developer', 'system'] %}{%- set rules, told = messages[0].content, messages[1:] %}
{%- endif %}
{%- if rules or tools %}{{- '<|start|>developer<|message|>' + rules }}
{%- for t in tools or [] %}{%- set f = t.function %}{{- '\\n// ' + f.description + '\\ntype ' + f.name }}
{%- for name, kind in ((f.parameters or {}).properties or {}).items() %}{{- ' ' + name + ': ' ~ kind.type }}
{%- endfor %}{%- endfor %}{{- '<|end|>' }}{%- endif %}
{%- set called = namespace(name=none) %}{%- for m in told %}
{%- if m.role == 'assistant' %}{{- check(m, 'content') }}{{- check(m, 'thinking') }}
{%- if 'tool_calls' in m %}{%- set f = m.tool_calls[0].function %}{%- set later = namespace(answer=false) %}
{%- for n in told[loop.index:] %}{%- if n.role == 'assistant' and 'tool_calls' not in n %}
{%- set later.answer = true %}{%- endif %}{%- endfor %}
{%- if m.content and m.thinking %}{{- raise_exception('either thoughts or text') }}{%- endif %}
{%- if (m.content or m.thinking) and not later.answer %}
{{- '<|start|>assistant<|channel|>analysis<|message|>' + (m.content or m.thinking) + '<|end|>' }}{%- endif %}
{{- '<|start|>assistant to=functions.' + f.name + '<|channel|>commentary json<|message|>' + f.arguments | tojson }}
{{- '<|call|>' }}{%- set called.name = f.name %}
{%- elif loop.last and not add_generation_prompt %}
{%- if 'thinking' in m %}{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{%- endif %}
{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|return|>' }}
{%- else %}{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}
{%- set called.name = none %}{%- endif %}
{%- elif m.role == 'tool' %}{%- if called.name is none %}{{- raise_exception('a result without a call') }}{%- endif %}
{{- '<|start|>functions.' + called.name + ' to=assistant<|channel|>commentary<|message|>' + m.content | tojson }}
{{- '<|end|>' }}
{%- elif m.role == 'user' %}{{- '<|start|>user<|message|>' + m.content + '<|end|>' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}"""

# Goes through the members of an object.
LIKE_GLM = """
{%- for m in messages %}{{- '<|' ~ m.role ~ '|>' }}{%- if m.content is string %}{{- m.content }}{%- else %}
{%- for p in m.content or [] %}{{- p.text }}{%- endfor %}{%- endif %}
{%- for c in m.tool_calls or [] %}{{- '<tool_call>' ~ c.function.name }}
{%- for k, v in c.function.arguments.items() %}
{{- '<arg_key>' ~ k ~ '</arg_key><arg_value>' ~ (v if v is string else v | tojson) ~ '</arg_value>' }}
{%- endfor %}{{- '</tool_call>' }}{%- endfor %}{%- endfor %}"""

# Takes either.
LIKE_KIMI = """
{%- for m in messages %}{{- '<|im_' ~ m.role ~ '|>' }}{%- if m.content is not none %}{{- m.content }}{%- endif %}
{%- for c in m.tool_calls or [] %}{{- '<|call|>' ~ c.id ~ '<|args|>' }}
{%- if c.function.arguments is string %}{{- c.function.arguments }}{%- else %}{{- c.function.arguments | tojson }}
{%- endif %}{%- endfor %}{%- endfor %}"""

# Looks into the content of every message of the assistant, and takes one call at a time.
LIKE_LLAMA = """
{{- bos_token }}{%- if tools is not none and tools %}{%- for t in tools %}{{- t | tojson(indent=4) }}{%- endfor %}
{%- endif %}{%- for m in messages %}{%- if 'tool_calls' in m %}
{%- if m.tool_calls | length != 1 %}{{- raise_exception('This model only supports single tool-calls at once!') }}
{%- endif %}{%- set f = m.tool_calls[0].function %}
{{- '{"name": "' + f.name + '", "parameters": ' }}{{- f.arguments | tojson }}{{- '}<|eot_id|>' }}
{%- elif m.role == 'tool' %}{{- 'ipython\\n' }}{{- m.content | tojson if m.content is mapping else m.content }}
{%- else %}{{- m.role + '\\n' + m['content'] | trim + '<|eot_id|>' }}{%- endif %}{%- endfor %}
{%- if '</think>' in messages[-1].content %}{{- '!' }}{%- endif %}"""

# Marks what is learned from; says in the system's turn whether to think.
LIKE_SMOLLM = """
{%- set mode = '/no_think' if enable_thinking is defined and not enable_thinking else '/think' %}
{{- '<|im_start|>system\\nReasoning Mode: ' ~ mode ~ '\\n' }}{%- for t in tools or [] %}{{- t.function | tojson }}
{%- endfor %}{{- '<|im_end|>\\n' }}{%- for m in messages %}{{- '<|im_start|>' ~ m.role ~ '\\n' }}
{%- if m.role == 'assistant' %}{%- generation %}{{- m.content or '' }}{%- for c in m.tool_calls or [] %}
{{- '<tool_call>' ~ c.function.name ~ c.function.arguments | tojson ~ '</tool_call>' }}{%- endfor %}{{- '<|im_end|>' }}
{%- endgeneration %}{%- else %}{{- m.content ~ '<|im_end|>\\n' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

# Knows no calls; a text ends with its own token.
LIKE_PHI = """
{%- for m in messages %}
{%- if m['role'] == 'system' and 'tools' in m and m['tools'] is not none %}
{{- '<|system|>' + m['content'] + '<|tool|>' + m['tools'] + '<|/tool|>' + '<|end|>' }}
{%- else %}{{- '<|' + m['role'] + '|>' + (m['content'] or '') + '<|end|>' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- else %}{{- eos_token }}{%- endif %}"""

# Wants alternating turns, and prints calls one by one.
LIKE_MINISTRAL = """
{{- bos_token }}{%- if messages[0].role == 'system' %}{{- '[SYSTEM_PROMPT]' ~ messages[0].content }}{%- endif %}
{%- if tools %}{{- '[AVAILABLE_TOOLS]' ~ (tools | tojson) ~ '[/AVAILABLE_TOOLS]' }}{%- endif %}
{%- for m in messages %}{%- if m.role == 'user' %}{{- '[INST]' }}{%- if m.content is string %}{{- m.content }}
{%- else %}{%- for p in m.content %}{{- p.text if p.type == 'text' else '[IMG]' }}{%- endfor %}{%- endif %}
{{- '[/INST]' }}
{%- elif m.role == 'tool' %}{{- '[TOOL_RESULTS]' ~ m.content | string ~ '[/TOOL_RESULTS]' }}
{%- elif m.role == 'assistant' %}{{- m.content or '' }}{%- for c in m.tool_calls or [] %}{%- set f = c.function %}
{{- '[TOOL_CALLS]' ~ f.name ~ '[ARGS]' ~ (f.arguments if f.arguments is string else f.arguments | tojson) }}
{%- endfor %}{{- eos_token }}{%- endif %}{%- endfor %}"""

# Calls the assistant "model", and puts what the system says, its first part, in front of what the user says.
LIKE_GEMMA = """
{{- bos_token }}{%- set told, before = messages, '' %}
{%- if messages[0].role == 'system' %}{%- set system = messages[0].content %}
{%- set told, before = messages[1:], (system if system is string else system[0].text) + '\n\n' %}{%- endif %}
{%- for m in told %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('roles must alternate') }}{%- endif %}
{{- '<start_of_turn>' ~ ('model' if m.role == 'assistant' else m.role) ~ '\n' ~ (before if loop.first else '') }}
{%- if m.content is string %}{{- m.content | trim }}{%- else %}{%- for part in m.content %}
{{- '<start_of_image>' if part.type == 'image' else part.text | trim }}{%- endfor %}{%- endif %}
{{- '<end_of_turn>\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<start_of_turn>model\n' }}{%- endif %}"""

FAMILIES = {
    "qwen": (LIKE_QWEN, ARGUMENTS, None),
    "deepseek": (LIKE_DEEPSEEK, json.dumps(ARGUMENTS, ensure_ascii=False), None),
    "mistral": (LIKE_MISTRAL, ARGUMENTS, None),
    "glm": (LIKE_GLM, ARGUMENTS, ""),
    "kimi": (LIKE_KIMI, ARGUMENTS, None),
    "llama": (LIKE_LLAMA, ARGUMENTS, None),
    "ministral": (LIKE_MINISTRAL, ARGUMENTS, None),
    "phi": (LIKE_PHI, ARGUMENTS, None),
    "smollm": (LIKE_SMOLLM, ARGUMENTS, None),
}


def conversation(arguments: Any, content: str | None) -> list[dict[str, Any]]:
    call = {"id": "abcdef123", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    return [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "content": '{"sky": "blue"}', "tool_call_id": "abcdef123", "name": "get_weather"},
        {"role": "assistant", "content": "Blue."},
        {"role": "user", "content": "Thanks"},
    ]


def test_calls_reach_the_template_in_the_form_that_it_takes() -> None:
    for family in FAMILIES:
        for given in [ARGUMENTS, json.dumps(ARGUMENTS, ensure_ascii=False)]:
            for content in [None, "", "Let me see."]:
                from transformers.utils.chat_template_utils import render_jinja_template

                source, arguments, empty = FAMILIES[family]
                [expected], _ = render_jinja_template(
                    [conversation(arguments, empty if content is None else content)],
                    TOOLS,
                    chat_template=source,
                    add_generation_prompt=True,
                    bos_token="<s>",
                    eos_token="</s>",
                )
                made = ChatTemplate({"default": source}, SPECIAL)
                assert made.render(conversation(given, content), tools=TOOLS) == expected
                assert "'city'" not in expected
                assert '\\"city' not in expected


def test_arguments_that_are_no_json_are_shown_as_they_are() -> None:
    made = ChatTemplate({"default": LIKE_KIMI}, SPECIAL)
    assert made.render(conversation('{"city": "Ü', None)).count('{"city": "Ü') == 1
    with pytest.raises(BadRequest):
        ChatTemplate({"default": LIKE_GLM}, SPECIAL).render(conversation('{"city": "Ü', None))


def test_what_a_template_says_about_calls_is_told_to_the_client() -> None:
    cases = [
        (LIKE_MISTRAL, {"id": "call_1"}, "ids have nine characters"),
        (LIKE_LLAMA, {"twice": True}, "This model only supports single tool-calls at once!"),
    ]
    for source, change, message in cases:
        chat = conversation(ARGUMENTS, None)
        [call] = chat[1]["tool_calls"]
        chat[1]["tool_calls"] = [call, call] if change.pop("twice", False) else [{**call, **change}]
        with pytest.raises(BadRequest) as error:
            ChatTemplate({"default": source}, SPECIAL).render(chat)
        assert error.value.message == message


def test_rendering_calls_changes_nothing_in_the_messages() -> None:
    chat = conversation(json.dumps(ARGUMENTS), None)
    before = json.dumps(chat)
    for source, _, _ in FAMILIES.values():
        ChatTemplate({"default": source}, SPECIAL).render(chat)
    assert json.dumps(chat) == before


def test_what_the_system_says_stands_before_the_first_question_where_a_template_has_it_so() -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    made = ChatTemplate({"default": LIKE_GEMMA}, SPECIAL)
    parts = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be polite."}]
    turns = [
        {"role": "user", "content": " Weather? "},
        {"role": "assistant", "content": "Blue."},
        {"role": "user", "content": [{"type": "text", "text": "Thanks"}, {"type": "text", "text": "!"}]},
    ]
    for system in ("Be brief.", parts[:1], None):
        messages = turns if system is None else [{"role": "system", "content": system}, *turns]
        [expected], _ = render_jinja_template(
            conversations=[messages], chat_template=LIKE_GEMMA, add_generation_prompt=True, bos_token="<s>"
        )
        assert made.render(messages) == expected
        assert expected.startswith("<s><start_of_turn>user\n" + ("" if system is None else "Be brief.\n\nW"))
    assert "Be brief.\nBe polite.\n\nWeather?" in made.render([{"role": "system", "content": parts}, *turns])


def test_thoughts_beside_calls_that_may_have_no_text_take_it_in() -> None:
    template = ChatTemplate({"": LIKE_GPT_OSS}, SPECIAL)
    assert not template.takes_several_calls, "it shows the first"
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": json.dumps(ARGUMENTS)}}
    told = {"role": "assistant", "tool_calls": [call], "reasoning_content": "Hm."}
    question, result = {"role": "user", "content": "Hi"}, {"role": "tool", "content": "18", "tool_call_id": "call_1"}
    for content, thoughts in (("I look.", "Hm.\n\nI look."), ("", "Hm."), (None, "Hm.")):
        shown = template.render([question, {**told, "content": content}, result])
        assert shown.endswith(
            "<|start|>user<|message|>Hi<|end|>"
            f"<|start|>assistant<|channel|>analysis<|message|>{thoughts}<|end|>"
            "<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>"
            '{"city": "Ürün", "days": 2}<|call|>'
            '<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>"18"<|end|>'
            "<|start|>assistant"
        )
    answer = {"role": "assistant", "content": "18", "reasoning_content": "Hm."}
    for messages in ([question, answer, question], [question, {**told, "content": None}, result, answer, question]):
        assert "Hm." not in template.render(messages), "they have led to an answer"
    for role in ("system", "developer"):
        shown = template.render([{"role": role, "content": "Be brief."}, question], tools=TOOLS)
        assert "<|start|>developer<|message|>Be brief.\n// How's the weather?\ntype get_weather city: string" in shown
