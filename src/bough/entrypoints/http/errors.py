"""How errors look on the wire: one rendering per API dialect, and nowhere else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.http.chunk_writer import CLOSE, Headers
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


class ErrorDescription(msgspec.Struct):
    """Description of an error."""

    message: Annotated[str, Meta(description="For people: what is wrong, and what to do.")]
    type: Annotated[str, Meta(description="Class of the error, such as `invalid_request_error`.")]
    param: Annotated[str | None, Meta(description="The field at fault.")]
    code: Annotated[str, Meta(description="Machine-readable reason, such as `context_length_exceeded`.")]


class ErrorAnswer(msgspec.Struct):
    """Body of every error."""

    error: ErrorDescription


class StreamErrorDescription(msgspec.Struct):
    """Description of an error after a stream has begun."""

    message: Annotated[str, Meta(description="For people: what is wrong, and what to do.")]
    type: Annotated[str, Meta(description="Class of the error, such as `invalid_request_error`.")]
    code: Annotated[
        Annotated[int, Meta(ge=400, le=599)] | str, Meta(description="On `/generate` the status, else the reason.")
    ]
    retryable: Annotated[bool | UnsetType, Meta(description="On `/generate`: another attempt may succeed.")] = UNSET


class StreamError(msgspec.Struct):
    """Last event but one of a stream that fails."""

    error: StreamErrorDescription


class AnthropicErrorDescription(msgspec.Struct):
    """Description of an error, in Anthropic's words."""

    type: Annotated[str, Meta(description="Class of the error, such as `invalid_request_error`.")]
    message: Annotated[str, Meta(description="For people: what is wrong, and what to do.")]


class AnthropicErrorAnswer(msgspec.Struct):
    """Body of an error, and event of one, on Anthropic's routes."""

    type: Literal["error"]
    error: AnthropicErrorDescription


class OllamaErrorAnswer(msgspec.Struct):
    """Body of an error, and line of one, on Ollama's routes."""

    error: Annotated[str, Meta(description="For people: what is wrong, and what to do.")]


class ErrorDialect(ABC):
    """Renders errors the way the clients of one API expect them.

    Attributes:
        edges: bytes around an error after a stream has begun, which else is as the body.
    """

    edges = (b"data: ", b"\n\n")

    @abstractmethod
    def body(self, error: BoughError) -> bytes:
        """JSON body of a response that is an error."""

    def event(self, error: BoughError) -> bytes:
        """The part of a stream that is an error."""
        return self.body(error).join(self.edges)


class OpenAIErrors(ErrorDialect):
    """``{"error": {"message", "type", "param", "code"}}``, as at OpenAI."""

    def body(self, error: BoughError) -> bytes:
        """JSON body of a response that is an error."""
        kind, code = error_type(error.status_code), error_code(error)
        return msgspec.json.encode(ErrorAnswer(ErrorDescription(error.message, kind, error.param, code)))


class NativeErrors(OpenAIErrors):
    """The same object in responses; in streams ``code`` is the status and ``retryable`` is said."""

    def event(self, error: BoughError) -> bytes:
        """Error event of a native stream."""
        description = StreamErrorDescription(
            error.message, error_type(error.status_code), error.status_code, isinstance(error, Overloaded)
        )
        return msgspec.json.encode(StreamError(description)).join(self.edges)


class AnthropicErrors(ErrorDialect):
    """``{"type": "error", "error": {"type", "message"}}``, as at Anthropic; events are named."""

    edges = (b"event: error\ndata: ", b"\n\n")

    def body(self, error: BoughError) -> bytes:
        """JSON body of a response that is an error."""
        other = "invalid_request_error" if 400 <= error.status_code < 500 else "api_error"
        described = AnthropicErrorDescription(_ANTHROPIC_TYPES.get(error.status_code, other), error.message)
        return msgspec.json.encode(AnthropicErrorAnswer("error", described))


_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "request_timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class OllamaErrors(ErrorDialect):
    """``{"error": message}``, as Ollama has it; in a stream it is a line of its own."""

    edges = (b"", b"\n")

    def body(self, error: BoughError) -> bytes:
        """JSON body of a response that is an error."""
        return msgspec.json.encode(OllamaErrorAnswer(error.message))


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


def error_headers(error: BoughError) -> Headers:
    """Headers that go with an error."""
    headers: Headers = []
    if isinstance(error, Overloaded):
        headers.append((b"retry-after", str(max(1, round(error.retry_after))).encode()))
        if error.code == "shutting_down":
            headers.append(CLOSE)
    elif error.status_code == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    return headers
