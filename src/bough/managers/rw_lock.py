"""A lock that many readers or one writer hold, for one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ReaderWriterLock:
    """Readers share, a writer is alone; a waiting writer stops new readers, so it is not starved.

    Taking the reader side without a writer around neither waits nor allocates.
    """

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._waiting_writers: deque[asyncio.Future[None]] = deque()
        self._waiting_readers: deque[asyncio.Future[None]] = deque()

    async def acquire_reader(self) -> None:
        """Wait until no writer holds the lock or waits for it; pair with :meth:`release_reader`."""
        while self._writing or self._waiting_writers:
            await self._wait(self._waiting_readers)
        self._readers += 1

    def release_reader(self) -> None:
        """Give one reader's share back."""
        self._readers -= 1
        self._wake()

    async def acquire_writer(self) -> None:
        """Wait until nobody holds the lock, and hold it alone; pair with :meth:`release_writer`."""
        while self._writing or self._readers:
            await self._wait(self._waiting_writers)
        self._writing = True

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

    async def _wait(self, queue: deque[asyncio.Future[None]]) -> None:
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in queue:
                queue.remove(turn)
            self._wake()  # the turn may have been ours already, or others may have waited only for us
            raise
        if turn in queue:
            queue.remove(turn)

    def _wake(self) -> None:
        if self._writing:
            return
        if self._waiting_writers:
            if self._readers == 0:
                _resolve(self._waiting_writers[0])
            return
        while self._waiting_readers:
            _resolve(self._waiting_readers.popleft())


def _resolve(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
