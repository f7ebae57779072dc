"""The events of a response that is made in the background, for those who follow it, now or later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

EVENTS_PER_WRITE = 256
"""Most events handed out at a time."""


class EventLog:
    """Keeps events; the number of an event is its place.

    Attributes:
        num_bytes: of all events.
    """

    def __init__(self) -> None:
        self.num_bytes = 0
        self._events: list[bytes] = []
        self._is_complete = False
        self._news = asyncio.Event()
        """Set when there is something new, and then replaced."""

    def add(self, events: Sequence[bytes]) -> None:
        """More has happened."""
        self._events += events
        self.num_bytes += sum(map(len, events))
        self._tell()

    def close(self) -> None:
        """Nothing more will happen."""
        self._is_complete = True
        self._tell()

    async def follow(self, start: int) -> AsyncGenerator[bytes, None]:
        """Events from number ``start`` on, those that are still to come included."""
        position = start
        while True:
            if position < len(self._events):
                piece = self._events[position : position + EVENTS_PER_WRITE]
                position += len(piece)
                yield b"".join(piece)
            elif self._is_complete:
                return
            else:
                await self._news.wait()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
