"""How errors look on the wire: one rendering per API dialect, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Protocol

import msgspec

from bough.errors import BadRequest, BoughError, EngineDead, NotFound, Overloaded, PayloadTooLarge, RequestFailed

INTERNAL_ERROR = "internal server error; the server's log says more"

_DEFAULT_CODES: tuple[tuple[type[BoughError], str], ...] = (
    (BadRequest, "invalid_value"),
    (NotFound, "not_found"),
    (PayloadTooLarge, "payload_too_large"),
    (Overloaded, "overloaded"),
    (EngineDead, "engine_dead"),
    (RequestFailed, "request_failed"),
)


class ErrorDialect(Protocol):
    """Renders errors the way the clients of one API expect them."""

    def body(self, error: BoughError) -> bytes:
        """JSON body of a response that is an error."""
        ...

    def event(self, error: BoughError) -> bytes:
        """Server-sent event for an error after the stream has begun."""
        ...


class OpenAIErrors:
    """``{"error": {"message", "type", "param", "code"}}``, as at OpenAI."""

    def body(self, error: BoughError) -> bytes:
        """JSON body of a response that is an error."""
        return msgspec.json.encode({"error": self._describe(error)})

    def event(self, error: BoughError) -> bytes:
        """The same object as an event of the stream."""
        return b"data: " + self.body(error) + b"\n\n"

    def _describe(self, error: BoughError) -> dict[str, Any]:
        return {
            "message": error.message,
            "type": error_type(error.status_code),
            "param": error.param,
            "code": error_code(error),
        }


class NativeErrors(OpenAIErrors):
    """The same object in responses; in streams ``code`` is the status and ``retryable`` is said."""

    def event(self, error: BoughError) -> bytes:
        """Error event of a native stream."""
        description = {
            "message": error.message,
            "type": error_type(error.status_code),
            "code": error.status_code,
            "retryable": isinstance(error, Overloaded),
        }
        return b"data: " + msgspec.json.encode({"error": description}) + b"\n\n"


class AnthropicErrors:
    """``{"type": "error", "error": {"type", "message"}}``, as at Anthropic; events are named."""

    def body(self, error: BoughError) -> bytes:
        """JSON body of a response that is an error."""
        other = "invalid_request_error" if 400 <= error.status_code < 500 else "api_error"
        described = {"type": _ANTHROPIC_TYPES.get(error.status_code, other), "message": error.message}
        return msgspec.json.encode({"type": "error", "error": described})

    def event(self, error: BoughError) -> bytes:
        """The same object as an event of the stream."""
        return b"event: error\ndata: " + self.body(error) + b"\n\n"


_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "request_timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class OllamaErrors:
    """``{"error": message}``, as Ollama has it; in a stream it is a line of its own."""

    def body(self, error: BoughError) -> bytes:
        """JSON body of a response that is an error."""
        return msgspec.json.encode({"error": error.message})

    def event(self, error: BoughError) -> bytes:
        """The same object as a line of the stream."""
        return self.body(error) + b"\n"


def dialect_of(path: str, headers: Iterable[tuple[bytes, bytes]]) -> ErrorDialect:
    """How errors look to whoever asks for a path that is no route, or asks before there are routes."""
    if path.startswith("/api/"):
        return OllamaErrors()
    if path.startswith("/v1/messages") or any(name.lower() == b"anthropic-version" for name, _ in headers):
        return AnthropicErrors()
    return OpenAIErrors()


def error_type(status: int) -> str:
    """OpenAI's class of an error, by HTTP status."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "rate_limit_error"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return "service_unavailable_error"
    return "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"


def error_code(error: BoughError) -> str:
    """Machine-readable reason of an error."""
    if error.code is not None:
        return error.code
    return next((code for kind, code in _DEFAULT_CODES if isinstance(error, kind)), "internal_error")


CLOSE = (b"connection", b"close")
"""Header of an answer after which nothing comes on its connection."""


def error_headers(error: BoughError) -> list[tuple[bytes, bytes]]:
    """Headers that go with an error."""
    headers: list[tuple[bytes, bytes]] = []
    if isinstance(error, Overloaded):
        headers.append((b"retry-after", str(max(1, round(error.retry_after))).encode()))
        if error.code == "shutting_down":
            headers.append(CLOSE)
    elif error.status_code == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    return headers
