"""Hands results of the engine to the outputs that they belong to."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import msgspec

from bough.errors import RequestFailed
from bough.ipc.messages import FinishReason, OutputDelta
from bough.managers.generation import failure_of
from bough.managers.live_outputs import LiveOutputs
from bough.managers.req_state import EVENTS_AT_ONCE, Outbox, ReqState, write_all
from bough.managers.request_records import RequestRecords
from bough.sampling.sampling_params import GRAMMAR_KINDS

logger = logging.getLogger(__name__)


class OutputHandler:
    """Records deltas, and hands them on; an error in the handling of one ends its output alone.

    After ``queue_timeout`` seconds the scheduler gives up an output that waits; ``None``: never. With a detokenizer,
    deltas get their text in another process.
    """

    def __init__(
        self, outputs: LiveOutputs, records: RequestRecords, queue_timeout: float | None, *, has_detokenizer: bool
    ) -> None:
        self._outputs = outputs
        self._queue = outputs.queue
        self._records = records
        self._queue_timeout = queue_timeout or 0.0
        self._has_detokenizer = has_detokenizer

    def hand_out(self, deltas: Sequence[OutputDelta], outbox: Outbox | None) -> None:
        """Hand out the deltas of a step.

        ``outbox`` gets events that are made here, and is written when it is full; ``None`` leaves them to the waiters.
        """
        now = time.monotonic()
        outputs, records = self._outputs, self._records
        for delta in deltas:
            state = outputs.by_id.get(delta.rid)
            if state is None:
                continue
            if state.waiting_bytes:
                outputs.waiting.remove(state)
            is_last = delta.finish_reason is not None
            # Without text, the detokenizer has given up; the scheduler goes on until it is aborted.
            given_up = is_last and delta.text is None and self._has_detokenizer
            try:
                if given_up:
                    delta.text = ""
                if not state.abandoned:
                    self._handle_delta(state, delta, now, outbox)
            except Exception as error:
                logger.exception("Could not handle a result of request %r", delta.rid)
                state.event.fail(RequestFailed("internal error while handling a result", code="internal_error"))
                if state.obj.turn is not None:
                    state.obj.turn.discard()
                given_up = given_up or not is_last
                if not is_last:
                    records.on_error(state.obj, state.rid, error, state)
            if given_up and not state.abandoned:
                outputs.abandon(state)
            elif is_last and not given_up:
                outputs.forget(state)
            if outbox and len(outbox) >= EVENTS_AT_ONCE:
                write_all(outbox)
        records.on_step()

    def _handle_delta(self, state: ReqState, delta: OutputDelta, now: float, outbox: Outbox | None) -> None:
        if delta.queue_time is not None or delta.first_token_delay is not None:
            self._records.on_first_delta(state, delta)
        if delta.queue_time is not None:
            self._queue.note_wait(delta.queue_time)
        if delta.token_ids:
            if state.obj.turn is not None:
                state.obj.turn.add_output(delta.token_ids)
            self._records.on_tokens(state, delta, now)
        if delta.finish_reason is not None:
            delta.finish_reason = in_client_terms(delta.finish_reason, state.obj.grammar_param)
            state.finished_time = now
            self._on_finished(state, delta, delta.finish_reason)
        state.push(delta, outbox)

    def _on_finished(self, state: ReqState, delta: OutputDelta, reason: FinishReason) -> None:
        if reason.code == "queue_timeout":
            self._queue.note_wait(self._queue_timeout)
        turn = state.obj.turn
        if turn is not None:
            if failure_of(reason, self._queue) is None:
                turn.end()
            else:
                turn.discard()
        self._records.on_last_delta(state, delta)


def in_client_terms(reason: FinishReason, grammar_param: str | None) -> FinishReason:
    """The same reason, where it is about a grammar, under the client's name for that: ``grammar_param``, or a member
    of ``sampling_params``."""
    if reason.param not in GRAMMAR_KINDS:
        return reason
    grammar_param = grammar_param or f"sampling_params.{reason.param}"
    problem = (reason.message or "").removeprefix(f"{reason.param}: ")
    return msgspec.structs.replace(reason, param=grammar_param, message=f"{grammar_param}: {problem}")
