"""The outputs of one call, as the caller sees them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from bough.errors import BadRequest, BoughError, Overloaded, RequestFailed
from bough.ipc.messages import FinishReason, OutputDelta
from bough.managers.req_state import ReadySignal, ReqState, Sink
from bough.managers.scheduler_queue import SchedulerQueue


class Generation:
    """The outputs of one call, while it is being answered."""

    __slots__ = ("_queue", "_signal", "states", "unfinished")

    def __init__(self, states: list[ReqState], signal: ReadySignal, queue: SchedulerQueue) -> None:
        self.states = states
        self.unfinished = len(states)
        """Outputs whose last delta was not taken yet."""
        self._signal = signal
        self._queue = queue

    async def deltas(self, sink: Sink | None = None) -> list[tuple[ReqState, OutputDelta]]:
        """Return news, oldest first; waits until there is some. Raises :class:`BoughError` if the engine cannot go on.

        A request that does not stream has news once, when it is finished; of a stream that lags behind several deltas
        may come together. A ``sink`` gets what arrives while this waits; what it does not take, and what comes after
        that, is returned.
        """
        news = []
        for state in await self._signal.wait(sink):
            for delta in state.take():
                if delta.finish_reason is not None:
                    self.unfinished -= 1
                news.append((state, delta))
        return news

    async def results(self) -> AsyncIterator[tuple[ReqState, OutputDelta]]:
        """Whole outputs of requests that do not stream, as they finish; raises :class:`BoughError` if one of them
        fails, or the engine cannot go on."""
        while self.unfinished:
            for state, delta in await self.deltas():
                self.check(delta)
                yield state, delta

    def check(self, delta: OutputDelta) -> None:
        """Raise the error that ended an output, if ``delta`` is its last and says so."""
        failure = failure_of(delta.finish_reason, self._queue)
        if failure is not None:
            raise failure


def failure_of(reason: FinishReason | None, queue: SchedulerQueue) -> BoughError | None:
    """Error that a finish reason stands for; ``None`` for a normal end and for an abort that a client asked for.

    ``queue`` knows after how long to try again if it was full, or too slow.
    """
    if reason is None or reason.type != "abort" or reason.status_code is None:
        return None
    message = reason.message or "the engine could not finish the request"
    if reason.status_code == Overloaded.status_code:
        waits = reason.code in ("queue_full", "queue_timeout")
        return Overloaded(message, retry_after=queue.retry_after if waits else 1.0, code=reason.code or "overloaded")
    if reason.status_code == BadRequest.status_code:
        return BadRequest(message, param=reason.param, code=reason.code)
    return RequestFailed(message, status_code=reason.status_code, code=reason.code)
