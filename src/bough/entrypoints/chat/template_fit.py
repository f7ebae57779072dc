"""Conversations in the form that a model's chat template has a place for.

Templates differ in what they know: tools, tool messages, the role ``developer``. What one does not know would be left
out without a word, so it is told in the words that the template does know.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from bough.entrypoints.chat.job import Message
from bough.parsers.base import Content, Reasoning, ToolSpec
from bough.parsers.dialect import Dialect
from bough.parsers.harmony import HarmonyFormat
from bough.parsers.structural import filled
from bough.tokenization.chat_template import ChatTemplate, call_arguments
from bough.tokenization.template_tools import Place

_INTRODUCTION = """\
You can call functions. These are their descriptions, one JSON object a line:
<tools>
{tools}
</tools>
To call a function, write this, with its name and a JSON object of its arguments:
{example}"""


_SYSTEM_OF_TOOLS = "You are a helpful assistant with some tools."
"""Text of the system's message beside functions that are described there, where a conversation has none: Phi-4-mini was
trained with it."""

_SYSTEM_ROLES = ("developer", "root", "latest_reminder")
"""Roles that speak for the application, as ``system`` does."""


class TemplateFit:
    """Adapts conversations to a template.

    Args:
        dialect: how answers are read, where there are tools; what the template is told of calls is in this form.
    """

    def __init__(self, template: ChatTemplate | None, dialect: Dialect) -> None:
        text = "" if template is None else "\n".join(template.sources.values())
        self._tools_place = None if template is None else template.tools_place
        self._knows_calls = "tool_calls" in text
        self._knows_call_ids = "tool_call_id" in text
        self._unknown_roles = frozenset(role for role in _SYSTEM_ROLES if not _names(text, role))
        self._shows_system = template is None or template.shows_system
        self._takes_several_calls = template is None or template.takes_several_calls
        self._insists_on_turns = template is not None and template.insists_on_turns
        self._dialect = dialect

    def apply(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], where: str
    ) -> tuple[list[Message], Sequence[Mapping[str, Any]] | None]:
        """Messages and tools to render.

        Args:
            tools: what the model may call, as :func:`tool_description` has it.
            where: what the client called the messages, for errors.

        Returns:
            The messages, and the tools as the template wants them; ``None`` if there are none, or if the messages
            speak of them already.
        """
        if self._dialect.on_channels:
            # The last message may be one that the model is to continue.
            messages = [*(self._without_channels(message) for message in messages[:-1]), *messages[-1:]]
        if self._knows_call_ids or not self._takes_several_calls:
            messages = _with_call_ids(messages)
        if not self._knows_calls:
            fitted = self._without_calls(messages, where)
        else:
            fitted = list(messages if self._takes_several_calls else _one_call_each(messages))
        fitted = [self._with_known_role(message) for message in fitted]
        if not tools:
            return fitted, None
        if self._tools_place is Place.SYSTEM:
            return _with_tools_in_system(fitted, tools), None
        if self._tools_place is not None:
            return fitted, tools
        lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        text = _INTRODUCTION.format(tools=lines, example=self._written("the_function", '{"parameter": "value"}'))
        return _with_text_first(fitted, text, "system" if self._shows_system else "user"), None

    def _with_known_role(self, message: Message) -> Message:
        return {**message, "role": "system"} if message.get("role") in self._unknown_roles else message

    def _without_channels(self, message: Message) -> Message:
        """An answer whose thoughts the client asked to have in its text: templates want them apart."""
        content = message.get("content")
        if message.get("role") != "assistant" or not isinstance(content, str):
            return message
        if not any(marker in content for marker in HarmonyFormat.triggers):
            return message
        parser = self._dialect.parser((), parse_tools=False, separate_reasoning=True, thinking=False)
        assert parser is not None, "channels are always read"
        events = [*parser.feed(content), *chain.from_iterable(parser.finish())]
        thoughts = "".join(event.text for event in events if isinstance(event, Reasoning))
        told = {**message, "content": "".join(event.text for event in events if isinstance(event, Content))}
        return told if message.get("reasoning_content") or not thoughts else {**told, "reasoning_content": thoughts}

    def _without_calls(self, messages: Sequence[Message], where: str) -> list[Message]:
        """The messages with calls and results as text; results, and what is said then, are one turn if need be."""
        told: list[Message] = []
        follows_result = False
        for index, message in enumerate(messages):
            role, text = message.get("role"), message_text(message)
            is_result = role == "tool"
            if is_result:
                text = f"<tool_response>\n{text}\n</tool_response>"
            if self._insists_on_turns and follows_result and role in ("tool", "user"):
                told[-1] = {"role": "user", "content": f"{told[-1]['content']}\n{text}"}
            elif is_result:
                told.append({"role": "user", "content": text})
            elif calls := message.get("tool_calls"):
                written = [self._written(*_call(call, f"{where}[{index}]")) for call in calls]
                rest = {key: value for key, value in message.items() if key != "tool_calls"}
                told.append({**rest, "content": "\n".join([text, *written] if text else written)})
            else:
                told.append(message)
            follows_result = is_result
        return told

    def _written(self, name: str, arguments: str) -> str:
        """A call as the model is to write it."""
        written = None
        if self._dialect.tool_format is not None:
            tool = ToolSpec(name, None, {"type": "object"}, False)
            written = filled(self._dialect.tool_format.constraint([tool], parallel=False), arguments)
        return written or f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n</tool_call>'


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


def _one_call_each(messages: Sequence[Message]) -> Iterator[Message]:
    """Messages of which none has more than one call; each call has its result behind it, if there is one.

    Text and thoughts stay with the first.
    """
    waiting = deque(messages)
    while waiting:
        message = waiting.popleft()
        calls = message.get("tool_calls") or ()
        if len(calls) < 2:
            yield message
            continue
        results: list[Message] = []
        while waiting and waiting[0].get("role") == "tool":
            results.append(waiting.popleft())
        for call in calls:
            yield {**message, "tool_calls": [call]}
            message = {**{key: value for key, value in message.items() if key != "reasoning_content"}, "content": ""}
            result = next((each for each in results if each.get("tool_call_id") == call.get("id")), None)
            if result is not None:
                results.remove(result)
                yield result
        yield from results


def _with_text_first(messages: list[Message], text: str, role: str) -> list[Message]:
    """The messages with a text in the first one, if that has the role: behind what the system says, before a user."""
    if not messages or messages[0].get("role") != role:
        return [{"role": role, "content": text}, *messages]
    said = message_text(messages[0])
    together = f"{said}\n\n{text}" if role == "system" else f"{text}\n\n{said}"
    return [{**messages[0], "content": together}, *messages[1:]]


def _with_tools_in_system(messages: list[Message], tools: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return the messages, the first the system's, with the descriptions of functions as JSON text of a list."""
    described = json.dumps([tool["function"] for tool in tools], ensure_ascii=False)
    if messages and messages[0].get("role") == "system":
        first, *others = messages
    else:
        first, others = {"role": "system", "content": _SYSTEM_OF_TOOLS}, messages
    return [{**first, "tools": described}, *others]


def message_text(message: Message) -> str:
    """All text of a message's content."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content)
    return content or ""


def _call(call: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Name and arguments of a call, these as JSON."""
    function = call["function"]
    return function["name"], json.dumps(call_arguments(function["arguments"], where), ensure_ascii=False)
