"""Ends of requests: by their own limits, by clients, or by errors that concern them alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from bough.constrained.base import INVALID_GRAMMAR
from bough.ipc.messages import FinishReason, OutputDelta
from bough.scheduler.deltas import delta_of
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.step_plan import IntArray

logger = logging.getLogger(__name__)


class Endings:
    """Ends requests, which give back everything they hold, and returns their last deltas."""

    def __init__(
        self,
        requests: Requests,
        vocab_size: int,
        send_to_detokenizer: Callable[[list[OutputDelta]], None],
        routed_experts: Callable[[IntArray], IntArray],
    ) -> None:
        """``routed_experts`` returns the experts of the tokens at some KV slots."""
        self._routed_experts = routed_experts
        self._requests = requests
        self._send_to_detokenizer = send_to_detokenizer
        self._table = requests.table
        self._vocab_size = vocab_size

    def stream_output(self, deltas: list[OutputDelta]) -> None:
        """Send what is new, if anything is."""
        if deltas:
            self._send_to_detokenizer(deltas)

    def finish(self, req: Req, reason: FinishReason, *, keep: bool = True) -> OutputDelta:
        """End a request in any state; an error on the way concerns this request alone.

        The ``reason`` is sent to the client, unless the end of the text shows another one. Its KV may serve others if
        it can be trusted (``keep``).
        """
        try:
            return self._finish(req, reason, keep=keep)
        except Exception:
            logger.exception("Could not end request %r in order", req.rid)
            is_running = req.slot >= 0 and self._table.reqs[req.slot] is req
            num_tokens = int(self._table.out_len[req.slot]) if is_running else len(req.output_before_slot)
            self._requests.forget(req)
            message = reason.message or "internal error while ending the request"
            # Without a text, so that a detokenizer that knows the request forgets it.
            return OutputDelta(
                req.rid,
                [],
                None,
                FinishReason("abort", message=message, status_code=500),
                completion_tokens=num_tokens,
                prompt_tokens=req.prompt_tokens,
            )

    def _finish(self, req: Req, reason: FinishReason, *, keep: bool) -> OutputDelta:
        if req.text_stops is not None:
            try:
                matched = req.text_stops.finish()
            except Exception:
                logger.exception("Could not decode the end of request %r", req.rid)
                req.text_stops, matched = None, None
                if reason.type != "abort":  # some of its text is missing
                    message = "internal error while decoding the end of the output"
                    reason = FinishReason("abort", message=message, status_code=500)
            late = req.text_stops is not None and req.text_stops.matched_late
            # Where the text is cut by a pattern that only its end completes, this says why, and no stop token does.
            if matched is not None and (late or reason.type != "abort"):
                reason = FinishReason("stop", matched=matched)
        routed_experts = self._experts_of(req)
        self._requests.release(req, keep=keep)
        req.finish_reason = reason
        delta = delta_of(req, req.output_before_slot)
        delta.routed_experts = routed_experts
        delta.finish_reason = reason
        delta.num_retractions = req.num_retractions
        delta.last_token_delay = time.monotonic() - req.arrival_time
        return delta

    def _experts_of(self, req: Req) -> bytes | None:
        """Return the experts of all tokens that were computed, if they are wanted and it has its slot."""
        start = req.extras.routed_experts_from
        if start is None or req.slot < 0:
            return None
        slots = self._requests.kv.req_to_token.table[req.slot, start : self._table.num_valid(req)]
        return self._routed_experts(slots).astype("<i4").tobytes()

    def cut_short(self, req: Req, reason: FinishReason, *, keep: bool = True) -> OutputDelta:
        """End a request for an external reason; an end of its own that no step has reported yet takes precedence."""
        return self.finish(req, FinishReason("stop") if self._requests.is_complete(req) else reason, keep=keep)

    def abort(self, reqs: Iterable[Req]) -> list[OutputDelta]:
        """End requests that their clients no longer want."""
        reason = FinishReason("abort", message="aborted")
        deltas = [self.cut_short(req, reason) for req in reqs]
        self._requests.stats.num_aborted_total += sum(delta.finish_reason is reason for delta in deltas)
        return deltas

    def end_complete(self) -> list[OutputDelta]:
        """End the running requests that have come to their end, as the next step would report."""
        ended = [req for req in self._table.reqs if req is not None and self._requests.is_complete(req)]
        return [self.finish(req, FinishReason("stop")) for req in ended]

    def retract_all(self) -> list[OutputDelta]:
        """Take the memory of all requests, which wait again; returns the last deltas of those that were complete."""
        deltas = self.end_complete()
        for req in self._table.reqs:
            if req is not None:
                self._requests.retract(req)
        return deltas

    def fail(
        self,
        req: Req,
        message: str,
        *,
        status_code: int = 500,
        param: str | None = None,
        code: str | None = None,
        keep: bool = True,
    ) -> OutputDelta:
        """End a request that cannot be served; only this one."""
        reason = FinishReason("abort", message=message, status_code=status_code, param=param, code=code)
        return self.finish(req, reason, keep=keep)

    def fail_after_error(self, req: Req, work: str) -> OutputDelta:
        """End a request after the exception that is being handled; all others go on."""
        logger.exception("Internal error while %s of request %r", work, req.rid)
        req.text_stops = None
        return self.fail(req, f"internal error while {work}", keep=False)

    def fail_row(self, req: Req, *, no_masks: bool) -> OutputDelta:
        """End a request for which no token could be chosen; ``no_masks``: the grammar engine has failed in this
        step."""
        grammar = req.sampling_params.grammar
        has_rivals = req.matcher is not None or req.banned_sequences or req.forced in req.masked_until_min
        if req.forced is not None and has_rivals and not no_masks:
            return self._fail_field(
                req,
                "thinking_token_budget",
                f"thinking_token_budget: the thoughts have to end with token {req.forced}, and the request's other "
                "parameters, such as its grammar, min_new_tokens and bad_words, do not allow it",
            )
        if grammar is None or req.matcher is None:
            if req.allowed is not None:
                message = "no token of allowed_token_ids is left that the request's other parameters allow"
                return self._fail_field(req, "allowed_token_ids", message)
            if len(req.banned_sequences) + len(req.masked_until_min) >= self._vocab_size:
                message = "no token is left that bad_words and the request's other parameters allow"
                return self._fail_field(req, "bad_words", message)
            return self.fail(req, "the model produced numbers that are not finite", keep=False)
        if no_masks:
            return self.fail(req, "the grammar engine has failed", keep=False)
        try:
            problem = req.matcher.error
        except Exception:
            return self.fail_after_error(req, "asking the grammar")
        return self.fail_grammar(
            req,
            problem
            or "no token is left that both the grammar and the request's other parameters allow, such as "
            "min_new_tokens, stop_token_ids, logit_bias, allowed_token_ids and bad_words",
        )

    def fail_grammar(self, req: Req, problem: str) -> OutputDelta:
        """End a request whose output cannot follow its grammar any further."""
        grammar = req.sampling_params.grammar
        kind = grammar.kind if grammar is not None else "grammar"
        message = f"{kind}: {problem} (after {int(self._table.out_len[req.slot])} tokens)"
        return self._fail_field(req, kind, message, INVALID_GRAMMAR)

    def _fail_field(self, req: Req, param: str, message: str, code: str | None = None) -> OutputDelta:
        """End a request for what it asks for in the field ``param``."""
        return self.fail(req, message, status_code=400, param=param, code=code, keep=False)
