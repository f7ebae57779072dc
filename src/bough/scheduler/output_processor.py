"""Turns the result of a step into finished requests and deltas."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bough.constrained.base import ENDED, GOES_ON, MASKED, REFUSED, Judgement
from bough.ipc.messages import FinishReason, OutputDelta
from bough.scheduler.deltas import add_input_logprobs, delta_of, sampled_logprobs
from bough.scheduler.endings import Endings
from bough.scheduler.planned import Planned
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.step_plan import IntArray, RowEmbedding, RowLogprobResult, StepResult

if TYPE_CHECKING:
    from bough.constrained.llguidance_backend import GrammarMatcher


class _Sampled(NamedTuple):
    """The tokens that a step has sampled, one entry per row that samples, as lists: these are read one by one."""

    slots: list[int]
    tokens: list[int]
    lengths: list[int]
    """Output tokens, this one included."""
    ended: list[bool]
    """At an end-of-sequence token, or at the request's horizon."""
    at_eos: list[bool]
    due: list[bool]
    """It is time for a delta."""
    careful: list[bool]
    speaking: list[int]
    """Indices of the entries that have to be looked at."""
    rows: np.ndarray
    """int, of the plan"""
    logprobs: dict[int, RowLogprobResult]
    """By row, of those that have any."""
    masked: list[int]
    """Slots whose next mask was written while their token was judged."""


class OutputProcessor:
    """Appends sampled tokens, decides which requests are finished and makes deltas of the news.

    The usual row (no own stop tokens, no text stops, no logprobs) is judged with all others at once; only rows that
    have something to say cost Python time of their own.
    """

    def __init__(self, requests: Requests, endings: Endings, eos_token_ids: Iterable[int], vocab_size: int) -> None:
        self.requests = requests
        self.table = requests.table
        self.endings = endings
        self._is_eos = np.zeros(vocab_size, dtype=np.bool_)
        self._is_eos[[token for token in eos_token_ids if 0 <= token < vocab_size]] = True
        self._stats = requests.stats

    def apply(self, planned: Planned, result: StepResult) -> list[OutputDelta]:
        """Apply the result of a step.

        Rows whose request ended while the step was in flight are ignored. Requests that finish here give back all
        they hold.
        """
        deltas: list[OutputDelta] = []
        if result.earlier_token_ids:
            self._process_earlier(planned, np.stack(result.earlier_token_ids), result.earlier_logprobs, deltas)
        masks = planned.plan.masks
        if masks is not None:
            stop = FinishReason("stop")
            deltas += [self.endings.finish(req, stop) for req in self._leaving(planned, masks.ended)]
        no_masks = masks is not None and masks.has_failed
        failed = self._leaving(planned, result.failed_rows)
        deltas += [self.endings.fail_row(req, no_masks=no_masks) for req in failed]
        logprobs = {item.row: item for item in result.logprobs}
        embeddings = {item.row: item for item in result.embeddings}
        self.process_batch_result_prefill(planned, logprobs, embeddings, deltas)
        self.process_batch_result_decode(planned, result.next_token_ids, logprobs, deltas)
        return deltas

    def _leaving(self, planned: Planned, rows: Iterable[int]) -> Iterator[Req]:
        """Yield the requests of rows that are alive, and let these rows be ignored from now on."""
        for row in rows:
            req = self.table.reqs[planned.plan.req_slots[row]]
            if planned.alive[row] and req is not None:
                planned.alive[row] = False
                yield req

    def process_batch_result_prefill(
        self,
        planned: Planned,
        logprobs: dict[int, RowLogprobResult],
        embeddings: dict[int, RowEmbedding],
        deltas: list[OutputDelta],
    ) -> None:
        """Account for the pieces of prompts, and of output that was not sampled, that are computed now."""
        plan = planned.plan
        for row, req in enumerate(planned.jumps, plan.num_decode_rows + len(planned.prompts)):
            if planned.alive[row]:  # the next pieces may be in flight
                req.jump_from = -1 if plan.sample[row] else int(plan.prefix_lens[row] + plan.extend_lens[row])
        for row, req in enumerate(planned.prompts, plan.num_decode_rows):
            if not planned.alive[row]:
                continue
            try:
                delta = self._process_prompt(planned, row, req, logprobs.get(row), embeddings.get(row))
            except Exception:
                delta = self.endings.fail_after_error(req, "handling a piece of the prompt")
            if delta is not None:
                deltas.append(delta)
                planned.alive[row] = delta.finish_reason is None

    def _process_prompt(
        self,
        planned: Planned,
        row: int,
        req: Req,
        logprobs: RowLogprobResult | None,
        embedding: RowEmbedding | None,
    ) -> OutputDelta | None:
        plan = planned.plan
        start = int(plan.prefix_lens[row])
        end = start + int(plan.extend_lens[row])
        self.requests.computed(req, end)
        if req.logprob_next < req.prompt_len:
            first = next((item.first for item in plan.logprobs if item.row == row), 0)
            add_input_logprobs(req, logprobs, start, start + first + 1)
        if end == req.fill_len:
            if plan.sample[row]:
                return None
            vector = None if req.pooling is None or embedding is None else embedding.vector.tobytes()
            delta = self.endings.finish(req, FinishReason("length", length=len(req.output_before_slot)))
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
        """Append the tokens ``[N, R]`` of steps in a row but the last: they end nothing, and no delta is due yet."""
        table = self.table
        rows = planned.alive.nonzero()[0]
        slots = planned.plan.req_slots[rows]
        count = len(tokens)
        table.tokens[slots, table.known_len[slots] + np.arange(count)[:, np.newaxis]] = tokens[:, rows]
        table.known_len[slots] += count
        table.out_len[slots] += count
        self._stats.decode_tokens_total += count * len(rows)
        for of_step, results in zip(tokens, logprobs, strict=True) if logprobs else ():
            for result in results:
                req = table.reqs[planned.plan.req_slots[result.row]]
                if not planned.alive[result.row] or req is None:
                    continue
                try:
                    req.pending_logprobs.append(sampled_logprobs(req, int(of_step[result.row]), result))
                except Exception:
                    planned.alive[result.row] = False
                    deltas.append(self.endings.fail_after_error(req, "reading the logprobs of a token"))

    def process_batch_result_decode(
        self, planned: Planned, tokens: IntArray, logprobs: dict[int, RowLogprobResult], deltas: list[OutputDelta]
    ) -> None:
        """Append the token that each row has sampled, and look at those that end their request or are to be sent."""
        rows = (planned.alive & planned.plan.sample).nonzero()[0]
        if len(rows) == 0:
            return
        sampled = self._append(planned, rows, tokens[rows], logprobs)
        slots, new_tokens, lengths = sampled.slots, sampled.tokens, sampled.lengths
        ended, careful, reqs = sampled.ended, sampled.careful, self.table.reqs
        for i in sampled.speaking:
            req = reqs[slots[i]]
            assert req is not None, "its row is alive"
            try:
                if careful[i]:
                    self._judge(req, sampled, i, deltas)
                elif ended[i]:
                    self._end(req, sampled, i, deltas)
                else:
                    deltas.append(self._due_delta(req, new_tokens[i], lengths[i]))
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # a panic of the grammar engine is not an Exception
                deltas.append(self.endings.fail_after_error(req, "judging a token"))
        if sampled.masked:
            self.table.has_mask[sampled.masked] = True

    def _append(
        self, planned: Planned, rows: np.ndarray, tokens: IntArray, logprobs: dict[int, RowLogprobResult]
    ) -> _Sampled:
        """Enter the ``tokens`` of ``rows`` into the request table, and find out which are to be looked at."""
        table = self.table
        slots = planned.plan.req_slots[rows]
        position = table.known_len[slots]
        table.tokens[slots, position] = tokens
        table.known_len[slots] = position + 1
        out_len = table.out_len[slots] + 1
        table.out_len[slots] = out_len
        self._stats.decode_tokens_total += len(rows)
        if planned.prompts:
            for slot in slots[out_len == 1].tolist():
                table.reqs[slot].first_token_time = time.monotonic()
        if table.num_constrained:
            table.has_mask[slots] = False

        at_eos = self._is_eos[tokens] & table.checks_eos[slots]
        ended = at_eos | (out_len >= table.horizon[slots])
        due = out_len >= table.next_send[slots]
        table.next_send[slots[due]] = out_len[due] + table.send_interval[slots[due]]
        careful = table.careful[slots]
        return _Sampled(
            slots.tolist(),
            tokens.tolist(),
            out_len.tolist(),
            ended.tolist(),
            at_eos.tolist(),
            due.tolist(),
            careful.tolist(),
            (ended | due | careful).nonzero()[0].tolist(),
            rows,
            logprobs,
            [],
        )

    def _end(self, req: Req, sampled: _Sampled, i: int, deltas: list[OutputDelta]) -> None:
        """End a request at its horizon or an end-of-sequence token, or look at its thoughts if these are the bound."""
        token, length, at_eos = sampled.tokens[i], sampled.lengths[i], sampled.at_eos[i]
        if _is_at_bound(req, length, at_eos):
            if sampled.due[i]:
                deltas.append(self._due_delta(req, token, length))
            self._look_at_thoughts(req)
        else:
            reason = FinishReason("stop", matched=token) if at_eos else FinishReason("length", length=length)
            deltas.append(self.endings.finish(req, reason))

    def _judge(self, req: Req, sampled: _Sampled, i: int, deltas: list[OutputDelta]) -> None:
        """Look at a token of a request that has stop tokens of its own, text stops, logprobs or a grammar."""
        token, length, ended = sampled.tokens[i], sampled.lengths[i], sampled.ended[i]
        judgement: Judgement | None = None
        if req.matcher is not None:
            req.jump_from = -1  # what is before a sampled token is computed
            if token not in req.stop_token_ids:
                mask_place = None if ended else self.table.mask_places[sampled.slots[i]]
                judgement = req.matcher.judge(token, req.jumps and not ended, mask_place)
                if judgement is MASKED:
                    sampled.masked.append(sampled.slots[i])
                is_plain = not (ended or req.return_logprob or req.text_stops is not None)
                if is_plain and (judgement is MASKED or judgement is GOES_ON):
                    if sampled.due[i]:
                        deltas.append(self._due_delta(req, token, length))
                    return
        is_at_bound = ended and _is_at_bound(req, length, sampled.at_eos[i])
        logprobs = sampled.logprobs.get(int(sampled.rows[i])) if sampled.logprobs else None
        delta = self._look_closely(req, token, length, ended and not is_at_bound, sampled.due[i], logprobs, judgement)
        if delta is not None:
            deltas.append(delta)
        if req.thinking is None or req.slot < 0:
            return
        if is_at_bound or self.table.out_len[req.slot] >= self.table.horizon[req.slot]:  # it may have jumped
            self._look_at_thoughts(req)

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
        """Return the delta that is due after a token, or the last one if the token ends the request."""
        if logprobs is not None:
            req.pending_logprobs.append(sampled_logprobs(req, token, logprobs))
        matcher, stops, finish = req.matcher, req.text_stops, self.endings.finish
        is_stop_token = token in req.stop_token_ids
        if matcher is not None and judgement is REFUSED:
            return self.endings.fail_grammar(req, matcher.error or f"token {token} does not follow it")
        if stops is not None:
            skips = is_stop_token and not req.sampling_params.no_stop_trim
            matched = stops.skip() if skips else stops.push(token)
            if matched is not None:
                return finish(req, FinishReason("stop", matched=matched))
        if is_stop_token:
            return finish(req, FinishReason("stop", matched=token))
        if judgement is ENDED:
            return finish(req, FinishReason("stop", matched=token if self._is_eos[token] else None))
        if ended:
            return finish(req, FinishReason("length", length=length))
        if matcher is not None and judgement is not None and judgement.forced:
            delta = self._jump(req, matcher, judgement.forced)
            if delta is not None:
                return delta
        if not due:
            return None
        if stops is None and logprobs is None and int(self.table.out_len[req.slot]) == length:
            return self._due_delta(req, token, length)
        delta = delta_of(req, self.table.output_ids(req))
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
                return self.endings.fail_grammar(req, matcher.error or f"token {token} does not follow it")
            taken.append(token)
            matched = req.text_stops.push(token) if req.text_stops is not None else None
            if matched is not None:
                reason = FinishReason("stop", matched=matched)
                break
        if taken:
            table.append(req.slot, taken)
            self.requests.news.add_forced(req.slot, taken)
        self._stats.decode_tokens_total += len(taken)
        self._stats.forced_tokens_total += len(taken)
        if reason is None and matcher.is_terminated:
            reason = FinishReason("stop")
        if reason is None and table.out_len[req.slot] >= table.max_new[req.slot]:
            reason = FinishReason("length", length=int(table.out_len[req.slot]))
        return None if reason is None else self.endings.finish(req, reason)

    def _look_at_thoughts(self, req: Req) -> None:
        """Bound the thoughts: if they have as many tokens as they may have, the next tokens end them."""
        assert req.thinking is not None, "the request has a bound"
        req.thinking.look(self.table.output_ids(req))
        self.table.bound(req)

    def _due_delta(self, req: Req, token: int, length: int) -> OutputDelta:
        """Return what no delta of ``req`` has carried yet: mostly its last token alone, which is ``token``."""
        if req.sent_len == length - 1 and length > 1:
            req.sent_len = length
            return OutputDelta(req.rid, [token], None, None, length, req.prompt_tokens, req.cached_tokens)
        return delta_of(req, self.table.output_ids(req))


def _is_at_bound(req: Req, length: int, is_eos: bool) -> bool:
    """Return whether an output of ``length`` tokens has come to the bound on its thoughts, and not to its end."""
    return req.thinking is not None and not is_eos and length < req.max_new_tokens
