"""What OpenAI's routes answer with, and those of embeddings and scores. See :mod:`bough.entrypoints.http.answers`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.http.answers import Count, TokenId


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
    refusal: None
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
    refusal: UnsetType | None = UNSET
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
