"""Reading a stream of server-sent events at next to no cost.

A benchmark client runs on the machine that it measures, so every microsecond it spends is taken from the server.
Events are found and counted in the raw bytes; JSON is parsed only up to the first token and at the very end.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]

_END = b"\n\n"
_DATA = b"data:"
_DONE = b"[DONE]"
_LAST_CHUNKS = 4
"""Chunks kept for :meth:`EventStream.finish`. Each holds at least one event, and after the last token come at most
three more: one with the finish reason, one with the usage, and ``[DONE]``."""


class EventStream:
    """Counts and times the events of one answer.

    Attributes:
        first_token_at: time of the first event with a token; ``None`` before it.
        gaps: seconds between successive events from the first token on. Events that arrive together have a gap of 0
            after the first of them.
        done: whether the closing ``[DONE]`` was seen.
    """

    def __init__(self, has_token: Callable[[Event], bool]) -> None:
        self.first_token_at: float | None = None
        self.gaps: list[float] = []
        self.done = False
        self._has_token = has_token
        self._rest = b""
        self._chunks: deque[bytes] = deque(maxlen=_LAST_CHUNKS)
        self._last_at = 0.0

    def feed(self, chunk: bytes, now: float) -> None:
        """Take bytes as they arrive.

        Args:
            chunk: any number of bytes, cut anywhere.
            now: the time of their arrival, in seconds.

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
        self._chunks.append(complete)
        if self.first_token_at is not None:
            self._count(complete.count(_END) + 1, now)
            return
        events = complete.split(_END)
        for index, event in enumerate(events):
            if (parsed := _parse(event)) is not None and self._has_token(parsed):
                self.first_token_at = self._last_at = now
                self._count(len(events) - index - 1, now)
                return

    def finish(self) -> list[Event]:
        """End the stream: drop the gaps of closing events that carry no token.

        Returns:
            The last few events, in order; the last of all holds the totals.

        Raises:
            ValueError: if one of them is not JSON.
        """
        raw = [event for chunk in self._chunks for event in chunk.split(_END)]
        events = []
        without_token = 0
        for each in raw[-_LAST_CHUNKS:]:
            parsed = _parse(each)
            if parsed is None:
                self.done = self.done or _is_done(each)
                without_token += 1
            else:
                events.append(parsed)
                without_token = 0 if self._has_token(parsed) else without_token + 1
        if without_token:
            del self.gaps[max(0, len(self.gaps) - without_token) :]
        return events

    def _count(self, events: int, now: float) -> None:
        if events:
            self.gaps.append(now - self._last_at)
            self.gaps.extend([0.0] * (events - 1))
            self._last_at = now


def _is_done(event: bytes) -> bool:
    return event.startswith(_DATA) and event[len(_DATA) :].strip() == _DONE


def _parse(event: bytes) -> Event | None:
    """The JSON object of an event; ``None`` for ``[DONE]`` and for events without data."""
    if not event.startswith(_DATA) or _is_done(event):
        return None
    parsed: Event = json.loads(event[len(_DATA) :])
    return parsed
