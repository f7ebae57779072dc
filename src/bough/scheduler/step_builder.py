"""From what each request computes in a step to the plan that the worker gets."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bough.constrained.base import MaskWords
from bough.constrained.masks import PendingMasks, StepMasks, TokenMasks, mask_of
from bough.scheduler.planned import Planned
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.step_plan import (
    FUTURE_TOKEN,
    ForwardMode,
    FurtherSteps,
    IntArray,
    RowLogprobs,
    RowPooling,
    StepPlan,
)

_NO_TARGETS: IntArray = np.zeros(0, dtype=np.int32)


@dataclass
class _Rows:
    """Columns of the rows after the decode rows, one entry per row unless said otherwise."""

    logprobs: list[RowLogprobs]
    """of the rows that have any, decode rows included"""
    req_slots: list[int] = field(default_factory=list)
    prefix_lens: list[int] = field(default_factory=list)
    extend_lens: list[int] = field(default_factory=list)
    input_ids: list[IntArray] = field(default_factory=list)
    out_slots: list[IntArray] = field(default_factory=list)
    sample: list[bool] = field(default_factory=list)
    pooling: list[RowPooling] = field(default_factory=list)
    """of the rows that have any"""
    token_context: float = 0.0
    """of all rows"""


class StepBuilder:
    """Builds plans, numbers them, and enters into the request table what is planned."""

    def __init__(self, requests: Requests, vocab_size: int) -> None:
        self._requests = requests
        self._table = requests.table
        self._vocab_size = vocab_size
        self.num_built = 0
        """Number of plans so far."""

    def build(
        self,
        decode_slots: IntArray,
        decode_kv: IntArray,
        rows: list[tuple[Req, int, IntArray]],
        decode_context: float,
        further: FurtherSteps | None = None,
    ) -> Planned:
        """Build the next plan, with the news of requests that the device has not got yet.

        ``decode_slots`` ``[n]``, with ``decode_context`` tokens in all, take one more sampled token, at the KV slots
        ``decode_kv`` ``[n]``; the ``rows`` compute more (how many tokens, and their KV slots; prompts first). What may
        follow if there are none is in ``further``.
        """
        table = self._table
        num_decode = len(decode_slots)
        prompts = [req for req, _, _ in rows if not table.decoding[req.slot]]
        jumps = [req for req, _, _ in rows[len(prompts) :]]
        req_slots, prefix_lens = decode_slots, table.planned_len[decode_slots]
        extend_lens = np.ones(num_decode, dtype=np.int32)
        input_ids = np.full(num_decode, FUTURE_TOKEN, dtype=np.int32)
        out_slots, sample = decode_kv, np.ones(num_decode, dtype=np.bool_)
        num_steps = 1 if further is None else 1 + len(further.out_slots)
        table.planned_len[decode_slots] += num_steps
        table.planned_out[decode_slots] += num_steps
        logprobs, token_context = self._decode_logprobs(decode_slots), decode_context
        pooling: tuple[RowPooling, ...] = ()
        if rows:
            added = _Rows(logprobs)
            for req, tokens, kv_slots in rows:
                self._add(added, num_decode + len(added.req_slots), req, tokens, kv_slots)
            req_slots = np.concatenate((req_slots, np.array(added.req_slots, dtype=np.int32)))
            prefix_lens = np.concatenate((prefix_lens, np.array(added.prefix_lens, dtype=np.int32)))
            extend_lens = np.concatenate((extend_lens, np.array(added.extend_lens, dtype=np.int32)))
            input_ids = np.concatenate((input_ids, *added.input_ids))
            out_slots = np.concatenate((out_slots, *added.out_slots))
            sample = np.concatenate((sample, np.array(added.sample, dtype=np.bool_)))
            pooling, token_context = tuple(added.pooling), decode_context + added.token_context
        news = self._requests.news.take()
        self.num_built += 1
        plan = StepPlan(
            step_id=self.num_built,
            mode=_mode(num_decode, len(rows)),
            num_decode_rows=num_decode,
            req_slots=req_slots,
            prefix_lens=prefix_lens,
            extend_lens=extend_lens,
            input_ids=input_ids,
            out_slots=out_slots,
            sample=sample,
            new_requests=news.new_requests,
            table_writes=news.table_writes,
            logprobs=tuple(logprobs),
            forced=news.forced,
            pooling=pooling,
            token_types=_token_types(prompts),
            masks=self._masks(req_slots, sample),
            further=further,
        )
        return Planned(plan, prompts, jumps, token_context)

    def _add(self, rows: _Rows, row: int, req: Req, tokens: int, kv_slots: IntArray) -> None:
        """Add the row of a request that computes ``tokens`` more, and enter these as planned."""
        table, slot = self._table, req.slot
        prefix = int(table.planned_len[slot])
        end = prefix + tokens
        jumps = bool(table.decoding[slot])
        ends_prompt = end == req.fill_len and not jumps
        samples = ends_prompt and int(table.planned_out[slot]) < req.max_new_tokens
        if jumps:
            samples = end == int(table.known_len[slot])
            table.planned_out[slot] += samples
            if req.jump_from < 0:  # else a piece before this one is still being computed
                req.jump_from = prefix
        logprobs = _prompt_logprobs(req, row, prefix, end, samples)
        if logprobs is not None:
            rows.logprobs.append(logprobs)
        if req.pooling is not None:
            rows.pooling.append(RowPooling(row, ends_prompt, req.pooling.dimensions))
        rows.req_slots.append(slot)
        rows.prefix_lens.append(prefix)
        rows.extend_lens.append(tokens)
        rows.input_ids.append(table.tokens[slot, prefix:end].copy())
        rows.out_slots.append(kv_slots)
        rows.sample.append(samples)
        rows.token_context += tokens * (prefix + tokens / 2)
        table.planned_len[slot] = end
        if ends_prompt:
            self._requests.end_of_prompt_planned(req, samples=samples)

    def _masks(self, req_slots: IntArray, sample: np.ndarray) -> StepMasks | None:
        """Return the masks of the sampling rows that may not have all tokens."""
        table = self._table
        rows = (table.masked[req_slots] & sample).nonzero()[0].astype(np.int32)
        if len(rows) == 0:
            return None
        slots = req_slots[rows]
        has_mask, edited = table.has_mask[slots], table.edits_mask[slots].nonzero()[0].tolist()
        num_early = np.count_nonzero(has_mask)
        early = (table.masks[slots], has_mask) if num_early else None
        if early is not None and num_early == len(rows) and not edited:
            return TokenMasks(rows, early[0])
        reqs = table.reqs
        matchers = [None if (req := reqs[slot]) is None else req.matcher for slot in slots.tolist()]
        extra_ends: dict[int, tuple[int, ...]] = {}
        allowed: dict[int, MaskWords] = {}
        for index in edited:
            req = reqs[slots[index]]
            assert req is not None
            if req.extra_ends:
                extra_ends[index] = req.extra_ends
            if req.forced is not None:
                allowed[index] = mask_of((req.forced,), self._vocab_size)
            elif req.allowed is not None:
                allowed[index] = req.allowed
        return PendingMasks(rows, matchers, self._vocab_size, extra_ends, allowed, early)

    def _decode_logprobs(self, decode_slots: IntArray) -> list[RowLogprobs]:
        rows = self._table.logprobs[decode_slots].nonzero()[0]
        result: list[RowLogprobs] = []
        for row in rows.tolist():
            req = self._table.reqs[decode_slots[row]]
            if req is not None:
                result.append(RowLogprobs(row, 0, _NO_TARGETS, req.top_logprobs_num, req.token_ids_logprob))
        return result


def _mode(num_decode: int, num_extend: int) -> ForwardMode:
    if num_extend == 0:
        return ForwardMode.DECODE
    return ForwardMode.MIXED if num_decode else ForwardMode.EXTEND


def _prompt_logprobs(req: Req, row: int, start: int, end: int, samples: bool) -> RowLogprobs | None:
    """Logprobs wanted from a chunk ``[start, end)``: of prompt tokens it predicts, and of the one it samples."""
    if not req.return_logprob:
        return None
    first, targets = 0, _NO_TARGETS
    if req.logprob_next < req.prompt_len:
        # The logprob of the token at position p is read from the logits at p - 1.
        begin = max(max(req.logprob_next, 1) - 1, start)
        stop = min(end, req.prompt_len - 1)
        if begin < stop:
            first = begin - start
            targets = req.prompt[begin + 1 : stop + 1]
    if len(targets) == 0 and not samples:
        return None
    return RowLogprobs(row, first, targets, req.top_logprobs_num, req.token_ids_logprob)


def _token_types(reqs: list[Req]) -> IntArray | None:
    """Return the text of a pair that each token of whole prompts belongs to; ``None`` if no prompt is a pair."""
    if all(req.pooling is None or req.pooling.token_types is None for req in reqs):
        return None
    types = [None if req.pooling is None else req.pooling.token_types for req in reqs]
    return np.concatenate(
        [np.zeros(req.fill_len, np.int32) if each is None else each for req, each in zip(reqs, types, strict=True)]
    )
