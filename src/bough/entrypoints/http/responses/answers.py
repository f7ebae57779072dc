"""What ``/v1/responses`` answers with. See :mod:`bough.entrypoints.http.answers`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bough.entrypoints.http.answers import Count


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
