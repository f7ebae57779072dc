"""Items of a conversation whose tools are not offered here, such as a shell's or a server's: calls with their results,
as far as they are text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bough.entrypoints.http.result_text import result_text
from bough.managers.io_struct import new_request_id

_CALL, _RESULT = "_call", "_output"
"""Ends of the types of such items."""

_ARGUMENTS = ("arguments", "input", "action", "actions", "operation", "code", "queries")
"""Members of calls that say what was to be done, the first of which counts."""

_RESULTS = ("output", "outputs", "results", "result", "error", "tools", "status")
"""Members of results that say what has come of it, likewise."""

_RESULTS_OF_SERVERS = ("output", "outputs", "results", "error")
"""The same of calls that a server has run, whose results are in the same item. `result` holds an image."""


def as_function_call(item: Mapping[str, Any], kind: str, item_id: str) -> list[dict[str, Any]]:
    """An item of a type of others as items ``function_call`` and ``function_call_output``; nothing if it is no call and
    no result, or a call whose result is not in the conversation.

    Args:
        item: decoded JSON.
        kind: its type.
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
