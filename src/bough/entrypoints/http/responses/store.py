"""Responses that are kept, within bounds: their events, and pages of their items, of which only those on a page are
decoded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from bough.errors import BadRequest, NotFound, Overloaded
from bough.managers.turns import Turns

Item = dict[str, Any]

_PER_ENTRY = 512
"""Bytes that an entry takes besides its content."""

_PER_ITEM = 256
"""Bytes that it takes to find an item by its id."""

RECOUNTED_BYTES = 64 * 1024
"""A response that is being made is counted anew whenever it has grown by so much."""


EVENTS_PER_WRITE = 256
"""Most events handed out at a time."""

PLACES_PER_TURN = 1024
"""Items of a conversation looked at between two ticks of the event loop."""


class _WithOutput(msgspec.Struct):
    output: list[Item]


_OUTPUT = msgspec.json.Decoder(_WithOutput)
_ITEMS = msgspec.json.Decoder(list[Item])


class EventLog:
    """Keeps events; the number of an event is its place."""

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


class StoredResponse:
    """A response, and what it takes to go on with it. What is kept is encoded, so that its size is known.

    Args:
        body: the response object, while it is being made.
        items: what the request has added to the conversation.

    Attributes:
        id: of the response.
        previous: the response that it goes on from.
        input_ids: of its own items.
        output_ids: of its output, if that is complete.
        task: works on it, if that goes on in the background.
        holders: entries of a store, and later responses, that need this one.
        counted: bytes that the store counts for it.
        log: its events, if it is made in the background and may be followed.
        growth: bytes of output that the response object has by now, about; counts until that is complete.
    """

    def __init__(
        self, response_id: str, body: dict[str, Any], items: Sequence[Item], previous: StoredResponse | None = None
    ) -> None:
        self.id = response_id
        self.task: asyncio.Task[None] | None = None
        self.holders = 0
        self.counted = 0
        self.log: EventLog | None = None
        self.growth = 0
        self._body: dict[str, Any] | None = body
        self._blank_bytes = len(msgspec.json.encode(body))
        self._encoded = b""
        self._items = msgspec.json.encode(items)
        self.previous = previous
        self.input_ids: list[str] = [item["id"] for item in items]
        self.output_ids: list[str] = []

    @property
    def is_running(self) -> bool:
        """Whether it is still being worked on."""
        return self.task is not None and not self.task.done()

    @property
    def item_ids(self) -> list[str]:
        """Ids of its own items, and of its output if that is complete."""
        return [*self.input_ids, *self.output_ids]

    @property
    def size(self) -> int:
        """Bytes that it takes, without those before it."""
        num_items = len(self.input_ids) + len(self.output_ids)
        body = len(self._encoded) if self._body is None else self._blank_bytes + self.growth
        log = 0 if self.log is None else self.log.num_bytes
        return _PER_ENTRY + _PER_ITEM * num_items + len(self._items) + body + log

    def to_json(self) -> bytes:
        """The response object as it is now."""
        body = self._body
        return self._encoded if body is None else msgspec.json.encode(body)

    def complete(self, encoded: bytes) -> None:
        """Nothing more comes; ``encoded`` is the response object for good."""
        if self._body is not None:
            self.output_ids = [item["id"] for item in self._body["output"]]
        self._body, self._encoded = None, encoded

    def chain(self) -> Iterator[StoredResponse]:
        """This response and those before it in its conversation, newest first."""
        entry: StoredResponse | None = self
        while entry is not None:
            yield entry
            entry = entry.previous

    def items(self) -> list[Item]:
        """What the request has added to the conversation."""
        return _ITEMS.decode(self._items)

    def output(self) -> list[Item]:
        """What was answered."""
        return _OUTPUT.decode(self.to_json()).output

    def conversation(self) -> list[Item]:
        """All items up to and with the response's output."""
        return [item for entry in reversed(list(self.chain())) for item in (*entry.items(), *entry.output())]


class ResponseStore:
    """Keeps the newest responses; older ones make room, except those that are still being worked on.

    Responses of one conversation share what they have in common: an earlier one that is not kept by its id any more
    stays as long as a later one goes on from it, and is counted once.

    Args:
        max_entries: most responses; 0 keeps none.
        max_bytes: most bytes of JSON in them together.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, StoredResponse] = OrderedDict()
        self._by_item: dict[str, list[StoredResponse]] = {}
        """The responses that have an item of this id, first the one that it comes from."""
        self._reserved: dict[str, object] = {}
        """Ids of responses that are being made, and by whom."""
        self.num_bytes = 0
        """Bytes of all entries, and of what they go on from."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_enabled(self) -> bool:
        """Whether anything is kept at all."""
        return self._max_entries > 0

    def has(self, response_id: str) -> bool:
        """Whether there is such a response."""
        return response_id in self._entries

    def holds(self, entry: StoredResponse) -> bool:
        """Whether it is this response that is kept by its id, and not another one."""
        return self._entries.get(entry.id) is entry

    def reserve(self, response_id: str, param: str) -> Callable[[], None]:
        """Take an id for a response that is yet to be made, until it is put or the id is given back.

        Returns:
            what gives it back; it does nothing when the id has been put or given back already.

        Raises:
            BadRequest: if there is a response of this id, or one is being made.
        """
        if response_id in self._entries:
            raise BadRequest(f"{param}: there is a response of that id", param=param)
        if response_id in self._reserved:
            raise BadRequest(f"{param}: a response of that id is being made", param=param)
        owner = self._reserved[response_id] = object()

        def give_back() -> None:
            if self._reserved.get(response_id) is owner:
                del self._reserved[response_id]

        return give_back

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

    def finder(self) -> Callable[[str, str], Item]:
        """What finds items of responses for one request, by their ids and the field that names them.

        It decodes each response once and gives each item once, so that a request grows by no more than is stored. It
        raises ``NotFound`` if there is no such item, or none any more, and ``BadRequest`` if it has given it already.
        """
        decoded: dict[str, dict[str, Item]] = {}
        given: set[str] = set()

        def find(item_id: str, param: str) -> Item:
            if item_id in given:
                raise BadRequest(f"{param}: the item {item_id[:80]!r} is in the input already", param=param)
            for entry in self._by_item.get(item_id, ())[:1]:
                if entry.id not in decoded:
                    decoded[entry.id] = {item["id"]: item for item in (*entry.items(), *entry.output())}
                if item_id in decoded[entry.id]:
                    given.add(item_id)
                    return decoded[entry.id][item_id]
            raise NotFound(
                f"{param}: there is no item {item_id[:80]!r}, or it is not kept any more",
                param=param,
                code="item_not_found",
            )

        return find

    def put(self, entry: StoredResponse, *, must_fit: bool = False) -> None:
        """Keep a response in place of one that has its id, or count one anew that has changed. One for which there is
        no room is not kept, and takes no room from others.

        Raises:
            Overloaded: with ``must_fit``, if there is no room.
        """
        known = self._entries.get(entry.id)
        if known is not None:
            self._remove(known)
        if not self._has_room(entry):
            if must_fit:
                raise Overloaded("there is no room for another response that is worked on in the background")
            return
        self._reserved.pop(entry.id, None)
        self._entries[entry.id] = entry
        for item_id in dict.fromkeys(entry.item_ids):
            self._by_item.setdefault(item_id, []).append(entry)
        self._hold(entry)
        self._make_room(entry)

    def note_growth(self, entry: StoredResponse) -> None:
        """Count one anew that is still being made, if it has grown by much and is kept; others make room."""
        growth = entry.size - entry.counted
        if entry.holders and growth >= RECOUNTED_BYTES:
            entry.counted += growth
            self.num_bytes += growth
            self._make_room(entry)

    def size_of(self, item_ids: Iterable[str]) -> int:
        """Bytes that have to be read to find items of these ids."""
        found = {entry.id: entry.size for item_id in item_ids for entry in self._by_item.get(item_id, ())[:1]}
        return sum(found.values())

    def delete(self, response_id: str) -> None:
        """Forget a response, and end the work on it.

        Raises:
            NotFound: if there is none.
        """
        entry = self.get(response_id)
        self._remove(entry)
        if entry.task is not None:
            entry.task.cancel()

    def _make_room(self, entry: StoredResponse) -> None:
        """Forget older ones than this until there is room, or all others are being worked on."""
        for other in list(self._entries.values()):
            if not self._is_full:
                break
            if not other.is_running and other is not entry:
                self._remove(other)

    @property
    def _is_full(self) -> bool:
        return len(self._entries) > self._max_entries or self.num_bytes > self._max_bytes

    def _has_room(self, entry: StoredResponse) -> bool:
        """Whether there is room for a response beside those that cannot go now."""
        staying = [*(each for each in self._entries.values() if each.is_running), entry]
        needed: dict[int, int] = {}
        for each in staying:
            for part in each.chain():
                if id(part) in needed:
                    break  # and so are all before it
                needed[id(part)] = part.size
        return len(staying) <= self._max_entries and sum(needed.values()) <= self._max_bytes

    def _hold(self, entry: StoredResponse) -> None:
        for part in entry.chain():
            part.holders += 1
            if part.holders > 1:
                return
            part.counted = part.size
            self.num_bytes += part.counted

    def _remove(self, entry: StoredResponse) -> None:
        del self._entries[entry.id]
        for item_id in dict.fromkeys(entry.item_ids):
            holders = self._by_item.get(item_id, [])
            if entry in holders:  # those of an output that has come since are not there yet
                holders.remove(entry)
                if not holders:
                    del self._by_item[item_id]
        for part in entry.chain():
            part.holders -= 1
            if part.holders:
                return
            self.num_bytes -= part.counted


class Place(NamedTuple):
    """Where an item is."""

    entry: StoredResponse
    number: int
    """Among what the request has added to the conversation, and behind that what was answered."""


async def page_of(
    entry: StoredResponse, after: str | None, limit: int, *, newest_first: bool
) -> tuple[list[Place], bool]:
    """A page of what went into a response, and whether there is more behind it.

    Args:
        after: id of the item before the page; ``None`` for the first page.

    Raises:
        BadRequest: if ``after`` is none of the items.
    """
    turns = Turns(PLACES_PER_TURN)
    page: list[Place] = []
    is_behind = after is None
    for item_id, place in _places(entry, newest_first=newest_first):
        if is_behind:
            if len(page) == limit:
                return page, True
            page.append(place)
        elif item_id == after:
            is_behind = True
        await turns.spend()
    if not is_behind:
        raise BadRequest("after names no item of this response", param="after")
    return page, False


def items_at(page: Sequence[Place]) -> list[dict[str, Any]]:
    """The items of a page; of each response they are decoded once."""
    with_output = {id(part) for part, number in page if number >= len(part.input_ids)}
    decoded: dict[int, list[dict[str, Any]]] = {}
    for part, _ in page:
        if id(part) not in decoded:
            decoded[id(part)] = [*part.items(), *(part.output() if id(part) in with_output else ())]
    return [decoded[id(part)][number] for part, number in page]


def _places(entry: StoredResponse, *, newest_first: bool) -> Iterator[tuple[str, Place]]:
    """All items that went into a response with their ids, in order; its own output did not."""
    chain = list(entry.chain())
    for part in chain if newest_first else reversed(chain):
        ids = part.input_ids if part is entry else part.item_ids
        numbered = list(enumerate(ids))
        for number, item_id in reversed(numbered) if newest_first else numbered:
            yield item_id, Place(part, number)
