"""From what each request computes in a step to the plan that the worker gets."""

from __future__ import annotations

import numpy as np

from bough.constrained.base import MaskWords
from bough.constrained.masks import PendingMasks, TokenMasks, mask_of
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


class StepBuilder:
    """Builds plans, numbers them, and enters into the request table what is planned."""

    def __init__(self, requests: Requests, vocab_size: int) -> None:
        self._requests = requests
        self._table = requests.table
        self._vocab_size = vocab_size
        self._step_id = 0

    @property
    def num_built(self) -> int:
        """How many plans there have been."""
        return self._step_id

    def build(
        self,
        decode_slots: IntArray,
        decode_kv: IntArray,
        rows: list[tuple[Req, int, IntArray]],
        decode_context: float,
        further: FurtherSteps | None = None,
    ) -> Planned:
        """The next plan; takes what the worker has yet to be told of requests.

        Args:
            decode_slots: request slots ``[n]`` that take one more sampled token.
            decode_kv: its KV slots ``[n]``.
            rows: requests that compute more: how many tokens, and their KV slots; prompts first.
            decode_context: tokens so far of ``decode_slots``, in all.
            further: what may follow, if there are no ``rows``.
        """
        table = self._table
        num_decode = len(decode_slots)
        decode_prefix = table.planned_len[decode_slots]
        num_steps = 1 if further is None else 1 + len(further.out_slots)
        table.planned_len[decode_slots] += num_steps
        table.planned_out[decode_slots] += num_steps
        logprobs = self._decode_logprobs(decode_slots)
        writes = self._requests.take_table_writes()
        new_requests = self._requests.take_new_requests()
        self._step_id += 1
        if not rows:
            plan = StepPlan(
                step_id=self._step_id,
                mode=ForwardMode.DECODE,
                num_decode_rows=num_decode,
                req_slots=decode_slots,
                prefix_lens=decode_prefix,
                extend_lens=np.ones(num_decode, dtype=np.int32),
                input_ids=np.full(num_decode, FUTURE_TOKEN, dtype=np.int32),
                out_slots=decode_kv,
                sample=np.ones(num_decode, dtype=np.bool_),
                new_requests=new_requests,
                table_writes=writes,
                logprobs=tuple(logprobs),
                forced=self._requests.take_forced(),
                masks=self._masks(decode_slots, None),
                further=further,
            )
            return Planned(plan, [], [], decode_context)

        num_prompts = sum(not table.decoding[req.slot] for req, _, _ in rows)
        prefixes, lengths, samples = [], [], []
        pooling: list[RowPooling] = []
        inputs, out_slots = [np.full(num_decode, FUTURE_TOKEN, dtype=np.int32)], [decode_kv]
        token_context = decode_context
        for index, (req, tokens, kv_slots) in enumerate(rows):
            slot = req.slot
            prefix = int(table.planned_len[slot])
            end = prefix + tokens
            jumps = bool(table.decoding[slot])
            ends_prompt = end == req.fill_len and not jumps
            samples_token = ends_prompt and int(table.planned_out[slot]) < req.max_new_tokens
            if jumps:
                samples_token = end == int(table.known_len[slot])
                table.planned_out[slot] += samples_token
                if req.jump_from < 0:  # else a piece before this one is computed still
                    req.jump_from = prefix
            row_logprobs = _prompt_logprobs(req, num_decode + index, prefix, end, samples_token)
            if row_logprobs is not None:
                logprobs.append(row_logprobs)
            if req.pooling is not None:
                pooling.append(RowPooling(num_decode + index, ends_prompt, req.pooling.dimensions))
            prefixes.append(prefix)
            lengths.append(tokens)
            samples.append(samples_token)
            inputs.append(table.tokens[slot, prefix:end].copy())
            out_slots.append(kv_slots)
            token_context += tokens * (prefix + tokens / 2)
            table.planned_len[slot] = end
            if ends_prompt:
                self._requests.end_of_prompt_planned(req, samples=samples_token)
        req_slots = np.concatenate((decode_slots, np.array([req.slot for req, _, _ in rows], dtype=np.int32)))
        sample = np.concatenate((np.ones(num_decode, dtype=np.bool_), np.array(samples, dtype=np.bool_)))
        plan = StepPlan(
            step_id=self._step_id,
            mode=ForwardMode.MIXED if num_decode else ForwardMode.EXTEND,
            num_decode_rows=num_decode,
            req_slots=req_slots,
            prefix_lens=np.concatenate((decode_prefix, np.array(prefixes, dtype=np.int32))),
            extend_lens=np.concatenate((np.ones(num_decode, dtype=np.int32), np.array(lengths, dtype=np.int32))),
            input_ids=np.concatenate(inputs),
            out_slots=np.concatenate(out_slots),
            sample=sample,
            new_requests=new_requests,
            table_writes=writes,
            logprobs=tuple(logprobs),
            forced=self._requests.take_forced(),
            pooling=tuple(pooling),
            token_types=_token_types([req for req, _, _ in rows]),
            masks=self._masks(req_slots, sample),
        )
        prompts = [req for req, _, _ in rows[:num_prompts]]
        return Planned(plan, prompts, [req for req, _, _ in rows[num_prompts:]], token_context)

    def _masks(self, req_slots: IntArray, sample: np.ndarray | None) -> TokenMasks | PendingMasks | None:
        """Masks for the sampling rows that may not have all tokens; ``sample`` is ``None`` if all rows sample."""
        table = self._table
        masked = table.masked[req_slots]
        if sample is not None:
            masked &= sample
        rows = masked.nonzero()[0].astype(np.int32)
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
    """Which text of a pair each token of whole prompts belongs to; ``None`` if no prompt is a pair."""
    if all(req.pooling is None or req.pooling.token_types is None for req in reqs):
        return None
    types = [None if req.pooling is None else req.pooling.token_types for req in reqs]
    return np.concatenate(
        [np.zeros(req.fill_len, np.int32) if each is None else each for req, each in zip(reqs, types, strict=True)]
    )
