"""The declaration of a route, which stands at the method that answers it.

Registration, access, metrics, the OpenAPI document and ``docs/endpoints.md`` follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec import Meta

from bough.entrypoints.http.access import Access
from bough.entrypoints.http.errors import (
    AnthropicErrorAnswer,
    AnthropicErrors,
    ErrorAnswer,
    ErrorDialect,
    NativeErrors,
    OllamaErrorAnswer,
    OllamaErrors,
    OpenAIErrors,
    StreamError,
)
from bough.entrypoints.http.fields import BodySpec
from bough.errors import BadRequest

if TYPE_CHECKING:
    from bough.entrypoints.chat.core import ChatCore
    from bough.entrypoints.http.asgi import Call
    from bough.managers.tokenizer_manager import TokenizerManager

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
EVENTS = "text/event-stream"
LINES = "application/x-ndjson"

F = TypeVar("F", bound=Callable[..., Any])

# Types of members of answers. Examples of answers are put together from those of their members.
Count = Annotated[int, Meta(ge=0)]
TokenId = Annotated[int, Meta(ge=0)]
Index = Annotated[int, Meta(ge=0, description="Position among several, from 0.")]
PromptTokens = Annotated[int, Meta(ge=0, description="Tokens of the prompt.", examples=[16])]
GeneratedTokens = Annotated[int, Meta(ge=0, description="Tokens that were generated.", examples=[24])]
Created = Annotated[int, Meta(ge=0, description="Time of creation, in seconds since 1970.", examples=[1795289226])]
Id = Annotated[str, Meta(description="Id of the request.", examples=["e95e21146e0e4e6ebcc69289fb7a986e"])]
ObjectId = Annotated[str, Meta(description="Id of the object.", examples=["resp_e95e21146e0e4e6ebcc69289fb7a986e"])]
Model = Annotated[str, Meta(description="Name of the model.", examples=["sapling"])]
Path = Annotated[str, Meta(description="Where it is.", examples=["/models/sapling"])]
Text = Annotated[str, Meta(description="The text.", examples=["The oak is a tree."])]
Vector = Annotated[list[float], Meta(description="The numbers.", examples=[[0.0368, -0.0233, 0.0683]])]


@dataclass(frozen=True)
class Api:
    """Properties that the routes of one API share.

    Attributes:
        name: heading in the documentation.
        errors: rendering of errors.
        error: body of an error.
        stream_error: error in the middle of a stream.
        needs_json: refuse a body whose declared type is not JSON, as the API's clients name the type.
        stream_type: content type of streams.
    """

    name: str
    errors: ErrorDialect
    error: type = ErrorAnswer
    stream_error: type = StreamError
    needs_json: bool = False
    stream_type: str = EVENTS


NATIVE = Api("native", NativeErrors())
OPENAI = Api("OpenAI", OpenAIErrors(), needs_json=True)
ANTHROPIC = Api("Anthropic", AnthropicErrors(), AnthropicErrorAnswer, AnthropicErrorAnswer, needs_json=True)
OLLAMA = Api("Ollama", OllamaErrors(), OllamaErrorAnswer, OllamaErrorAnswer, stream_type=LINES)


@dataclass(frozen=True)
class QueryParameter:
    """A parameter of the query string, with the JSON schema of its value."""

    name: str
    schema: dict[str, Any]
    description: str
    repeats: bool = False
    """It may be given several times, once for each element of a list."""


@dataclass(frozen=True, eq=False)
class Route:
    """A route of the server; as a decorator it declares that a method of a class below :class:`Handlers` answers it.

    Attributes:
        line: methods and path, such as ``"POST,PUT /generate"``, then aliases of the path. Parameters of a path are in
            braces. Routes with other methods may share a path.
        api: API that the route belongs to.
        body: declaration of the body.
        answer: type of the JSON of an answer, or a tuple of types, the usual one first; none for text.
        events: type of an event or line, where answers may be streamed.
        access: permission that callers need; open routes are probes, which are left out of the metrics.
        query: parameters of the query string.
        summary: description; the first paragraph of the method's docstring unless it is given.
        one_of: declarations of the body, where its fields tell several kinds of requests apart.
        also: content types of some answers besides that of ``answer``.
        statuses: errors besides those of every route of its kind.
        text_statuses: errors in plain text.
        has_named_events: server-sent events have names, and there is no ``[DONE]``.
        has_error_events: ``events`` includes errors.
        is_free: calls do not count among the requests of their key, although they have a body.
        handler: name of the method.
    """

    line: str
    api: Api
    body: BodySpec[Any] | None = None
    answer: Any = None
    events: Any = None
    access: Access = Access.CLIENT
    query: tuple[QueryParameter, ...] = ()
    summary: str = ""
    one_of: tuple[BodySpec[Any], ...] = ()
    also: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    text_statuses: tuple[int, ...] = ()
    has_named_events: bool = False
    has_error_events: bool = False
    is_free: bool = False
    handler: str = ""

    def __call__(self, method: F) -> F:
        """Declare that ``method`` answers this route."""
        summary = self.summary or " ".join((method.__doc__ or "").split("\n\n")[0].split())
        # Decorators are applied from below.
        vars(method).setdefault("routes", []).insert(0, replace(self, handler=method.__name__, summary=summary))
        return method

    @property
    def methods(self) -> tuple[str, ...]:
        """HTTP methods."""
        return tuple(self.line.split()[0].split(","))

    @property
    def paths(self) -> tuple[str, ...]:
        """The path and its aliases."""
        return tuple(self.line.split()[1:])

    @property
    def path(self) -> str:
        """The path, with parameters in braces."""
        return self.paths[0]

    @property
    def bodies(self) -> tuple[BodySpec[Any], ...]:
        """Declarations of all kinds of bodies."""
        return self.one_of if self.body is None else (self.body,)

    @property
    def is_probe(self) -> bool:
        """Infrastructure calls it, without a key."""
        return self.access is Access.OPEN

    @property
    def is_limited(self) -> bool:
        """Calls count among the requests of their key."""
        return self.access is Access.CLIENT and bool(self.bodies) and not self.is_free

    @property
    def needs_json(self) -> bool:
        """Refuse a body whose declared type is not JSON."""
        return self.api.needs_json and bool(self.bodies)


_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def flag(call: Call, name: str, *, default: bool) -> bool:
    """Return the value of a parameter of the query string that is true or false; raise :class:`BadRequest` at
    another."""
    word = call.query.get(name, str(default))
    value = _FLAGS.get(word.lower())
    if value is None:
        raise BadRequest(f"{name} must be true or false, got {word[:64]!r}", param=name)
    return value


class Handlers:
    """Base of classes whose methods answer routes; a server has one instance of each."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        self._manager = manager
        self._core = core

    def require_tokenizer(self, field: str) -> None:
        """Raise :class:`BadRequest` for ``field`` if the server has no tokenizer."""
        if self._manager.tokenizer is None:
            raise BadRequest(
                f"{field} needs a tokenizer, and this server has none; /v1/completions and /generate take token ids",
                param=field,
            )

    def model_name(self, given: str | None) -> str:
        """Return what an answer calls the model, which a request may call as it likes."""
        return self._manager.served_model_name if given is None else given

    @classmethod
    def routes(cls) -> list[Route]:
        """The routes that the class's own methods answer, in their order."""
        return [each for member in vars(cls).values() for each in getattr(member, "routes", ())]
