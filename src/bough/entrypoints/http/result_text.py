"""Results of tools of other servers, in forms that are theirs, as text for the model."""

from __future__ import annotations

from typing import Any

import msgspec

_TEXTS = ("text", "logs", "refusal")
"""Members of parts that are text as a whole."""

_NO_TEXT = frozenset(
    {"image_url", "file_id", "file_data", "encrypted_content", "encrypted_index", "data", "annotations"}
)
"""Members that hold what is no text, or nothing for the model."""

_MAX_DEPTH = 32


def result_text(result: Any) -> str:
    """The text of a result: that of its parts, line by line. A part that is structured is written as JSON, without
    what is no text; one that is nothing else is named by its type.
    """
    return "\n".join(map(_part_text, result)) if isinstance(result, list) else _part_text(result)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        text = next((part[name] for name in _TEXTS if isinstance(part.get(name), str)), None)
        if text is not None:
            return str(text)
    readable = _readable(part, _MAX_DEPTH)
    if isinstance(readable, dict) and readable.keys() <= {"type"}:
        return f"[{str(readable.get('type', 'file'))[:64]}]"
    return msgspec.json.encode(readable).decode()


def _readable(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return None if value.startswith("data:") else value
    if depth == 0:
        return None
    if isinstance(value, list):
        return [_readable(each, depth - 1) for each in value]
    if isinstance(value, dict):
        hidden = _NO_TEXT - {"data"} if value.get("type") == "text" else _NO_TEXT
        members = {name: _readable(each, depth - 1) for name, each in value.items() if name not in hidden}
        return {name: each for name, each in members.items() if each is not None}
    return value
