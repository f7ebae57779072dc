"""A lock that many readers or one writer hold, for one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ReaderWriterLock:
    """Readers share, a writer is alone; a waiting writer stops new readers, so it is not starved.

    Taking the reader side without a writer around neither waits nor allocates.
    """

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._num_waiting_writers = 0
        self._waiters: list[asyncio.Future[None]] = []
        """Tasks to wake whenever something changes, oldest first."""

    async def acquire_reader(self) -> None:
        """Wait until no writer holds the lock or waits for it; pair with :meth:`release_reader`."""
        while self._writing or self._num_waiting_writers:
            await self._change()
        self._readers += 1

    def release_reader(self) -> None:
        """Give one reader's share back."""
        self._readers -= 1
        if self._readers == 0:
            self._wake()

    async def acquire_writer(self) -> None:
        """Wait until the lock is free, and hold it alone; pair with :meth:`release_writer`."""
        self._num_waiting_writers += 1
        try:
            while self._writing or self._readers:
                await self._change()
            self._writing = True
        finally:
            self._num_waiting_writers -= 1
            self._wake()  # a writer that was cancelled may have been all that readers waited for

    def release_writer(self) -> None:
        """Give the lock back."""
        self._writing = False
        self._wake()

    @asynccontextmanager
    async def writer_lock(self) -> AsyncIterator[None]:
        """Hold the lock alone."""
        await self.acquire_writer()
        try:
            yield
        finally:
            self.release_writer()

    async def _change(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
