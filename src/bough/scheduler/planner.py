"""Plans steps: which requests compute which tokens next, and where their KV goes.

One step has a time budget. Running requests come first, one token each; prompts get three quarters of that, within the
step's target, or the whole target if nothing runs. Output that was not sampled uses the same budget, up to half of it
while prompts wait. How prompts share theirs is decided in ``prefill_planner.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bough.config.server_args import ServerArgs
from bough.model_executor.worker_info import Worker
from bough.scheduler.admission import OUTPUT_CLIP_TOKENS, NewTokenRatio
from bough.scheduler.cost_model import CostModel
from bough.scheduler.planned import Planned
from bough.scheduler.prefill_planner import OLDEST_PROMPT_SHARE, PrefillPlanner, is_long_prompt
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.scheduler.step_budget import LOGPROBS_AT_ONCE, StepBudget, StepLimits, budget_of_step, limits_of_steps
from bough.scheduler.step_builder import StepBuilder
from bough.scheduler.warmup import measure_step_costs
from bough.step_plan import FurtherSteps, IntArray

MAX_RUN_SECONDS = 0.2
"""Longest time of steps in a row: heartbeats and results that could not be sent wait for them."""

MIN_UNTOLD_STEPS = 4
"""Fewest steps between two deltas of a stream for which a plan ends there: below, each step is reported instead."""

MAX_STEPS_BESIDE_WAITING = 4
"""Most steps in a row while a slot is free and a request waits for memory, which any step may free."""


@dataclass
class PlanOutcome:
    """Result of planning.

    Attributes:
        planned: the step, or ``None`` if there is nothing to compute.
        needs_drain: plan again, after the result of a step in flight if there is one.
        exhausted: requests that cannot go on because they alone fill the pool; they end with ``length``.
        complete: requests that were found to have ended already when memory ran out.
        retracted: memory ran out and a request lost its slot.
        unstartable: a request for which there is no room although no request holds any; it would wait, and
            hold up others, for ever.
    """

    planned: Planned | None = None
    needs_drain: bool = False
    exhausted: list[Req] = field(default_factory=list)
    complete: list[Req] = field(default_factory=list)
    retracted: bool = False
    unstartable: Req | None = None

    @property
    def is_final(self) -> bool:
        """True if there is a step to run, or nothing to compute; otherwise, planning again finds more."""
        if self.needs_drain:
            return False
        return self.planned is not None or (not self.exhausted and self.unstartable is None)


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
        self.waiting_queue = requests.waiting_queue
        self.cost_model = cost_model
        self.ratio = ratio
        self.limits = limits
        self.prefill = PrefillPlanner(requests, ratio, limits)
        self._builder = StepBuilder(requests, vocab_size)

    def plan(self, now: float, *, in_flight: bool, max_steps: int = 1, seconds: float = MAX_RUN_SECONDS) -> PlanOutcome:
        """Plan one step, or up to ``max_steps`` that only decode and take ``seconds``; ``now`` is ``time.monotonic()``.

        While a step is ``in_flight``, whose result is not processed, nothing is retracted.
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
        if len(jumping) or self.requests.unfinished or len(self.waiting_queue):
            budget = self._budget(len(decode_slots), decode_context)
            jumps = self._plan_jumps(jumping, budget)
            idle = len(decode_slots) == 0 and not jumps
            # Memory that a retraction has just freed is for running requests.
            may_admit, new_first = not outcome.retracted, self._builder.num_built % 2 == 1
            chunks = self.prefill.plan(now, budget, idle=idle, may_admit=may_admit, new_first=new_first)
            rows = self.prefill.allocate(chunks) + jumps
        # Requests that still wait did not fit into this step.
        is_alone = not (rows or len(jumping) or self.requests.unfinished or outcome.retracted)
        if len(self.waiting_queue) and self.kv.req_to_token.available_size:
            max_steps = min(max_steps, MAX_STEPS_BESIDE_WAITING)
        if max_steps > 1 and is_alone and len(decode_slots):
            further = self._plan_further(decode_slots, decode_context, max_steps, min(seconds, MAX_RUN_SECONDS))
        if len(decode_slots) == 0 and not rows:
            self._resolve_standstill(outcome, now, in_flight)
            return outcome
        outcome.planned = self._builder.build(decode_slots, decode_kv, rows, decode_context, further)
        return outcome

    def learn(self, planned: Planned) -> None:
        """Take into account what the steps of a plan have cost, and how many there were."""
        plan, num_run = planned.plan, planned.num_run
        has_prompt = plan.num_decode_rows < plan.num_rows
        seconds = planned.seconds / num_run
        self.cost_model.observe(plan.num_tokens, planned.token_context, seconds, has_prompt, num_run)
        self.ratio.on_decode_step(num_run - 1)  # planning has counted the first

    def _plan_decode(self, outcome: PlanOutcome, in_flight: bool) -> tuple[IntArray, IntArray, IntArray]:
        """Return the slots that take one more sampled token, its KV slots, and the slots that jump."""
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
        """Plan what may follow the step of ``slots``, for which there is a plan already, within a bounded time.

        Where tokens must be looked at or sent, each step is reported; otherwise, as many follow as need no delta.
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
        """Return whether there is memory for one token of each, as far as is known without trying."""
        if len(jumping) == 0:
            return True
        lengths = self.kv.lengths[np.concatenate((slots, jumping))]
        return self.kv.allocator.num_new_pages_decode(lengths) * self.kv.page_size <= self.kv.available_tokens

    def _plan_jumps(self, jumping: IntArray, budget: StepBudget) -> list[tuple[Req, int, IntArray]]:
        """Compute output that was not sampled, and sample what comes after it; in pieces if there is much of it.

        Each of them gets one token whatever the budget, as running requests do; they take half of it if prompts wait.
        """
        if len(jumping) == 0:
            return []
        reqs = [req for req in map(self.table.reqs.__getitem__, jumping.tolist()) if req is not None]
        contexts = self.table.planned_len[jumping]
        wanted = self.table.known_len[jumping] - contexts
        prompts_wait = bool(self.requests.unfinished) or len(self.waiting_queue) > 0
        leaving, leaving_tokens = (OLDEST_PROMPT_SHARE, self.prefill.min_chunk) if prompts_wait else (0.0, 0)
        context, total = int(contexts.max()), int(wanted.sum())
        # Each may need a page more. Where memory is short, it matters who asks for it first.
        has_memory = total + len(reqs) * self.kv.page_size <= self.kv.available_tokens
        if has_memory and total <= budget.tokens_for(context, 1.0, leaving=leaving, leaving_tokens=leaving_tokens):
            budget.spend(total - len(reqs), context)
            return self.prefill.allocate(dict(zip(reqs, wanted.tolist(), strict=True)))
        chunks: dict[Req, int] = {}
        for req in sorted(reqs, key=self.waiting_queue.precedence):
            context = int(self.table.planned_len[req.slot])
            most = budget.tokens_for(context, 1.0, leaving=leaving, leaving_tokens=leaving_tokens)
            chunks[req] = tokens = max(min(int(self.table.known_len[req.slot]) - context, most), 1)
            budget.spend(tokens - 1, context)
        return self.prefill.allocate(chunks)

    def _make_room(self, outcome: PlanOutcome) -> None:
        """Retract one request, or give up on the last one."""
        holders = [req for req in self.table.reqs if req is not None]
        oldest = min(holders, key=self.waiting_queue.precedence)
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
        self.requests.retract(max(victims, key=self.waiting_queue.precedence))
        outcome.retracted = True

    def _resolve_standstill(self, outcome: PlanOutcome, now: float, in_flight: bool) -> None:
        """Unfinished prompts hold all memory between them and none can go on: let go of the youngest.

        If no request holds any, and still none could start, some is lost; the accounts are set right at idle.
        """
        if outcome.exhausted:
            return
        if not self.requests.unfinished:
            if not in_flight and self.requests.num_holding == 0:
                outcome.unstartable = next((req for req, _ in self.waiting_queue.ordered(now, 1)), None)
        elif in_flight:
            outcome.needs_drain = True
        elif len(self.requests.unfinished) > 1:
            self.requests.retract(self.requests.unfinished[-1])
            outcome.needs_drain = True
        else:
            outcome.exhausted.append(self.requests.unfinished[0])

    def _budget(self, num_decode: int, decode_context: float) -> StepBudget:
        only_long = not len(self.waiting_queue) and all(map(is_long_prompt, self.requests.unfinished))
        return budget_of_step(self.limits, self.cost_model, num_decode, decode_context, only_long=only_long)


def make_planner(server_args: ServerArgs, requests: Requests, worker: Worker) -> StepPlanner:
    """Make a planner that knows what steps cost on this machine, by running a few."""
    info = worker.get_worker_info()
    cost_model = measure_step_costs(worker, server_args.max_prefill_tokens)
    ratio = NewTokenRatio(server_args.schedule_conservativeness)
    return StepPlanner(requests, cost_model, ratio, limits_of_steps(server_args, info), vocab_size=info.vocab_size)
