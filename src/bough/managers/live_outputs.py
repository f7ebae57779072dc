"""The outputs that are alive, from the moment that a call is taken until the engine has had its last word on them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from bough.errors import BadRequest, BoughError
from bough.ipc.messages import (
    AbortReq,
    OutputDelta,
    TokenizedEmbeddingReqInput,
    TokenizedGenerateReqInput,
    ToScheduler,
)
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReadySignal, ReqState, aborted_delta
from bough.managers.request_records import RequestRecords
from bough.managers.scheduler_queue import SchedulerQueue
from bough.managers.waiting_prompts import WaitingPrompts

REUSE_TIMEOUT = 10.0
"""Seconds that a request waits for an earlier one with the same id to be gone, whose client has left."""


class LiveOutputs:
    """Takes outputs in, sends them, gives them up and lets them go; what they take is given back exactly once.

    An output that is given up stays here, as abandoned, until the scheduler's last word on it, which would else reach
    the next request that uses its id.

    Attributes:
        records: where ends are recorded that the engine does not report.
    """

    def __init__(
        self,
        send: Callable[[ToScheduler], None],
        records: RequestRecords,
        waiting: WaitingPrompts,
        queue: SchedulerQueue,
    ) -> None:
        self.by_id: dict[str, ReqState] = {}
        self.waiting = waiting
        self.queue = queue
        self._coming: dict[int, dict[str, bool]] = {}
        """Of each call that waits for its ids: whether they were aborted meanwhile."""
        self._send = send
        self.records = records

    async def wait_until_free(self, rids: Iterable[str]) -> set[str]:
        """Wait for outputs with these ids that were given up to be gone from the engine; returns the ids that were
        aborted meanwhile. Raises :class:`BadRequest` if an id is there twice, or in use, or does not become free in
        time."""
        wanted = list(rids)
        if len(set(wanted)) != len(wanted):
            raise BadRequest("rid names the same id twice", param="rid", code="duplicate_request_id")
        coming = dict.fromkeys(wanted, False)
        self._coming[id(coming)] = coming
        try:
            while (old := next((s for s in map(self.by_id.get, wanted) if s is not None), None)) is not None:
                await self._wait_until_gone(old)
        finally:
            del self._coming[id(coming)]
        return {rid for rid, aborted in coming.items() if aborted}

    async def _wait_until_gone(self, state: ReqState) -> None:
        duplicate = BadRequest(
            f"rid {state.rid!r} is in use by another request", param="rid", code="duplicate_request_id"
        )
        if not state.abandoned:
            raise duplicate
        if state.gone is None:
            state.gone = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(asyncio.shield(state.gone), REUSE_TIMEOUT)
        except asyncio.TimeoutError:
            raise duplicate from None

    def add(
        self,
        requests: Sequence[GenerateRequest],
        signal: ReadySignal,
        aborted: Collection[str] = (),
    ) -> list[ReqState]:
        """Register the outputs of a call, whose ids are free; those in ``aborted`` are aborted already. Raises
        :class:`PayloadTooLarge` or :class:`Overloaded` if too much waits, or would; then nothing has changed."""
        states: list[ReqState] = []
        for request in requests:
            arrived = request.arrival_time
            states += [ReqState(rid, len(states) + i, request, signal, arrived) for i, rid in enumerate(request.rids)]
        for state in states:
            if state.rid in aborted:
                state.abort_reason = "aborted"
        self.waiting.add(requests, states)
        self.by_id.update((state.rid, state) for state in states)
        return states

    def send(
        self, message: TokenizedGenerateReqInput | TokenizedEmbeddingReqInput, states: Sequence[ReqState]
    ) -> list[OutputDelta]:
        """Send a request; if all its outputs were aborted meanwhile, return their last deltas instead."""
        if all(state.abort_reason is not None for state in states):
            return [aborted_delta(state, state.abort_reason or "aborted") for state in states]
        sent_time = time.monotonic()
        self._send(message)
        self.records.on_sent(states[0])
        self.queue.acquire(states)
        for state in states:
            state.sent, state.sent_time = True, sent_time
            if state.abort_reason is not None:
                self._send(AbortReq(state.rid, exact=True))
        return []

    def abort(self, rid: str = "", *, abort_all: bool = False) -> None:
        """End every output whose id starts with ``rid``, or all of them; each still gets its last delta.

        Those, too, that wait for their id.
        """
        for coming in self._coming.values():
            coming.update((each, True) for each in coming if abort_all or each.startswith(rid))
        any_sent = False
        for state in self.by_id.values():
            if abort_all or state.rid.startswith(rid):
                any_sent |= state.sent
                state.abort_reason = "aborted"
        if any_sent:
            self._send(AbortReq(rid, abort_all=abort_all))

    def abort_request(self, rid: str) -> None:
        """End the outputs of the request with exactly this id, all of its samples, also while it waits for its id."""

        def is_its_own(each: str) -> bool:
            return each == rid or (each.startswith(f"{rid}_") and each[len(rid) + 1 :].isdecimal())

        for coming in self._coming.values():
            coming.update((each, True) for each in coming if is_its_own(each))
        for each in filter(is_its_own, list(self.by_id)):
            self.abort_one(each)

    def abort_one(self, rid: str) -> None:
        """End the output with this id, if there is one; it still gets its last delta."""
        state = self.by_id.get(rid)
        if state is None or state.finished:
            return
        state.abort_reason = "aborted"
        if state.sent:
            self._send(AbortReq(rid, exact=True))

    def leave(self, states: Iterable[ReqState]) -> None:
        """Nobody waits for these outputs any more: end in the scheduler what is unfinished."""
        for state in states:
            if state.finished or state.abandoned or self.by_id.get(state.rid) is not state:
                continue
            state.out_list.clear()
            self.records.on_leave(state)
            self.abandon(state)

    def refuse(self, requests: Iterable[GenerateRequest], states: Iterable[ReqState], error: Exception) -> None:
        """Give up a call that cannot be taken, with as many of its outputs as were added."""
        by_id = {state.rid: state for state in states}
        for request in requests:
            for rid in request.rids:
                state = by_id.get(rid)
                if state is None:
                    self.records.on_error(request, rid, error)
                elif not state.finished and not state.abandoned and rid in self.by_id:
                    self.records.on_error(request, rid, error, state)
                    self.abandon(state)

    def abandon(self, state: ReqState) -> None:
        """End an output in the scheduler; whatever still comes of it is dropped. Once for each at most."""
        state.abandoned = True
        self.queue.release(state)
        if state.obj.turn is not None:
            state.obj.turn.discard()
        if state.sent:
            self._send(AbortReq(state.rid, exact=True))
        else:
            self.forget(state)

    def forget(self, state: ReqState) -> None:
        """An output is gone, here and from the engine: its id is free."""
        del self.by_id[state.rid]
        if not state.abandoned:
            self.queue.release(state)
        self.waiting.remove(state)
        if state.gone is not None and not state.gone.done():
            state.gone.set_result(None)

    def fail_all(self, error: BoughError) -> None:
        """The engine is dead: every waiter gets ``error``, and nothing is alive any more."""
        for state in list(self.by_id.values()):
            if not state.abandoned:
                self.records.on_error(state.obj, state.rid, error, state)
            state.event.fail(error)
            self.forget(state)
