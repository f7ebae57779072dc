"""From Anthropic's messages, tools and options to a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bough.entrypoints.chat.job import Message, ToolChoice, ToolUse
from bough.entrypoints.http.anthropic.protocol import CountTokensRequest
from bough.entrypoints.http.openai.messages import template_call
from bough.entrypoints.http.openai.structured import Constraint
from bough.entrypoints.http.openai.tools import make_tool_use, template_variables
from bough.errors import BadRequest
from bough.parsers.base import ToolSpec

_HARMLESS = frozenset({"type", "cache_control", "citations"})
"""Members of blocks that change nothing here: prefixes are cached anyway, and there are no citations to switch on."""

_MEMBERS: dict[str, frozenset[str]] = {
    "text": frozenset({"text"}),
    "tool_use": frozenset({"id", "name", "input", "caller"}),
    "tool_result": frozenset({"tool_use_id", "content", "is_error"}),
    "thinking": frozenset({"thinking", "signature"}),
    "redacted_thinking": frozenset({"data"}),
    "search_result": frozenset({"title", "source", "content"}),
    "document": frozenset({"title", "source", "context"}),
}
"""What each kind of block has besides."""

_CHOICES = {
    "auto": ToolChoice.AUTO,
    "any": ToolChoice.REQUIRED,
    "tool": ToolChoice.REQUIRED,
    "none": ToolChoice.NONE,
}

_TOOL_MEMBERS = frozenset(
    {"type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming"}
)


def conversation(body: CountTokensRequest) -> list[Message]:
    """The messages for the chat template.

    Raises:
        BadRequest: naming what does not have the right form, or cannot be shown to the model.
    """
    messages: list[Message] = []
    if body.system is not None:
        parts = _text_parts(body.system, "system")
        if parts:
            messages.append({"role": "system", "content": _plain(parts)})
    for index, message in enumerate(body.messages):
        messages += _message(message, f"messages[{index}]")
    return messages


def continues(messages: Sequence[Message]) -> bool:
    """Whether the answer goes on with the last message, instead of answering it."""
    last = messages[-1]
    return last.get("role") == "assistant" and bool(last.get("content")) and not last.get("tool_calls")


def _message(message: Mapping[str, Any], where: str) -> list[Message]:
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        raise BadRequest(f"{where}.role must be user, assistant or system", param=f"{where}.role")
    unknown = message.keys() - {"role", "content", "id", "type"}
    if unknown:
        raise _unknown(f"{where}.{min(unknown)[:64]}")
    content = message.get("content")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if not isinstance(content, list):
        raise BadRequest(f"{where}.content must be a string or a list of blocks", param=f"{where}.content")
    if role == "assistant":
        return [_assistant(content, f"{where}.content")]
    return _others(role, content, f"{where}.content")


def _assistant(blocks: Sequence[Any], where: str) -> Message:
    """All blocks of an assistant's message as one: thoughts, text and calls have places of their own."""
    parts: list[dict[str, Any]] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        place = f"{where}[{index}]"
        kind = _kind(block, place)
        if kind == "text":
            parts += _text_of(block, place)
        elif kind == "thinking":
            thoughts.append(_string(block, "thinking", place))
        elif kind == "tool_use":
            arguments = block.get("input")
            if not isinstance(arguments, dict):
                raise BadRequest(f"{place}.input must be an object", param=f"{place}.input")
            calls.append(template_call(_string(block, "id", place), _string(block, "name", place), arguments))
        elif kind != "redacted_thinking":  # that one is sealed by another server
            raise BadRequest(f"{place}: the assistant has no blocks of type {kind}", param=place)
    message: dict[str, Any] = {"role": "assistant", "content": _plain(parts)}
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _others(role: str, blocks: Sequence[Any], where: str) -> list[Message]:
    """The user's blocks: results of tools are messages of their own, between those that hold the rest."""
    messages: list[Message] = []
    parts: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        place = f"{where}[{index}]"
        kind = _kind(block, place)
        if kind == "tool_result":
            if parts:
                messages.append({"role": role, "content": _plain(parts)})
                parts = []
            messages.append(_tool_result(block, place))
        elif kind in ("text", "search_result", "document"):
            parts += _text_of(block, place)
        else:
            raise BadRequest(f"{place}: only the assistant has blocks of type {kind}", param=place)
    if parts or not messages:
        messages.append({"role": role, "content": _plain(parts)})
    return messages


def _tool_result(block: Mapping[str, Any], where: str) -> Message:
    content = block.get("content")
    text = "" if content is None else _plain(_text_parts(content, f"{where}.content"))
    if block.get("is_error"):
        text = f"Error: {text if isinstance(text, str) else ' '.join(part['text'] for part in text)}"
    return {"role": "tool", "tool_call_id": _string(block, "tool_use_id", where), "content": text}


def _text_parts(content: Any, where: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        raise BadRequest(f"{where} must be a string or a list of text blocks", param=where)
    parts: list[dict[str, Any]] = []
    for index, block in enumerate(content):
        place = f"{where}[{index}]"
        if _kind(block, place) not in ("text", "search_result", "document"):
            raise BadRequest(f"{place}: only text can stand here", param=place)
        parts += _text_of(block, place)
    return parts


def _text_of(block: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """A block that is text in one form or another, as parts of a message."""
    kind = block["type"]
    if kind == "text":
        return [{"type": "text", "text": _string(block, "text", where)}]
    if kind == "search_result":
        inside = _text_parts(block.get("content"), f"{where}.content")
        head = f"{_string(block, 'title', where)} ({_string(block, 'source', where)})"
        return [{"type": "text", "text": head}, *inside]
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") not in ("text", "content"):
        place = f"{where}.source"
        raise BadRequest(f"{place}: this model reads text only", param=place, code="unsupported_parameter")
    heads = [{"type": "text", "text": block[name]} for name in ("title", "context") if isinstance(block.get(name), str)]
    if source["type"] == "text":
        return [*heads, {"type": "text", "text": _string(source, "data", f"{where}.source")}]
    return [*heads, *_text_parts(source.get("content"), f"{where}.source.content")]


def _plain(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """One text if there is only one: every template takes that."""
    if not parts:
        return ""
    text: str = parts[0]["text"]
    return text if len(parts) == 1 else parts


def _kind(block: Any, where: str) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        raise BadRequest(f"{where} must be an object with a type", param=where)
    if kind not in _MEMBERS:
        raise BadRequest(
            f"{where}: blocks of type {kind[:40]!r} are not supported; this model reads text only",
            param=where,
            code="unsupported_parameter",
        )
    unknown = block.keys() - _MEMBERS[kind] - _HARMLESS
    if unknown:
        raise _unknown(f"{where}.{min(unknown)[:64]}")
    return kind


def _string(block: Mapping[str, Any], name: str, where: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{where}.{name} must be a string", param=f"{where}.{name}")
    return value


def _unknown(param: str) -> BadRequest:
    return BadRequest(f"unknown field: {param}", param=param, code="unknown_parameter")


def tool_use(body: CountTokensRequest) -> ToolUse:
    """From ``tools`` and ``tool_choice``.

    Raises:
        BadRequest: naming what does not fit together.
    """
    specs: dict[str, ToolSpec] = {}
    for index, tool in enumerate(body.tools or ()):
        spec = _tool(tool, f"tools[{index}]")
        if spec.name in specs:
            raise BadRequest(f"tools[{index}].name: {spec.name!r} is the name of an earlier tool", param="tools")
        specs[spec.name] = spec
    choice = body.tool_choice
    if choice is None:
        return make_tool_use(tuple(specs.values()), ToolChoice.AUTO, None, parallel=True)
    if (choice.type == "tool") != (choice.name is not None):
        raise BadRequest("tool_choice.name goes with the type tool", param="tool_choice.name")
    return make_tool_use(
        tuple(specs.values()), _CHOICES[choice.type], choice.name, parallel=not choice.disable_parallel_tool_use
    )


def _tool(tool: Mapping[str, Any], where: str) -> ToolSpec:
    kind = tool.get("type")
    if kind not in (None, "custom"):
        raise BadRequest(
            f"{where}: tools of type {str(kind)[:40]!r}, which a server would run, are not supported",
            param=f"{where}.type",
            code="unsupported_parameter",
        )
    given = {name: value for name, value in tool.items() if value is not None}
    unknown = given.keys() - _TOOL_MEMBERS
    if unknown:
        raise _unknown(f"{where}.{min(unknown)[:64]}")
    if "input_schema" not in given:
        param = f"{where}.input_schema"
        raise BadRequest(f"{param} is required", param=param, code="missing_required_parameter")
    function: dict[str, Any] = {name: given[name] for name in ("name", "description", "strict") if name in given}
    function["parameters"] = given["input_schema"]
    try:
        return ToolSpec.from_openai({"type": "function", "function": function}, where)
    except BadRequest as error:
        raise BadRequest(
            _as_named_here(error.message), param=_as_named_here(error.param or ""), code=error.code
        ) from None


def _as_named_here(text: str) -> str:
    return text.replace(".function", "", 1).replace(".parameters", ".input_schema", 1)


def variables(body: CountTokensRequest) -> dict[str, Any]:
    """Variables of the chat template."""
    thinking = None if body.thinking is None else body.thinking.type != "disabled"
    effort = None if body.output_config is None else body.output_config.effort
    return template_variables(body.chat_template_kwargs, effort, None, thinking)


def constraint(body: CountTokensRequest) -> Constraint | None:
    """What the answer has to follow."""
    config = body.output_config
    if config is None or config.format is None:
        return None
    return Constraint("json_schema", config.format.schema, "output_config.format.schema")
