"""What routes answer with, for the OpenAPI description: what all have in common. Each API's folder has its own.

The answers themselves are written piece by piece, as bytes, where they are made; tests hold them against these
declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
EVENTS = "text/event-stream"
LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Answer:
    """The answer of a route when all goes well.

    Attributes:
        model: type of the JSON; ``None`` for text.
        or_model: another type that the JSON may have.
        events: type of a server-sent event, where an answer may be streamed.
        also: content types that it has under some circumstances.
        text_statuses: errors that are told as plain text.
        statuses: errors besides those of every route of its kind.
        events_type: content type of what is streamed.
        named_events: whether server-sent events have names; such streams do not end with ``[DONE]``.
        tells_errors: whether ``events`` has a form for errors too.
    """

    model: Any = Any
    or_model: Any = None
    events: Any = None
    also: tuple[str, ...] = ()
    text_statuses: tuple[int, ...] = ()
    statuses: tuple[int, ...] = ()
    events_type: str = EVENTS
    named_events: bool = False
    tells_errors: bool = False


ANY_JSON = Answer()


@dataclass(frozen=True)
class QueryParameter:
    """A parameter of the query string.

    Attributes:
        name: as it is written.
        schema: JSON schema of its value.
        description: what it does.
    """

    name: str
    schema: dict[str, Any]
    description: str


Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]
TokenId = Annotated[int, Meta(ge=0)]
Status = Annotated[int, Meta(ge=400, le=599)]
LogprobTriple = tuple[float | None, TokenId, str | None]


class ErrorDescription(msgspec.Struct):
    """What went wrong."""

    message: Annotated[str, Meta(description="For people: what is wrong, and what to do.")]
    type: Annotated[str, Meta(description="Class of the error, such as `invalid_request_error`.")]
    param: Annotated[str | None, Meta(description="The field at fault.")]
    code: Annotated[str, Meta(description="Machine-readable reason, such as `context_length_exceeded`.")]


class ErrorAnswer(msgspec.Struct):
    """Body of every error."""

    error: Annotated[ErrorDescription, Meta(description="What went wrong.")]


class StreamErrorDescription(msgspec.Struct):
    """What went wrong, after a stream has begun."""

    message: str
    type: str
    code: Annotated[Status | str, Meta(description="On `/generate` the status, else the reason.")]


class StreamError(msgspec.Struct):
    """Last event but one of a stream that fails."""

    error: StreamErrorDescription


class AnthropicErrorDescription(msgspec.Struct):
    """What went wrong, in Anthropic's words."""

    type: str
    message: str


class AnthropicErrorAnswer(msgspec.Struct):
    """Body of an error, and event of one, on Anthropic's routes."""

    type: Literal["error"]
    error: AnthropicErrorDescription


class OllamaErrorAnswer(msgspec.Struct):
    """Body of an error, and line of one, on Ollama's routes."""

    error: str
