"""Conversations in the form that a model's chat template has a place for.

Templates differ in what they know: tools, tool messages, the role ``developer``. What one does not know would be left
out without a word, so it is told in the words that the template does know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bough.entrypoints.chat.job import Message
from bough.parsers.base import ToolSpec
from bough.tokenization.chat_template import call_arguments

_INTRODUCTION = """\
You can call functions. These are their descriptions, one JSON object a line:
<tools>
{tools}
</tools>
To call a function, write a JSON object with its name and its arguments between these marks:
<tool_call>
{{"name": "the function's name", "arguments": {{"parameter": "value"}}}}
</tool_call>"""


_SYSTEM_ROLES = ("developer", "root", "latest_reminder")
"""Roles that speak for the application, as ``system`` does."""


class TemplateFit:
    """Adapts conversations to a template.

    Args:
        sources: the template, Jinja by name.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        text = "\n".join(sources.values())
        self._knows_tools = "tools" in text
        self._knows_calls = "tool_calls" in text
        self._knows_call_ids = "tool_call_id" in text
        self._unknown_roles = frozenset(role for role in _SYSTEM_ROLES if not _names(text, role))

    def apply(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], where: str
    ) -> tuple[list[Message], Sequence[Mapping[str, Any]] | None]:
        """Messages and tools to render.

        Args:
            messages: the conversation.
            tools: what the model may call, as :func:`tool_description` has it.
            where: what the client called the messages, for errors.

        Returns:
            The messages, and the tools as the template wants them; ``None`` if there are none, or if the messages
            speak of them already.
        """
        if self._knows_call_ids:
            messages = _with_call_ids(messages)
        fitted = [self._fit(message, f"{where}[{index}]") for index, message in enumerate(messages)]
        if not tools:
            return fitted, None
        if self._knows_tools:
            return fitted, tools
        lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        return _with_system_text(fitted, _INTRODUCTION.format(tools=lines)), None

    def _fit(self, message: Message, where: str) -> Message:
        role = message.get("role")
        if role in self._unknown_roles:
            return {**message, "role": "system"}
        if self._knows_calls:
            return message
        if role == "tool":
            return {"role": "user", "content": f"<tool_response>\n{message_text(message)}\n</tool_response>"}
        calls = message.get("tool_calls")
        if not calls:
            return message
        written = [f"<tool_call>\n{json.dumps(_call(each, where), ensure_ascii=False)}\n</tool_call>" for each in calls]
        rest = {key: value for key, value in message.items() if key != "tool_calls"}
        text = message_text(message)
        return {**rest, "content": "\n".join([text, *written] if text else written)}


def _names(template: str, role: str) -> bool:
    return f"'{role}'" in template or f'"{role}"' in template


def tool_description(tool: ToolSpec) -> dict[str, Any]:
    """A tool as chat templates expect it, which is as it is in OpenAI's chat API."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", "function": function}


def _with_call_ids(messages: Sequence[Message]) -> list[Message]:
    """Messages in which results say which call they are of, as far as that can be told.

    Those of clients that send no ids, as Ollama's do, are of the first of the assistant's last calls, with the name of
    the result if that is the name of one, that has no result yet.
    """
    told: list[Message] = []
    names: dict[str, str] = {}  # of the calls without a result, by their ids
    for message in messages:
        told.append(message)
        if message.get("role") != "tool":
            calls = message.get("tool_calls") or ()
            names = {call["id"]: call["function"]["name"] for call in calls if "id" in call}
            if len(names) < len(calls):  # nor are they in order then
                names = {}
        elif "tool_call_id" in message:
            names.pop(message["tool_call_id"], None)
        elif names:
            first = next(iter(names))
            call_id = next((each for each, name in names.items() if name == message.get("name")), first)
            del names[call_id]
            told[-1] = {**message, "tool_call_id": call_id}
    return told


def _with_system_text(messages: list[Message], text: str) -> list[Message]:
    if messages and messages[0].get("role") == "system":
        first = messages[0]
        return [{**first, "content": f"{message_text(first)}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def message_text(message: Message) -> str:
    """All text of a message's content."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content)
    return content or ""


def _call(call: Mapping[str, Any], where: str) -> dict[str, Any]:
    function = call["function"]
    return {"name": function["name"], "arguments": call_arguments(function["arguments"], where)}
