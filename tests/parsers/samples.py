"""How each format writes the same two calls: :data:`FIRST` for ``get_weather``, then :data:`SECOND` for ``now``."""

from __future__ import annotations

import json

from tests.parsers.parsing import FIRST

_EXTRA, _TAGS = (json.dumps(FIRST[key], ensure_ascii=False) for key in ("extra", "tags"))

_FIRST = json.dumps(FIRST, ensure_ascii=False)
_OBJECT = f'{{"name": "get_weather", "arguments": {_FIRST}}}'
_HERMES = f'<tool_call>\n{_OBJECT}\n</tool_call>\n<tool_call>\n{{"name": "now", "arguments": {{}}}}\n</tool_call>'

_QWEN_CODER = f"""<tool_call>
<function=get_weather>
<parameter=city>
São "Paulo"
</parameter>
<parameter=days>
3
</parameter>
<parameter=exact>
True
</parameter>
<parameter=extra>
{_EXTRA}
</parameter>
<parameter=tags>
{_TAGS}
</parameter>
</function>
</tool_call>
<tool_call>
<function=now>
</function>
</tool_call>"""
_GLM = f"""<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>São "Paulo"</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
<arg_key>exact</arg_key>
<arg_value>true</arg_value>
<arg_key>extra</arg_key>
<arg_value>{_EXTRA}</arg_value>
<arg_key>tags</arg_key>
<arg_value>{_TAGS}</arg_value>
</tool_call>
<tool_call>now
</tool_call>"""
_PYTHON = (
    r"""[get_weather(city="São \"Paulo\"", days=3, exact=True, extra={"a": None, 'b': [1.5, '}']}, """
    r"""tags=("x", '\n')), now()]"""
)
_DEEPSEEK = (
    f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{_FIRST}\n```<｜tool▁call▁end｜>\n"
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
_DEEPSEEK_31 = (
    f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{_FIRST}<｜tool▁call▁end｜>"
    "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
_KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    f"{_FIRST}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    "<|tool_calls_section_end|>"
)
_HARMONY = (
    f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{_FIRST}<|call|>"
    "<|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}<|call|>"
)

TWO_CALLS: dict[str, list[str]] = {
    "deepseekv3": [_DEEPSEEK, _DEEPSEEK.removeprefix("<｜tool▁calls▁begin｜>")],
    "deepseekv31": [_DEEPSEEK_31],
    "glm": [_GLM],
    "glm45": [_GLM],
    "glm47": [_GLM, _GLM.replace("\n", "")],
    "gpt-oss": [_HARMONY],
    "hermes": [_HERMES],
    "kimi_k2": [_KIMI, _KIMI.replace("<|tool_call_begin|>", "\n<|tool_call_begin|>\n")],
    "phi4_mini": [
        f'<|tool_call|>[{_OBJECT}, {{"name": "now", "arguments": {{}}}}]<|/tool_call|>',
        f'functools[{_OBJECT}, {{"name": "now"}}]',
        f'<|tool_call|>[{{"type": "function", "name": "get_weather", "parameters": {_FIRST}}}]<|/tool_call|>\n'
        '<|tool_call|>[{"name": "now"}]<|/tool_call|>',
    ],
    "pythonic": [_PYTHON],
    "qwen": [_HERMES],
    "qwen25": [_HERMES],
    "qwen3_coder": [_QWEN_CODER, _QWEN_CODER.replace("<tool_call>\n", "").replace("\n</tool_call>", "")],
    "seed_oss": [_QWEN_CODER.replace("tool_call>", "seed:tool_call>")],
    "llama3": [
        f'{{"name": "get_weather", "parameters": {_FIRST}}}; {{"name": "now", "parameters": {{}}}}',
        f'<|python_tag|>{{"type": "function", "name": "get_weather", "parameters": {_FIRST}}}\n'
        '<|python_tag|>{"name": "now", "parameters": {}}',
    ],
    "llama4": [_PYTHON, f"<|python_start|>{_PYTHON}<|python_end|>"],
    "mistral": [
        f'[TOOL_CALLS] [{_OBJECT}, {{"arguments": {{}}, "name": "now"}}]',
        f"[TOOL_CALLS]get_weather[ARGS]{_FIRST}[TOOL_CALLS]now[CALL_ID]aB3456789[ARGS]{{}}",
        f'[TOOL_CALLS]{_OBJECT}[TOOL_CALLS]{{"name": "now"}}',
    ],
}
"""Several where the format has several forms."""

STARTS_ANSWER = ("llama3", "llama4", "pythonic")
"""Formats of which the first form stands at the beginning of an answer only."""

KINDS = [name for name in TWO_CALLS if name not in ("glm", "pythonic", "qwen", "qwen25")]
"""Names of formats without those that are other names of one."""
