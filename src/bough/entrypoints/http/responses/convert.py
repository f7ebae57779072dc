"""From the items of ``/v1/responses`` to messages, tools and constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bough.entrypoints.chat.constraints import ANY_OBJECT, Constraint
from bough.entrypoints.chat.job import Message, template_call
from bough.entrypoints.http.openai.structured import described_schema
from bough.entrypoints.http.responses.protocol import ResponsesRequest
from bough.entrypoints.http.responses.tools import OfferedTools
from bough.entrypoints.http.result_text import result_text
from bough.entrypoints.http.unknown_fields import Unknown, known_members
from bough.errors import BadRequest
from bough.managers.io_struct import new_request_id
from bough.tokenization.chat_template import reads_text_only

Item = dict[str, Any]

Find = Callable[[str, str], Item]
"""From the id of an item that is kept, and its place in the request for errors, to the item."""

MAX_ITEM_ID_CHARS = 256

_ROLES = ("user", "assistant", "system", "developer")
_STATUS = ("in_progress", "completed", "incomplete")
_TEXT_PARTS = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "reasoning_text": "text",
    "summary_text": "text",
    "refusal": "refusal",
}
"""Parts of content that are text, and the member that holds it."""

_PART_MEMBERS = frozenset({"type", "annotations", "logprobs", "cache_control", "prompt_cache_breakpoint"})
"""What they have besides, which changes nothing."""

_ITEM_MEMBERS = {
    "message": frozenset({"role", "content", "phase"}),
    "function_call": frozenset({"call_id", "name", "arguments", "namespace", "caller", "async"}),
    "function_call_output": frozenset({"call_id", "output", "name", "namespace", "caller"}),
    "reasoning": frozenset({"summary", "content", "encrypted_content"}),
    "item_reference": frozenset(),
}
_COMMON_MEMBERS = frozenset({"type", "id", "status", "created_by"})
_SAME_AS = {"custom_tool_call_output": "function_call_output"}
_FORMAT_MEMBERS = frozenset({"type", "name", "description", "schema", "strict"})


_CALL, _RESULT = "_call", "_output"
"""Ends of the types of such items."""

_ARGUMENTS = ("arguments", "input", "action", "actions", "operation", "code", "queries")
"""Members of calls that say what was to be done, the first of which counts."""

_RESULTS = ("output", "outputs", "results", "result", "error", "tools", "status")
"""Members of results that say what has come of it, likewise."""

_RESULTS_OF_SERVERS = ("output", "outputs", "results", "error")
"""The same of calls that a server has run, whose results are in the same item. `result` holds an image."""


def input_items(body: ResponsesRequest, find: Find, unknown: Unknown | None, left_out: Unknown) -> list[Item]:
    """The items of a request in the form in which they are kept: all with a type and an id, and with nothing in them
    that has no meaning here.

    Args:
        find: looks up the items that are only named.
        left_out: collects types of items that are not shown to the model.

    Raises:
        BadRequest: naming an item that cannot be shown to the model.
        NotFound: naming a reference to an item that is not kept.
    """
    if isinstance(body.input, str):
        return [{"type": "message", "id": f"msg_{new_request_id()}", "role": "user", "content": body.input}]
    items: list[Item] = []
    for index, given in enumerate(body.input):
        place = f"input[{index}]"
        kind = _kind(given, place)
        if kind in _ITEM_MEMBERS:
            items.append(_item(given, kind, place, find, unknown))
        elif calls := _as_function_call(given, kind, _id(given, place) or f"item_{new_request_id()}"):
            items += calls
        else:
            left_out[f"input.{kind[:64]}"] = None
    return items


def referred_ids(body: ResponsesRequest) -> list[str]:
    """Ids of items that are only named."""
    given = () if isinstance(body.input, str) else body.input
    named = (item.get("id") for item in given if item.get("type") in (None, "item_reference"))
    return [each for each in named if isinstance(each, str)]


def _kind(given: Item, place: str) -> str:
    kind = given.get("type")
    if kind is None:
        return "message" if "role" in given else "item_reference"
    if not isinstance(kind, str):
        raise BadRequest(f"{place}.type must be a string", param=f"{place}.type", code="invalid_value")
    return _SAME_AS.get(kind, kind)


def _item(given: Item, kind: str, place: str, find: Find, unknown: Unknown | None) -> Item:
    item = known_members(given, _ITEM_MEMBERS[kind] | _COMMON_MEMBERS, place, unknown)
    item_id = _id(item, place)
    if kind == "item_reference":
        return find(_string(item, "id", place), f"{place}.id")
    kept: Item = {"type": kind, "id": item_id or f"{'msg' if kind == 'message' else 'item'}_{new_request_id()}"}
    if item.get("status") in _STATUS:
        kept["status"] = item["status"]
    if kind == "message":
        role = kept["role"] = item.get("role")
        if role not in _ROLES:
            raise BadRequest(f"{place}.role must be one of {', '.join(_ROLES)}", param=f"{place}.role")
        content = item.get("content", "" if role == "assistant" else None)
        kept["content"] = _content(content, f"{place}.content", unknown)
        if item.get("phase") is not None:
            kept["phase"] = _string(item, "phase", place)
    elif kind == "function_call":
        kept |= {name: _string(item, name, place) for name in ("call_id", "name")}
        item.setdefault("arguments", "")
        arguments = item["arguments"]
        kept["arguments"] = _encoded(arguments) if isinstance(arguments, dict) else _string(item, "arguments", place)
        if item.get("namespace") is not None:
            kept["namespace"] = _string(item, "namespace", place)
    elif kind == "function_call_output":
        kept["call_id"] = _string(item, "call_id", place)
        output = item.get("output", "")
        kept["output"] = _encoded(output) if isinstance(output, dict) else _content(output, f"{place}.output", unknown)
    else:
        kept["summary"] = _content(item.get("summary", []), f"{place}.summary", unknown)
        if "content" in item:
            kept["content"] = _content(item["content"], f"{place}.content", unknown)
    return kept


def _content(content: Any, where: str, unknown: Unknown | None) -> str | list[Item]:
    """Text, or parts that are text, without what has no meaning here."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequest(f"{where} must be a string or a list of parts", param=where)
    parts: list[Item] = []
    for index, part in enumerate(content):
        place = f"{where}[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        member = _TEXT_PARTS.get(kind) if isinstance(kind, str) else None
        if kind is None or member is None:
            raise reads_text_only(place, kind)
        known = {member: "", **known_members(part, _PART_MEMBERS | {member}, place, unknown)}
        kept = {"type": kind, member: _string(known, member, place)}
        parts.append({**kept, "annotations": []} if kind == "output_text" else kept)
    return parts


def conversation(items: Sequence[Item], tools: OfferedTools) -> list[Message]:
    """Items as messages for the chat template: what the assistant thought, said and called in one turn is one message.

    Args:
        items: as :func:`input_items` makes them, and what was answered.
        tools: the tools of the request, which may have other names towards the model.
    """
    messages: list[Message] = []
    turn: dict[str, Any] = {}
    """What the assistant did, until somebody else has the word."""

    def end_turn() -> None:
        if turn:
            messages.append({"role": "assistant", "content": "", **turn})
            turn.clear()

    for item in items:
        kind = item["type"]
        if kind == "message" and item["role"] == "assistant":
            if "content" in turn or "tool_calls" in turn:
                end_turn()
            turn["content"] = _text(item["content"])
            turn |= _phase(item)
        elif kind == "message":
            end_turn()
            messages.append({"role": item["role"], "content": _text(item["content"]), **_phase(item)})
        elif kind == "function_call":
            turn.setdefault("tool_calls", []).append(
                template_call(item["call_id"], tools.name_of(item), item["arguments"])
            )
        elif kind == "reasoning":
            thought = _text(item.get("content") or item["summary"])
            if not thought:  # sealed by another server
                continue
            if "content" in turn or "tool_calls" in turn:
                end_turn()
            before = turn.get("reasoning_content")
            turn["reasoning_content"] = f"{before}\n{thought}" if before else thought
        else:
            end_turn()
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": _text(item["output"])})
    end_turn()
    return messages


def without_beginning(items: Sequence[Item], num_turns: int) -> list[Item]:
    """What is left of a conversation without its first turns. A turn begins with a message of the user's, so that no
    call is parted from its result; what the system says at the beginning stays.
    """
    begins = [index for index, item in enumerate(items) if item.get("role") == "user"]
    first = begins[num_turns] if num_turns < len(begins) else len(items)
    head = next((index for index, item in enumerate(items) if item.get("role") not in ("system", "developer")), 0)
    return [*items[: min(head, first)], *items[first:]]


def num_turns(items: Sequence[Item]) -> int:
    """How many turns a conversation has."""
    return sum(item.get("role") == "user" for item in items)


def _text(content: str | list[Item]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part[_TEXT_PARTS[part["type"]]] for part in content)


def _phase(item: Item) -> dict[str, str]:
    """What a message says of its place in the answer, for templates that show that."""
    return {"phase": item["phase"]} if "phase" in item else {}


def _id(item: Mapping[str, Any], place: str) -> str | None:
    item_id = item.get("id")
    if item_id is None:
        return None
    if not isinstance(item_id, str) or not 1 <= len(item_id) <= MAX_ITEM_ID_CHARS:
        param = f"{place}.id"
        raise BadRequest(f"{param} must be a string of 1 to {MAX_ITEM_ID_CHARS} characters", param=param)
    return item_id


def _encoded(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


def _string(item: Mapping[str, Any], name: str, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{where}.{name} must be a string", param=f"{where}.{name}")
    return value


def constraint(body: ResponsesRequest, unknown: Unknown | None) -> Constraint | None:
    """What the output has to follow.

    Raises:
        BadRequest: if ``text.format`` does not have the right form.
    """
    given = body.text.format if body.text is not None else None
    if given is None:
        return None
    known_members(given, _FORMAT_MEMBERS, "text.format", unknown)
    schema = described_schema(given, "text.format")
    kind = given.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return Constraint("json_schema", ANY_OBJECT, "text.format")
    if kind != "json_schema":
        param = "text.format.type"
        raise BadRequest(f"{param} must be text, json_object or json_schema", param=param)
    if schema is None:
        param = "text.format.schema"
        raise BadRequest(f"{param} is required", param=param, code="missing_required_parameter")
    return Constraint("json_schema", schema, "text.format.schema")


def _as_function_call(item: Mapping[str, Any], kind: str, item_id: str) -> list[dict[str, Any]]:
    """An item of a type of others as items ``function_call`` and ``function_call_output``; nothing if it is no call and
    no result, or a call whose result is not in the conversation.

    Args:
        item_id: id of the first item.
    """
    call_id = item.get("call_id")
    if kind.endswith(_RESULT):
        if kind == "local_shell_call_output" and call_id is None:
            call_id = item.get("id")
        result = _first(item, _RESULTS)
        return [_result(call_id, result[1], item_id)] if isinstance(call_id, str) and result is not None else []
    arguments = _first(item, _ARGUMENTS)
    if arguments is None:
        return []
    name = item.get("name")
    call: dict[str, Any] = {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": name if isinstance(name, str) else kind.removesuffix(_CALL),
        "arguments": _as_object(*arguments),
    }
    if isinstance(item.get("namespace"), str):
        call["namespace"] = item["namespace"]
    if isinstance(call_id, str):
        return [call]
    result = _first(item, _RESULTS_OF_SERVERS)
    if result is None or not kind.endswith(_CALL):
        return []
    call["call_id"] = item_id
    return [call, _result(item_id, result[1], f"item_{new_request_id()}")]


def _first(item: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, Any] | None:
    return next(((name, item[name]) for name in names if item.get(name) is not None), None)


def _as_object(name: str, value: Any) -> str:
    """The JSON text of an object with the arguments of a call, which the member of this name holds."""
    if isinstance(value, str) and name == "arguments":
        return value
    return msgspec.json.encode(value if isinstance(value, dict) else {name: value}).decode()


def _result(call_id: str, result: Any, item_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "id": item_id, "call_id": call_id, "output": result_text(result)}
