"""Pages of the items of a conversation, found by their ids: only what is on a page is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bough.entrypoints.http.responses.store import StoredResponse
from bough.errors import BadRequest
from bough.managers.turns import Turns

PLACES_PER_TURN = 1024


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
        entry: the response.
        after: id of the item before the page; ``None`` for the first page.
        limit: most items.
        newest_first: whether to begin at the end.

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
