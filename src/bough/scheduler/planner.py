"""Plans steps: which requests compute which tokens next, and where their KV goes.

One step has a time budget. Running requests come first, one token each; prompts get the same amount again, within the
step's target, or the whole target if nothing runs. Output that was not sampled uses the same budget, up to half of it
while prompts wait. Among the prompts,

- short prompts that have begun and waited long continue before all others, in order of arrival;
- unfinished prompts continue: the oldest with at most half of the budget while others wait, the rest, shortest first,
  with a quarter each;
- new requests start, in the order of the policy, with at most half of the budget each. A long one that does not fit
  into the step starts only while few long ones are unfinished, and shorter ones go before it until then, so that short
  prompts always find room;
- in every other step new requests are planned first, and the group planned first gets a minimum, so that no request
  waits forever, however small the budget is;
- budget that is left over goes back to the unfinished prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

import numpy as np

from bough.scheduler.admission import OUTPUT_CLIP_TOKENS, NewTokenRatio
from bough.scheduler.cost_model import MIN_CHUNK_TOKENS, CostModel
from bough.scheduler.planned import Planned
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.scheduler.step_budget import LOGPROBS_AT_ONCE, StepBudget, StepLimits, budget_of_step
from bough.scheduler.step_builder import StepBuilder
from bough.scheduler.waiting_queue import AGE_LIMIT_SECONDS, SHORT_PROMPT_TOKENS
from bough.step_plan import FurtherSteps, IntArray

LOGPROB_TOKEN_PRICE = 3
"""What a token whose logits are read costs beside running requests, in others: the head, and all that reads them."""

OLDEST_PROMPT_SHARE = 0.5
OTHER_PROMPTS_SHARE = 0.25

MAX_RUN_SECONDS = 0.2
"""That steps in a row may take: heartbeats and results that could not be sent wait for them."""

MIN_UNTOLD_STEPS = 4
"""Where a stream is to be told sooner, it costs less to report each step of a longer plan than to plan so few."""

MAX_STEPS_BESIDE_WAITING = 4
"""While a slot is free and somebody waits for memory: there may be enough for them after any step."""

MAX_UNFINISHED_PROMPTS = 2
"""Long prompts start only while there is still much to compute of fewer than this many others of their priority, or of
a higher one."""

ADMISSION_LOOKAHEAD = 16
"""Requests looked at beyond those for which there are slots, when some do not fit, or are too long for now."""


class _Admission(Enum):
    """What came of a request that waits."""

    STARTED = "started"
    HELD_BACK = "held back"
    """It is long, and so are enough that have started; who is shorter may go before it, and it is the next long one."""
    NO_ROOM = "no room"


@dataclass
class PlanOutcome:
    """What planning came to.

    Attributes:
        planned: the step, or ``None`` if there is nothing to compute.
        needs_drain: memory ran out, but not for long: process the result of a step in flight, then plan again.
        exhausted: requests that cannot go on because they alone fill the pool; they end with ``length``.
        complete: requests that were found to have ended already when memory ran out.
        retracted: memory ran out and a request lost its slot.
        unstartable: a request for which there is no room although nobody holds any; it would wait, and hold up
            others, for ever.
    """

    planned: Planned | None = None
    needs_drain: bool = False
    exhausted: list[Req] = field(default_factory=list)
    complete: list[Req] = field(default_factory=list)
    retracted: bool = False
    unstartable: Req | None = None


class StepPlanner:
    """Chooses the work of each step; takes and retracts through ``requests``."""

    def __init__(
        self,
        requests: Requests,
        cost_model: CostModel,
        ratio: NewTokenRatio,
        limits: StepLimits,
        *,
        vocab_size: int,
    ) -> None:
        self.requests = requests
        self.kv = requests.kv
        self.table = requests.table
        self.queue = requests.queue
        self.cost_model = cost_model
        self.ratio = ratio
        self.limits = limits
        self._builder = StepBuilder(requests, vocab_size)
        self._min_chunk = min(MIN_CHUNK_TOKENS, limits.max_prefill_tokens, limits.chunk_tokens or MIN_CHUNK_TOKENS)

    # --- the plan -------------------------------------------------------------------------------------------------

    def plan(self, now: float, *, in_flight: bool, max_steps: int = 1, seconds: float = MAX_RUN_SECONDS) -> PlanOutcome:
        """Plan one step, or several that only decode.

        Args:
            now: ``time.monotonic()``.
            in_flight: whether a step is running whose result is not processed; then nothing is retracted.
            max_steps: most steps that the plan may have.
            seconds: that several may take.
        """
        outcome = PlanOutcome()
        if in_flight and self.table.waits_for_token():
            outcome.needs_drain = True
            return outcome
        decode_slots, decode_kv, jumping = self._plan_decode(outcome, in_flight)
        if outcome.needs_drain:
            return outcome
        decode_context = float(self.table.planned_len[decode_slots].sum()) if len(decode_slots) else 0.0
        rows: list[tuple[Req, int, IntArray]] = []
        further = None
        if len(jumping) or self.requests.unfinished or len(self.queue):
            budget = self._budget(len(decode_slots), decode_context)
            jumps = self._plan_jumps(jumping, budget)
            idle = len(decode_slots) == 0 and not jumps
            rows = self._allocate_chunks(self._plan_prefill(now, budget, idle, may_admit=not outcome.retracted)) + jumps
        # Who waits has found no place now.
        is_alone = not (rows or len(jumping) or self.requests.unfinished or outcome.retracted)
        if len(self.queue) and self.kv.req_to_token.available_size:
            max_steps = min(max_steps, MAX_STEPS_BESIDE_WAITING)
        if max_steps > 1 and is_alone and len(decode_slots):
            further = self._plan_further(decode_slots, decode_context, max_steps, min(seconds, MAX_RUN_SECONDS))
        if len(decode_slots) == 0 and not rows:
            self._resolve_standstill(outcome, now, in_flight)
            return outcome
        outcome.planned = self._builder.build(decode_slots, decode_kv, rows, decode_context, further)
        return outcome

    # --- decode ---------------------------------------------------------------------------------------------------

    def _plan_decode(self, outcome: PlanOutcome, in_flight: bool) -> tuple[IntArray, IntArray, IntArray]:
        """Who takes one more sampled token, and its place; and who jumps, for whose next token there is memory."""
        while True:
            slots, jumping = self.table.running_slots()
            if len(slots) == 0 and len(jumping) == 0:
                return slots, slots, jumping
            kv_slots = self.kv.extend_decode(slots) if self._suffices(slots, jumping) else None
            if kv_slots is not None:
                self.ratio.on_decode_step()
                return slots, kv_slots, jumping
            if not in_flight:
                outcome.complete = [each for each in self.table.reqs if each and self.requests.is_complete(each)]
            if in_flight or outcome.complete:
                outcome.needs_drain = True
                return slots[:0], slots[:0], jumping[:0]
            self._make_room(outcome)

    def _plan_further(
        self, slots: IntArray, decode_context: float, max_steps: int, seconds: float
    ) -> FurtherSteps | None:
        """What may follow the step of ``slots``, for which there is a plan already, within a bounded time.

        Where tokens are to be looked at or told of, each is reported; else as many as nobody is to be told of.
        """
        table = self.table
        if not (table.is_plain[slots] & (table.planned_out[slots] >= table.min_new[slots])).all():
            return None
        reports_each = bool(table.judged[slots].any())
        streaming = slots[table.streams[slots]]
        if len(streaming) and not reports_each:
            untold = int((table.next_send[streaming] - table.out_len[streaming]).min())
            reports_each = untold < MIN_UNTOLD_STEPS
            if not reports_each:
                max_steps = min(max_steps, untold)
        if not reports_each:
            max_steps = min(max_steps, LOGPROBS_AT_ONCE // max(int(table.logprobs[slots].sum()), 1))
        if max_steps < 2:
            return None
        left = int((table.horizon[slots] - table.planned_out[slots]).min())
        in_time = int(seconds / max(self.cost_model.seconds(len(slots), decode_context), 1e-6))
        count = min(max_steps, left, in_time) - 1
        if count < 1:
            return None
        out_slots = self.kv.extend_steps(count, slots)
        return FurtherSteps(out_slots, table.checks_eos[slots], seconds, reports_each) if len(out_slots) else None

    def _suffices(self, slots: IntArray, jumping: IntArray) -> bool:
        """Whether there is memory for one token of each, for all that is known without trying."""
        if len(jumping) == 0:
            return True
        lengths = self.kv.lengths[np.concatenate((slots, jumping))]
        return self.kv.allocator.num_new_pages_decode(lengths) * self.kv.page_size <= self.kv.available_tokens

    def _plan_jumps(self, jumping: IntArray, budget: StepBudget) -> list[tuple[Req, int, IntArray]]:
        """Compute output that was not sampled, and sample what comes after it; in pieces if there is much of it.

        Like everyone who runs, each of them gets one token whatever the budget; of that they take half if prompts wait.
        """
        if len(jumping) == 0:
            return []
        reqs = [req for req in map(self.table.reqs.__getitem__, jumping.tolist()) if req is not None]
        contexts = self.table.planned_len[jumping]
        wanted = self.table.known_len[jumping] - contexts
        prompts_wait = bool(self.requests.unfinished) or len(self.queue) > 0
        leaving, leaving_tokens = (OLDEST_PROMPT_SHARE, self._min_chunk) if prompts_wait else (0.0, 0)
        context, total = int(contexts.max()), int(wanted.sum())
        # Each may need a page more. Where memory is short, it matters who asks for it first.
        has_memory = total + len(reqs) * self.kv.page_size <= self.kv.available_tokens
        if has_memory and total <= budget.tokens_for(context, 1.0, leaving=leaving, leaving_tokens=leaving_tokens):
            budget.spend(total - len(reqs), context)
            return self._allocate_chunks(dict(zip(reqs, wanted.tolist(), strict=True)))
        chunks: dict[Req, int] = {}
        for req in sorted(reqs, key=self._precedence):
            context = int(self.table.planned_len[req.slot])
            most = budget.tokens_for(context, 1.0, leaving=leaving, leaving_tokens=leaving_tokens)
            chunks[req] = tokens = max(min(int(self.table.known_len[req.slot]) - context, most), 1)
            budget.spend(tokens - 1, context)
        return self._allocate_chunks(chunks)

    def _make_room(self, outcome: PlanOutcome) -> None:
        """Retract one request, or give up on the last one."""
        holders = [req for req in self.table.reqs if req is not None]
        oldest = min(holders, key=self._precedence)
        victims = [req for req in holders if req is not oldest]
        if not victims:
            # The scheduler ends it after this plan; until then it must not ask for memory again.
            self.table.decoding[oldest.slot] = False
            outcome.exhausted.append(oldest)
            return
        slots = np.array([req.slot for req in holders])
        self.ratio.on_retraction(
            decoded=int(self.table.out_len[slots].sum()),
            max_new=int(np.minimum(self.table.max_new[slots], OUTPUT_CLIP_TOKENS).sum()),
            num_running=len(holders),
        )
        self.requests.retract(max(victims, key=self._precedence))
        outcome.retracted = True

    def _precedence(self, req: Req) -> tuple[int, int]:
        """Sorts requests by who keeps its memory longest: the oldest of the highest priority."""
        return (-req.priority if self.queue.use_priority else 0, req.order)

    def _resolve_standstill(self, outcome: PlanOutcome, now: float, in_flight: bool) -> None:
        """Unfinished prompts hold all memory between them and none can go on: let go of the youngest.

        Where nobody holds any, and still nobody could start, some is lost; the accounts are set right at idle.
        """
        if outcome.exhausted:
            return
        if not self.requests.unfinished:
            if not in_flight and self.requests.num_holding == 0:
                outcome.unstartable = next((req for req, _ in self.queue.ordered(now, 1)), None)
        elif in_flight:
            outcome.needs_drain = True
        elif len(self.requests.unfinished) > 1:
            self.requests.retract(self.requests.unfinished[-1])
            outcome.needs_drain = True
        else:
            outcome.exhausted.append(self.requests.unfinished[0])

    # --- prefill --------------------------------------------------------------------------------------------------

    def _plan_prefill(self, now: float, budget: StepBudget, idle: bool, *, may_admit: bool) -> dict[Req, int]:
        """Decide how many prompt tokens each request computes; admits new requests."""
        chunks: dict[Req, int] = {}
        if not self.requests.unfinished and not len(self.queue):
            return chunks
        # What a retraction has just freed is for those who run.
        new_first = self._builder.num_built % 2 == 1
        self._finish_aged(now, chunks, budget)
        if may_admit and new_first:
            self._admit(now, chunks, budget, idle=idle)
        self._advance(chunks, budget)
        if may_admit and not new_first:
            self._admit(now, chunks, budget, idle=idle)
        for req in self.requests.unfinished:
            if budget.is_spent and chunks:
                break
            self._give(chunks, req, budget, 1.0)
        return {req: tokens for req, tokens in chunks.items() if tokens > 0}

    def _budget(self, num_decode: int, decode_context: float) -> StepBudget:
        only_long = not len(self.queue) and all(map(_is_long, self.requests.unfinished))
        return budget_of_step(self.limits, self.cost_model, num_decode, decode_context, only_long=only_long)

    def _finish_aged(self, now: float, chunks: dict[Req, int], budget: StepBudget) -> None:
        """Plan short prompts that have waited long before all others, in order of arrival.

        Otherwise new prompts, shorter than what remains of these, would keep overtaking them.
        """
        horizon = now - AGE_LIMIT_SECONDS
        aged = [req for req in self.requests.unfinished if req.arrival_time <= horizon and not _is_long(req)]
        if aged and self.queue.use_priority:
            highest = next((req.priority for req in self.queue), aged[0].priority)
            aged = [req for req in aged if req.priority >= highest]
        for req in sorted(aged, key=self._precedence):
            if budget.is_spent and chunks:
                break
            self._give(chunks, req, budget, 1.0)

    def _advance(self, chunks: dict[Req, int], budget: StepBudget) -> None:
        """Let unfinished prompts go on."""
        started = [req for req in self.requests.unfinished if req not in chunks]
        if not started:
            return
        others_wait = len(self.queue) > 0 or len(started) > 1
        oldest, *others = started
        others.sort(key=lambda req: req.fill_len - int(self.table.planned_len[req.slot]))
        shares = [
            (oldest, OLDEST_PROMPT_SHARE if others_wait else 1.0),
            *((req, OTHER_PROMPTS_SHARE) for req in others),
        ]
        if others and self._builder.num_built % 2 == 1:
            # Where the budget is enough for one prompt only, the shortest has its turns too.
            shares[0], shares[1] = shares[1], shares[0]
        for req, share in shares:
            if budget.is_spent and chunks:
                break
            self._give(chunks, req, budget, share)

    def _give(self, chunks: dict[Req, int], req: Req, budget: StepBudget, share: float) -> None:
        """Let a prompt compute as much more as its share allows; at least a minimum if it is the first to choose."""
        if self.limits.whole_prompts:
            if req not in chunks and self._fits_whole(req.fill_len, chunks, budget):
                budget.spend(req.fill_len, 0)
                chunks[req] = req.fill_len
            return
        given = chunks.get(req, 0)
        context = int(self.table.planned_len[req.slot]) + given
        floor = 0 if any(chunks.values()) else min(self._min_chunk, budget.most_tokens(context))
        is_long, price = _is_long(req), 1
        most = max(budget.tokens_for(context, share, is_long=is_long), floor)
        wants_logprobs = req.logprob_next < req.prompt_len
        # The first token of this step whose logits are read, if any are.
        first_read = max(req.logprob_next - 1, context - given)
        if wants_logprobs and context < first_read:
            most = min(most, first_read - context)
        elif wants_logprobs:
            price = LOGPROB_TOKEN_PRICE
            most = min(-(-most // price), budget.logprob_tokens_for(req.logprobs_per_token, context - first_read))
        tokens = min(req.fill_len - context, most)
        if tokens > 0:
            budget.spend(tokens * price, context, is_long=is_long)
            if price > 1:
                budget.spend_logprobs(tokens * req.logprobs_per_token)
            chunks[req] = given + tokens

    @staticmethod
    def _fits_whole(num_tokens: int, chunks: dict[Req, int], budget: StepBudget) -> bool:
        """Whether a prompt that cannot be cut has a place in the step; the first to choose always has."""
        return not chunks or num_tokens <= budget.tokens_for(0, 1.0)

    def _admit(self, now: float, chunks: dict[Req, int], budget: StepBudget, *, idle: bool) -> None:
        free_slots = self.kv.req_to_token.available_size
        if free_slots == 0 or not len(self.queue) or (budget.is_spent and chunks):
            return
        reserved = self._reserved_tokens()
        idle = idle and not self.requests.unfinished
        if self.kv.available_tokens - reserved < self.kv.page_size and not (idle and not chunks):
            return
        misses = held_back = 0
        for req, aged in self._candidates(now, free_slots + ADMISSION_LOOKAHEAD):
            if held_back == ADMISSION_LOOKAHEAD and req.fill_len > SHORT_PROMPT_TOKENS:
                continue  # what the cache has of it would have to be looked up
            if self.requests.sharing.park_if_sharing(req, self.kv):
                self.queue.remove(req)
                continue
            found = self._try_admit(req, chunks, budget, reserved, nothing_runs=idle and not chunks)
            if found is _Admission.HELD_BACK:
                held_back += 1
                continue
            if found is _Admission.NO_ROOM:
                misses += 1
                if aged or misses == ADMISSION_LOOKAHEAD:
                    return
                continue
            self._give(chunks, req, budget, OLDEST_PROMPT_SHARE if len(self.queue) else 1.0)
            reserved += self._future_tokens(req) + req.fill_len - int(self.table.planned_len[req.slot])
            free_slots -= 1
            if free_slots == 0 or budget.is_spent:
                return

    def _candidates(self, now: float, limit: int) -> Iterator[tuple[Req, bool]]:
        """The next requests, and whether they are aged; then short ones that wait behind as many that are not."""
        following = self.queue.ordered(now, limit)
        yield from following
        if len(following) == limit:
            seen = {req for req, _ in following}
            yield from ((req, False) for req in self.queue.short(limit) if req not in seen)

    def _try_admit(
        self, req: Req, chunks: dict[Req, int], budget: StepBudget, reserved: float, *, nothing_runs: bool
    ) -> _Admission:
        fill = req.fill_ids
        prefix = min(self.kv.match(fill, req.extra_key), req.max_prefix_len) // self.kv.page_size * self.kv.page_size
        whole = len(fill) - prefix
        room = max(budget.tokens_for(prefix, 1.0), 0 if any(chunks.values()) else self._min_chunk)
        fits_step = whole <= room or room >= self._min_chunk
        if self.limits.whole_prompts:
            fits_step = self._fits_whole(whole, chunks, budget)
        elif whole > max(room, SHORT_PROMPT_TOKENS) and self._num_long_before(req, chunks) >= MAX_UNFINISHED_PROMPTS:
            return _Admission.HELD_BACK
        # A prompt after which nothing is generated may have all the memory there is.
        need = whole + (min(self._remaining(req), 1) if nothing_runs else self._future_tokens(req) + self.kv.page_size)
        left = self.kv.available_tokens - reserved
        if not (fits_step or nothing_runs) or need > left:
            return _Admission.NO_ROOM
        # The prefix itself is among what is available, as far as nobody holds it: not once it is taken.
        if need > left - prefix and need > left - self.kv.match_unheld(fill, req.extra_key, req.max_prefix_len):
            return _Admission.NO_ROOM
        kv = self.kv.begin(fill, req.extra_key, req.max_prefix_len, req.priority)
        if kv is None:
            return _Admission.NO_ROOM
        self.requests.start(req, kv)
        return _Admission.STARTED

    def _num_long_before(self, req: Req, chunks: dict[Req, int]) -> int:
        """Unfinished prompts of at least a request's priority of which there is much to compute after this step."""
        return sum(
            other.fill_len - int(self.table.planned_len[other.slot]) - chunks.get(other, 0) > SHORT_PROMPT_TOKENS
            for other in self.requests.unfinished
            if other.priority >= req.priority or not self.queue.use_priority
        )

    def num_startable(self, arriving: Sequence[Req]) -> int:
        """How many of the waiting requests and of those that arrive there are slots and memory for now.

        What the prefix cache may have of their prompts is not looked up, except that samples of one prompt share it.
        """
        slots = self.kv.req_to_token.available_size
        tokens = self.kv.available_tokens - self._reserved_tokens()
        count = 0
        prompt: IntArray | None = None
        for req in chain(self.requests.sharing.parked, self.queue, arriving):
            is_shared = self.requests.sharing.enabled and req.prompt is prompt
            known = req.waits_len if req.waits_for is not None else req.max_prefix_len if is_shared else 0
            prompt = req.prompt
            tokens -= req.fill_len - known + self._future_tokens(req) + self.kv.page_size
            if count == slots or tokens < 0:
                break
            count += 1
        return count

    def _future_tokens(self, req: Req) -> float:
        return min(self._remaining(req), OUTPUT_CLIP_TOKENS) * self.ratio.value

    @staticmethod
    def _remaining(req: Req) -> int:
        """Most tokens that a waiting request may still generate."""
        return req.max_new_tokens - len(req.output_before_slot)

    def _reserved_tokens(self) -> float:
        """Tokens that those who hold slots are expected to ask for: the rest of prompts, of jumps, and output."""
        holders = np.array([req.slot for req in self.table.reqs if req is not None], dtype=np.int64)
        if len(holders) == 0:
            return 0.0
        output = np.clip(self.table.max_new[holders] - self.table.planned_out[holders], 0, OUTPUT_CLIP_TOKENS)
        prompts = sum(req.fill_len - int(self.table.planned_len[req.slot]) for req in self.requests.unfinished)
        _, jumping = self.table.running_slots()
        jumps = int((self.table.known_len[jumping] - self.kv.lengths[jumping]).sum())
        return float(output.sum()) * self.ratio.value + prompts + jumps

    def _allocate_chunks(self, chunks: dict[Req, int]) -> list[tuple[Req, int, IntArray]]:
        """KV slots for the chunks; a chunk shrinks or waits if memory is short."""
        rows: list[tuple[Req, int, IntArray]] = []
        for req, wanted in chunks.items():
            assert req.kv is not None
            tokens = wanted
            slots = self.kv.extend(req.kv, tokens)
            if slots is None and not self.limits.whole_prompts:
                page_size = self.kv.page_size
                in_last_page = -req.kv.length % page_size
                tokens = min(wanted, in_last_page + self.kv.available_tokens // page_size * page_size)
                slots = self.kv.extend(req.kv, tokens) if tokens > 0 else None
            if slots is not None:
                rows.append((req, tokens, slots))
        return rows


def _is_long(req: Req) -> bool:
    """Whether there is much to compute of a prompt."""
    return req.fill_len - req.cached_tokens > SHORT_PROMPT_TOKENS
