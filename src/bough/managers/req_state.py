"""State of one output that is being generated, and the signal to its waiter."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from bough.errors import BoughError
from bough.ipc.coalescing import FOLD_LENGTH, merge_deltas
from bough.ipc.messages import FinishReason, OutputDelta
from bough.managers.held_answers import logprob_bytes
from bough.managers.io_struct import GenerateRequest
from bough.observability.request_context import CURRENT, RequestContext

logger = logging.getLogger(__name__)

MAX_SEPARATE_DELTAS = 16
"""Deltas that a stream which lags gets one by one; more come as one, so that it catches up."""

EVENTS_AT_ONCE = 32
"""Events made before they are written. A system call leaves the interpreter little in the processor's caches and branch
predictors, so that making the next event would take twice as long; after more than a few dozen it makes no difference,
and the first one should not wait for the last."""

Outbox = list[tuple[asyncio.WriteTransport, bytes]]
"""Bytes to write, with their connections, in order."""


def write_all(outbox: Outbox) -> None:
    """Empty ``outbox``. A connection that fails is cut and costs the others nothing."""
    for transport, part in outbox:
        try:
            transport.write(part)
        except Exception:
            logger.exception("Could not write to a client")
            transport.abort()
    outbox.clear()


class Sink(Protocol):
    """Deals at once with deltas that are not the last, without a turn of the waiter."""

    def ready(self) -> bool:
        """True if there is any use in trying :meth:`take` until the waiter waits the next time."""
        ...

    def take(self, state: ReqState, delta: OutputDelta, outbox: Outbox) -> bool:
        """Take a delta, and put what it says into ``outbox``; ``False``, with nothing changed, leaves it to the waiter.
        What is raised ends the call."""
        ...


@dataclass(slots=True, eq=False)
class ReadySignal:
    """Tells the one waiter of a call which of its outputs have news.

    Attributes:
        sink: where deltas go while the waiter waits and nothing has been left to it, so that all stays in order.
    """

    sink: Sink | None = None
    _unfinished: int = 0
    _on_end: Callable[[], None] | None = None
    _ready: list[ReqState] = field(default_factory=list)
    _waiter: asyncio.Future[None] | None = None
    _error: BoughError | None = None

    def mark(self, state: ReqState) -> None:
        """``state`` has news that were not taken yet."""
        self._ready.append(state)
        self.sink = None
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def expect(self, count: int, on_end: Callable[[], None]) -> None:
        """Call ``on_end`` once: when ``count`` outputs are finished, though perhaps not taken, or at :meth:`end`."""
        self._unfinished, self._on_end = count, on_end

    def finish_one(self) -> None:
        """The last delta of an output has arrived."""
        self._unfinished -= 1
        if self._unfinished == 0:
            self.end()

    def end(self) -> None:
        """The call needs the engine no more. Doing it twice does nothing."""
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()

    def fail(self, error: BoughError) -> None:
        """Nothing more will come; every later :meth:`wait` raises."""
        self._error = error
        self.sink = None
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def wait(self, sink: Sink | None = None) -> list[ReqState]:
        """Return the outputs with news since the last call, in order of arrival; waits until there is at least one.

        A ``sink`` gets the news first, while this waits. Raises the :class:`BoughError` with which the engine cannot
        finish the call.
        """
        if not self._ready and self._error is None:
            self._waiter = asyncio.get_running_loop().create_future()
            self.sink = sink if sink is not None and sink.ready() else None
            try:
                await self._waiter
            finally:
                self._waiter = self.sink = None
        if self._error is not None:
            raise copy.copy(self._error)  # a copy: many waiters may raise it, each with a traceback of its own
        ready, self._ready = self._ready, []
        return ready


@dataclass(slots=True, eq=False)
class ReqState:
    """One output, from its registration to its last delta: the one place of the main process that a request changes.

    Attributes:
        index: position among the outputs of its call, prompts first, then parallel samples.
        context: the HTTP request that it belongs to, if it came with one.
        event: signal of the call that waits for it.
        out_list: deltas that were not taken yet, oldest first.
        finished: whether the last delta has arrived (and perhaps not been taken).
        sent: whether the scheduler has been told of it.
        abandoned: whether its waiter has gone, so that nothing is kept any more.
        abort_reason: why the client asked to end it before it was sent.
        waiting_bytes: what it counts among the prompts that wait; 0 once there is a result.
        weight_versions: what the weights are called, and the first token, from 0, that those of this name have made;
            several where they changed meanwhile. Another object whenever something changes.
        completion_tokens: tokens generated so far.
        queue_time: seconds that the scheduler had it wait; ``None`` until it is known.
        dp_rank: replica that computes it; ``None`` if there is one, or until it is known.
        created_time, sent_time, first_token_time, last_token_time, finished_time, last_time: seconds on the monotonic
            clock; 0.0 until then.
    """

    rid: str
    index: int
    obj: GenerateRequest
    event: ReadySignal
    created_time: float
    context: RequestContext | None = field(default_factory=CURRENT.get)
    out_list: list[OutputDelta] = field(default_factory=list)
    ready: bool = False
    finished: bool = False
    sent: bool = False
    abandoned: bool = False
    abort_reason: str | None = None
    waiting_bytes: int = 0
    weight_versions: tuple[tuple[str, int], ...] = (("", 0),)
    completion_tokens: int = 0
    queue_time: float | None = None
    dp_rank: int | None = None
    sent_time: float = 0.0
    first_token_time: float = 0.0
    last_token_time: float = 0.0
    finished_time: float = 0.0
    last_time: float = 0.0
    gone: asyncio.Future[None] | None = None

    def stages(self) -> dict[str, tuple[float, float]]:
        """When each stage of :data:`~bough.observability.metrics.STAGES` began and ended, monotonic seconds.

        Only those that are over; what is not generated has no ``decode``.
        """
        if not self.sent:
            return {}
        stages = {"tokenize": (self.created_time, self.sent_time)}
        if self.queue_time is None:
            return stages
        started = self.sent_time + self.queue_time
        stages["queue"] = (self.sent_time, started)
        prefilled = self.first_token_time or self.last_token_time
        if prefilled:
            stages["prefill"] = (started, prefilled)
        if self.last_token_time:
            if self.first_token_time:
                stages["decode"] = (self.first_token_time, self.last_token_time)
            stages["detokenize"] = (self.last_token_time, max(self.finished_time, self.last_token_time))
        return stages

    def rename_weights(self, version: str, first: int) -> None:
        """The tokens from ``first`` on, counted from 0, are made by weights that are called ``version``."""
        *before, last = self.weight_versions
        if first > last[1]:
            before.append(last)
        self.weight_versions = (*before, (version, first))

    def push(self, delta: OutputDelta, outbox: Outbox | None = None) -> None:
        """Add what the engine sent, and wake the waiter if this concerns it.

        ``outbox`` gets what a sink makes of it; without one it is the waiter's.
        """
        if self.abandoned:
            return
        if outbox is not None and delta.finish_reason is None:
            sink = self.event.sink
            if sink is not None and sink.take(self, delta, outbox):
                return
        if delta.logprobs is not None or delta.input_logprobs is not None:
            self._hold_logprobs(delta)
        out_list = self.out_list
        out_list.append(delta)
        if delta.finish_reason is not None:
            self.finished = True
            self.event.finish_one()
        elif not self.obj.stream:
            if len(out_list) >= FOLD_LENGTH:
                self.out_list = [merge_deltas(out_list)]
            return
        if not self.ready:
            self.ready = True
            self.event.mark(self)
        elif len(out_list) >= FOLD_LENGTH:
            self.out_list = [merge_deltas(out_list)]

    def hold(self, num_bytes: int) -> bool:
        """Count memory of the answer beyond its text; if that is too much, fail the request and return ``False``."""
        holder = None if self.context is None else self.context.answer
        failure = None if holder is None else holder.hold(num_bytes)
        if failure is not None:
            self.event.fail(failure)
        return failure is None

    def _hold_logprobs(self, delta: OutputDelta) -> None:
        """Count the logprobs of a delta until they are taken, or drop all if the request has failed."""
        if not self.hold(logprob_bytes(delta)):
            for each in (*self.out_list, delta):
                each.logprobs = each.input_logprobs = None

    def take(self) -> list[OutputDelta]:
        """Everything since the last call, oldest first. There must be something: see :meth:`ReadySignal.wait`.

        A stream that lags far behind, or any other request, gets it as one delta.
        """
        self.ready = False
        out_list, self.out_list = self.out_list, []
        if self.obj.stream and self.obj.return_logprob:  # without streaming, all are needed until the end
            self.hold(-sum(map(logprob_bytes, out_list)))
        if len(out_list) == 1 or (self.obj.stream and len(out_list) <= MAX_SEPARATE_DELTAS):
            return out_list
        return [merge_deltas(out_list)]


def aborted_delta(state: ReqState, reason: str) -> OutputDelta:
    """The last delta of an output that the scheduler has never heard of."""
    return OutputDelta(rid=state.rid, token_ids=[], text="", finish_reason=FinishReason("abort", message=reason))
