"""Divides the time of a step among prompts, and admits new requests. In this order:

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
from enum import Enum
from itertools import chain

import numpy as np

from bough.scheduler.admission import OUTPUT_CLIP_TOKENS, NewTokenRatio
from bough.scheduler.cost_model import MIN_CHUNK_TOKENS
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.scheduler.step_budget import StepBudget, StepLimits
from bough.scheduler.waiting_queue import AGE_LIMIT_SECONDS, SHORT_PROMPT_TOKENS
from bough.step_plan import IntArray

LOGPROB_TOKEN_PRICE = 3
"""Cost of a token whose logits are read beside running requests, in other tokens: the head, and all that reads them."""

OLDEST_PROMPT_SHARE = 0.5
OTHER_PROMPTS_SHARE = 0.25

MAX_UNFINISHED_PROMPTS = 2
"""Long prompts start only while there is still much to compute of fewer than this many others of their priority, or of
a higher one."""

ADMISSION_LOOKAHEAD = 16
"""Requests looked at beyond those for which there are slots, when some do not fit, or are too long for now."""


class _Admission(Enum):
    """Outcome for a waiting request."""

    STARTED = "started"
    HELD_BACK = "held back"
    """It is long, and so are enough that have started; who is shorter may go before it, and it is the next long one."""
    NO_ROOM = "no room"


class PrefillPlanner:
    """Chooses the prompt tokens of each step; the prompt that chooses first advances by ``min_chunk`` at least."""

    def __init__(self, requests: Requests, ratio: NewTokenRatio, limits: StepLimits) -> None:
        self._requests = requests
        self._kv = requests.kv
        self._table = requests.table
        self._queue = requests.waiting_queue
        self._ratio = ratio
        self._limits = limits
        self.min_chunk = min(MIN_CHUNK_TOKENS, limits.max_prefill_tokens, limits.chunk_tokens or MIN_CHUNK_TOKENS)

    def plan(self, now: float, budget: StepBudget, *, idle: bool, may_admit: bool, new_first: bool) -> dict[Req, int]:
        """Decide how many prompt tokens each request computes; admits new requests if it ``may_admit`` any.

        ``idle``: no other request computes anything in this step. New requests, or the shortest prompt, choose first if
        ``new_first``.
        """
        chunks: dict[Req, int] = {}
        if not self._requests.unfinished and not len(self._queue):
            return chunks
        self._finish_aged(now, chunks, budget)
        if may_admit and new_first:
            self._admit(now, chunks, budget, idle=idle)
        self._advance(chunks, budget, shortest_first=new_first)
        if may_admit and not new_first:
            self._admit(now, chunks, budget, idle=idle)
        for req in self._requests.unfinished:
            if budget.is_spent and chunks:
                break
            self._give(chunks, req, budget, 1.0)
        return {req: tokens for req, tokens in chunks.items() if tokens > 0}

    def _finish_aged(self, now: float, chunks: dict[Req, int], budget: StepBudget) -> None:
        """Plan short prompts that have waited long before all others, in order of arrival.

        Otherwise new prompts, shorter than what remains of these, would keep overtaking them.
        """
        horizon = now - AGE_LIMIT_SECONDS
        aged = [req for req in self._requests.unfinished if req.arrival_time <= horizon and not is_long_prompt(req)]
        if aged and self._queue.use_priority:
            highest = next((req.priority for req in self._queue), aged[0].priority)
            aged = [req for req in aged if req.priority >= highest]
        for req in sorted(aged, key=self._queue.precedence):
            if budget.is_spent and chunks:
                break
            self._give(chunks, req, budget, 1.0)

    def _advance(self, chunks: dict[Req, int], budget: StepBudget, *, shortest_first: bool) -> None:
        """Let unfinished prompts go on."""
        started = [req for req in self._requests.unfinished if req not in chunks]
        if not started:
            return
        others_wait = len(self._queue) > 0 or len(started) > 1
        oldest, *others = started
        others.sort(key=lambda req: req.fill_len - int(self._table.planned_len[req.slot]))
        shares = [
            (oldest, OLDEST_PROMPT_SHARE if others_wait else 1.0),
            *((req, OTHER_PROMPTS_SHARE) for req in others),
        ]
        if others and shortest_first:
            # Where the budget is enough for one prompt only, the shortest has its turns too.
            shares[0], shares[1] = shares[1], shares[0]
        for req, share in shares:
            if budget.is_spent and chunks:
                break
            self._give(chunks, req, budget, share)

    def _give(self, chunks: dict[Req, int], req: Req, budget: StepBudget, share: float) -> None:
        """Let a prompt compute as much more as its share allows; at least a minimum if it is the first to choose."""
        if self._limits.whole_prompts:
            if req not in chunks and self._fits_whole(req.fill_len, chunks, budget):
                budget.spend(req.fill_len, 0)
                chunks[req] = req.fill_len
            return
        given = chunks.get(req, 0)
        context = int(self._table.planned_len[req.slot]) + given
        floor = 0 if any(chunks.values()) else min(self.min_chunk, budget.most_tokens(context))
        is_long, price = is_long_prompt(req), 1
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
        """Return whether a prompt that cannot be cut fits into the step; the first to choose always does."""
        return not chunks or num_tokens <= budget.tokens_for(0, 1.0)

    def _admit(self, now: float, chunks: dict[Req, int], budget: StepBudget, *, idle: bool) -> None:
        free_slots = self._kv.req_to_token.available_size
        if free_slots == 0 or not len(self._queue) or (budget.is_spent and chunks):
            return
        reserved = self._reserved_tokens()
        idle = idle and not self._requests.unfinished
        if self._kv.available_tokens - reserved < self._kv.page_size and not (idle and not chunks):
            return
        misses = held_back = 0
        for req, aged in self._candidates(now, free_slots + ADMISSION_LOOKAHEAD):
            if held_back == ADMISSION_LOOKAHEAD and req.fill_len > SHORT_PROMPT_TOKENS:
                continue  # what the cache has of it would have to be looked up
            if self._requests.sharing.park_if_sharing(req, self._kv):
                self._queue.remove(req)
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
            self._give(chunks, req, budget, OLDEST_PROMPT_SHARE if len(self._queue) else 1.0)
            reserved += self._future_tokens(req) + req.fill_len - int(self._table.planned_len[req.slot])
            free_slots -= 1
            if free_slots == 0 or budget.is_spent:
                return

    def _candidates(self, now: float, limit: int) -> Iterator[tuple[Req, bool]]:
        """The next requests, and whether they are aged; then short ones that wait behind as many that are not."""
        following = self._queue.ordered(now, limit)
        yield from following
        if len(following) == limit:
            seen = {req for req, _ in following}
            yield from ((req, False) for req in self._queue.short(limit) if req not in seen)

    def _try_admit(
        self, req: Req, chunks: dict[Req, int], budget: StepBudget, reserved: float, *, nothing_runs: bool
    ) -> _Admission:
        fill = req.fill_ids
        prefix = min(self._kv.match(fill, req.extra_key), req.max_prefix_len) // self._kv.page_size * self._kv.page_size
        whole = len(fill) - prefix
        room = max(budget.tokens_for(prefix, 1.0), 0 if any(chunks.values()) else self.min_chunk)
        fits_step = whole <= room or room >= self.min_chunk
        if self._limits.whole_prompts:
            fits_step = self._fits_whole(whole, chunks, budget)
        elif whole > max(room, SHORT_PROMPT_TOKENS) and self._num_long_before(req, chunks) >= MAX_UNFINISHED_PROMPTS:
            return _Admission.HELD_BACK
        # A prompt after which nothing is generated may have all the memory there is.
        need = whole + (min(self._remaining(req), 1) if nothing_runs else self._future_tokens(req) + self._kv.page_size)
        left = self._kv.available_tokens - reserved
        if not (fits_step or nothing_runs) or need > left:
            return _Admission.NO_ROOM
        # The prefix itself is among what is available, as far as no request holds it: not once it is taken.
        if need > left - prefix and need > left - self._kv.match_unheld(fill, req.extra_key, req.max_prefix_len):
            return _Admission.NO_ROOM
        kv = self._kv.begin(fill, req.extra_key, req.max_prefix_len, req.priority)
        if kv is None:
            return _Admission.NO_ROOM
        self._requests.start(req, kv)
        return _Admission.STARTED

    def _num_long_before(self, req: Req, chunks: dict[Req, int]) -> int:
        """Unfinished prompts of at least a request's priority of which there is much to compute after this step."""
        return sum(
            other.fill_len - int(self._table.planned_len[other.slot]) - chunks.get(other, 0) > SHORT_PROMPT_TOKENS
            for other in self._requests.unfinished
            if other.priority >= req.priority or not self._queue.use_priority
        )

    def num_startable(self, arriving: Sequence[Req]) -> int:
        """Count the waiting and arriving requests for which there are slots and memory now.

        What the prefix cache may have of their prompts is not looked up, except that samples of one prompt share it.
        """
        slots = self._kv.req_to_token.available_size
        tokens = self._kv.available_tokens - self._reserved_tokens()
        count = 0
        prompt: IntArray | None = None
        for req in chain(self._requests.sharing.parked, self._queue, arriving):
            is_shared = self._requests.sharing.enabled and req.prompt is prompt
            known = req.waits_len if req.waits_for is not None else req.max_prefix_len if is_shared else 0
            prompt = req.prompt
            tokens -= req.fill_len - known + self._future_tokens(req) + self._kv.page_size
            if count == slots or tokens < 0:
                break
            count += 1
        return count

    def _future_tokens(self, req: Req) -> float:
        return min(self._remaining(req), OUTPUT_CLIP_TOKENS) * self._ratio.value

    @staticmethod
    def _remaining(req: Req) -> int:
        """Most tokens that a waiting request may still generate."""
        return req.max_new_tokens - len(req.output_before_slot)

    def _reserved_tokens(self) -> float:
        """Tokens that those who hold slots are expected to ask for: the rest of prompts, of jumps, and output."""
        holders = np.array([req.slot for req in self._table.reqs if req is not None], dtype=np.int64)
        if len(holders) == 0:
            return 0.0
        output = np.clip(self._table.max_new[holders] - self._table.planned_out[holders], 0, OUTPUT_CLIP_TOKENS)
        prompts = sum(req.fill_len - int(self._table.planned_len[req.slot]) for req in self._requests.unfinished)
        _, jumping = self._table.running_slots()
        jumps = int((self._table.known_len[jumping] - self._kv.lengths[jumping]).sum())
        return float(output.sum()) * self._ratio.value + prompts + jumps

    def allocate(self, chunks: dict[Req, int]) -> list[tuple[Req, int, IntArray]]:
        """KV slots for the chunks; a chunk shrinks or waits if memory is short."""
        rows: list[tuple[Req, int, IntArray]] = []
        for req, wanted in chunks.items():
            assert req.kv is not None
            tokens = wanted
            slots = self._kv.extend(req.kv, tokens)
            if slots is None and not self._limits.whole_prompts:
                page_size = self._kv.page_size
                in_last_page = -req.kv.length % page_size
                tokens = min(wanted, in_last_page + self._kv.available_tokens // page_size * page_size)
                slots = self._kv.extend(req.kv, tokens) if tokens > 0 else None
            if slots is not None:
                rows.append((req, tokens, slots))
        return rows


def is_long_prompt(req: Req) -> bool:
    """Return whether there is much to compute of a prompt."""
    return req.fill_len - req.cached_tokens > SHORT_PROMPT_TOKENS
