"""Counters and logs of requests: the one place where the end of an output, of whatever kind, is recorded."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable

from bough.config.server_args import ServerArgs
from bough.errors import BoughError, EngineDead
from bough.ipc.messages import OutputDelta
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReqState
from bough.managers.request_log import Ending, Outcome, RecentRequests, RequestLog
from bough.observability.metrics import Metrics, RequestMetrics

logger = logging.getLogger(__name__)

_ENGINE_DEAD = "engine_dead"
"""Reason in counters of requests that were cut off, or came too late."""

_UNAVAILABLE = 503


class RequestRecords:
    """Counts what happens to outputs, and tells the log, traces and crash dumps of their ends."""

    def __init__(self, metrics: RequestMetrics, log: RequestLog, recent: RecentRequests | None = None) -> None:
        self._metrics = metrics
        self._log = log
        self._recent = recent
        self._counters = {
            "aborted": metrics.aborted_requests,
            "refused": metrics.refused_requests,
            "failed": metrics.failed_requests,
        }
        self._gaps: defaultdict[float, int] = defaultdict(int)
        """Seconds between tokens of the step that is being handled, and how often each."""

    @classmethod
    def of_server(cls, args: ServerArgs, metrics: Metrics) -> RequestRecords:
        """Records as the options want them."""
        recent = None
        if args.crash_dump_folder is not None:
            recent = RecentRequests(args.crash_dump_folder, with_prompts=args.crash_dump_prompts)
        return cls(metrics.requests, RequestLog(args.log_requests_level if args.log_requests else None), recent)

    def on_crash(self, cause: str, alive: Iterable[ReqState]) -> None:
        """Write a crash dump, if one is wanted: the latest requests, and ``alive``."""
        if self._recent is None:
            return
        try:
            path = self._recent.write(cause, alive)
        except Exception as error:  # whatever it is, the end must go on
            logger.error("Could not write the crash dump: %s", error)
        else:
            logger.error("The latest requests are described in %s", path)

    def on_sent(self, state: ReqState) -> None:
        """A request goes to the scheduler; the first of its outputs speaks for all."""
        self._log.on_sent(state)

    def on_first_delta(self, state: ReqState, delta: OutputDelta) -> None:
        """Note how long an output has waited. Tokens may come in blocks: the scheduler says when it had the first."""
        metrics, is_counted = self._metrics, state.obj.log_metrics
        if delta.first_token_delay is not None:
            state.first_token_time = state.sent_time + delta.first_token_delay
            if is_counted:
                metrics.time_to_first_token.observe(state.first_token_time - state.created_time)
        state.dp_rank = delta.dp_rank
        if delta.queue_time is not None:
            state.queue_time = delta.queue_time
            if is_counted:
                metrics.queue_time.observe(delta.queue_time)

    def on_tokens(self, state: ReqState, delta: OutputDelta, now: float) -> None:
        """Tokens have arrived; to be followed by :meth:`on_step`."""
        last_time = state.last_time
        state.last_time = now
        state.completion_tokens = delta.completion_tokens
        if self._log.keeps_text:
            self._log.on_text(state, delta)
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
        if self._log.keeps_text and not delta.token_ids:
            self._log.on_text(state, delta)
        if delta.last_token_delay is not None:
            state.last_token_time = state.sent_time + delta.last_token_delay
        outcome: Outcome = "finished"
        how: str = reason.type
        why, message = "", None
        if reason.type == "abort":
            outcome, why = "aborted", reason.code or "requested"
            if reason.status_code is not None:
                untouched = not delta.token_ids and not delta.completion_tokens
                outcome = "refused" if untouched and _is_refusal(reason.status_code) else "failed"
                why = reason.code or _reason_of(reason.status_code)
                how, message = _how(outcome, why, reason.param), reason.message
        metrics = self._metrics
        if state.obj.log_metrics:
            metrics.prompt_tokens += delta.prompt_tokens
            metrics.cached_tokens += delta.cached_tokens
        # What was sent away at once, or has failed, says nothing about how long answers take and how large they are.
        if state.obj.log_metrics and outcome in ("finished", "aborted"):
            metrics.e2e_request_latency.observe(state.finished_time - state.created_time)
            metrics.prompt_tokens_histogram.observe(delta.prompt_tokens)
            metrics.generation_tokens_histogram.observe(delta.completion_tokens)
            for stage, (begin, end) in state.stages().items():
                metrics.stages[stage].observe(end - begin)
            if delta.completion_tokens > 1 and state.first_token_time:
                duration = max(state.finished_time - state.first_token_time, 0.0)
                metrics.request_time_per_output_token.observe(duration / (delta.completion_tokens - 1))
        state.completion_tokens = delta.completion_tokens
        self._on_end(state.obj, state.rid, why, Ending(outcome, how, message), state, delta.cached_tokens)

    def on_leave(self, state: ReqState) -> None:
        """Whoever waited for an output has gone."""
        self._on_end(state.obj, state.rid, "client_left", Ending("aborted", "the client left"), state)

    def on_error(self, request: GenerateRequest, rid: str, error: BaseException, state: ReqState | None = None) -> None:
        """An output was refused, or something has failed."""
        if not isinstance(error, BoughError):
            ending = Ending("failed", f"failed: {type(error).__name__}")
            self._on_end(request, rid, "internal_error", ending, state)
            return
        is_dead = isinstance(error, EngineDead)
        outcome: Outcome = "refused" if _is_refusal(error.status_code) and not is_dead else "failed"
        why = error.code or (_ENGINE_DEAD if is_dead else _reason_of(error.status_code))
        ending = Ending(outcome, _how(outcome, why, error.param), error.message)
        self._on_end(request, rid, why, ending, state)

    def _on_end(
        self,
        request: GenerateRequest,
        rid: str,
        why: str,
        ending: Ending,
        state: ReqState | None,
        cached_tokens: int = 0,
    ) -> None:
        """Record the end of an output: ``why`` is what counters say, ``ending`` what the log says."""
        outcome = ending.outcome
        if request.log_metrics:
            self._metrics.num_requests += 1
            if outcome in self._counters:
                self._counters[outcome].add(why)
        self._log.on_end(request, rid, ending, state, cached_tokens)
        if state is None:
            return
        if self._recent is not None:
            if why == _ENGINE_DEAD:
                self._recent.on_cut_off(state)
            else:
                self._recent.on_end(state, ending)
        span = None if state.context is None else state.context.span
        if span is not None:
            span.output(state.created_time, state.stages(), _traced(state, outcome, cached_tokens))


def _how(outcome: Outcome, why: str, param: str | None) -> str:
    """Describe an error without the message, which may quote a schema or a pattern."""
    return f"{outcome}: {why}" if param is None else f"{outcome}: {why} ({param})"


def _is_refusal(status_code: int) -> bool:
    """True if an HTTP status says that a request should not have come, or not now."""
    return 400 <= status_code < 500 or status_code == _UNAVAILABLE


def _reason_of(status_code: int) -> str:
    """Reason in counters of an error that has no code."""
    if status_code == _UNAVAILABLE:
        return "overloaded"
    return "invalid_value" if status_code < 500 else "internal_error"


def _traced(state: ReqState, outcome: Outcome, cached_tokens: int) -> dict[str, str | int | float | bool]:
    """Attributes of an output's span, by OpenTelemetry's conventions for generative AI where these have a name."""
    params = state.obj.sampling_params
    attributes: dict[str, str | int | float | bool] = {
        "gen_ai.response.id": state.rid,
        "gen_ai.usage.input_tokens": len(state.obj.input_ids or ()),
        "gen_ai.usage.output_tokens": state.completion_tokens,
        "gen_ai.request.temperature": params.temperature,
        "gen_ai.request.top_p": params.top_p,
        "bough.cached_tokens": cached_tokens,
        "bough.outcome": outcome,
    }
    if params.max_new_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = params.max_new_tokens
    return attributes
