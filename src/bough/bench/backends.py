"""The interfaces that the benchmark client speaks: what to send, and how to read what comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bough.bench.datasets import BenchRequest
from bough.bench.event_stream import Event


@dataclass(frozen=True, slots=True)
class Sampling:
    """How all requests of a run are sampled."""

    temperature: float = 0.0
    top_p: float = 1.0
    ignore_eos: bool = True
    extra_body: dict[str, Any] = field(default_factory=dict)
    """Put into every request body, over what the backend puts there; in objects that both have, member by member."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server says about one answer, in tokens."""

    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    """Prompt tokens that were reused, not computed; 0 where the server does not tell."""


@dataclass(frozen=True, slots=True)
class Backend:
    """One interface of a server."""

    path: str
    fields: Callable[[BenchRequest, str, Sampling, bool], dict[str, Any]]
    """Fields of the body of a request, which is sampled in one way by a model of one name, and streamed or not."""
    has_token: Callable[[Event], bool]
    """Tells whether a streamed event carries generated tokens."""
    usage: Callable[[Event], Usage | None]
    """Totals from a whole answer or from a streamed event; ``None`` where it has none."""

    def body(self, request: BenchRequest, model: str, sampling: Sampling, *, stream: bool) -> bytes:
        """Return the request body, JSON."""
        fields = self.fields(request, model, sampling, stream)
        for name, value in sampling.extra_body.items():
            own = fields.get(name)
            fields[name] = {**own, **value} if isinstance(own, dict) and isinstance(value, dict) else value
        return json.dumps(fields).encode()


def _native_fields(request: BenchRequest, model: str, sampling: Sampling, stream: bool) -> dict[str, Any]:
    prompt = {"text": request.as_text()} if request.input_ids is None else {"input_ids": request.input_ids}
    return {
        **prompt,
        "sampling_params": {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_new_tokens": request.output_len,
            "ignore_eos": sampling.ignore_eos,
        },
        "stream": stream,
    }


def _native_has_token(event: Event) -> bool:
    meta: dict[str, Any] = event.get("meta_info", {})
    return bool(meta.get("completion_tokens"))


def _native_usage(answer: Event) -> Usage | None:
    meta = answer.get("meta_info")  # every event has the totals so far
    if meta is None:
        return None
    return Usage(meta["prompt_tokens"], meta["completion_tokens"], meta.get("cached_tokens") or 0)


def _openai_fields(request: BenchRequest, model: str, sampling: Sampling, stream: bool) -> dict[str, Any]:
    fields = {
        "model": model,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": request.output_len,
        "stream": stream,
    }
    if sampling.ignore_eos:
        fields["ignore_eos"] = True
    if stream:
        fields["stream_options"] = {"include_usage": True}
    return fields


def _openai_usage(answer: Event) -> Usage | None:
    usage = answer.get("usage")
    if not usage:
        return None
    details = usage.get("prompt_tokens_details") or {}
    return Usage(usage["prompt_tokens"], usage["completion_tokens"], details.get("cached_tokens") or 0)


def _completion_fields(request: BenchRequest, model: str, sampling: Sampling, stream: bool) -> dict[str, Any]:
    prompt = request.as_text() if request.input_ids is None else request.input_ids
    return {**_openai_fields(request, model, sampling, stream), "prompt": prompt}


def _completion_has_token(event: Event) -> bool:
    return any(choice.get("text") or choice.get("finish_reason") is None for choice in event.get("choices", ()))


def _chat_fields(request: BenchRequest, model: str, sampling: Sampling, stream: bool) -> dict[str, Any]:
    messages = request.messages or [{"role": "user", "content": request.as_text()}]  # a chat takes no ids
    return {**_openai_fields(request, model, sampling, stream), "messages": messages}


def _chat_has_token(event: Event) -> bool:
    deltas = [choice.get("delta", {}) for choice in event.get("choices", ())]  # the first event has only the role
    names = ("content", "reasoning_content", "reasoning", "tool_calls")
    return any(delta.get(name) for delta in deltas for name in names)


BACKENDS = {
    "native": Backend("/generate", _native_fields, _native_has_token, _native_usage),
    "oai": Backend("/v1/completions", _completion_fields, _completion_has_token, _openai_usage),
    "oai-chat": Backend("/v1/chat/completions", _chat_fields, _chat_has_token, _openai_usage),
}
"""Interfaces by name. A prompt of a dataset's token ids is sent as ids, but for a chat, where it becomes words."""
