"""Requests that arrive, and those that leave before a step ends them: aborted, late, or with an unusable grammar."""

from __future__ import annotations

import logging

import numpy as np

from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, BoughError
from bough.ipc.messages import (
    AbortReq,
    FinishReason,
    OutputDelta,
    TokenizedEmbeddingReqInput,
    TokenizedGenerateReqInput,
)
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.deadlines import Deadlines
from bough.scheduler.endings import Endings
from bough.scheduler.grammars import Grammars
from bough.scheduler.intake import RequestIntake
from bough.scheduler.planner import StepPlanner
from bough.scheduler.req import Pooling, Req

logger = logging.getLogger(__name__)


class Arrivals:
    """Queues requests, and ends those that leave."""

    def __init__(
        self,
        server_args: ServerArgs,
        intake: RequestIntake,
        grammars: Grammars,
        planner: StepPlanner,
        endings: Endings,
    ) -> None:
        self._requests = requests = planner.requests
        self._intake = intake
        self._grammars = grammars
        self._num_startable = planner.prefill.num_startable
        self._endings = endings
        self._max_queued = server_args.max_queued_requests
        self._queue_timeout = server_args.queue_timeout
        self.deadlines = Deadlines(
            requests, queue_timeout=server_args.queue_timeout, request_timeout=server_args.request_timeout
        )

    @property
    def queue_is_full(self) -> bool:
        """True if no more requests may wait."""
        return self._max_queued is not None and self._requests.num_waiting >= max(self._max_queued, 1)

    def handle_generate_request(self, message: TokenizedGenerateReqInput) -> None:
        """Take a request: one :class:`Req` per parallel sample. A bad one ends with an error delta, alone."""
        self._take(message, None)

    def handle_embedding_request(self, message: TokenizedEmbeddingReqInput) -> None:
        """Take a request for a vector: a prompt after which nothing is generated."""
        prompt_only = TokenizedGenerateReqInput(
            [message.rid],
            message.input_ids,
            SamplingParams(max_new_tokens=0),
            extras=message.extras,
            arrival_time=message.arrival_time,
        )
        types = message.token_types
        token_types = None if types is None else np.frombuffer(types, dtype=np.uint8).astype(np.int32)
        self._take(prompt_only, Pooling(message.dimensions, token_types))

    def abort_request(self, message: AbortReq) -> None:
        """End requests in any state; unknown ids are ignored."""
        requests = self._requests
        reqs = list(requests) if message.abort_all else requests.find(message.rid, exact=message.exact)
        self._endings.stream_output(self._endings.abort(reqs))

    def end_late(self) -> None:
        """End requests that have waited, or taken, too long; those without any output end with an error."""
        for req, limit in self.deadlines.expired():
            if limit == "queue":
                self._requests.stats.num_queue_timeouts_total += 1
                text = f"the request has waited for {self._queue_timeout:g} s (--queue-timeout)"
                reason = FinishReason("abort", message=text, status_code=503, code="queue_timeout")
            else:
                nothing = len(self._requests.table.output_ids(req)) == 0
                reason = FinishReason(
                    "abort", message="the request has timed out", status_code=504 if nothing else None, code="timeout"
                )
            delta = self._endings.cut_short(req, reason)
            is_timeout = limit == "request" and delta.finish_reason is reason
            self._requests.stats.num_timeouts_total += is_timeout
            self._endings.stream_output([delta])

    def admit_compiled(self) -> None:
        """Queue the requests whose grammar is ready, and end those whose grammar cannot be used."""
        deltas = [
            self._endings.fail(req, error.message, status_code=error.status_code, param=error.param, code=error.code)
            for req, error in self._grammars.poll()
        ]
        self._endings.stream_output(deltas)

    def _take(self, message: TokenizedGenerateReqInput, pooling: Pooling | None) -> None:
        self._requests.stats.requests_received_total += 1
        try:
            reqs = self._intake.requests_of(message, pooling, self._requests)
            if self._would_overflow(reqs):
                self._refuse(message, "the waiting queue is full", 503, "queue_full")
            else:
                self._add_request_to_queue(message, reqs)
        except BoughError as error:
            self._refuse(message, error.message, error.status_code, error.code, error.param)
        except Exception:
            logger.exception("Could not take request %r", message.rids[0] if message.rids else "without id")
            self._refuse(message, "internal error while taking the request", 500)

    def _add_request_to_queue(self, message: TokenizedGenerateReqInput, reqs: list[Req]) -> None:
        grammar = message.sampling_params.grammar
        if grammar is not None:
            self._grammars.add(reqs, grammar)
        else:
            for req in reqs:
                self._requests.add(req)
        for req in reqs:
            self.deadlines.add(req, message.extras.timeout)

    def _refuse(
        self,
        message: TokenizedGenerateReqInput,
        text: str,
        status_code: int,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        reason = FinishReason("abort", message=text, status_code=status_code, param=param, code=code)
        # An id that is alive belongs to another request, whose client must not get its end.
        rids = [rid for rid in message.rids if rid not in self._requests]
        self._endings.stream_output([OutputDelta(rid, [], "", reason) for rid in rids])

    def _would_overflow(self, arriving: list[Req]) -> bool:
        """Return whether too many requests would wait. Those that the next step can start do not count as waiting.
        Raises :class:`BadRequest` if there would be too many on an idle server as well."""
        requests, limit = self._requests, self._max_queued
        if limit is None or requests.num_waiting + len(arriving) <= limit:
            return False
        slots = requests.kv.req_to_token.size
        most = slots + limit
        if len(arriving) > most:
            raise BadRequest(
                f"n must be at most {most} on this server, got {len(arriving)}: it computes "
                f"{slots} outputs at a time and lets {limit} wait (--max-queued-requests)",
                param="n",
            )
        if not len(requests):
            return False
        return requests.num_waiting + len(arriving) - self._num_startable(arriving) > limit
