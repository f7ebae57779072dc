"""Turns the result of a step into finished requests and deltas."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bough.constrained.base import ENDED, MASKED, REFUSED, Judgement, MaskPlace
from bough.ipc.messages import FinishReason, OutputDelta
from bough.scheduler.deltas import add_input_logprobs, delta_of, sampled_logprobs
from bough.scheduler.endings import Endings
from bough.scheduler.planned import Planned
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.step_plan import IntArray, RowEmbedding, RowLogprobResult, StepResult

_Logprobs = Mapping[int, Sequence[RowLogprobResult]]
"""By row, of those that have any: one result for each of its tokens."""


class _Appended(NamedTuple):
    """Runs of tokens that a step has sampled, one entry per row that has any, as lists: these are read one by one."""

    slots: list[int]
    runs: list[list[int]] | dict[int, list[int]]
    """At least those that have to be looked at. Only the last token of one may be an end of sequence, or be at its
    request's horizon."""
    begins: list[int]
    """Output tokens before the run."""
    lengths: list[int]
    """Output tokens, the run included."""
    ended: list[bool]
    """At an end-of-sequence token, or at the request's horizon."""
    at_eos: list[bool]
    due: list[bool]
    """It is time for a delta."""
    careful: list[bool]
    speaking: list[int]
    """Indices of the entries that have to be looked at."""
    rows: npt.NDArray[np.int64]
    """of the plan"""
    logprobs: _Logprobs
    masked: list[int]
    """Slots whose next mask was written while their token was judged."""


class _Verdict(NamedTuple):
    """Outcome of judging a run of tokens in their order."""

    num_tokens: int
    """Those up to the first that ends the output; all if none does."""
    judgement: Judgement | None
    """The grammar's, of the last of these."""
    reason: FinishReason | None
    """Reason for which it ends the output, unless the grammar refuses it."""


class OutputProcessor:
    """Appends runs of tokens, decides which requests are finished and makes deltas of the news.

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
        masks = planned.plan.masks
        if masks is not None and masks.ended:
            stop = FinishReason("stop")
            deltas += [self.endings.finish(req, stop) for req in self._leaving(planned, masks.ended)]
        logprobs: dict[int, list[RowLogprobResult]] = {}
        for item in result.logprobs:
            logprobs.setdefault(item.row, []).append(item)
        self.process_batch_result_prefill(planned, result, logprobs, deltas)
        self.process_batch_result_decode(planned, result, logprobs, deltas)
        if result.failed_rows:
            no_masks = masks is not None and masks.has_failed
            failed = self._leaving(planned, result.failed_rows)
            deltas += [self.endings.fail_row(req, no_masks=no_masks) for req in failed]
        return deltas

    def _leaving(self, planned: Planned, rows: Iterable[int]) -> Iterator[Req]:
        """Yield the requests of rows that are alive, and let these rows be ignored from now on."""
        for row in rows:
            req = self.table.reqs[planned.plan.req_slots[row]]
            if planned.alive[row] and req is not None:
                planned.drop_row(row)
                yield req

    def process_batch_result_prefill(
        self, planned: Planned, result: StepResult, logprobs: _Logprobs, deltas: list[OutputDelta]
    ) -> None:
        """Account for the pieces of prompts, and of output that was not sampled, that are computed now."""
        if not planned.prompts and not planned.jumps:
            return
        plan, failed_rows = planned.plan, result.failed_rows
        for row, req in enumerate(planned.jumps, plan.num_decode_rows + len(planned.prompts)):
            if planned.alive[row] and row not in failed_rows:  # the next pieces may be in flight
                req.jump_from = -1 if plan.sample[row] else int(plan.prefix_lens[row] + plan.extend_lens[row])
        embeddings = {item.row: item for item in result.embeddings}
        for row, req in enumerate(planned.prompts, plan.num_decode_rows):
            if not planned.alive[row] or row in failed_rows:
                continue
            try:
                first = logprobs[row][0] if row in logprobs else None
                delta = self._process_prompt(planned, row, req, first, embeddings.get(row))
            except Exception:
                delta = self.endings.fail_after_error(req, "handling a piece of the prompt")
            if delta is not None:
                deltas.append(delta)
                if delta.finish_reason is not None:
                    planned.drop_row(row)

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

    def process_batch_result_decode(
        self, planned: Planned, result: StepResult, logprobs: _Logprobs, deltas: list[OutputDelta]
    ) -> None:
        """Append the tokens that each row has sampled, and look at those that end their request or are to be sent."""
        tokens, rows = result.tokens, result.counts.nonzero()[0]
        if not planned.all_alive:
            alive = planned.alive[rows]
            tokens, rows = tokens[np.repeat(alive, result.counts[rows])], rows[alive]
        if len(rows) == 0:
            return
        appended = self._append(planned, rows, tokens, result.counts, logprobs)
        slots, runs, begins, lengths = appended.slots, appended.runs, appended.begins, appended.lengths
        ended, careful, reqs = appended.ended, appended.careful, self.table.reqs
        for i in appended.speaking:
            req = reqs[slots[i]]
            assert req is not None, "its row is alive"
            try:
                if careful[i]:
                    self._judge(req, appended, i, deltas)
                elif ended[i]:
                    self._end(req, appended, i, deltas)
                else:
                    deltas.append(self._due_delta(req, runs[i], begins[i], lengths[i]))
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # a panic of the grammar engine is not an Exception
                deltas.append(self.endings.fail_after_error(req, "judging a token"))
        if appended.masked:
            self.table.has_mask[appended.masked] = True

    def _append(
        self, planned: Planned, rows: npt.NDArray[np.int64], tokens: IntArray, counts: IntArray, logprobs: _Logprobs
    ) -> _Appended:
        """Enter the runs of ``rows``, with their ``tokens`` one behind the other, into the request table, and find out
        which are to be looked at."""
        table = self.table
        slots = planned.plan.req_slots[rows]
        known_len, out_len_before = table.known_len[slots], table.out_len[slots]
        lengths: IntArray | int = 1
        if len(tokens) == len(rows):
            table.tokens[slots, known_len] = tokens
            at_eos = self._is_eos[tokens] & table.checks_eos[slots]
        else:
            tokens, lengths, at_eos = self._up_to_ends(slots, tokens, counts[rows])
            ends = np.cumsum(lengths)
            places = np.arange(len(tokens)) + np.repeat(known_len + lengths - ends, lengths)
            table.tokens[np.repeat(slots, lengths), places] = tokens
        table.known_len[slots] = known_len + lengths
        if planned.prompts:
            for slot in slots[out_len_before == 0].tolist():
                table.reqs[slot].first_token_time = time.monotonic()
        out_len = out_len_before + lengths
        table.out_len[slots] = out_len
        self._stats.decode_tokens_total += len(tokens)
        if table.num_constrained:
            table.has_mask[slots] = False

        ended = at_eos | (out_len >= table.horizon[slots])
        due = out_len >= table.next_send[slots]
        table.next_send[slots[due]] = out_len[due] + table.send_interval[slots[due]]
        careful = table.careful[slots]
        speaking: list[int] = (ended | due | careful).nonzero()[0].tolist()
        runs: list[list[int]] | dict[int, list[int]]
        if isinstance(lengths, int):
            runs = tokens[:, np.newaxis].tolist()
        else:
            runs = {i: tokens[ends[i] - lengths[i] : ends[i]].tolist() for i in speaking}
        return _Appended(
            slots.tolist(),
            runs,
            out_len_before.tolist(),
            out_len.tolist(),
            ended.tolist(),
            at_eos.tolist(),
            due.tolist(),
            careful.tolist(),
            speaking,
            rows,
            logprobs,
            [],
        )

    def _up_to_ends(
        self, slots: IntArray, tokens: IntArray, counts: IntArray
    ) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
        """Cut runs of ``counts`` ``[R]`` tokens behind the first at an end of sequence or its request's horizon.

        Returns:
            What is left of ``tokens``, the lengths ``[R]`` of the runs, and which end with an end of sequence.
        """
        table = self.table
        begins = np.cumsum(counts) - counts
        order = np.arange(len(tokens)) - np.repeat(begins, counts)
        is_end = self._is_eos[tokens] & np.repeat(table.checks_eos[slots], counts)
        up_to_eos = np.minimum.reduceat(np.where(is_end, order + 1, len(tokens) + 1), begins)
        room = np.maximum(table.horizon[slots] - table.out_len[slots], 1)
        lengths = np.minimum(np.minimum(counts, up_to_eos), room)
        return tokens[order < np.repeat(lengths, counts)], lengths, up_to_eos == lengths

    def _end(self, req: Req, appended: _Appended, i: int, deltas: list[OutputDelta]) -> None:
        """End a request at its horizon or an end-of-sequence token, or look at its thoughts if these are the bound."""
        run, length, at_eos = appended.runs[i], appended.lengths[i], appended.at_eos[i]
        if _is_at_bound(req, length, at_eos):
            if appended.due[i]:
                deltas.append(self._due_delta(req, run, appended.begins[i], length))
            self._look_at_thoughts(req)
        else:
            reason = FinishReason("stop", matched=run[-1]) if at_eos else FinishReason("length", length=length)
            deltas.append(self.endings.finish(req, reason))

    def _judge(self, req: Req, appended: _Appended, i: int, deltas: list[OutputDelta]) -> None:
        """Look at the tokens of a request that has stop tokens of its own, text stops, logprobs or a grammar."""
        run, length, ended, slot = appended.runs[i], appended.lengths[i], appended.ended[i], req.slot
        logprobs = appended.logprobs.get(int(appended.rows[i]), ()) if appended.logprobs else ()
        for token, result in zip(run, logprobs, strict=False):  # tokens may have been cut off
            req.pending_logprobs.append(sampled_logprobs(req, token, result))
        is_at_bound = ended and _is_at_bound(req, length, appended.at_eos[i])
        if req.matcher is not None:
            req.jump_from = -1  # what is before a sampled token is computed
        mask_place = None if ended else self.table.mask_places[slot]
        at_end = FinishReason("length", length=length) if ended and not is_at_bound else None
        verdict = self._judge_run(req, run, at_end, req.jumps and not ended, mask_place)
        num_behind = len(run) - verdict.num_tokens
        if num_behind:
            del run[verdict.num_tokens :]
            self.table.drop_last(slot, num_behind)
            self._stats.decode_tokens_total -= num_behind
        delta, judgement = self._ended(req, run, verdict), verdict.judgement
        if delta is None and judgement is not None:
            if judgement is MASKED:
                appended.masked.append(slot)
            elif judgement.forced:
                delta = self._jump(req, judgement.forced)
        if delta is None and appended.due[i]:
            delta = self._close_delta(req, appended, i)
        if delta is not None:
            deltas.append(delta)
        if req.thinking is None or req.slot < 0:
            return
        if is_at_bound or self.table.out_len[slot] >= self.table.horizon[slot]:  # it may have jumped
            self._look_at_thoughts(req)

    def _judge_run(
        self, req: Req, run: Sequence[int], at_end: FinishReason | None, looks_ahead: bool, mask_place: MaskPlace
    ) -> _Verdict:
        """Judge tokens in their order, up to the first that ends the output; the last one does ``at_end``.

        After the last one the grammar is asked for what is forced if it ``looks_ahead``, else for a mask.
        """
        matcher, stops = req.matcher, req.text_stops
        judgement: Judgement | None = None
        for count, token in enumerate(run, 1):
            is_last = count == len(run)
            is_stop_token = token in req.stop_token_ids
            if matcher is not None and not is_stop_token:
                judgement = matcher.judge(token, looks_ahead and is_last, mask_place if is_last else None)
                if judgement is REFUSED:
                    return _Verdict(count, judgement, None)
            if stops is not None:
                skips = is_stop_token and not req.sampling_params.no_stop_trim
                matched = stops.skip() if skips else stops.push(token)
                if matched is not None:
                    return _Verdict(count, judgement, FinishReason("stop", matched=matched))
            if is_stop_token:
                return _Verdict(count, None, FinishReason("stop", matched=token))
            if judgement is ENDED:
                return _Verdict(count, judgement, FinishReason("stop", matched=token if self._is_eos[token] else None))
        return _Verdict(len(run), judgement, at_end)

    def _ended(self, req: Req, run: Sequence[int], verdict: _Verdict) -> OutputDelta | None:
        """Return the last delta of a request if the tokens that were judged have ended it."""
        if verdict.judgement is REFUSED:
            assert req.matcher is not None, "it has refused a token"
            return self.endings.fail_grammar(req, req.matcher.error or f"token {run[-1]} does not follow it")
        if verdict.reason is None:
            return None
        return self.endings.finish(req, verdict.reason)

    def _jump(self, req: Req, forced: Sequence[int]) -> OutputDelta | None:
        """Take the tokens that the grammar leaves no choice about; returns the last delta if that ends the output."""
        table, length = self.table, int(self.table.out_len[req.slot])
        run: list[int] = []
        for token in forced[: int(table.max_new[req.slot]) - length]:
            if token in req.stop_token_ids or self._is_eos[token]:
                break  # it is for the model to end the output, and for its stop tokens to be judged
            run.append(token)
        if not run:
            return None
        length += len(run)
        at_end = FinishReason("length", length=length) if length >= table.max_new[req.slot] else None
        verdict = self._judge_run(req, run, at_end, looks_ahead=False, mask_place=None)
        del run[verdict.num_tokens :]
        table.append(req.slot, run)
        self.requests.news.add_forced(req.slot, run)
        self._stats.decode_tokens_total += len(run)
        self._stats.forced_tokens_total += len(run)
        return self._ended(req, run, verdict)

    def _close_delta(self, req: Req, appended: _Appended, i: int) -> OutputDelta | None:
        """Return the delta that is due after a run that was looked at; ``None`` if all of it is held back."""
        length = appended.lengths[i]
        if req.text_stops is None and not req.return_logprob and int(self.table.out_len[req.slot]) == length:
            return self._due_delta(req, appended.runs[i], appended.begins[i], length)
        delta = delta_of(req, self.table.output_ids(req))
        if not delta.token_ids and not delta.text and delta.input_logprobs is None and length > 1:
            # What comes next must not wait for another interval.
            self.table.next_send[req.slot] = length + 1
            return None
        return delta

    def _look_at_thoughts(self, req: Req) -> None:
        """Bound the thoughts: if they have as many tokens as they may have, the next tokens end them."""
        assert req.thinking is not None, "the request has a bound"
        req.thinking.look(self.table.output_ids(req))
        self.table.bound(req)

    def _due_delta(self, req: Req, run: list[int], begin: int, length: int) -> OutputDelta:
        """Return what no delta of ``req`` has carried yet: mostly its last ``run`` alone, which begins at ``begin``."""
        if req.sent_len == begin and begin:
            req.sent_len = length
            return OutputDelta(req.rid, run, None, None, length, req.prompt_tokens, req.cached_tokens)
        return delta_of(req, self.table.output_ids(req))


def _is_at_bound(req: Req, length: int, is_eos: bool) -> bool:
    """Return whether an output of ``length`` tokens has come to the bound on its thoughts, and not to its end."""
    return req.thinking is not None and not is_eos and length < req.max_new_tokens
