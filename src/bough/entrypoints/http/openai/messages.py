"""Messages of a conversation: what clients send a little differently, and what they may not leave out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.chat.job import template_call
from bough.entrypoints.http.unknown_fields import known_members
from bough.errors import BadRequest
from bough.tokenization.chat_template import reads_text_only

MAX_TOOL_CALLS = 1024
"""Most tool calls of one message."""

Note = Annotated[Any, Meta(description="A client's or another server's note on an answer; without effect.")]


class TextPart(msgspec.Struct, forbid_unknown_fields=True):
    """A part of a message's content."""

    text: Annotated[str, Meta(description="The text.")]
    type: Annotated[Literal["text"] | None, Meta(description="May be left out.")] = "text"
    cache_control: Note = None
    annotations: Note = None


class CalledFunction(msgspec.Struct, forbid_unknown_fields=True):
    """The function of a tool call."""

    name: Annotated[str, Meta(description="Its name.")]
    arguments: Annotated[
        str | dict[str, Any] | None, Meta(description="The arguments, as JSON text or as an object.")
    ] = None
    parsed_arguments: Note = None


class ToolCall(msgspec.Struct, forbid_unknown_fields=True):
    """A tool call of an earlier answer."""

    function: CalledFunction
    id: Annotated[str | None, Meta(description="Its id.")] = None
    type: Annotated[Literal["function"] | None, Meta(description="May be left out.")] = "function"
    index: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)] | None,
        Meta(description="Without effect: calls are taken in their order."),
    ] = None
    extra_content: Note = None
    provider_specific_fields: Note = None


class ChatMessage(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function", "root", "latest_reminder"]
    content: Annotated[
        str | list[str | TextPart] | UnsetType | None, Meta(description="What is said: a text, or its parts.")
    ] = UNSET
    name: Annotated[str | None, Meta(description="Its name.")] = None
    reasoning_content: Annotated[str | None, Meta(description="The thoughts before the answer.")] = None
    tool_calls: Annotated[
        Annotated[list[ToolCall], Meta(max_length=MAX_TOOL_CALLS)] | None,
        Meta(description="Calls that the assistant makes."),
    ] = None
    tool_call_id: Annotated[
        str | None,
        Meta(description="Id of the call of which this is the result; if absent, the next one's without a result."),
    ] = None
    refusal: Annotated[str | None, Meta(description="Why the assistant did not answer, in its words.")] = None
    prefix: Annotated[
        bool | None, Meta(description="The answer continues this message; only of the last message, by the assistant.")
    ] = None
    phase: Annotated[str | None, Meta(description="Passed on to the chat template.")] = None
    audio: Annotated[None, Meta(description="Only null: messages are text.")] = None
    function_call: Annotated[None, Meta(description="Only null: calls are in `tool_calls`.")] = None
    annotations: Note = None
    images: Annotated[
        Annotated[list[Any], Meta(max_length=0)] | None, Meta(description="Only an empty list: messages are text.")
    ] = None
    cache_control: Note = None
    provider_specific_fields: Note = None
    reasoning_details: Note = None
    parsed: Note = None
    id: Note = None
    type: Annotated[str | None, Meta(description="Without effect.")] = None

    def text(self) -> str:
        """All text of the content."""
        if isinstance(self.content, list):
            return "\n".join(map(_text_of, self.content))
        return self.content or ""


def _text_of(part: str | TextPart) -> str:
    return part if isinstance(part, str) else part.text


def tidy_messages(value: Any, unknown: dict[str, None] | None) -> Any:
    """The decoded value of ``messages`` in the form of :class:`ChatMessage`.

    Roles are put into lower case, and what other programs call text, thoughts and calls gets its names here.

    Args:
        value: anything; what is no message stays as it is.
        unknown: where names of unknown members are collected, which are dropped; ``None`` to keep them.

    Raises:
        BadRequest: if a part is no text.
    """
    if not isinstance(value, list):
        return value
    return [_tidy_message(message, f"messages[{index}]", unknown) for index, message in enumerate(value)]


def _tidy_message(message: Any, place: str, unknown: dict[str, None] | None) -> Any:
    if not isinstance(message, dict):
        return message
    if not message.keys().isdisjoint(_NAMES_OF_OTHERS):
        message = dict(message)
        for name, (ours, kind) in _NAMES_OF_OTHERS.items():
            if isinstance(message.get(name), kind):
                value = message.pop(name)
                if message.get(ours) is None:
                    message[ours] = value
    tidy = {name: each for name, each in message.items() if each is not None}
    role = tidy.get("role")
    if isinstance(role, str):
        tidy["role"] = role = role.lower()
    content = tidy.get("content")
    if role in _RESULTS and "content" in message and not _is_text(content):
        tidy["content"] = content = "" if content is None else msgspec.json.encode(content).decode()
    call = tidy.get("function_call")
    if isinstance(call, dict):
        del tidy["function_call"]
        tidy.setdefault("tool_calls", [{"function": call}])
    if isinstance(content, list):
        parts: list[Any] = []
        thoughts: list[str] = []
        for index, part in enumerate(content):
            _tidy_part(part, f"{place}.content[{index}]", parts, thoughts, unknown)
        tidy["content"] = parts
        if thoughts:
            if tidy.get("role") != "assistant":
                raise BadRequest(f"{place}.content: only the assistant thinks", param=f"{place}.content")
            tidy.setdefault("reasoning_content", "\n".join(thoughts))
    calls = tidy.get("tool_calls")
    if isinstance(calls, list):
        tidy["tool_calls"] = [_tidy_call(call) for call in calls]
    return tidy


def _is_text(content: Any) -> bool:
    """Return whether the content of a message is a text or parts, and not what a tool has returned as it is."""
    if not isinstance(content, list):
        return isinstance(content, str)
    return all(isinstance(part, str) or (isinstance(part, dict) and "type" in part) for part in content)


def _tidy_part(part: Any, place: str, parts: list[Any], thoughts: list[str], unknown: dict[str, None] | None) -> None:
    kind = part.get("type", "text" if "text" in part else None) if isinstance(part, dict) else None
    if kind in _TEXTS:
        part = {**part, "type": "text"}
    if not isinstance(kind, str) or kind in _TEXTS:
        parts.append(part)
    elif kind == "redacted_thinking":
        pass  # thoughts that only their author can read
    elif kind == "refusal":
        known = known_members(part, ("type", "refusal"), place, unknown)
        parts.append({"type": "text", "text": known.get("refusal")})
    elif kind in _THOUGHTS:
        known = known_members(part, _THOUGHTS[kind], place, unknown)
        texts = [known[name] for name in ("thinking", "reasoning", "text") if name in known]
        thoughts.append(_thought(texts[0] if texts else None, f"{place}.{kind}"))
    else:
        raise reads_text_only(place, kind)


_NAMES_OF_OTHERS = {
    "reasoning": ("reasoning_content", str),  # vLLM, OpenRouter
    "reasoning_text": ("reasoning_content", str),  # Copilot
    "thinking": ("reasoning_content", str),  # Ollama
    "tool_name": ("name", str),  # Ollama
    "partial": ("prefix", bool),  # Kimi, Qwen
}
"""With what they are called here, and the type in which they mean that; in another one they are unknown."""

_RESULTS = ("tool", "function")
_TEXTS = ("text", "input_text", "output_text")
"""Parts that are text; the latter are those of a response."""

_THOUGHTS = {
    "thinking": ("type", "thinking", "text", "signature", "closed"),
    "reasoning": ("type", "reasoning", "text", "signature"),
}
"""Parts that hold thoughts, and their members; a signature has no effect."""


def _thought(value: Any, place: str) -> str:
    if isinstance(value, list):
        return "".join(_thought(each.get("text") if isinstance(each, dict) else None, place) for each in value)
    if not isinstance(value, str):
        raise BadRequest(f"{place} must be a string, or a list of text parts", param=place)
    return value


def _tidy_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if isinstance(function, dict) and function.get("arguments") == []:  # PHP's empty object
        call = {**call, "function": {**function, "arguments": None}}
    if isinstance(call, dict) and call.get("type") == "":  # put together from a stream
        call = {**call, "type": None}
    return call


def require_content(messages: Sequence[ChatMessage]) -> None:
    """Raise :class:`BadRequest` if a message has no content that is not the assistant's, or has what only that may."""
    for index, message in enumerate(messages):
        is_null = message.content is None and message.role not in _RESULTS
        if (is_null or message.content is UNSET) and message.role != "assistant":
            param = f"messages[{index}].content"
            raise BadRequest(
                f"{param} is required for the role {message.role}", param=param, code="missing_required_parameter"
            )
        if message.tool_calls and message.role != "assistant":
            param = f"messages[{index}].tool_calls"
            raise BadRequest(f"{param}: only the assistant calls tools", param=param)
        if message.prefix and (message.role != "assistant" or index < len(messages) - 1):
            param = f"messages[{index}].prefix"
            raise BadRequest(f"{param}: only the last message can be gone on with, the assistant's", param=param)


def to_template(message: ChatMessage) -> dict[str, Any]:
    """A message as chat templates expect it: a plain object without what is absent."""
    content: Any = message.content
    if isinstance(content, list):
        content = [{"type": "text", "text": _text_of(part)} for part in content]
    if content is None or content is UNSET:
        content = message.refusal if message.role == "assistant" else ""
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
    if message.phase is not None:
        values["phase"] = message.phase
    return values
