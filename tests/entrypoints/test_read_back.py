"""A format of calls is claimed only if it reads what the template shows of a call."""

from __future__ import annotations

from bough.entrypoints.chat.read_back import served_dialects
from bough.parsers.tool_formats import TOOL_FORMATS
from bough.tokenization.chat_template import ChatTemplate
from bough.tokenization.tokenizer import SpecialTokens
from tests.tokenization.test_template_families import LIKE_KIMI, LIKE_LLAMA, LIKE_MISTRAL, LIKE_QWEN

MESSAGES = """{%- for m in messages %}{{- '<|im_start|>' ~ m.role ~ '\\n' ~ (m.content or '') }}
{%- for c in m.tool_calls or [] %}CALL{%- endfor %}{{- '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
TAGGED = """{{- 'BEGIN<function=' ~ c.function.name ~ '>\\n' }}{%- for k, v in c.function.arguments.items() %}
{{- '<parameter=' ~ k ~ '>\\n' ~ v ~ '\\n</parameter>\\n' }}{%- endfor %}{{- '</function>END' }}"""
OBJECT = """{{- 'BEGIN{"name": "' ~ c.function.name ~ '", "arguments": ' ~ c.function.arguments | tojson ~ '}END' }}"""
NAMED = """{{- 'BEGIN' ~ c.function.name ~ '>' ~ c.function.arguments | tojson ~ 'END' }}"""


def made(call: str, begin: str, end: str, more: str = "") -> str:
    return MESSAGES.replace("CALL", call.replace("BEGIN", begin).replace("END", end)) + more


KNOWN = {
    "qwen25": LIKE_QWEN,
    "llama3": LIKE_LLAMA + "{# <|python_tag|> #}",
    "mistral": LIKE_MISTRAL,
    "qwen3_coder": made(TAGGED, "<tool_call>\\n", "\\n</tool_call>"),
    "seed_oss": made(TAGGED, "<seed:tool_call>\\n", "\\n</seed:tool_call>"),
    "hermes": made(OBJECT, "<tool_call>\\n", "\\n</tool_call>").replace("im_start", "start").replace("im_end", "end"),
    "kimi_k2": LIKE_KIMI.replace("<|call|>", "<|tool_calls_section_begin|><|tool_call_begin|>").replace(
        "<|args|>", "<|tool_call_argument_begin|>"
    ),
}
UNKNOWN = {
    "a list between tags of another name": made(OBJECT, "<tool_calls>[", "]</tool_calls>", "{# <tool_call> #}"),
    "a function's tag around an object": made(NAMED, "<function=", "</function>", "{# <|python_tag|> #}"),
    "tags around known ones": made(TAGGED, "<other:tool_call>\\n", "\\n</other:tool_call>"),
    "an object of other members": made(OBJECT.replace("arguments", "args", 1), "<tool_call>", "</tool_call>"),
    "an end of its own": made(OBJECT, "<tool_call>", "<|tool_call|></tool_end>"),
}


def formats(source: str, asked: str | None = None) -> list[str | None]:
    template = ChatTemplate({"default": source}, SpecialTokens(bos="<s>", eos="</s>"))
    return [
        None if each.tool_format is None else each.tool_format.name
        for each in served_dialects(template, tool_call_parser=asked, reasoning_parser=None)
    ]


def test_a_format_that_reads_back_is_claimed() -> None:
    for name in KNOWN:
        assert formats(KNOWN[name]) == [name, name]


def test_a_format_that_does_not_is_not() -> None:
    for name in UNKNOWN:
        assert formats(UNKNOWN[name]) == [None, "hermes"]
        for asked in TOOL_FORMATS:
            assert formats(UNKNOWN[name], asked) == [asked, asked], "what is asked for is not doubted"


def test_templates_that_show_no_calls_or_fail_on_them_are_taken_by_their_words() -> None:
    for call in ("", "{{ raise_exception('no') }}", "{{ 1 / 0 }}", "{{ c.id }}"):
        assert formats(MESSAGES.replace("CALL", call) + "{# <tool_call> #}") == ["qwen25", "qwen25"]
