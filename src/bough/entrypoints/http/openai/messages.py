"""Messages of a conversation: what clients send a little differently, and what they may not leave out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.http.fields import drop_extras
from bough.errors import BadRequest

_TOOL_ROLES = frozenset({"tool", "function"})


class TextPart(msgspec.Struct, forbid_unknown_fields=True):
    """A part of a message's content."""

    type: Literal["text"]
    text: str


class ChatMessage(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    reasoning_content: str | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    tool_calls: Annotated[list[Any], Meta(max_length=0)] | None = None
    annotations: Annotated[list[Any], Meta(max_length=0)] | None = None


def tidy_messages(value: Any, unknown: dict[str, None] | None) -> Any:
    """The decoded value of ``messages`` with roles in lower case and without members that are null.

    Args:
        value: anything; what is no message stays as it is.
        unknown: where names of unknown members are collected, which are dropped; ``None`` to keep them.

    Raises:
        BadRequest: if a message is about a tool call.
    """
    if not isinstance(value, list):
        return value
    return [_tidy_message(message, f"messages[{index}]", unknown) for index, message in enumerate(value)]


def _tidy_message(message: Any, place: str, unknown: dict[str, None] | None) -> Any:
    if not isinstance(message, dict):
        return message
    tidy = drop_extras(message, ChatMessage, "messages", unknown)
    role = tidy.get("role")
    if isinstance(role, str):
        tidy["role"] = role = role.lower()
    if isinstance(role, str) and role in _TOOL_ROLES:
        raise _no_tool_calls(f"{place}.role")
    for name in ("tool_calls", "function_call"):
        if tidy.get(name):
            raise _no_tool_calls(f"{place}.{name}")
    content = tidy.get("content")
    if isinstance(content, list):
        tidy["content"] = [drop_extras(part, TextPart, "messages.content", unknown) for part in content]
    return tidy


def _no_tool_calls(param: str) -> BadRequest:
    return BadRequest(f"{param}: tool calls are not supported yet", param=param, code="unsupported_parameter")


def require_content(messages: Sequence[ChatMessage]) -> None:
    """Raise :class:`BadRequest` if a message has no content that is not the assistant's."""
    for index, message in enumerate(messages):
        if message.content is None and message.role != "assistant":
            param = f"messages[{index}].content"
            raise BadRequest(
                f"{param} is required for the role {message.role}", param=param, code="missing_required_parameter"
            )
