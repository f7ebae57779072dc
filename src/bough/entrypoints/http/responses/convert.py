"""From the items of ``/v1/responses`` to messages, tools and constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bough.entrypoints.chat.job import Message, ToolChoice, ToolUse
from bough.entrypoints.http.openai.messages import template_call
from bough.entrypoints.http.openai.structured import ANY_OBJECT, Constraint
from bough.entrypoints.http.openai.tools import make_tool_use, parse_choice
from bough.entrypoints.http.responses.protocol import ResponsesRequest
from bough.errors import BadRequest
from bough.parsers.base import ToolSpec
from bough.sampling.sampling_params import leniently

Item = dict[str, Any]

_ROLES = ("user", "assistant", "system", "developer")
_TEXT_PARTS = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "reasoning_text": "text",
    "summary_text": "text",
    "refusal": "refusal",
}
"""Parts of content that are text, and the member that holds it."""


def input_items(body: ResponsesRequest) -> list[Item]:
    """The items of a request, all with a type.

    Raises:
        BadRequest: naming an item that cannot be shown to the model.
    """
    if isinstance(body.input, str):
        return [{"type": "message", "role": "user", "content": body.input}]
    items = [{"type": "message", **item} if "role" in item else item for item in body.input]
    conversation(items)  # finds out whether they can be understood
    return items


def conversation(items: Sequence[Item], where: str = "input") -> list[Message]:
    """Items as messages for the chat template: what the assistant thought, said and called in one turn is one message.

    Raises:
        BadRequest: naming an item that cannot be shown to the model.
    """
    messages: list[Message] = []
    turn: dict[str, Any] = {}
    """What the assistant did, until somebody else has the word."""

    def end_turn() -> None:
        if turn:
            messages.append({"role": "assistant", "content": "", **turn})
            turn.clear()

    for index, item in enumerate(items):
        place = f"{where}[{index}]"
        kind = item.get("type")
        if kind == "message":
            role = item.get("role")
            if role not in _ROLES:
                raise BadRequest(f"{place}.role must be one of {', '.join(_ROLES)}", param=f"{place}.role")
            text = _text(item.get("content"), f"{place}.content")
            if role == "assistant":
                if "content" in turn or "tool_calls" in turn:
                    end_turn()
                turn["content"] = text
            else:
                end_turn()
                messages.append({"role": role, "content": text})
        elif kind == "function_call":
            call = template_call(
                _string(item, "call_id", place), _string(item, "name", place), _string(item, "arguments", place)
            )
            turn.setdefault("tool_calls", []).append(call)
        elif kind == "reasoning":
            if "content" in turn or "tool_calls" in turn:
                end_turn()
            turn["reasoning_content"] = _thoughts(item, place)
        elif kind == "function_call_output":
            end_turn()
            output = _text(item.get("output"), f"{place}.output")
            messages.append({"role": "tool", "tool_call_id": _string(item, "call_id", place), "content": output})
        else:
            raise BadRequest(
                f"{place}: items of type {str(kind)[:40]!r} are not supported",
                param=f"{place}.type",
                code="unsupported_parameter",
            )
    end_turn()
    return messages


def _thoughts(item: Item, place: str) -> str:
    content = item.get("content")
    return _text(item.get("summary") or [] if content is None else content, f"{place}.content")


def _text(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequest(f"{where} must be a string or a list of parts", param=where)
    texts = []
    for index, part in enumerate(content):
        place = f"{where}[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        member = _TEXT_PARTS.get(kind) if isinstance(kind, str) else None
        if member is None:
            raise BadRequest(
                f"{place}: parts of type {str(kind)[:40]!r} are not supported; this model reads text only",
                param=place,
                code="unsupported_parameter",
            )
        texts.append(_string(part, member, place))
    return "\n".join(texts)


def _string(item: Mapping[str, Any], name: str, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{where}.{name} must be a string", param=f"{where}.{name}")
    return value


def tool_use(body: ResponsesRequest) -> ToolUse:
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
    chosen = body.tool_choice
    if isinstance(chosen, dict) and chosen.get("type") == "allowed_tools":
        mode = chosen.get("mode", "auto")
        allowed = [each.get("name") for each in chosen.get("tools") or () if isinstance(each, dict)]
        unknown = [name for name in allowed if name not in specs]
        if mode not in ("auto", "required") or not allowed or unknown:
            raise BadRequest(
                "tool_choice: allowed_tools needs the mode auto or required, and tools that there are",
                param="tool_choice",
            )
        kept = tuple(specs[name] for name in specs if name in allowed)
        return make_tool_use(kept, ToolChoice(mode), None, parallel=body.parallel_tool_calls)
    choice, name = parse_choice(chosen)
    return make_tool_use(tuple(specs.values()), choice, name, parallel=body.parallel_tool_calls)


def _tool(tool: Mapping[str, Any], where: str) -> ToolSpec:
    kind = tool.get("type")
    if kind != "function":
        raise BadRequest(
            f"{where}: tools of type {str(kind)[:40]!r} are not supported; describe a function and run it yourself",
            param=f"{where}.type",
            code="unsupported_parameter",
        )
    unknown = tool.keys() - {"type", "name", "description", "parameters", "strict", "defer_loading"}
    if unknown:
        param = f"{where}.{min(unknown)[:64]}"
        raise BadRequest(f"unknown field: {param}", param=param, code="unknown_parameter")
    function = {name: value for name, value in tool.items() if name != "type"}
    try:
        return ToolSpec.from_openai({"type": "function", "function": function}, where)
    except BadRequest as error:
        message, param = (text.replace(".function", "", 1) for text in (error.message, error.param or ""))
        raise BadRequest(message, param=param, code=error.code) from None


def constraint(body: ResponsesRequest) -> Constraint | None:
    """What the output has to follow.

    Raises:
        BadRequest: if ``text.format`` does not have the right form.
    """
    given = body.text.format if body.text is not None else None
    kind = given.get("type") if given is not None else "text"
    if given is None or kind == "text":
        return None
    if kind == "json_object":
        return Constraint("json_schema", ANY_OBJECT, "text.format")
    if kind != "json_schema":
        param = "text.format.type"
        raise BadRequest(f"{param} must be text, json_object or json_schema", param=param)
    schema = given.get("schema")
    if not isinstance(schema, (dict, bool)):
        param = "text.format.schema"
        raise BadRequest(f"{param} must be a JSON schema", param=param)
    return Constraint("json_schema", schema if given.get("strict") else leniently(schema), "text.format.schema")
