"""Turns the result of a step into finished requests and deltas."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bough.constrained.base import ENDED, GOES_ON, INVALID_GRAMMAR, MASKED, REFUSED, GrammarMatcher, Judgement
from bough.ipc.messages import DecodeInit, FinishReason, OutputDelta, PositionLogprobs
from bough.scheduler.planned import Planned
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.step_plan import IntArray, RowEmbedding, RowLogprobResult, StepResult

logger = logging.getLogger(__name__)

PROMPT_TAIL_TOKENS = 5
"""Prompt tokens that a detokenizer gets as context: enough for any byte-fallback character and a leading space."""


class OutputProcessor:
    """Appends sampled tokens, decides who is finished and says what is new.

    The usual row (no own stop tokens, no text stops, no logprobs) is judged with all others at once; only rows that
    have something to say cost Python time of their own.
    """

    def __init__(self, requests: Requests, eos_token_ids: Iterable[int], vocab_size: int) -> None:
        self.requests = requests
        self.table = requests.table
        self._is_eos = np.zeros(vocab_size, dtype=np.bool_)
        self._is_eos[[token for token in eos_token_ids if 0 <= token < vocab_size]] = True
        self.generated_tokens = 0
        """Output tokens so far, over all requests."""
        self.forced_tokens = 0
        """How many of them were not sampled, because a grammar left no choice."""

    def process(self, planned: Planned, result: StepResult) -> list[OutputDelta]:
        """Apply the result of a step.

        Rows whose request ended while the step was in flight are ignored. Requests that finish here give back all
        they hold.
        """
        deltas: list[OutputDelta] = []
        if result.earlier_token_ids:
            self._process_earlier(planned, np.stack(result.earlier_token_ids), result.earlier_logprobs, deltas)
        masks = planned.plan.masks
        if masks is not None:
            deltas += [self.finish(req, FinishReason("stop")) for req in self._leaving(planned, masks.ended)]
        no_masks = masks is not None and masks.has_failed
        deltas += [self._fail_row(req, no_masks=no_masks) for req in self._leaving(planned, result.failed_rows)]
        logprobs = {item.row: item for item in result.logprobs}
        embeddings = {item.row: item for item in result.embeddings}
        self._process_prompts(planned, logprobs, embeddings, deltas)
        self._process_tokens(planned, result.next_token_ids, logprobs, deltas)
        return deltas

    def _leaving(self, planned: Planned, rows: Iterable[int]) -> Iterator[Req]:
        """The requests of rows that are alive, and that no longer are from now on."""
        for row in rows:
            req = self.table.reqs[planned.plan.req_slots[row]]
            if planned.alive[row] and req is not None:
                planned.alive[row] = False
                yield req

    def cut_short(self, req: Req, reason: FinishReason, *, keep: bool = True) -> OutputDelta:
        """End a request for a reason that is none of its own; its own counts if nobody knew that it has one."""
        return self.finish(req, FinishReason("stop") if self.requests.is_complete(req) else reason, keep=keep)

    def finish(self, req: Req, reason: FinishReason, *, keep: bool = True) -> OutputDelta:
        """End a request in any state; returns its last delta. Whatever goes wrong concerns this request alone."""
        try:
            return self._finish(req, reason, keep=keep)
        except Exception:
            logger.exception("Could not end request %r in order", req.rid)
            is_running = req.slot >= 0 and self.table.reqs[req.slot] is req
            num_tokens = int(self.table.out_len[req.slot]) if is_running else len(req.output_before_slot)
            self.requests.forget(req)
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
        self.requests.release(req, keep=keep)
        req.finish_reason = reason
        delta = self._delta(req, req.output_before_slot)
        delta.finish_reason = reason
        delta.num_retractions = req.num_retractions
        delta.last_token_delay = time.monotonic() - req.arrival_time
        return delta

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

    def _fail_after_error(self, req: Req, work: str) -> OutputDelta:
        """End a request whose handling has raised what is being handled now; all others go on."""
        logger.exception("Internal error while %s of request %r", work, req.rid)
        req.text_stops = None
        return self.fail(req, f"internal error while {work}", keep=False)

    def _fail_row(self, req: Req, *, no_masks: bool) -> OutputDelta:
        """End a request for which no token could be chosen.

        Args:
            req: the request.
            no_masks: whether the grammar engine has failed in this step.
        """
        grammar = req.sampling_params.grammar
        has_rivals = req.matcher is not None or req.banned_sequences or req.forced in req.masked_until_min
        if req.forced is not None and has_rivals and not no_masks:
            message = (
                f"thinking_token_budget: the thoughts have to end with token {req.forced}, and the request's other "
                "parameters, such as its grammar, min_new_tokens and bad_words, do not allow it"
            )
            return self.fail(req, message, status_code=400, param="thinking_token_budget", keep=False)
        if grammar is None or req.matcher is None:
            if req.allowed is not None:
                message = "no token of allowed_token_ids is left that the request's other parameters allow"
                return self.fail(req, message, status_code=400, param="allowed_token_ids", keep=False)
            if len(req.banned_sequences) + len(req.masked_until_min) >= len(self._is_eos):
                message = "no token is left that bad_words and the request's other parameters allow"
                return self.fail(req, message, status_code=400, param="bad_words", keep=False)
            return self.fail(req, "the model produced numbers that are not finite", keep=False)
        if no_masks:
            return self.fail(req, "the grammar engine has failed", keep=False)
        try:
            problem = req.matcher.error
        except Exception:
            return self._fail_after_error(req, "asking the grammar")
        return self._fail_grammar(
            req,
            problem
            or "no token is left that both the grammar and the request's other parameters allow, such as "
            "min_new_tokens, stop_token_ids, logit_bias, allowed_token_ids and bad_words",
        )

    def _fail_grammar(self, req: Req, problem: str) -> OutputDelta:
        """End a request whose grammar cannot be followed any further."""
        grammar = req.sampling_params.grammar
        kind = grammar.kind if grammar is not None else "grammar"
        message = f"{kind}: {problem} (after {int(self.table.out_len[req.slot])} tokens)"
        return self.fail(req, message, status_code=400, param=kind, code=INVALID_GRAMMAR, keep=False)

    def _process_prompts(
        self,
        planned: Planned,
        logprobs: dict[int, RowLogprobResult],
        embeddings: dict[int, RowEmbedding],
        deltas: list[OutputDelta],
    ) -> None:
        plan = planned.plan
        self._process_jumps(planned)
        for index, req in enumerate(planned.extend_reqs):
            row = plan.num_decode_rows + index
            if not planned.alive[row]:
                continue
            try:
                delta = self._process_prompt(planned, row, req, logprobs.get(row), embeddings.get(row))
            except Exception:
                delta = self._fail_after_error(req, "handling a piece of the prompt")
            if delta is not None:
                deltas.append(delta)
                planned.alive[row] = delta.finish_reason is None

    @staticmethod
    def _process_jumps(planned: Planned) -> None:
        """Pieces of output that was not sampled are computed; the next ones may be in flight."""
        plan = planned.plan
        first = plan.num_decode_rows + len(planned.extend_reqs)
        for row, req in enumerate(planned.jump_reqs, first):
            if planned.alive[row]:
                is_last = plan.sample[row]
                req.jump_from = -1 if is_last else int(plan.prefix_lens[row] + plan.extend_lens[row])

    def _process_prompt(
        self,
        planned: Planned,
        row: int,
        req: Req,
        logprobs: RowLogprobResult | None,
        embedding: RowEmbedding | None,
    ) -> OutputDelta | None:
        """A piece of a prompt is computed."""
        plan = planned.plan
        start = int(plan.prefix_lens[row])
        end = start + int(plan.extend_lens[row])
        self.requests.computed(req, end)
        if req.logprob_next < req.prompt_len:
            first = next((item.first for item in plan.logprobs if item.row == row), 0)
            _add_input_logprobs(req, logprobs, start, start + first + 1)
        if end == req.fill_len:
            if plan.sample[row]:
                return None
            vector = None if req.pooling is None or embedding is None else embedding.vector.tobytes()
            delta = self.finish(req, FinishReason("length", length=len(req.output_before_slot)))
            delta.embedding = vector
            return delta
        if not req.input_logprobs:
            return None
        # A long prompt's logprobs go out piece by piece: all at once they would stall their receivers.
        delta = OutputDelta(
            req.rid,
            [],
            "",
            prompt_tokens=req.prompt_tokens,
            cached_tokens=req.cached_tokens,
            input_logprobs=req.input_logprobs,
        )
        req.input_logprobs = []
        return delta

    def _process_earlier(
        self,
        planned: Planned,
        tokens: IntArray,
        logprobs: Sequence[Sequence[RowLogprobResult]],
        deltas: list[OutputDelta],
    ) -> None:
        """The tokens ``[N, R]`` of steps in a row but the last: they end nothing, and nobody is told of them yet."""
        table = self.table
        rows = planned.alive.nonzero()[0]
        slots = planned.plan.req_slots[rows]
        count = len(tokens)
        table.tokens[slots, table.known_len[slots] + np.arange(count)[:, np.newaxis]] = tokens[:, rows]
        table.known_len[slots] += count
        table.out_len[slots] += count
        self.generated_tokens += count * len(rows)
        for of_step, results in zip(tokens, logprobs, strict=True) if logprobs else ():
            for result in results:
                req = table.reqs[planned.plan.req_slots[result.row]]
                if not planned.alive[result.row] or req is None:
                    continue
                try:
                    req.pending_logprobs.append(_sampled_logprobs(req, int(of_step[result.row]), result))
                except Exception:
                    planned.alive[result.row] = False
                    deltas.append(self._fail_after_error(req, "reading the logprobs of a token"))

    def _process_tokens(
        self, planned: Planned, tokens: IntArray, logprobs: dict[int, RowLogprobResult], deltas: list[OutputDelta]
    ) -> None:
        table = self.table
        rows = (planned.alive & planned.plan.sample).nonzero()[0]
        if len(rows) == 0:
            return
        slots = planned.plan.req_slots[rows]
        new_tokens = tokens[rows]
        position = table.known_len[slots]
        table.tokens[slots, position] = new_tokens
        table.known_len[slots] = position + 1
        out_len = table.out_len[slots] + 1
        table.out_len[slots] = out_len
        self.generated_tokens += len(rows)

        at_eos = self._is_eos[new_tokens] & table.checks_eos[slots]
        ended = at_eos | (out_len >= table.horizon[slots])
        due = out_len >= table.next_send[slots]
        table.next_send[slots[due]] = out_len[due] + table.send_interval[slots[due]]
        careful = table.careful[slots]
        speaking = (ended | due | careful).nonzero()[0]

        reqs = table.reqs
        for slot in slots[out_len == 1].tolist() if planned.extend_reqs else ():
            reqs[slot].first_token_time = time.monotonic()
        slot_list, token_list, out_list = slots.tolist(), new_tokens.tolist(), out_len.tolist()
        ended_list, careful_list, eos_list, due_list = ended.tolist(), careful.tolist(), at_eos.tolist(), due.tolist()
        append, mask_places = deltas.append, table.mask_places
        masked: list[int] = []
        if table.num_constrained:
            table.has_mask[slots] = False
        for i in speaking.tolist():
            req = reqs[slot_list[i]]
            token, length = token_list[i], out_list[i]
            try:
                if careful_list[i]:
                    is_last, looks = ended_list[i], False
                    if is_last and _is_at_bound(req, length, eos_list[i]):
                        is_last, looks = False, True
                    judgement: Judgement | None = None
                    if req.matcher is not None:
                        req.jump_from = -1  # what is before a sampled token is computed
                    if req.matcher is not None and token not in req.stop_token_ids:
                        has_choice = not (is_last or looks)
                        mask_place = mask_places[slot_list[i]] if has_choice else None
                        judgement = req.matcher.judge(token, req.jumps and has_choice, mask_place)
                        goes_on = judgement is GOES_ON
                        if judgement is MASKED:
                            masked.append(slot_list[i])
                            goes_on = True
                        if goes_on and has_choice and not (req.return_logprob or req.text_stops is not None):
                            if due_list[i]:
                                append(self._due_delta(req, token, length))
                            continue
                    found = logprobs.get(int(rows[i])) if logprobs else None
                    delta = self._look_closely(req, token, length, is_last, due_list[i], found, judgement)
                    if delta is not None:
                        append(delta)
                    if req.thinking is not None and req.slot >= 0 and not looks:
                        looks = bool(table.out_len[req.slot] >= table.horizon[req.slot])  # it may have jumped
                    if looks and req.slot >= 0:
                        self._look_at_thoughts(req)
                elif not ended_list[i]:
                    append(self._due_delta(req, token, length))
                elif _is_at_bound(req, length, eos_list[i]):
                    if due_list[i]:
                        append(self._due_delta(req, token, length))
                    self._look_at_thoughts(req)
                else:
                    at_stop = eos_list[i]
                    reason = FinishReason("stop", matched=token) if at_stop else FinishReason("length", length=length)
                    append(self.finish(req, reason))
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # a panic of the grammar engine is not an Exception
                append(self._fail_after_error(req, "judging a token"))
        if masked:
            table.has_mask[masked] = True

    def _look_closely(
        self,
        req: Req,
        token: int,
        length: int,
        ended: bool,
        due: bool,
        logprobs: RowLogprobResult | None,
        judgement: Judgement | None,
    ) -> OutputDelta | None:
        """A token of a request that has stop tokens of its own, text stops, logprobs or a grammar, which has judged."""
        if logprobs is not None:
            req.pending_logprobs.append(_sampled_logprobs(req, token, logprobs))
        matcher, stops = req.matcher, req.text_stops
        is_stop_token = token in req.stop_token_ids
        if matcher is not None and judgement is REFUSED:
            return self._fail_grammar(req, matcher.error or f"token {token} does not follow it")
        if stops is not None:
            skips = is_stop_token and not req.sampling_params.no_stop_trim
            matched = stops.skip() if skips else stops.push(token)
            if matched is not None:
                return self.finish(req, FinishReason("stop", matched=matched))
        if is_stop_token:
            return self.finish(req, FinishReason("stop", matched=token))
        if judgement is ENDED:
            return self.finish(req, FinishReason("stop", matched=token if self._is_eos[token] else None))
        if ended:
            return self.finish(req, FinishReason("length", length=length))
        if matcher is not None and judgement is not None and judgement.forced:
            delta = self._jump(req, matcher, judgement.forced)
            if delta is not None:
                return delta
        if not due:
            return None
        if stops is None and logprobs is None and int(self.table.out_len[req.slot]) == length:
            return self._due_delta(req, token, length)
        delta = self._delta(req, self.table.output_ids(req))
        if not delta.token_ids and not delta.text and delta.input_logprobs is None and length > 1:
            # All of it is held back: what comes next must not wait for another interval.
            self.table.next_send[req.slot] = length + 1
            return None
        return delta

    def _jump(self, req: Req, matcher: GrammarMatcher, forced: Sequence[int]) -> OutputDelta | None:
        """Take the tokens that the grammar leaves no choice about; returns the last delta if that ends the output."""
        table = self.table
        reason: FinishReason | None = None
        taken: list[int] = []
        for token in forced[: int(table.max_new[req.slot] - table.out_len[req.slot])]:
            if token in req.stop_token_ids or self._is_eos[token]:
                break  # it is for the model to end the output, and for its stop tokens to be judged
            if not matcher.accept(token):
                return self._fail_grammar(req, matcher.error or f"token {token} does not follow it")
            taken.append(token)
            matched = req.text_stops.push(token) if req.text_stops is not None else None
            if matched is not None:
                reason = FinishReason("stop", matched=matched)
                break
        self.requests.force(req, taken)
        self.generated_tokens += len(taken)
        self.forced_tokens += len(taken)
        if reason is None and matcher.is_terminated:
            reason = FinishReason("stop")
        if reason is None and table.out_len[req.slot] >= table.max_new[req.slot]:
            reason = FinishReason("length", length=int(table.out_len[req.slot]))
        return None if reason is None else self.finish(req, reason)

    def _look_at_thoughts(self, req: Req) -> None:
        """Thoughts may have as many tokens as they may have; if so, they are ended by what comes next."""
        assert req.thinking is not None, "who has a bound"
        req.thinking.look(self.table.output_ids(req))
        self.table.bound(req)

    def _due_delta(self, req: Req, token: int, length: int) -> OutputDelta:
        """What no delta of ``req`` has carried yet: mostly its last token alone, which is ``token``."""
        if req.sent_len == length - 1 and length > 1:
            req.sent_len = length
            return OutputDelta(req.rid, [token], None, None, length, req.prompt_tokens, req.cached_tokens)
        return self._delta(req, self.table.output_ids(req))

    def _delta(self, req: Req, output: IntArray) -> OutputDelta:
        """What no delta of ``req`` has carried yet, given its whole output."""
        first = not req.announced
        text = None
        until = len(output)
        if req.text_stops is not None:
            text, until = req.text_stops.take_text()
        elif req.sampling_params.has_text_stops:  # lost to an error; no detokenizer knows the request
            text, until = "", req.sent_len
        delta = OutputDelta(
            rid=req.rid,
            token_ids=output[req.sent_len : until].tolist(),
            text=text,
            completion_tokens=until,
            prompt_tokens=req.prompt_tokens,
            cached_tokens=req.cached_tokens,
        )
        if req.return_logprob:
            count = until - req.sent_len
            delta.logprobs, req.pending_logprobs = req.pending_logprobs[:count], req.pending_logprobs[count:]
            if req.input_logprobs:
                delta.input_logprobs, req.input_logprobs = req.input_logprobs, []
        if first:
            req.announced = True
            if text is None and req.pooling is None:
                delta.decode = DecodeInit(
                    req.prompt[-PROMPT_TAIL_TOKENS:].tolist(),
                    req.sampling_params.skip_special_tokens,
                    req.sampling_params.spaces_between_special_tokens,
                    req.sampling_params.no_stop_trim,
                )
            if req.first_step_time is not None:
                delta.queue_time = req.first_step_time - req.arrival_time
            if req.first_token_time is not None:
                delta.first_token_delay = req.first_token_time - req.arrival_time
        req.sent_len = until
        return delta


def _add_input_logprobs(req: Req, result: RowLogprobResult | None, start: int, first_position: int) -> None:
    """Append what a piece of the prompt has told of its tokens' logprobs.

    Args:
        req: the request.
        result: logprobs of the tokens from ``first_position`` on; ``None`` if the piece told nothing.
        start: position of the piece's first token.
        first_position: position of the first token that ``result`` is about.
    """
    if req.logprob_next == 0 and start == 0:
        # Nothing precedes the first token, so nothing predicts it.
        req.input_logprobs.append(PositionLogprobs(None, int(req.prompt[0])))
        req.logprob_next = 1
    if result is None or len(result.target_logprobs) == 0:
        return
    targets = req.prompt[first_position : first_position + len(result.target_logprobs)].tolist()
    tops = _pair_lists(result.target_top)
    chosen = result.target_chosen
    for i, (token, logprob) in enumerate(zip(targets, result.target_logprobs.tolist(), strict=True)):
        req.input_logprobs.append(
            PositionLogprobs(
                logprob,
                token,
                tops[i] if tops is not None else None,
                list(zip(chosen[i].tolist(), req.token_ids_logprob, strict=True)) if chosen is not None else None,
            )
        )
    req.logprob_next = first_position + len(targets)


def _is_at_bound(req: Req, length: int, is_eos: bool) -> bool:
    """Whether an output of ``length`` tokens has come to the bound on its thoughts, and not to its end."""
    return req.thinking is not None and not is_eos and length < req.max_new_tokens


def _sampled_logprobs(req: Req, token: int, result: RowLogprobResult) -> PositionLogprobs:
    top = None
    if result.sampled_top is not None:
        values, ids = result.sampled_top
        top = list(zip(values.tolist(), ids.tolist(), strict=True))
    chosen = None
    if result.sampled_chosen is not None:
        chosen = list(zip(result.sampled_chosen.tolist(), req.token_ids_logprob, strict=True))
    return PositionLogprobs(result.sampled_logprob, token, top, chosen)


def _pair_lists(top: tuple[np.ndarray, np.ndarray] | None) -> list[list[tuple[float, int]]] | None:
    if top is None:
        return None
    values, ids = top
    return [list(zip(v, i, strict=True)) for v, i in zip(values.tolist(), ids.tolist(), strict=True)]
