"""A model runner without a model, for tests of everything around it and for measuring what that costs.

It runs real step plans on a real request table and a KV pool of one number per slot, and it answers with tokens that
follow from a request's whole history. A plan that reads a slot which holds something else, because it was shared
wrongly, overwritten or left over, gets other tokens than :func:`expected_tokens` says. No torch here.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.constrained.masks import unpack
from bough.errors import ConfigError
from bough.model_executor.worker_info import WorkerInfo
from bough.sampling.random_stream import mix64, stream_key, uniforms
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

UintArray = npt.NDArray[np.uint64]

_TOKEN_FACTOR = np.uint64(0xD1342543DE82EF95)
_TOKEN_OFFSET = np.uint64(0x2545F4914F6CDD1D)
_POSITION_BASE = 0x9E6C63D0876A9A35  # odd, so that no power of it is 0
_LOG_2 = math.log(2.0)
_UNSET = -1
_NO_TOKEN = -1


@dataclass(frozen=True)
class FakeModel:
    """The function from histories to tokens that stands for a model.

    The state after the tokens ``t_0 … t_p`` is the polynomial hash ``sum(value(t_i) * BASE**i)`` modulo 2**64, so it
    follows from the state at ``p - 1`` and the new token alone, as KV does. Scrambled, it names the likeliest next
    token; the tokens after that one, in cyclic order of id, are each half as likely as the one before.

    Attributes:
        vocab_size: number of token ids.
        eos_token_ids: ids that never come up but as the end of sequence; may be empty.
        eos_probability: how often the next token is the first of them.
    """

    vocab_size: int
    eos_token_ids: tuple[int, ...] = ()
    eos_probability: float = 0.0
    # The ids that may come up, and where in this list an id is
    _ordinary: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)
    _place: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordinary = np.setdiff1d(np.arange(self.vocab_size), np.array(self.eos_token_ids, dtype=np.int64))
        if not ordinary.size:
            raise ValueError(f"no ordinary token among {self.vocab_size}")
        if self.eos_probability and not self.eos_token_ids:
            raise ValueError("eos_probability needs an end-of-sequence id")
        place = np.full(self.vocab_size, _UNSET, dtype=np.int64)
        place[ordinary] = np.arange(len(ordinary))
        object.__setattr__(self, "_ordinary", ordinary)
        object.__setattr__(self, "_place", place)

    @staticmethod
    def powers(count: int) -> UintArray:
        """``BASE**i`` for the positions ``i < count``."""
        factors = np.full(count, _POSITION_BASE, dtype=np.uint64)
        factors[:1] = 1
        return np.cumprod(factors)

    @staticmethod
    def terms(tokens: npt.NDArray[Any], powers: UintArray) -> UintArray:
        """What tokens add to the state at the positions that ``powers`` belong to; shapes agree."""
        terms = tokens.astype(np.uint64)
        terms *= _TOKEN_FACTOR
        terms += _TOKEN_OFFSET
        terms *= powers
        return terms

    def next_tokens(self, states: UintArray, ranks: npt.NDArray[np.int64] | int = 0) -> npt.NDArray[np.int64]:
        """The token of each rank, 0 for the likeliest, after each state ``[n]``."""
        tokens: npt.NDArray[np.int64] = self._ordinary[self._places(states, ranks)]
        if self.eos_probability:
            tokens[self._ends(states)] = self.eos_token_ids[0]
        return tokens

    def allowed_tokens(
        self, states: UintArray, allowed: npt.NDArray[np.bool_], ranks: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """The token of each rank, or the least likely one, among those allowed, ``[n, vocab_size]``; -1 if none is.

        End-of-sequence ids are the least likely ones.
        """
        tokens = np.full(len(states), _NO_TOKEN, dtype=np.int64)
        for i, first in enumerate(self._places(states, 0).tolist()):
            in_order = np.concatenate((np.roll(self._ordinary, -first), np.array(self.eos_token_ids, dtype=np.int64)))
            able = in_order[allowed[i, in_order]]
            if able.size:
                tokens[i] = able[min(int(ranks[i]), able.size - 1)]
        return tokens

    def logprobs(self, states: UintArray, tokens: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Natural logarithms of the probabilities of ``tokens`` ``[n]`` or ``[n, k]`` after ``states`` ``[n]``."""
        count = len(self._ordinary)
        first = self._places(states, 0)
        if tokens.ndim > first.ndim:
            first = first[:, np.newaxis]
        ranks = np.where(self._place[tokens] == _UNSET, count, (self._place[tokens] - first) % count)
        return (-_LOG_2 * (ranks + 1)).astype(np.float32)

    def top_tokens(self, states: UintArray, top_n: int) -> npt.NDArray[np.int64]:
        """The likeliest ordinary tokens after each state, ``[n, top_n]``, likeliest first."""
        places = self._places(states, 0)[:, np.newaxis] + np.arange(top_n)
        tops: npt.NDArray[np.int64] = self._ordinary[places % len(self._ordinary)]
        return tops

    def expected_tokens(self, prompt: Sequence[int], n: int, *, seed: int | None = None) -> list[int]:
        """What a request with this prompt must answer with, ``n`` tokens, ended by nothing.

        Args:
            prompt: token ids, at least one.
            n: number of tokens.
            seed: of a request that is not greedy.
        """
        powers = self.powers(len(prompt) + n)
        state = self.terms(np.array(prompt), powers[: len(prompt)]).sum(keepdims=True)
        keys = np.array([0 if seed is None else stream_key(seed)], dtype=np.uint64)
        output: list[int] = []
        for position in range(len(prompt), len(prompt) + n):
            ranks = 0 if seed is None else sampled_ranks(keys, np.array([len(output)]))
            token = self.next_tokens(state, ranks)
            output.append(int(token[0]))
            state = state + self.terms(token, powers[position])
        return output

    def _places(self, states: UintArray, ranks: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
        scrambled = mix64(states.copy())
        scrambled %= np.uint64(len(self._ordinary))
        places: npt.NDArray[np.int64] = (scrambled.astype(np.int64) + ranks) % len(self._ordinary)
        return places

    def _ends(self, states: UintArray) -> npt.NDArray[np.bool_]:
        chance = mix64(states + _TOKEN_OFFSET) >> np.uint64(11)
        ends: npt.NDArray[np.bool_] = chance < np.uint64(self.eos_probability * 2**53)
        return ends


def sampled_ranks(keys: UintArray, num_outputs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Which rank requests draw for their next token: ``r`` with probability ``2**-(r + 1)``.

    Args:
        keys: ``[n]``, of the requests' random streams.
        num_outputs: ``[n]``, tokens that they have.
    """
    return np.floor(-np.log2(1.0 - uniforms(keys, num_outputs))).astype(np.int64)


def expected_tokens(prompt: Sequence[int], n: int, vocab: int) -> list[int]:
    """What a greedy request must answer with on a fake model without end-of-sequence ids."""
    return FakeModel(vocab).expected_tokens(prompt, n)


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
        self._last_token = np.full(max_running_requests, _NO_TOKEN, dtype=np.int64)
        self._draws = np.zeros(max_running_requests, dtype=np.bool_)
        self._stream_key = np.zeros(max_running_requests, dtype=np.uint64)
        self._num_outputs = np.zeros(max_running_requests, dtype=np.int64)
        self._verify = verify
        # What the checks need: the token of each KV slot, and how many of a request's table entries are set.
        self._token_of = np.full(num_slots if verify else 0, _NO_TOKEN, dtype=np.int64)
        self._length = np.zeros(max_running_requests, dtype=np.int64)

    def forward_step(self, plan: StepPlan) -> StepResult:
        """Run one step, and those that follow it unless each is to be reported.

        Raises:
            RuntimeError: the plan is wrong, if the runner verifies; it names the row and what is wrong with it.
        """
        self._next, self._done, self._seconds = None, 0, 0.0
        result = self._forward_one(plan)
        earlier: list[StepResult] = []
        while result.goes_on and plan.further is not None and not plan.further.reports_each:
            earlier.append(result)
            result = self.forward_further()
        if not earlier:
            return result
        return replace(
            result,
            earlier_token_ids=tuple(each.next_token_ids for each in earlier),
            earlier_logprobs=tuple(each.logprobs for each in earlier) if plan.logprobs else (),
            seconds=self._seconds,
        )

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on.

        Raises:
            RuntimeError: as :meth:`forward_step`; or there is none.
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
        ends = np.isin(result.next_token_ids, self.end_token_ids) & further.checks_eos
        is_late = seconds * (done + 1) / done > further.seconds
        return bool(result.failed_rows) or bool(ends.any()) or is_late or self.stops_early()

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
        next_token_ids, failed = self._sample(plan, states)
        result = StepResult(
            step_id=plan.step_id,
            next_token_ids=next_token_ids,
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
        self._last_token[slot] = new.output_ids[-1] if len(new.output_ids) else _NO_TOKEN
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

    def _sample(self, plan: StepPlan, states: UintArray) -> tuple[IntArray, tuple[int, ...]]:
        """The next tokens, and the rows that may have none."""
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
            failed = tuple(plan.masks.rows[chosen == _NO_TOKEN].tolist())
            tokens[at] = np.maximum(chosen, 0)
        self._last_token[req_slots] = tokens
        self._num_outputs[req_slots] += 1
        next_token_ids = np.full(plan.num_rows, FUTURE_TOKEN, dtype=np.int32)
        next_token_ids[rows] = tokens
        return next_token_ids, failed

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
                bool((ids != FUTURE_TOKEN).all()) or self._last_token[req_slot] != _NO_TOKEN,
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


class FakeWorker:
    """A :class:`FakeModelRunner` with the face of ``TpModelWorker``."""

    def __init__(
        self,
        *,
        vocab_size: int,
        max_total_num_tokens: int,
        max_running_requests: int,
        context_len: int,
        page_size: int = 1,
        verify: bool = False,
        eos_token_ids: tuple[int, ...] = (),
        eos_probability: float = 0.0,
        duration: StepDuration | None = None,
        max_steps: int = 1,
    ) -> None:
        """Make the runner; arguments as of :class:`FakeModel`, :class:`FakeModelRunner` and :class:`WorkerInfo`."""
        self.context_len = context_len
        self.max_steps = max_steps
        self.model_runner = FakeModelRunner(
            FakeModel(vocab_size, eos_token_ids, eos_probability),
            max_running_requests=max_running_requests,
            max_total_num_tokens=max_total_num_tokens,
            max_req_len=min(context_len, max_total_num_tokens),
            page_size=page_size,
            verify=verify,
            duration=duration,
        )

    def get_worker_info(self) -> WorkerInfo:
        """Limits of the fake."""
        runner = self.model_runner
        return WorkerInfo(
            max_total_num_tokens=runner.max_total_num_tokens,
            max_running_requests=runner.max_running_requests,
            max_req_len=runner.max_req_len,
            max_req_input_len=runner.max_req_len - 1,
            page_size=runner.page_size,
            vocab_size=runner.model.vocab_size,
            context_len=self.context_len,
            device="cpu",
            dtype="float32",
            max_steps=self.max_steps,
        )

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step."""
        return self.model_runner.forward_step(plan)

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on."""
        return self.model_runner.forward_further()

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        """From now on, begin no further step of a plan while one of these file descriptors can be read from."""
        self.model_runner.stops_early = lambda: bool(select.select(descriptors, [], [], 0)[0])


_CONFIG_KEY = "bough_fake"
_CONFIG_DEFAULTS = {
    "eos_probability": 0.0,
    "seconds_per_step": 0.0,
    "seconds_per_token": 0.0,
    "seconds_per_token_context": 0.0,
}
_DEFAULT_RUNNING_REQUESTS = 256
_DEFAULT_TOTAL_TOKENS = 1 << 20


def create_fake_worker(server_args: ServerArgs, model_config: ModelConfig) -> FakeWorker:
    """The worker for a checkpoint whose architecture is ``BoughFakeForCausalLM``, in place of ``TpModelWorker``.

    Such a checkpoint needs no weights. Its config.json may say how it behaves under ``bough_fake``: an object with
    numbers under ``eos_probability``, ``seconds_per_step``, ``seconds_per_token`` and ``seconds_per_token_context``.
    Pool and table sizes are those of the options, or else 2**20 tokens and 256 requests.

    Raises:
        ConfigError: that object is wrong.
    """
    settings = model_config.hf_config.get(_CONFIG_KEY, {})
    if not isinstance(settings, dict) or not settings.keys() <= _CONFIG_DEFAULTS.keys():
        raise ConfigError(f"{_CONFIG_KEY} in config.json may have {', '.join(_CONFIG_DEFAULTS)}", param="model_path")
    values = {**_CONFIG_DEFAULTS, **settings}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value < math.inf:
            raise ConfigError(
                f"{_CONFIG_KEY}.{name} in config.json must be a number, got {value!r}", param="model_path"
            )
    if values["eos_probability"] and not model_config.eos_token_ids:
        raise ConfigError(f"{_CONFIG_KEY}.eos_probability needs an eos_token_id", param="model_path")
    page_size = server_args.page_size or 1
    max_total_tokens = max(server_args.max_total_tokens or _DEFAULT_TOTAL_TOKENS, page_size)
    duration = StepDuration(
        values["seconds_per_step"], values["seconds_per_token"], values["seconds_per_token_context"]
    )
    return FakeWorker(
        vocab_size=model_config.vocab_size,
        max_total_num_tokens=max_total_tokens // page_size * page_size,
        max_running_requests=server_args.max_running_requests or _DEFAULT_RUNNING_REQUESTS,
        context_len=model_config.context_len,
        page_size=page_size,
        eos_token_ids=model_config.eos_token_ids,
        eos_probability=values["eos_probability"],
        duration=duration if duration != StepDuration() else None,
    )
