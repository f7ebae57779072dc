"""What Anthropic's routes answer with. See :mod:`bough.entrypoints.http.answers`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bough.entrypoints.http.answers import Count


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
