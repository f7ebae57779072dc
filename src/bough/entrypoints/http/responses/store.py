"""Responses that are kept, within bounds."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bough.errors import NotFound, Overloaded

_PER_ENTRY = 512
"""Bytes that an entry takes besides its content."""


@dataclass
class StoredResponse:
    """A response, and what it takes to go on with it.

    Attributes:
        id: of the response.
        body: the response object as it is now.
        earlier: items of the conversation before this response's own input.
        items: the response's own input.
        task: works on it, if that goes on in the background.
    """

    id: str
    body: dict[str, Any]
    earlier: list[dict[str, Any]]
    items: list[dict[str, Any]]
    task: asyncio.Task[None] | None = None
    size: int = field(default=0, init=False)

    @property
    def is_running(self) -> bool:
        """Whether it is still being worked on."""
        return self.task is not None and not self.task.done()

    def conversation(self) -> list[dict[str, Any]]:
        """All items up to and with the response's output."""
        return [*self.earlier, *self.items, *self.body["output"]]


class ResponseStore:
    """Keeps the newest responses; older ones make room, except those that are still being worked on.

    Args:
        max_entries: most responses; 0 keeps none.
        max_bytes: most bytes of JSON in them together. What a conversation has in common with an earlier one that is
            kept as well is counted for each, so that the bound holds whichever goes first.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, StoredResponse] = OrderedDict()
        self.num_bytes = 0
        """Bytes of all entries."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_enabled(self) -> bool:
        """Whether anything is kept at all."""
        return self._max_entries > 0

    def has(self, response_id: str) -> bool:
        """Whether there is such a response."""
        return response_id in self._entries

    def get(self, response_id: str, param: str | None = None) -> StoredResponse:
        """The response of this id.

        Raises:
            NotFound: if there is none, or none any more.
        """
        entry = self._entries.get(response_id)
        if entry is None:
            raise NotFound(
                f"there is no response {response_id[:80]!r}, or it is not kept any more",
                param=param,
                code="response_not_found",
            )
        self._entries.move_to_end(response_id)
        return entry

    def put(self, entry: StoredResponse, *, must_fit: bool = False) -> None:
        """Keep a response, or count one anew that has changed. One for which there is no room is not kept.

        Raises:
            Overloaded: with ``must_fit``, if there is no room.
        """
        old = self._entries.pop(entry.id, None)
        if old is not None:
            self.num_bytes -= old.size
        entry.size = _PER_ENTRY + len(msgspec.json.encode([entry.body, entry.earlier, entry.items]))
        self._entries[entry.id] = entry
        self.num_bytes += entry.size
        for other in list(self._entries.values()):
            if not self._is_full:
                return
            if not other.is_running and other is not entry:
                self._remove(other)
        if self._is_full:
            self._remove(entry)
            if must_fit:
                raise Overloaded("there is no room for another response that is worked on in the background")

    def delete(self, response_id: str) -> None:
        """Forget a response, and end the work on it.

        Raises:
            NotFound: if there is none.
        """
        entry = self.get(response_id)
        self._remove(entry)
        if entry.task is not None:
            entry.task.cancel()

    @property
    def _is_full(self) -> bool:
        return len(self._entries) > self._max_entries or self.num_bytes > self._max_bytes

    def _remove(self, entry: StoredResponse) -> None:
        del self._entries[entry.id]
        self.num_bytes -= entry.size
