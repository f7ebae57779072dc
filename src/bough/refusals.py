"""What a server says when it refuses a request, for the programs that ask it."""

from __future__ import annotations

import json

_MOST_CHARS = 1000
_MOST_RAW_BYTES = 200


def refusal_message(body: bytes) -> str:
    """The message in the body of an answer, in the form of any of the interfaces, or how the body begins."""
    try:
        fields = json.loads(body)
        error = fields.get("error", fields)
        message = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError, AttributeError):
        message = body[:_MOST_RAW_BYTES].decode("utf-8", "replace")
    return message[:_MOST_CHARS] or "nothing"
