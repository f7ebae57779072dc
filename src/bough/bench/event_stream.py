"""Reading a stream of server-sent events at next to no cost.

A benchmark client runs on the machine that it measures, so every microsecond it spends is taken from the server.
Events are found and counted in the raw bytes; JSON is parsed only up to the first token and at the very end.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]

_END = b"\n\n"
_DATA = b"data:"
_DONE = b"[DONE]"
_TOKENS = b'"completion_tokens":'
"""What native events have, and OpenAI's with ``continuous_usage_stats``. Within a text its quotes are escaped."""
_NUMBER = re.compile(rb"\s*(\d+)")
_LAST_CHUNKS = 4
"""Chunks kept for :meth:`EventStream.finish`. Each holds at least one event, and after the last token come at most
three more: one with the finish reason, one with the usage, and ``[DONE]``."""


class EventStream:
    """Counts and times the events of one answer. Comments and events without data are none.

    Attributes:
        first_token_at: time of the first event with a token; ``None`` before it.
        first_tokens: tokens of that event; 1 where it does not tell.
        token_events: number of events with tokens; known after :meth:`finish`.
        gaps: seconds between successive tokens from the first event on; known after :meth:`finish`. Where events tell
            how many tokens have come, the time since the event before is shared out among those that are new, as
            SGLang's ``bench_serving`` does; elsewhere an event is a token. Events that arrive together have a gap of 0
            after the first of them.
        done: whether the closing ``[DONE]`` was seen.
    """

    def __init__(self, has_token: Callable[[Event], bool]) -> None:
        self.first_token_at: float | None = None
        self.first_tokens = 1
        self.token_events = 0
        self.gaps: list[float] = []
        self.done = False
        self._has_token = has_token
        self._rest = b""
        self._chunks: deque[list[bytes]] = deque(maxlen=_LAST_CHUNKS)
        self._steps: list[tuple[float, int]] = []
        """Of every event after the first with a token: seconds since the one before, and tokens; 0 of those without."""
        self._last_at = 0.0
        self._tokens = 0

    def feed(self, chunk: bytes, now: float) -> None:
        """Take bytes, cut anywhere, as they arrive at the time ``now``, in seconds.

        Raises:
            ValueError: if an event before the first token is not JSON.
        """
        if self._rest:
            chunk = self._rest + chunk
        if b"\r" in chunk:  # a valid end of a line, which some servers write
            chunk = chunk.replace(b"\r\n", b"\n")
        end = chunk.rfind(_END)
        if end < 0:
            self._rest = chunk
            return
        complete, self._rest = chunk[:end], chunk[end + len(_END) :]
        events = [data for event in complete.split(_END) if (data := _data(event)) is not None]
        if not events:
            return
        self._chunks.append(events)
        if self.first_token_at is not None:
            self._count(events, now)
            return
        for index, event in enumerate(events):
            if (parsed := _parse(event)) is not None and self._has_token(parsed):
                self.first_token_at = self._last_at = now
                self._tokens = self.first_tokens = _tokens_so_far(event) or 1
                self._count(events[index + 1 :], now)
                return

    def finish(self) -> list[Event]:
        """Work out the gaps, without those of closing events without a token; return the last events, with the totals.

        Raises:
            ValueError: if one of them is not JSON.
        """
        raw = [event for chunk in self._chunks for event in chunk]
        events = []
        without_token = 0
        for each in raw[-_LAST_CHUNKS:]:
            parsed = _parse(each)
            if parsed is None:
                self.done = True
                without_token += 1
            else:
                events.append(parsed)
                without_token = 0 if self._has_token(parsed) else without_token + 1
        steps = self._steps[: max(0, len(self._steps) - without_token)]
        self.gaps = [seconds / tokens for seconds, tokens in steps for _ in range(tokens)]
        self.token_events = (self.first_token_at is not None) + sum(tokens > 0 for _, tokens in steps)
        return events

    def _count(self, events: list[bytes], now: float) -> None:
        for event in events:
            told = _tokens_so_far(event)
            tokens = 1 if told is None else max(0, told - self._tokens)
            self._steps.append((now - self._last_at, tokens))
            if tokens:
                self._last_at = now
                self._tokens += tokens


def _data(event: bytes) -> bytes | None:
    """The data of an event; ``None`` if it has none (the HTML standard, "Interpreting an event stream")."""
    if event.startswith(_DATA) and b"\n" not in event:
        return event[len(_DATA) :]
    lines = [line[len(_DATA) :] for line in event.split(b"\n") if line.startswith(_DATA)]
    return b"\n".join(lines) if lines else None


def _tokens_so_far(data: bytes) -> int | None:
    """How many tokens have come with this event and those before it; ``None`` where it does not tell."""
    found = data.rfind(_TOKENS)
    number = None if found < 0 else _NUMBER.match(data, found + len(_TOKENS))
    return None if number is None else int(number[1])


def _parse(data: bytes) -> Event | None:
    """The JSON object of an event; ``None`` for ``[DONE]``."""
    if data.strip() == _DONE:
        return None
    parsed: Event = json.loads(data)
    return parsed
