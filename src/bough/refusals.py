"""The message of a server that refuses a request, for the programs that ask it."""

from __future__ import annotations

import json

from bough.errors import BadRequest, BoughError, Overloaded, RequestFailed, TooManyRequests

_MOST_CHARS = 1000
_MOST_RAW_BYTES = 200


def refusal_message(body: bytes) -> str:
    """Return the message in the body of an answer, in the form of any of the interfaces, or how the body begins."""
    return _message(body) or _beginning(body) or "nothing"


def refusal(url: str, status: int, body: bytes) -> BoughError:
    """Return the error for an answer with this status; one without a message of a server of models names ``url``."""
    if (message := _message(body)) is None:
        words = _beginning(body).strip()
        message = f"{url} answered with status {status}{f': {words}' if words else ''}"
    if status == TooManyRequests.status_code:
        return TooManyRequests(message)
    if status == Overloaded.status_code:
        return Overloaded(message)
    return BadRequest(message) if 400 <= status < 500 else RequestFailed(message, status_code=status)


def _message(body: bytes) -> str | None:
    try:
        fields = json.loads(body)
        error = fields.get("error", fields)
        return str(error["message"] if isinstance(error, dict) else error)[:_MOST_CHARS]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _beginning(body: bytes) -> str:
    return body[:_MOST_RAW_BYTES].decode("utf-8", "replace")
