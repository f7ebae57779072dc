"""Parts of an engine in the caller's process, their start and their end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

from bough.entrypoints.launch_plan import LaunchPlan
from bough.entrypoints.loop_thread import LoopThread
from bough.entrypoints.running_engine import RunningEngine
from bough.errors import EngineDead
from bough.managers.io_struct import GenerateReqInput
from bough.managers.tokenizer_manager import TokenizerManager
from bough.observability.startup_timer import StartupTimer

LAST_WORDS_SECONDS = 1.0
"""How long calls that are failed by a shutdown may take to notice."""

END_OF_STREAM: Any = object()
"""Comes after the last event of a stream."""


class EngineParts:
    """Everything that has to end with an :class:`Engine`. Knows nothing of it, so that it can be collected.

    Raises:
        StartupError: if the engine cannot start; nothing is left then.
    """

    def __init__(self, plan: LaunchPlan) -> None:
        timer = StartupTimer()
        self._owner_pid = os.getpid()
        self._close_lock = threading.RLock()  # a signal handler may close what its own thread is closing
        self._closed = False
        self._loop_thread: LoopThread | None = None
        self._streams: set[AsyncGenerator[Any, None]] = set()
        self._engine = RunningEngine(plan, self._on_death)
        try:
            self._engine.prepare()
            self._engine.launch()
            self.pids = self._engine.pids
            """Process ids of the children."""
            self._engine.load_text()
            self._engine.wait_until_ready()
            self._loop_thread = LoopThread("bough-engine")
            self._loop_thread.call(self._engine.start())
            timer.end_phase("start")
            self.startup_seconds = timer.total
        except BaseException:
            self.close()
            raise

    @property
    def manager(self) -> TokenizerManager:
        """The front of the engine; to be used on :attr:`loop` only."""
        assert self._engine.manager is not None
        return self._engine.manager

    @property
    def loop(self) -> LoopThread:
        """Where the engine's coroutines run."""
        assert self._loop_thread is not None
        return self._loop_thread

    def close(self) -> None:
        """End everything and wait for it. Doing it twice does nothing; nor does doing it in a fork of the host."""
        if os.getpid() != self._owner_pid:
            return
        if self._loop_thread is not None and self._loop_thread.is_current:
            # The garbage collector may come by on any thread, and a thread cannot wait for its own end.
            threading.Thread(target=self.close, name="bough-close", daemon=True).start()
            return
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._end_loop()
            finally:  # whoever interrupts the wait leaves no process behind
                self._engine.stop()

    def _end_loop(self) -> None:
        if self._loop_thread is not None:
            with contextlib.suppress(EngineDead):
                self._loop_thread.call(self._stop())
            self._loop_thread.close()
            self._engine.finish_encoding()

    async def answer(self, request: GenerateReqInput) -> Any:
        """Answer to a request that does not stream."""
        (result,) = [result async for result in self.manager.generate_request(request, "prompt")]
        return result

    def stream(self, request: GenerateReqInput, owner: object) -> Iterator[dict[str, Any]]:
        """Events of a request; leaving the iterator ends the request, and until then ``owner`` is not collected."""
        events = self._open_stream(request)
        try:
            while (event := self.loop.call(_next(events))) is not END_OF_STREAM:
                yield event
        finally:
            self._submit_close(events)

    async def async_stream(self, request: GenerateReqInput, owner: object) -> AsyncIterator[dict[str, Any]]:
        """The same for coroutines of another loop."""
        events = self._open_stream(request)
        try:
            while (event := await self.loop.call_async(_next(events))) is not END_OF_STREAM:
                yield event
        finally:
            self._submit_close(events)

    def _open_stream(self, request: GenerateReqInput) -> AsyncGenerator[Any, None]:
        events = self.manager.generate_request(request, "prompt")
        assert isinstance(events, AsyncGenerator)
        self._streams.add(events)
        return events

    def _submit_close(self, events: AsyncGenerator[Any, None]) -> None:
        """End a stream, and with it the request. Does not wait: the collector may close one on the engine's thread."""
        with contextlib.suppress(EngineDead):
            self.loop.submit(self._close_stream(events))

    async def _close_stream(self, events: AsyncGenerator[Any, None]) -> None:
        self._streams.discard(events)
        await events.aclose()

    async def _stop(self) -> None:
        await self._engine.close()
        # Whoever waits on this loop hears of it before the loop stops.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            _, late = await asyncio.wait(others, timeout=LAST_WORDS_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        # Streams that nobody has closed; the loop would close what they are made of first.
        for events in list(self._streams):
            await self._close_stream(events)

    def _on_death(self, message: str) -> None:
        """Stop the children, which a hung one does not end, and fail all calls."""
        threading.Thread(target=self._engine.stop_children, name="bough-end-children", daemon=True).start()
        self._engine.fail(EngineDead(message), crashed=True)


async def _next(events: AsyncIterator[Any]) -> Any:
    async for event in events:
        return event
    return END_OF_STREAM
