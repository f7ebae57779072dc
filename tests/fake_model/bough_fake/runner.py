"""Runs step plans as ``ModelRunner`` does, without a device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from bough.constrained.masks import unpack
from bough.sampling.random_stream import stream_key
from bough.step_plan import (
    FUTURE_TOKEN,
    FurtherSteps,
    IntArray,
    NewRequest,
    RowLogprobResult,
    RowLogprobs,
    StepPlan,
    StepResult,
)
from bough_fake.model import NO_TOKEN, FakeModel, UintArray, sampled_ranks

_UNSET = -1


@dataclass(frozen=True)
class StepDuration:
    """How long the simulated device takes for a step.

    Attributes:
        per_step: seconds.
        per_token: seconds per new token.
        per_token_context: seconds per new token and token that it attends to.
        clock: ``sleep`` takes the time, ``virtual`` only adds it up.
    """

    per_step: float = 0.0
    per_token: float = 0.0
    per_token_context: float = 0.0
    clock: Literal["sleep", "virtual"] = "sleep"

    def of(self, plan: StepPlan) -> float:
        """Seconds that a step takes."""
        seconds = self.per_step + self.per_token * plan.num_tokens
        if self.per_token_context:
            lens = plan.extend_lens.astype(np.float64)
            seconds += self.per_token_context * float((lens * (plan.prefix_lens + (lens + 1) / 2)).sum())
        return seconds


class FakeModelRunner:
    """Runs step plans as ``ModelRunner`` does, with a :class:`FakeModel` in place of the device's compute.

    Greedy requests get the likeliest token, others draw from their own random stream; the remaining sampling
    parameters change nothing.

    Attributes:
        model: the function that stands for the model.
        virtual_seconds: time that the simulated device has taken so far, where its clock is virtual.
        stops_early: asked between two steps of a plan whether the scheduler has got news.
        end_token_ids: after which steps in a row stop; those of the model, unless somebody says otherwise.
    """

    def __init__(
        self,
        model: FakeModel,
        *,
        max_running_requests: int,
        max_total_num_tokens: int,
        max_req_len: int,
        page_size: int = 1,
        verify: bool = False,
        duration: StepDuration | None = None,
    ) -> None:
        """Make empty tables.

        Args:
            model: the function that stands for the model.
            max_running_requests: rows of the request table.
            max_total_num_tokens: KV slots; one page more is reserved, as everywhere.
            max_req_len: columns of the request table.
            page_size: tokens per KV page.
            verify: check every plan before it runs, at a cost that grows with the context.
            duration: how long steps take; ``None`` for no longer than they do.
        """
        self.model = model
        self.page_size = page_size
        self.max_running_requests = max_running_requests
        self.max_total_num_tokens = max_total_num_tokens
        self.max_req_len = max_req_len
        self.virtual_seconds = 0.0
        self.stops_early: Callable[[], bool] = lambda: False
        self.end_token_ids: Sequence[int] = model.eos_token_ids
        self._next: StepPlan | None = None
        self._done, self._seconds = 0, 0.0
        self._duration = duration
        self._powers = model.powers(max_req_len)
        num_slots = max_total_num_tokens + page_size
        self._state = np.zeros(num_slots, dtype=np.uint64)
        self._req_to_token = np.full((max_running_requests, max_req_len), _UNSET, dtype=np.int32)
        self._last_token = np.full(max_running_requests, NO_TOKEN, dtype=np.int64)
        self._draws = np.zeros(max_running_requests, dtype=np.bool_)
        self._stream_key = np.zeros(max_running_requests, dtype=np.uint64)
        self._num_outputs = np.zeros(max_running_requests, dtype=np.int64)
        self._verify = verify
        # What the checks need: the token of each KV slot, and how many of a request's table entries are set.
        self._token_of = np.full(num_slots if verify else 0, NO_TOKEN, dtype=np.int64)
        self._length = np.zeros(max_running_requests, dtype=np.int64)

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step, and those that follow it unless each is to be reported.

        Raises:
            RuntimeError: the plan is wrong, if the runner verifies; it names the row and what is wrong with it.
        """
        self._next, self._done, self._seconds = None, 0, 0.0
        result = self._forward_one(plan)
        results = [result]
        while result.goes_on and plan.further is not None and not plan.further.reports_each:
            result = self.forward_further()
            results.append(result)
        if len(results) == 1:
            return result
        # Only in the last step may rows have failed, which have no token then.
        rows = np.concatenate([np.repeat(np.arange(plan.num_rows), each.counts) for each in results])
        return replace(
            result,
            tokens=np.concatenate([each.tokens for each in results])[np.argsort(rows, kind="stable")],
            counts=sum(each.counts for each in results),
            logprobs=tuple(each for one in results for each in one.logprobs),
            num_steps=len(results),
            seconds=self._seconds,
        )

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on.

        Raises:
            RuntimeError: as :meth:`forward_batch_generation`; or there is none.
        """
        if self._next is None:
            raise RuntimeError("no step is to follow")
        return self._forward_one(self._next)

    def _forward_one(self, plan: StepPlan) -> StepResult:
        result = self._forward(plan)
        self._done += 1
        self._seconds += result.seconds
        self._next = None
        if plan.further is not None and not self._stops(plan.further, result, self._seconds, self._done):
            self._next = plan.following()
        return replace(result, goes_on=True) if self._next is not None else result

    def _stops(self, further: FurtherSteps, result: StepResult, seconds: float, done: int) -> bool:
        if result.failed_rows or seconds * (done + 1) / done > further.seconds or self.stops_early():
            return True
        return bool((np.isin(result.tokens, self.end_token_ids) & further.checks_eos).any())

    def _forward(self, plan: StepPlan) -> StepResult:
        begin = time.perf_counter()
        for new in plan.new_requests:
            self._admit(new)
        for forced in plan.forced:
            self._num_outputs[forced.req_slot] += len(forced.token_ids)
            self._last_token[forced.req_slot] = forced.token_ids[-1]
        for write in plan.table_writes:
            self._write_table(int(write.req_slot), write.start, write.slots)
        if self._verify:
            self._check(plan)
        states = self._compute(plan)
        tokens, counts, failed = self._sample(plan, states)
        result = StepResult(
            step_id=plan.step_id,
            tokens=tokens,
            counts=counts,
            failed_rows=failed,
            logprobs=tuple(self._read_logprobs(plan, states, request) for request in plan.logprobs),
            seconds=time.perf_counter() - begin,
        )
        return self._take_time(plan, result)

    # --- parts of a step ---

    def _admit(self, new: NewRequest) -> None:
        slot = int(new.req_slot)
        self._draws[slot] = not new.sampling_params.is_greedy
        self._stream_key[slot] = stream_key(new.seed)
        self._num_outputs[slot] = len(new.output_ids)
        self._last_token[slot] = new.output_ids[-1] if len(new.output_ids) else NO_TOKEN
        self._length[slot] = 0
        if self._verify:
            self._req_to_token[slot] = _UNSET

    def _write_table(self, req_slot: int, start: int, slots: IntArray) -> None:
        if self._verify and start > self._length[req_slot]:
            raise RuntimeError(
                f"request slot {req_slot}: table write at {start} leaves a gap after {self._length[req_slot]}"
            )
        self._req_to_token[req_slot, start : start + len(slots)] = slots
        self._length[req_slot] = max(self._length[req_slot], start + len(slots))

    def _compute(self, plan: StepPlan) -> UintArray:
        """Advance the state over all new tokens, ``[T]``, and store it in the KV slots."""
        prefix_lens = plan.prefix_lens
        before = self._state[self._req_to_token[plan.req_slots, prefix_lens - 1]]
        if plan.num_tokens == plan.num_rows:
            req_slots, positions = plan.req_slots, prefix_lens
            before[prefix_lens == 0] = 0
            states = before + self.model.terms(self._tokens(plan, req_slots), self._powers[positions])
        else:
            req_slots = np.repeat(plan.req_slots, plan.extend_lens)
            first = np.cumsum(plan.extend_lens) - plan.extend_lens
            positions = np.arange(plan.num_tokens) + np.repeat(prefix_lens - first, plan.extend_lens)
            terms = self.model.terms(self._tokens(plan, req_slots), self._powers[positions])
            states = np.cumsum(terms)
            before[prefix_lens == 0] = 0
            # A running sum over all rows: each row takes off what had come before it.
            before -= states[first] - terms[first]
            states += np.repeat(before, plan.extend_lens)
        self._state[plan.out_slots] = states
        self._req_to_token[req_slots, positions] = plan.out_slots
        if self._verify:
            self._token_of[plan.out_slots] = self._tokens(plan, req_slots)
            self._length[plan.req_slots] = prefix_lens + plan.extend_lens
        return states

    def _tokens(self, plan: StepPlan, req_slots: IntArray) -> npt.NDArray[Any]:
        """Input ids ``[T]``, with those that the scheduler did not know."""
        if plan.num_decode_rows == plan.num_tokens and plan.input_ids.max() == FUTURE_TOKEN:
            return self._last_token[req_slots]
        is_future = plan.input_ids == FUTURE_TOKEN
        return np.where(is_future, self._last_token[req_slots], plan.input_ids)

    def _sample(self, plan: StepPlan, states: UintArray) -> tuple[IntArray, IntArray, tuple[int, ...]]:
        """The next tokens, how many each row has, and the rows that may have none."""
        rows: npt.NDArray[np.int64] | slice = slice(None)
        if plan.num_tokens != plan.num_rows or not plan.sample.all():
            rows = np.flatnonzero(plan.sample)
            states = states[(np.cumsum(plan.extend_lens) - 1)[rows]]
        req_slots = plan.req_slots[rows]
        ranks: npt.NDArray[np.int64] | int = 0
        draws = self._draws[req_slots]
        if draws.any():
            ranks = sampled_ranks(self._stream_key[req_slots], self._num_outputs[req_slots]) * draws
        tokens = self.model.next_tokens(states, ranks)
        failed: tuple[int, ...] = ()
        if plan.masks is not None:
            sampling_rows = np.flatnonzero(plan.sample)
            at = np.searchsorted(sampling_rows, plan.masks.rows)
            ranks_at = np.broadcast_to(np.asarray(ranks), tokens.shape)[at]
            chosen = self.model.allowed_tokens(states[at], unpack(plan.masks.bits, self.model.vocab_size), ranks_at)
            failed = tuple(plan.masks.rows[chosen == NO_TOKEN].tolist())
            tokens[at] = np.maximum(chosen, 0)
        self._last_token[req_slots] = tokens
        self._num_outputs[req_slots] += 1
        counts = plan.sample.astype(np.int32)
        if failed:
            counts[list(failed)] = 0
            tokens = tokens[counts[rows] > 0]
        return tokens.astype(np.int32), counts, failed

    def _read_logprobs(self, plan: StepPlan, states: UintArray, request: RowLogprobs) -> RowLogprobResult:
        model = self.model
        end = int(plan.extend_lens[: request.row + 1].sum())
        begin = end - int(plan.extend_lens[request.row]) + request.first
        wanted = [states[begin : begin + len(request.targets)]]
        if plan.sample[request.row]:
            wanted.append(states[end - 1 : end])
        at = np.concatenate(wanted)
        tops = model.top_tokens(at, request.top_n)
        top_values = model.logprobs(at, tops)
        chosen = model.logprobs(at, np.tile(np.array(request.token_ids, dtype=np.int64), (len(at), 1)))
        count = len(request.targets)
        result = RowLogprobResult(
            row=request.row,
            target_logprobs=model.logprobs(at[:count], request.targets),
            target_top=(top_values[:count], tops[:count].astype(np.int32)) if request.top_n else None,
            target_chosen=chosen[:count] if request.token_ids else None,
        )
        if not plan.sample[request.row]:
            return result
        token = self._last_token[plan.req_slots[request.row : request.row + 1]]
        return RowLogprobResult(
            row=request.row,
            target_logprobs=result.target_logprobs,
            target_top=result.target_top,
            target_chosen=result.target_chosen,
            sampled_logprob=float(model.logprobs(at[count:], token)[0]),
            sampled_top=(top_values[count], tops[count].astype(np.int32)) if request.top_n else None,
            sampled_chosen=chosen[count] if request.token_ids else None,
        )

    def _take_time(self, plan: StepPlan, result: StepResult) -> StepResult:
        if self._duration is None:
            return result
        seconds = self._duration.of(plan)
        if self._duration.clock == "virtual":
            self.virtual_seconds += seconds
        else:
            time.sleep(max(0.0, seconds - result.seconds))
        return replace(result, seconds=seconds)

    # --- checks ---

    def _check(self, plan: StepPlan) -> None:
        """Raise RuntimeError unless the plan is sound and every KV slot that it reads holds what it should."""
        lens, prefix_lens, out_slots = plan.extend_lens, plan.prefix_lens, plan.out_slots
        _require(len(np.unique(plan.req_slots)) == plan.num_rows, "a request slot has two rows")
        _require(len(lens) == len(prefix_lens) == len(plan.sample) == plan.num_rows, "arrays of rows differ in length")
        _require(bool((lens >= 1).all() and (prefix_lens >= 0).all()), "a row has no new token or a negative prefix")
        _require(int(lens.sum()) == plan.num_tokens == len(out_slots), "arrays of tokens differ in length")
        decode = slice(plan.num_decode_rows)
        _require(bool((lens[decode] == 1).all() and plan.sample[decode].all()), "a decode row is not one")
        _require(
            bool((plan.input_ids[plan.num_decode_rows :] != FUTURE_TOKEN).all()), "an extend row has future tokens"
        )
        _require(bool((plan.input_ids < self.model.vocab_size).all()), "an input id is outside the vocabulary")
        in_pool = (out_slots >= self.page_size) & (out_slots < len(self._state))
        _require(bool(in_pool.all()), "a new token's KV slot is outside the pool")
        _require(len(np.unique(out_slots)) == len(out_slots), "a KV slot is written twice")
        is_written = np.zeros(len(self._state), dtype=np.bool_)
        is_written[out_slots] = True
        begin = 0
        for req_slot, prefix_len, count in zip(
            plan.req_slots.tolist(), prefix_lens.tolist(), lens.tolist(), strict=True
        ):
            row = f"request slot {req_slot}"
            new_slots = out_slots[begin : begin + count]
            ids = plan.input_ids[begin : begin + count]
            begin += count
            _require(
                prefix_len <= self._length[req_slot],
                f"{row}: positions {self._length[req_slot]} to {prefix_len} are not set",
            )
            _require(prefix_len + count <= self.max_req_len, f"{row}: longer than the request table")
            _require(
                bool((ids != FUTURE_TOKEN).all()) or self._last_token[req_slot] != NO_TOKEN,
                f"{row}: no token was sampled yet",
            )
            slots = np.concatenate((self._req_to_token[req_slot, :prefix_len], new_slots))
            self._check_slots(row, slots, prefix_len, is_written)

    def _check_slots(self, row: str, slots: IntArray, prefix_len: int, is_written: npt.NDArray[np.bool_]) -> None:
        """Check the KV slots of a row's positions ``0 … len(slots) - 1``, ``prefix_len`` of them old."""
        prefix = slots[:prefix_len]
        _require(bool((prefix >= self.page_size).all()), f"{row}: a table entry within the prefix is not set")
        _require(not is_written[prefix].any(), f"{row}: a slot of its prefix is overwritten in the same step")
        offsets = np.arange(len(slots)) % self.page_size
        same_page = np.flatnonzero(offsets[1:])
        in_order = (slots % self.page_size == offsets).all() and (np.diff(slots)[same_page] == 1).all()
        _require(bool(in_order), f"{row}: its tokens do not lie in pages in order")
        held = self._state[prefix]
        terms = self.model.terms(self._token_of[prefix], self._powers[:prefix_len])
        stale = np.flatnonzero(held != np.cumsum(terms))
        if stale.size:
            position = int(stale[0])
            raise RuntimeError(
                f"{row}: position {position} reads KV slot {prefix[position]}, which holds another history"
            )


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise RuntimeError(f"wrong plan: {rule}")
