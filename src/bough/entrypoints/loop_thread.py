"""A private event loop in a private thread, for code that is a guest in somebody else's process."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from bough.errors import NOT_IN_A_FORK, EngineDead

T = TypeVar("T")


class LoopThread:
    """Runs coroutines that any thread gives it. Does not touch the caller's event loop or signal handlers."""

    def __init__(self, name: str) -> None:
        self._loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        # The collector may close somebody's stream while this thread submits, and a signal handler the engine.
        self._lock = threading.RLock()
        self._closed = False
        self._owner_pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """True if the caller is this thread."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start ``work`` on the loop; cancelling the future cancels it.

        Raises:
            EngineDead: if the loop is closed, or this is a fork of the process that it runs in.
        """
        if os.getpid() != self._owner_pid:  # before the lock, which a thread that is not here may have held
            work.close()
            raise EngineDead(NOT_IN_A_FORK)
        with self._lock, contextlib.suppress(RuntimeError):  # closed by a signal handler just now
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise EngineDead("the engine was shut down")

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the loop and wait for its result, as :meth:`wait` does."""
        return self.wait(self.submit(work))

    async def call_async(self, work: Coroutine[Any, Any, T]) -> T:
        """The same for coroutines of another loop, as :meth:`wait_async` does."""
        return await self.wait_async(self.submit(work))

    def run(self, work: Callable[[], T]) -> T:
        """Call ``work`` on the loop, and wait for what it returns."""

        async def call() -> T:
            return work()

        return self.call(call())

    def wait(self, future: concurrent.futures.Future[T]) -> T:
        """Wait for what was submitted. If the waiting is interrupted, the work is cancelled.

        Raises:
            EngineDead: if the loop is closed meanwhile.
        """
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise EngineDead("the engine was shut down") from None
        except BaseException:
            future.cancel()
            raise

    async def wait_async(self, future: concurrent.futures.Future[T]) -> T:
        """The same for coroutines of another loop.

        Raises:
            EngineDead: if the loop is closed meanwhile; that is no cancellation of the caller.
        """
        inner = asyncio.wrap_future(future)
        try:
            await asyncio.wait({inner})
        except BaseException:
            inner.cancel()
            raise
        if inner.cancelled():
            raise EngineDead("the engine was shut down")
        return inner.result()

    def close(self) -> None:
        """Cancel what still runs, and end the thread. Doing it twice does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_cancel_all())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
