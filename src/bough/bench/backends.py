"""The interfaces that the benchmark client speaks: what to send, and how to read what comes back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

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


class Backend(Protocol):
    """One interface of a server."""

    path: str

    def body(self, request: BenchRequest, model: str, sampling: Sampling, *, stream: bool) -> bytes:
        """The request body, JSON."""

    def has_token(self, event: Event) -> bool:
        """Whether a streamed event carries generated tokens."""

    def usage(self, answer: Event) -> Usage | None:
        """Totals from a whole answer or from a streamed event; ``None`` where it has none."""


class NativeBackend:
    """``/generate``: ids where the dataset has ids."""

    path = "/generate"

    def body(self, request: BenchRequest, model: str, sampling: Sampling, *, stream: bool) -> bytes:
        """See :class:`Backend`; ``model`` is not used."""
        prompt = {"text": request.as_text()} if request.input_ids is None else {"input_ids": request.input_ids}
        return _encode(
            {
                **prompt,
                "sampling_params": {
                    "temperature": sampling.temperature,
                    "top_p": sampling.top_p,
                    "max_new_tokens": request.output_len,
                    "ignore_eos": sampling.ignore_eos,
                },
                "stream": stream,
            },
            sampling.extra_body,
        )

    def has_token(self, event: Event) -> bool:
        """See :class:`Backend`."""
        meta: dict[str, Any] = event.get("meta_info", {})
        return bool(meta.get("completion_tokens"))

    def usage(self, answer: Event) -> Usage | None:
        """See :class:`Backend`; every event has the totals so far."""
        meta = answer.get("meta_info")
        if meta is None:
            return None
        return Usage(meta["prompt_tokens"], meta["completion_tokens"], meta.get("cached_tokens") or 0)


class _OpenAIBackend:
    def _body(self, request: BenchRequest, model: str, sampling: Sampling, stream: bool) -> dict[str, Any]:
        body = {
            "model": model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": request.output_len,
            "stream": stream,
        }
        if sampling.ignore_eos:
            body["ignore_eos"] = True
        if stream:
            body["stream_options"] = {"include_usage": True}
        return body

    def usage(self, answer: Event) -> Usage | None:
        """See :class:`Backend`."""
        usage = answer.get("usage")
        if not usage:
            return None
        details = usage.get("prompt_tokens_details") or {}
        return Usage(usage["prompt_tokens"], usage["completion_tokens"], details.get("cached_tokens") or 0)


class CompletionsBackend(_OpenAIBackend):
    """``/v1/completions``: ids where the dataset has ids."""

    path = "/v1/completions"

    def body(self, request: BenchRequest, model: str, sampling: Sampling, *, stream: bool) -> bytes:
        """See :class:`Backend`."""
        prompt = request.as_text() if request.input_ids is None else request.input_ids
        return _encode({**self._body(request, model, sampling, stream), "prompt": prompt}, sampling.extra_body)

    def has_token(self, event: Event) -> bool:
        """See :class:`Backend`."""
        return any(choice.get("text") or choice.get("finish_reason") is None for choice in event.get("choices", ()))


class ChatBackend(_OpenAIBackend):
    """``/v1/chat/completions``: ids become words, since a chat takes text."""

    path = "/v1/chat/completions"

    def body(self, request: BenchRequest, model: str, sampling: Sampling, *, stream: bool) -> bytes:
        """See :class:`Backend`."""
        messages = request.messages or [{"role": "user", "content": request.as_text()}]
        return _encode({**self._body(request, model, sampling, stream), "messages": messages}, sampling.extra_body)

    def has_token(self, event: Event) -> bool:
        """See :class:`Backend`; the opening event names the role and has no token."""
        for choice in event.get("choices", ()):
            delta: dict[str, Any] = choice.get("delta", {})
            if any(delta.get(name) for name in ("content", "reasoning_content", "reasoning", "tool_calls")):
                return True
        return False


BACKENDS: dict[str, Backend] = {"native": NativeBackend(), "oai": CompletionsBackend(), "oai-chat": ChatBackend()}


def _encode(body: dict[str, Any], extra: dict[str, Any]) -> bytes:
    merged = dict(body)
    for name, value in extra.items():
        own = body.get(name)
        merged[name] = {**own, **value} if isinstance(own, dict) and isinstance(value, dict) else value
    return json.dumps(merged).encode()
