"""Long work on an event loop, cut into turns, so that other tasks run in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """Counts work and yields to other tasks after every ``length`` of it, which should take less than a millisecond."""

    __slots__ = ("_left", "_length")

    def __init__(self, length: int) -> None:
        self._length = length
        self._left = length

    async def spend(self, amount: int = 1) -> None:
        """Account for work that was done."""
        self._left -= amount
        if self._left <= 0:
            self._left = self._length
            await asyncio.sleep(0)


async def collect(items: Iterable[T], length: int = 64, work: Callable[[T], int] | None = None) -> list[T]:
    """The items as a list, made ``length`` at a time; or as many as have cost so much ``work``."""
    turns = Turns(length)
    result = []
    for item in items:
        result.append(item)
        await turns.spend(1 if work is None else work(item))
    return result
