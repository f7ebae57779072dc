"""What Ollama's routes answer with. See :mod:`bough.entrypoints.http.answers`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.http.answers import Count


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
    """The version of Ollama whose interface is offered."""

    version: str
