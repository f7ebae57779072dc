"""Changes of an engine that are made while no request is worked on, or none of them goes on; one at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bough.managers.health import HealthMonitor
from bough.managers.live_outputs import LiveOutputs
from bough.managers.rw_lock import ReaderWriterLock

T = TypeVar("T")

PAUSE_POLL_SECONDS = 0.1


class ExclusiveChanges:
    """Makes changes alone: requests hold the reader side of ``lock``, a change the writer side."""

    def __init__(self, lock: ReaderWriterLock, health: HealthMonitor, outputs: LiveOutputs) -> None:
        self._lock, self._health, self._outputs = lock, health, outputs
        self._turn = asyncio.Lock()

    async def make(self, change: Callable[[bool], Awaitable[T]], *, abort_all_requests: bool = False) -> T:
        """Make a change, which gets whether requests are there that do not go on, because of a pause or a
        sleep. Whole, even if the caller leaves."""

        async def make_it() -> T:
            async with self._turn:
                if abort_all_requests:
                    self._outputs.abort(abort_all=True)
                if not await self._acquire_unless_still():
                    return await change(True)
                try:
                    return await change(False)
                finally:
                    self._lock.release_writer()

        return await asyncio.shield(asyncio.ensure_future(make_it()))

    async def _acquire_unless_still(self) -> bool:
        """Hold the writer side once the other is free; ``False``, without it, as soon as nothing is
        computed: requests that wait for that to end keep the other."""
        health = self._health
        if health.computes_nothing:
            return False
        acquiring = asyncio.ensure_future(self._lock.acquire_writer())
        while not (await asyncio.wait({acquiring}, timeout=PAUSE_POLL_SECONDS))[0]:
            if health.computes_nothing:
                acquiring.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await acquiring
                    return True  # it had been acquired before it could be cancelled
                return False
        return True
