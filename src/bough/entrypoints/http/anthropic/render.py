"""Answers in Anthropic's words: a message, or the events that build it up."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from bough.entrypoints.chat.core import ChoiceDelta
from bough.entrypoints.chat.reader import arguments_of, joined
from bough.ipc.messages import OutputDelta
from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolCallStart

_encode = msgspec.json.encode

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "abort": "end_turn"}

_TEXT, _THINKING, _TOOL = "text", "thinking", "tool_use"


def _event(kind: str, value: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode({"type": kind, **value}))


class MessageWriter:
    """Writes one answer.

    Args:
        shows_thinking: whether the text of thoughts is shown; else their blocks are empty.
    """

    def __init__(self, message_id: str, model: str, *, shows_thinking: bool = True) -> None:
        self._id = message_id
        self._model = model
        self._shows_thinking = shows_thinking
        self._index = -1
        self._open: str | None = None
        """What the last block is, if it is not complete."""
        self._delta_start = b""

    async def events(self, deltas: AsyncGenerator[ChoiceDelta, None]) -> AsyncGenerator[bytes, None]:
        """The events of a stream, from ``message_start`` to ``message_stop``."""
        started = False
        async with aclosing(deltas):
            async for delta in deltas:
                parts: list[bytes] = []
                if not started:
                    started = True
                    message = self._message([], delta.output, None)
                    parts += (_event("message_start", {"message": message}), _event("ping", {}))
                parts.append(self.plain_events(delta))
                if delta.output.finish_reason is not None:
                    self._end(delta, parts)
                if any(parts):
                    yield b"".join(parts)

    def plain_events(self, delta: ChoiceDelta) -> bytes:
        """The events for a delta in the middle of a stream that has begun."""
        parts: list[bytes] = []
        for event in delta.events:
            self._write(event, parts)
        return b"".join(parts)

    async def whole(self, deltas: AsyncGenerator[ChoiceDelta, None]) -> bytes:
        """The message of an answer that comes at once."""
        events: list[ParsedEvent] = []
        last: ChoiceDelta | None = None
        async for last in deltas:
            events += last.events
        assert last is not None, "every answer has a last delta"
        content = [self._block(event, text) for event, text in joined(events)] or [_text_block("")]
        return _encode(self._message(content, last.output, last))

    def _write(self, event: ParsedEvent, parts: list[bytes]) -> None:
        if isinstance(event, Content):
            if self._open != _TEXT:
                self._start(_TEXT, _text_block(""), parts)
            parts.append(b"%b%b}}\n\n" % (self._delta_start, _encode(event.text)))
        elif isinstance(event, Reasoning):
            if self._open != _THINKING:
                self._start(_THINKING, _thinking_block(""), parts)
            if self._shows_thinking:
                parts.append(b"%b%b}}\n\n" % (self._delta_start, _encode(event.text)))
        elif isinstance(event, ToolCallStart):
            self._start(_TOOL, _tool_block(event, {}), parts)
        else:
            parts.append(b"%b%b}}\n\n" % (self._delta_start, _encode(event.fragment)))

    def _end(self, delta: ChoiceDelta, parts: list[bytes]) -> None:
        if self._index < 0:
            self._start(_TEXT, _text_block(""), parts)
        self._stop(parts)
        reason, sequence = _stop_reason(delta)
        ended = {"stop_reason": reason, "stop_sequence": sequence}
        parts += (_event("message_delta", {"delta": ended, "usage": _usage(delta)}), _event("message_stop", {}))

    def _start(self, kind: str, block: dict[str, Any], parts: list[bytes]) -> None:
        self._stop(parts)
        self._index += 1
        self._open = kind
        delta_kind, member = _DELTAS[kind]
        self._delta_start = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
            % (self._index, delta_kind, member)
        )
        parts.append(_event("content_block_start", {"index": self._index, "content_block": block}))

    def _stop(self, parts: list[bytes]) -> None:
        if self._open is not None:
            if self._open == _THINKING:  # clients wait for it, though it seals nothing here
                signature = {"type": "signature_delta", "signature": ""}
                parts.append(_event("content_block_delta", {"index": self._index, "delta": signature}))
            self._open = None
            parts.append(_event("content_block_stop", {"index": self._index}))

    def _block(self, event: ParsedEvent, text: str) -> dict[str, Any]:
        """A part of a whole answer; its text, or the arguments of the call."""
        if isinstance(event, ToolCallStart):
            return _tool_block(event, arguments_of(text))
        if isinstance(event, Content):
            return _text_block(text)
        return _thinking_block(text if self._shows_thinking else "")

    def _message(self, content: list[dict[str, Any]], output: OutputDelta, last: ChoiceDelta | None) -> dict[str, Any]:
        reason, sequence = (None, None) if last is None else _stop_reason(last)
        usage = _usage(last) if last is not None else {**_input_usage(output), "output_tokens": 0}
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": sequence,
            "usage": usage,
        }


_DELTAS = {
    _TEXT: (b"text_delta", b"text"),
    _THINKING: (b"thinking_delta", b"thinking"),
    _TOOL: (b"input_json_delta", b"partial_json"),
}


def _stop_reason(delta: ChoiceDelta) -> tuple[str, str | None]:
    """``stop_reason`` and ``stop_sequence``."""
    kind, matched = delta.reader.finish_type(delta.output), delta.reader.matched_stop(delta.output)
    if isinstance(matched, str):
        return "stop_sequence", matched
    return _STOP_REASONS[kind or "stop"], None


def _input_usage(output: OutputDelta) -> dict[str, Any]:
    return {
        "input_tokens": output.prompt_tokens - output.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": output.cached_tokens,
    }


def _usage(delta: ChoiceDelta) -> dict[str, Any]:
    usage = {**_input_usage(delta.output), "output_tokens": delta.output.completion_tokens}
    thinking = delta.reader.reasoning_tokens
    return usage if thinking is None else {**usage, "output_tokens_details": {"thinking_tokens": thinking}}


def _text_block(text: str) -> dict[str, Any]:
    return {"type": _TEXT, "text": text}


def _thinking_block(text: str) -> dict[str, Any]:
    return {"type": _THINKING, "thinking": text, "signature": ""}


def _tool_block(call: ToolCallStart, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": _TOOL, "id": call.id, "name": call.name, "input": arguments}
