"""Messages of a conversation: what clients send a little differently, and what they may not leave out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.http.fields import drop_extras
from bough.errors import BadRequest

MAX_TOOL_CALLS = 1024
"""Most tool calls of one message."""


class TextPart(msgspec.Struct, forbid_unknown_fields=True):
    """A part of a message's content."""

    type: Literal["text"]
    text: str


class CalledFunction(msgspec.Struct, forbid_unknown_fields=True):
    """The function of a tool call."""

    name: str
    arguments: str | dict[str, Any] | None = None


class ToolCall(msgspec.Struct, forbid_unknown_fields=True):
    """A tool call of an earlier answer."""

    function: CalledFunction
    id: str | None = None
    type: Literal["function"] = "function"
    index: int | None = None


class ChatMessage(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    reasoning_content: str | None = None
    tool_calls: Annotated[list[ToolCall], Meta(max_length=MAX_TOOL_CALLS)] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    audio: None = None
    function_call: None = None
    annotations: Annotated[list[Any], Meta(max_length=0)] | None = None
    provider_specific_fields: Annotated[Any, Meta(description="LiteLLM's notes on an answer; without effect.")] = None

    def text(self) -> str:
        """All text of the content."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


def tidy_messages(value: Any, unknown: dict[str, None] | None) -> Any:
    """The decoded value of ``messages`` with roles in lower case and without members that are null.

    Args:
        value: anything; what is no message stays as it is.
        unknown: where names of unknown members are collected, which are dropped; ``None`` to keep them.
    """
    if not isinstance(value, list):
        return value
    return [_tidy_message(message, unknown) for message in value]


def _tidy_message(message: Any, unknown: dict[str, None] | None) -> Any:
    if not isinstance(message, dict):
        return message
    if "reasoning" in message:  # vLLM's newer name
        message = dict(message)
        message.setdefault("reasoning_content", message.pop("reasoning"))
    tidy = drop_extras(message, ChatMessage, "messages", unknown)
    role = tidy.get("role")
    if isinstance(role, str):
        tidy["role"] = role.lower()
    content = tidy.get("content")
    if isinstance(content, list):
        tidy["content"] = [drop_extras(part, TextPart, "messages.content", unknown) for part in content]
    calls = tidy.get("tool_calls")
    if isinstance(calls, list):
        tidy["tool_calls"] = [_tidy_call(call, unknown) for call in calls]
    return tidy


def _tidy_call(call: Any, unknown: dict[str, None] | None) -> Any:
    tidy = drop_extras(call, ToolCall, "messages.tool_calls", unknown)
    if isinstance(tidy, dict) and "function" in tidy:
        tidy["function"] = drop_extras(tidy["function"], CalledFunction, "messages.tool_calls.function", unknown)
    return tidy


def require_content(messages: Sequence[ChatMessage]) -> None:
    """Raise :class:`BadRequest` if a message has no content that is not the assistant's."""
    for index, message in enumerate(messages):
        if message.content is None and message.role != "assistant":
            param = f"messages[{index}].content"
            raise BadRequest(
                f"{param} is required for the role {message.role}", param=param, code="missing_required_parameter"
            )
        if message.tool_calls and message.role != "assistant":
            param = f"messages[{index}].tool_calls"
            raise BadRequest(f"{param}: only the assistant calls tools", param=param)


def to_template(message: ChatMessage) -> dict[str, Any]:
    """A message as chat templates expect it: a plain object without what is absent."""
    content: Any = message.content
    if isinstance(content, list):
        content = [{"type": "text", "text": part.text} for part in content]
    if content is None and message.refusal is not None:
        content = message.refusal
    values: dict[str, Any] = {"role": "tool" if message.role == "function" else message.role, "content": content}
    if message.name is not None:
        values["name"] = message.name
    if message.reasoning_content is not None:
        values["reasoning_content"] = message.reasoning_content
    if message.tool_calls:
        values["tool_calls"] = [
            template_call(call.id, call.function.name, call.function.arguments) for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        values["tool_call_id"] = message.tool_call_id
    return values


def template_call(call_id: str | None, name: str, arguments: str | dict[str, Any] | None) -> dict[str, Any]:
    """An earlier tool call as chat templates expect it: with the arguments as an object.

    Arguments that are not the JSON of an object stay text: a model may have written them so.
    """
    if isinstance(arguments, str):
        try:
            decoded = msgspec.json.decode(arguments) if arguments.strip() else {}
        except (msgspec.MsgspecError, RecursionError, ValueError):
            decoded = None
        if isinstance(decoded, dict):
            arguments = decoded
    call: dict[str, Any] = {
        "type": "function",
        "function": {"name": name, "arguments": {} if arguments is None else arguments},
    }
    if call_id is not None:
        call["id"] = call_id
    return call
