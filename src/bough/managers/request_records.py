"""What is counted and logged of requests: the one place where the end of an output, of whatever kind, is recorded."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from typing import Literal

from bough.errors import BoughError, EngineDead
from bough.ipc.messages import OutputDelta
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReqState
from bough.observability.metrics import Metrics

logger = logging.getLogger(__name__)

Outcome = Literal["finished", "aborted", "refused", "failed"]

_UNAVAILABLE = 503


class RequestRecords:
    """Counts what happens to outputs, and logs their ends if that is wanted.

    Args:
        metrics: where to count.
        log_requests: whether to log every output's end.
    """

    def __init__(self, metrics: Metrics, *, log_requests: bool) -> None:
        self._metrics = metrics
        self._log_requests = log_requests
        self._gaps: defaultdict[float, int] = defaultdict(int)
        """Seconds between tokens of the step that is being handled, and how often each."""

    def on_first_delta(self, state: ReqState, delta: OutputDelta) -> None:
        """Note how long an output has waited. Tokens may come in blocks: the scheduler says when it had the first."""
        metrics, is_counted = self._metrics, state.obj.log_metrics
        if delta.first_token_delay is not None:
            state.first_token_time = state.sent_time + delta.first_token_delay
            if is_counted:
                metrics.time_to_first_token.observe(state.first_token_time - state.created_time)
        if delta.queue_time is not None:
            state.queue_time = delta.queue_time
            if is_counted:
                metrics.queue_time.observe(delta.queue_time)

    def on_tokens(self, state: ReqState, delta: OutputDelta, now: float) -> None:
        """Tokens have arrived; to be followed by :meth:`on_step`."""
        last_time = state.last_time
        state.last_time = now
        state.completion_tokens = delta.completion_tokens
        if not state.obj.log_metrics:
            return
        num_tokens = gaps = len(delta.token_ids)
        self._metrics.generation_tokens += num_tokens
        if last_time == 0.0:
            last_time, gaps = min(state.first_token_time, now), num_tokens - 1
        if last_time != 0.0 and gaps:
            self._gaps[(now - last_time) / gaps] += gaps

    def on_step(self) -> None:
        """All tokens of a step have arrived. Those of one step have mostly waited equally long."""
        observe = self._metrics.inter_token_latency.observe
        for gap, count in self._gaps.items():
            observe(gap, count)
        self._gaps.clear()

    def on_last_delta(self, state: ReqState, delta: OutputDelta) -> None:
        """The engine has had its last word about an output."""
        reason = delta.finish_reason
        assert reason is not None
        outcome: Outcome = "finished"
        how: str = reason.type
        if reason.type == "abort":
            outcome = "aborted"
            if reason.status_code is not None:
                untouched = not delta.token_ids and not delta.completion_tokens
                outcome = "refused" if untouched and _is_refusal(reason.status_code) else "failed"
                how = f"{outcome}: {reason.message}"
        if state.obj.log_metrics:
            metrics = self._metrics
            metrics.prompt_tokens += delta.prompt_tokens
            metrics.cached_tokens += delta.cached_tokens
            metrics.e2e_request_latency.observe(state.finished_time - state.created_time)
            metrics.prompt_tokens_per_request.observe(delta.prompt_tokens)
            metrics.generation_tokens_per_request.observe(delta.completion_tokens)
        state.completion_tokens = delta.completion_tokens
        self._on_end(state.obj, state.rid, outcome, how, state, delta.cached_tokens)

    def on_leave(self, state: ReqState) -> None:
        """Whoever waited for an output has gone."""
        self._on_end(state.obj, state.rid, "aborted", "the client left", state)

    def on_error(self, request: GenerateRequest, rid: str, error: BaseException, state: ReqState | None = None) -> None:
        """An output was refused, or something has failed."""
        if not isinstance(error, BoughError):
            self._on_end(request, rid, "failed", f"failed: {type(error).__name__}", state)
            return
        is_refused = _is_refusal(error.status_code) and not isinstance(error, EngineDead)
        outcome: Outcome = "refused" if is_refused else "failed"
        self._on_end(request, rid, outcome, f"{outcome}: {error.message}", state)

    def _on_end(
        self,
        request: GenerateRequest,
        rid: str,
        outcome: Outcome,
        how: str,
        state: ReqState | None,
        cached_tokens: int = 0,
    ) -> None:
        if request.log_metrics:
            metrics = self._metrics
            metrics.num_requests += 1
            if outcome == "aborted":
                metrics.num_aborted_requests += 1
            elif outcome == "refused":
                metrics.num_refused_requests += 1
            elif outcome == "failed":
                metrics.num_failed_requests += 1
        if self._log_requests:
            logger.info(
                "Request %r: %d prompt tokens (%d cached), %d generated, %s, %.3f s",
                rid,
                len(request.input_ids or ()),
                cached_tokens,
                0 if state is None else state.completion_tokens,
                how,
                0.0 if state is None else time.monotonic() - state.created_time,
            )


def _is_refusal(status_code: int) -> bool:
    """Whether an HTTP status says that a request should not have come, or not now."""
    return 400 <= status_code < 500 or status_code == _UNAVAILABLE
