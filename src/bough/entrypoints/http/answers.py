"""What the routes answer with, for the OpenAPI description.

The answers themselves are written piece by piece, as bytes, where they are made; tests hold them against these
declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

JSON = "application/json"
TEXT = "text/plain"
EVENTS = "text/event-stream"
LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Answer:
    """The answer of a route when all goes well.

    Attributes:
        model: type of the JSON; ``None`` for text.
        or_model: another type that the JSON may have.
        events: type of a server-sent event, where an answer may be streamed.
        also_text: whether it is text under some circumstances.
        text_statuses: errors that are told as plain text.
        statuses: errors besides those of every route of its kind.
        events_type: content type of what is streamed.
        named_events: whether server-sent events have names; such streams do not end with ``[DONE]``.
        tells_errors: whether ``events`` has a form for errors too.
    """

    model: Any = Any
    or_model: Any = None
    events: Any = None
    also_text: bool = False
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


# --- /generate --------------------------------------------------------------------------------------------------------


class FinishReasonAnswer(msgspec.Struct):
    """Why an output ended."""

    type: Literal["stop", "length", "abort"]
    matched: Annotated[
        TokenId | str | UnsetType | None, Meta(description="Stop token, stop string or pattern that ended the output.")
    ] = UNSET
    length: Annotated[Count | UnsetType | None, Meta(description="Tokens that were generated.")] = UNSET
    message: str | UnsetType = UNSET
    status_code: Status | UnsetType = UNSET


class MetaInfo(msgspec.Struct):
    """Counts, times and log-probabilities of one output."""

    id: Annotated[str, Meta(description="Id of the request.")]
    finish_reason: FinishReasonAnswer | None
    prompt_tokens: Count
    completion_tokens: Count
    cached_tokens: Annotated[Count, Meta(description="Prompt tokens whose computation was reused.")]
    reasoning_tokens: Count
    weight_version: str
    num_retractions: Annotated[Count, Meta(description="How often the request had to give up its memory.")]
    e2e_latency: Annotated[Seconds | UnsetType, Meta(description="Seconds from arrival to end; at the end.")] = UNSET
    input_token_logprobs: Annotated[
        list[LogprobTriple] | UnsetType, Meta(description="Log-probability, token id, and text if it was asked for.")
    ] = UNSET
    output_token_logprobs: list[LogprobTriple] | UnsetType = UNSET
    input_top_logprobs: list[list[LogprobTriple] | None] | UnsetType = UNSET
    output_top_logprobs: list[list[LogprobTriple] | None] | UnsetType = UNSET
    input_token_ids_logprobs: list[list[LogprobTriple] | None] | UnsetType = UNSET
    output_token_ids_logprobs: list[list[LogprobTriple] | None] | UnsetType = UNSET
    output_token_logprobs_length: Count | UnsetType = UNSET


class GenerateAnswer(msgspec.Struct):
    """One output of ``/generate``."""

    output_ids: list[TokenId]
    meta_info: MetaInfo
    text: Annotated[str | UnsetType, Meta(description="Absent on a server without a tokenizer.")] = UNSET
    prompt_token_ids: list[TokenId] | UnsetType = UNSET
    index: Annotated[Count | UnsetType, Meta(description="Which output an event belongs to, if there are several.")] = (
        UNSET
    )


# --- OpenAI's ---------------------------------------------------------------------------------------------------------


class UsageAnswer(msgspec.Struct):
    """Token counts."""

    prompt_tokens: Count
    total_tokens: Count
    completion_tokens: Count
    reasoning_tokens: Count
    prompt_tokens_details: dict[str, Count | None] | None
    completion_tokens_details: dict[str, Count | None] | None


class CompletionChoice(msgspec.Struct):
    """One continuation, or a piece of one."""

    index: Count
    text: str
    logprobs: dict[str, list[Any]] | None
    finish_reason: str | None
    matched_stop: TokenId | str | None
    stop_reason: TokenId | str | UnsetType | None = UNSET
    meta_info: dict[str, Any] | UnsetType = UNSET


class CompletionAnswer(msgspec.Struct):
    """Answer of ``/v1/completions``."""

    id: str
    object: Literal["text_completion"]
    created: Count
    model: str
    choices: list[CompletionChoice]
    usage: UsageAnswer
    sglext: dict[str, Any] | UnsetType = UNSET


class CompletionChunk(msgspec.Struct):
    """Event of ``/v1/completions``."""

    id: str
    object: Literal["text_completion"]
    created: Count
    model: str
    choices: list[CompletionChoice]
    usage: UsageAnswer | UnsetType | None = UNSET
    sglext: dict[str, Any] | UnsetType = UNSET


class ChatMessageAnswer(msgspec.Struct):
    """The assistant's message."""

    role: Literal["assistant"]
    content: str | None
    reasoning_content: str | UnsetType | None = UNSET
    reasoning: str | UnsetType | None = UNSET
    tool_calls: list[dict[str, Any]] | UnsetType | None = UNSET


class ChatChoice(msgspec.Struct):
    """One answer of the assistant."""

    index: Count
    message: ChatMessageAnswer
    logprobs: dict[str, Any] | None
    finish_reason: str | None
    matched_stop: TokenId | str | None
    stop_reason: TokenId | str | UnsetType | None = UNSET
    meta_info: dict[str, Any] | UnsetType = UNSET


class ChatAnswer(msgspec.Struct):
    """Answer of ``/v1/chat/completions``."""

    id: str
    object: Literal["chat.completion"]
    created: Count
    model: str
    choices: list[ChatChoice]
    usage: UsageAnswer
    sglext: dict[str, Any] | UnsetType = UNSET


class ChatDelta(msgspec.Struct):
    """A piece of the assistant's message."""

    role: Literal["assistant"] | UnsetType | None = UNSET
    content: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType | None = UNSET
    reasoning: str | UnsetType | None = UNSET
    tool_calls: list[dict[str, Any]] | UnsetType | None = UNSET


class ChatChunkChoice(msgspec.Struct):
    """What is new of one answer."""

    index: Count
    delta: ChatDelta
    logprobs: dict[str, Any] | None
    finish_reason: str | None
    matched_stop: TokenId | str | None
    stop_reason: TokenId | str | UnsetType | None = UNSET


class ChatChunk(msgspec.Struct):
    """Event of ``/v1/chat/completions``."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: Count
    model: str
    choices: list[ChatChunkChoice]
    usage: UsageAnswer | UnsetType | None = UNSET
    sglext: dict[str, Any] | UnsetType = UNSET


class ModelCard(msgspec.Struct):
    """A model that is served."""

    id: str
    object: Literal["model"]
    created: Count
    owned_by: str
    root: str
    parent: str | None
    max_model_len: Annotated[Count, Meta(description="Most tokens of a request, prompt and output together.")]


class ModelList(msgspec.Struct):
    """The models that are served."""

    object: Literal["list"]
    data: list[ModelCard]


# --- Anthropic's and Ollama's -----------------------------------------------------------------------------------------


class AnthropicMessage(msgspec.Struct):
    """Answer of ``/v1/messages``."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, Any]]
    stop_reason: str | None
    stop_sequence: str | None
    usage: dict[str, Any]


class AnthropicEvent(msgspec.Struct):
    """Event of ``/v1/messages``; what else it has depends on its type."""

    type: str


class TokenCountAnswer(msgspec.Struct):
    """Answer of ``/v1/messages/count_tokens``."""

    input_tokens: Count


class OllamaAnswer(msgspec.Struct):
    """Answer, or line of the answer, of ``/api/chat`` (``message``) and ``/api/generate`` (``response``)."""

    model: str
    created_at: str
    done: bool
    done_reason: str | UnsetType = UNSET
    message: dict[str, Any] | UnsetType = UNSET
    response: str | UnsetType = UNSET
    total_duration: Annotated[Count | UnsetType, Meta(description="Time from arrival to end, in nanoseconds.")] = UNSET
    prompt_eval_count: Count | UnsetType = UNSET
    eval_count: Count | UnsetType = UNSET


class OllamaEmbedAnswer(msgspec.Struct):
    """Answer of ``/api/embed``: vectors of length 1, and nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: Count
    load_duration: Count
    prompt_eval_count: Count


class OllamaEmbeddingsAnswer(msgspec.Struct):
    """Answer of ``/api/embeddings``."""

    embedding: list[float]


class OllamaModels(msgspec.Struct):
    """The models that there are, or that are loaded."""

    models: list[dict[str, Any]]


class OllamaModel(msgspec.Struct):
    """About the model."""

    details: dict[str, Any]
    model_info: dict[str, Any]
    capabilities: list[str]
    template: str
    parameters: str


class VersionAnswer(msgspec.Struct):
    """The server's version."""

    version: str


# --- /v1/responses ----------------------------------------------------------------------------------------------------


class ResponseAnswer(msgspec.Struct):
    """A response, complete or not."""

    id: str
    object: Literal["response"]
    created_at: Count
    status: Literal["completed", "incomplete", "failed", "queued", "in_progress", "cancelled"]
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None
    error: dict[str, Any] | None
    incomplete_details: dict[str, Any] | None


class DeletedAnswer(msgspec.Struct):
    """A response that is forgotten."""

    id: str
    object: Literal["response"]
    deleted: bool


class ResponseEvent(msgspec.Struct):
    """Event of ``/v1/responses``; what else it has depends on its type. An error is the event `response.failed`."""

    type: str
    sequence_number: Count


class ItemsAnswer(msgspec.Struct):
    """What went into a response."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


# --- vectors and parsers ----------------------------------------------------------------------------------------------


class VectorUsage(msgspec.Struct):
    """Token counts of texts of which vectors were made."""

    prompt_tokens: Count
    total_tokens: Count


class Embedding(msgspec.Struct):
    """The vector of one text."""

    object: Literal["embedding"]
    index: Count
    embedding: Annotated[list[float] | str, Meta(description="Numbers, or base64 of them as little-endian float32.")]


class EmbeddingsAnswer(msgspec.Struct):
    """Answer of ``/v1/embeddings``."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: VectorUsage


class Classification(msgspec.Struct):
    """Probabilities of the classes of one text."""

    index: Count
    label: str
    probs: list[Annotated[float, Meta(ge=0, le=1)]]
    num_classes: Count


class ClassifyAnswer(msgspec.Struct):
    """Answer of ``/v1/classify``."""

    id: str
    object: Literal["list"]
    created: Count
    model: str
    data: list[Classification]
    usage: VectorUsage


class RankedDocument(msgspec.Struct):
    """A document and its relevance."""

    score: float
    index: Count
    meta_info: dict[str, Any]
    document: str | UnsetType = UNSET


class RelevantDocument(msgspec.Struct):
    """A document and its relevance, in the shape of Jina and Cohere."""

    index: Count
    relevance_score: float
    document: dict[str, str] | UnsetType = UNSET


class RerankAnswer(msgspec.Struct):
    """Answer of ``/rerank``."""

    id: str
    model: str
    usage: VectorUsage
    results: list[RelevantDocument]


class ScoreAnswer(msgspec.Struct):
    """Answer of ``/v1/score``: a list of scores per item."""

    object: Literal["scoring"]
    model: str
    scores: list[list[float | None]]
    usage: VectorUsage


class DecisionsAnswer(msgspec.Struct):
    """Answer of ``/v1/decisions``: by the id of the question its ``type``, ``probabilities``, ``label_mass`` (what the
    model gives to the answers and to nothing else), and the likeliest ``choice`` or the mean level as ``score``."""

    object: Literal["decisions"]
    model: str
    prompt_format_version: Literal[1]
    answers: dict[str, dict[str, Any]]
    usage: VectorUsage


class PairScore(msgspec.Struct):
    """The score of a pair of texts."""

    index: Count
    object: Literal["score"]
    score: float


class PairScoresAnswer(msgspec.Struct):
    """Answer of ``/v1/score`` to vLLM's form of requests."""

    id: str
    object: Literal["list"]
    created: Count
    model: str
    data: list[PairScore]
    usage: VectorUsage


class EncodeAnswer(msgspec.Struct):
    """The vector of one text, in the native shape."""

    embedding: list[float]
    meta_info: dict[str, Any]
    prompt_token_ids: list[Count] | UnsetType = UNSET


class FunctionCall(msgspec.Struct):
    """A call that was found in a text."""

    tool_index: Count
    name: str
    parameters: Annotated[str, Meta(description="The arguments, as JSON text.")]


class FunctionCallsAnswer(msgspec.Struct):
    """Answer of ``/parse_function_call``."""

    normal_text: str
    calls: list[FunctionCall]


class TextBlock(msgspec.Struct):
    """A part of a text."""

    type: Literal["text", "reasoning"]
    text: str


class SeparateReasoningAnswer(msgspec.Struct):
    """Answer of ``/separate_reasoning``."""

    reasoning_text: str
    text: str
    reasoning_blocks: list[str] | UnsetType = UNSET
    text_blocks: list[str] | UnsetType = UNSET
    blocks: list[TextBlock] | UnsetType = UNSET


# --- the rest ---------------------------------------------------------------------------------------------------------


class TokenizeAnswer(msgspec.Struct):
    """Token ids; lists of lists for a list of texts."""

    tokens: list[TokenId | list[TokenId]]
    count: Count | list[Count]
    max_model_len: Count
    token_strs: list[str | list[str | None] | None] | UnsetType = UNSET


class DetokenizeAnswer(msgspec.Struct):
    """Text; a list of texts for a list of lists."""

    text: str | list[str]


class LoadsAnswer(msgspec.Struct):
    """How busy the schedulers are."""

    timestamp: str
    version: str
    accelerator: str | None
    num_accelerators: Count
    loads: list[dict[str, Any]]


class ModelInfo(msgspec.Struct):
    """What is being served."""

    model_path: str
    served_model_name: str
    tokenizer_path: str
    is_generation: bool
    weight_version: str
    load_format: str
    model_type: str | None
    architectures: list[str]


class ServerInfo(msgspec.Struct):
    """Options (by their names), capacity and state of the server."""

    internal_states: list[dict[str, Any]]
    version: str
    frontend: str
