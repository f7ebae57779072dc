"""Answers in Ollama's words: one JSON object, or one a line."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime, timezone
from typing import Any

import msgspec

from bough.entrypoints.chat.core import ChoiceDelta
from bough.entrypoints.chat.reader import arguments_of, joined
from bough.entrypoints.http.logprobs import TokenNames, paced_chat_logprobs
from bough.ipc.messages import PositionLogprobs
from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolCallArguments, ToolCallStart

_encode = msgspec.json.encode

NANOSECONDS = 1_000_000_000


def timestamp() -> str:
    """Now, as RFC 3339 has it, in UTC."""
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


class OllamaWriter:
    """Writes one answer.

    Args:
        started: when the request came in, in seconds on the monotonic clock.
    """

    def __init__(
        self,
        model: str,
        *,
        is_chat: bool,
        names: TokenNames | None,
        top_logprobs: int,
        skip_special_tokens: bool,
        started: float,
    ) -> None:
        self._model = _encode(model)
        self._is_chat = is_chat
        self._names = names
        self._top_logprobs = top_logprobs
        self._skip_special_tokens = skip_special_tokens
        self._started = started
        self._call: ToolCallStart | None = None
        self._arguments: list[str] = []
        self._unsaid: list[PositionLogprobs] = []

    def plain_lines(self, delta: ChoiceDelta) -> bytes:
        """The lines for a delta in the middle of a stream, where no logprobs are wanted."""
        pieces = self._pieces(delta.events, is_last=False)
        return b"".join([self._line(*piece, b"", b'"done":false}\n') for piece in pieces])

    async def lines(self, deltas: AsyncGenerator[ChoiceDelta, None]) -> AsyncGenerator[bytes, None]:
        """The lines of a stream; the last one has no text, but the reason of the end and all counts."""
        async with aclosing(deltas):
            async for delta in deltas:
                self._unsaid += delta.output.logprobs or ()
                is_last = delta.output.finish_reason is not None
                lines = []
                for text, thinking, calls in self._pieces(delta.events, is_last=is_last):
                    lines.append(self._line(text, thinking, calls, await self._logprobs(), b'"done":false}\n'))
                if is_last:
                    lines.append(self._line("", "", [], await self._logprobs(), self._end(delta) + b"\n"))
                if lines:
                    yield b"".join(lines)

    async def whole(self, deltas: AsyncGenerator[ChoiceDelta, None]) -> bytes:
        """The answer as one object."""
        events: list[ParsedEvent] = []
        last: ChoiceDelta | None = None
        async with aclosing(deltas):
            async for last in deltas:
                self._unsaid += last.output.logprobs or ()
                events += last.events
        assert last is not None, "every answer has a last delta"
        parts = joined(events)
        text = "".join(text for event, text in parts if isinstance(event, Content))
        thinking = "".join(text for event, text in parts if isinstance(event, Reasoning))
        calls = [_call(event, text) for event, text in parts if isinstance(event, ToolCallStart)]
        return self._line(text, thinking, calls, await self._logprobs(), self._end(last))

    def _pieces(self, events: list[ParsedEvent], *, is_last: bool) -> list[tuple[str, str, list[dict[str, Any]]]]:
        """Text, thoughts and complete tool calls, in order."""
        pieces: list[tuple[str, str, list[dict[str, Any]]]] = []
        for event in events:
            if isinstance(event, ToolCallArguments):
                self._arguments.append(event.fragment)
                continue
            if self._call is not None:
                pieces.append(("", "", [self._whole_call()]))
            if isinstance(event, Content):
                pieces.append((event.text, "", []))
            elif isinstance(event, Reasoning):
                pieces.append(("", event.text, []))
            else:
                self._call = event
        if is_last and self._call is not None:
            pieces.append(("", "", [self._whole_call()]))
        return pieces

    def _whole_call(self) -> dict[str, Any]:
        assert self._call is not None, "only called if there is one"
        call, text = self._call, "".join(self._arguments)
        self._call = None
        self._arguments.clear()
        return _call(call, text)

    def _line(self, text: str, thinking: str, calls: list[dict[str, Any]], logprobs: bytes, end: bytes) -> bytes:
        shown = b',"thinking":%b' % _encode(thinking) if thinking else b""
        if self._is_chat:
            called = b',"tool_calls":%b' % _encode(calls) if calls else b""
            body = b'"message":{"role":"assistant","content":%b%b%b}' % (_encode(text), shown, called)
        else:
            body = b'"response":%b%b' % (_encode(text), shown)
        return b'{"model":%b,"created_at":"%b",%b%b,%b' % (self._model, timestamp().encode(), body, logprobs, end)

    def _end(self, delta: ChoiceDelta) -> bytes:
        """The last members: why the answer ended, token counts, and durations in nanoseconds."""
        state, output = delta.state, delta.output
        # How long the way to the scheduler took is not known: the first token may seem to be made after it has come.
        first = min(state.first_token_time or state.finished_time, state.finished_time)
        reason = output.finish_reason
        done_reason = "length" if reason is not None and reason.type == "length" else "stop"
        values = {
            "done": True,
            "done_reason": done_reason,
            "total_duration": round((state.finished_time - self._started) * NANOSECONDS),
            "load_duration": 0,
            "prompt_eval_count": output.prompt_tokens,
            "prompt_eval_duration": round((first - state.created_time) * NANOSECONDS),
            "eval_count": output.completion_tokens,
            "eval_duration": round((state.finished_time - first) * NANOSECONDS),
        }
        return _encode(values)[1:]

    async def _logprobs(self) -> bytes:
        if self._names is None or not self._unsaid:
            return b""
        unsaid, self._unsaid = self._unsaid, []
        written = await paced_chat_logprobs(unsaid, self._names, self._skip_special_tokens, self._top_logprobs)
        return b',"logprobs":[%b]' % written


def _call(start: ToolCallStart, arguments: str) -> dict[str, Any]:
    function = {"index": start.index, "name": start.name, "arguments": arguments_of(arguments)}
    return {"id": start.id, "function": function}
