"""How each format writes the same two calls: :data:`FIRST` for ``get_weather``, then :data:`SECOND` for ``now``."""

from __future__ import annotations

import json

from tests.parsers.parsing import FIRST

_FIRST = json.dumps(FIRST, ensure_ascii=False)
_OBJECT = f'{{"name": "get_weather", "arguments": {_FIRST}}}'
_HERMES = f'<tool_call>\n{_OBJECT}\n</tool_call>\n<tool_call>\n{{"name": "now", "arguments": {{}}}}\n</tool_call>'

TWO_CALLS: dict[str, list[str]] = {
    "hermes": [_HERMES],
    "qwen": [_HERMES],
    "qwen25": [_HERMES],
    "llama3": [
        f'{{"name": "get_weather", "parameters": {_FIRST}}}; {{"name": "now", "parameters": {{}}}}',
        f'<|python_tag|>{{"type": "function", "name": "get_weather", "parameters": {_FIRST}}}\n'
        '<|python_tag|>{"name": "now", "parameters": {}}',
    ],
    "mistral": [
        f'[TOOL_CALLS] [{_OBJECT}, {{"arguments": {{}}, "name": "now"}}]',
        f"[TOOL_CALLS]get_weather[ARGS]{_FIRST}[TOOL_CALLS]now[CALL_ID]aB3456789[ARGS]{{}}",
        f'[TOOL_CALLS]{_OBJECT}[TOOL_CALLS]{{"name": "now"}}',
    ],
}
"""Several where the format has several forms."""

STARTS_ANSWER = ("llama3",)
"""Formats of which the first form stands at the beginning of an answer only."""
