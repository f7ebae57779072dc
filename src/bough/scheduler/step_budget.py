"""Budget of the prompts of a step: time and tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bough.config.server_args import ServerArgs
from bough.model_executor.worker_info import WorkerInfo
from bough.scheduler.cost_model import CostModel

TARGET_STEP_SECONDS = {"cpu": 0.15, "cuda": 0.03}
"""A step is given as much work as is expected to take this long: it bounds the gap between a stream's tokens."""

PREFILL_SHARE = 0.75
"""Time that prompts get beside running requests, as a share of what those take by themselves."""

UNNOTICED_SECONDS = {"cpu": 0.0, "cuda": 0.02}
"""Time that prompts get beside running requests within the target, however little these take. A GPU's steps are so
short that gaps are not seen of a few of them, and that prompts in pieces of three quarters of one would mostly pay for
being launched."""

MIN_PREFILL_SHARE = 0.25
"""The least of that share, and without running requests of the time target, once a step is as long as its target. Where
running requests alone take twice the target, because the machine is busy with other things, prompts have the whole
share: their tokens would otherwise become the fewer the slower the machine is, until no prompt gets anywhere."""

SHORT_CHUNK_TOKENS = 64
"""Tokens of short prompts that a step has time for, within its target, whatever running requests are used to."""

LOGPROB_CHUNK_TOKENS = 512
"""Most tokens per step of a prompt whose logits are read: each costs the language-model head as well."""

LOGPROB_CHUNK_BESIDE_DECODE = 64
"""The same while other requests generate."""

LOGPROBS_AT_ONCE = 16_384
"""Most logprobs, those of alternatives included, of prompt tokens in a step, or of output in steps that are reported
together: the scheduler makes records of all of them before it looks at anything else, and the receiver of those of a
prompt is busy for half a microsecond with each. That is enough for 20 alternatives of every token that one prompt may
have."""


@dataclass(frozen=True)
class StepLimits:
    """Bounds on one step.

    Attributes:
        target_seconds: duration that a step should not exceed.
        chunk_tokens: most prompt tokens in a step, replacing the budget in time; ``None`` to use that one.
        max_prefill_tokens: most prompt tokens in a step in any case.
        whole_prompts: whether a prompt must be computed in one step, however long it takes.
        unnoticed_seconds: that prompts may take beside running requests, however little these take.
    """

    target_seconds: float
    chunk_tokens: int | None = None
    max_prefill_tokens: int = 16384
    whole_prompts: bool = False
    unnoticed_seconds: float = 0.0


def limits_of_steps(server_args: ServerArgs, info: WorkerInfo) -> StepLimits:
    """The bounds that the options and the model set."""
    chunk = server_args.chunked_prefill_size
    target = TARGET_STEP_SECONDS[info.device]
    if not info.keeps_kv:
        chunk = None if chunk == -1 else chunk
        return StepLimits(target, chunk, server_args.max_prefill_tokens, whole_prompts=True)
    if chunk == -1:
        # The longest prompt in one step; the worker has set memory aside for that.
        longest = max(server_args.max_prefill_tokens, info.max_req_len)
        return StepLimits(target, chunk_tokens=longest, max_prefill_tokens=longest)
    return StepLimits(target, chunk, server_args.max_prefill_tokens, unnoticed_seconds=UNNOTICED_SECONDS[info.device])


def budget_of_step(
    limits: StepLimits, model: CostModel, num_decode: int, decode_context: float, *, only_long: bool
) -> StepBudget:
    """Make the budget for prompts, and for output that was not sampled, beside ``num_decode`` requests with
    ``decode_context`` tokens in all.

    ``only_long``: no short prompt is there that could use the time.
    """
    tokens = limits.max_prefill_tokens
    logprobs = LOGPROB_CHUNK_BESIDE_DECODE if num_decode else LOGPROB_CHUNK_TOKENS
    if limits.chunk_tokens is not None:
        return StepBudget(model, float("inf"), min(tokens, limits.chunk_tokens), logprobs)
    target, prompt_base = limits.target_seconds, model.prompt_seconds(num_decode)
    # A step that has paid for being launched has room for tokens that take as long: dearer ones would hardly come on.
    least = min(model.prompt_base, target)
    if num_decode == 0:
        seconds = max(target - model.base - prompt_base, MIN_PREFILL_SHARE * target, least)
        return StepBudget(model, seconds, tokens, logprobs)
    # Long prompts get nearly as much time as running requests take by themselves, whose gaps less than double, unless
    # these are too short to be noticed.
    spent = model.seconds(num_decode, decode_context)
    most = max(PREFILL_SHARE * spent, min(limits.unnoticed_seconds, target - spent))
    long = max(min(most, target - spent) - prompt_base, _share_beyond(target, spent) * spent, least)
    seconds = long
    if not only_long:
        short = model.added_seconds(SHORT_CHUNK_TOKENS, SHORT_CHUNK_TOKENS**2 / 2)
        seconds = max(long, min(short, target - spent - prompt_base))
    return StepBudget(model, seconds, tokens, logprobs, long_prompt_seconds=long, most_seconds=max(most, least))


def _share_beyond(target: float, spent: float) -> float:
    """Least share of the time ``spent`` on running requests that prompts get, however little the target leaves."""
    excess = min(max(spent / target - 1, 0.0), 1.0)
    return MIN_PREFILL_SHARE + (PREFILL_SHARE - MIN_PREFILL_SHARE) * excess


class StepBudget:
    """Rest of a step, in seconds and tokens."""

    def __init__(
        self,
        cost_model: CostModel,
        seconds: float,
        tokens: int,
        logprob_tokens: int,
        *,
        long_prompt_seconds: float = float("inf"),
        most_seconds: float = float("inf"),
    ) -> None:
        """Begin with all of it; of ``seconds``, long prompts may take a part, and a prompt's minimum ``most_seconds``.

        At most ``logprob_tokens`` of one prompt have their logits read.
        """
        self._cost_model = cost_model
        self._long_prompt_seconds = long_prompt_seconds
        self._most_seconds = most_seconds
        self._total_seconds = self._seconds = seconds
        self._total_tokens = self._tokens = tokens
        self._logprob_tokens = logprob_tokens
        self._logprobs = LOGPROBS_AT_ONCE

    @property
    def is_spent(self) -> bool:
        """True if not even one token fits any more."""
        return self._tokens <= 0 or self._seconds < self._cost_model.per_token

    def most_tokens(self, context: int) -> int:
        """Bound of the minimum by which a prompt with ``context`` earlier tokens advances; at least one token."""
        if self._most_seconds == float("inf"):
            return self._total_tokens
        return max(self._cost_model.tokens_within(self._most_seconds, context), 1)

    def tokens_for(
        self, context: int, share: float, *, leaving: float = 0.0, leaving_tokens: int = 0, is_long: bool = False
    ) -> int:
        """Most tokens that a request with ``context`` earlier ones may take, at most a ``share`` of the whole budget.

        A share of the whole (``leaving``), and so many tokens, have to be left. A long prompt (``is_long``) has seconds
        of its own.
        """
        kept = max(math.ceil(self._total_tokens * leaving), leaving_tokens)
        tokens = max(min(self._tokens - kept, int(self._total_tokens * share)), 0)
        if self._seconds == float("inf"):
            return tokens
        seconds = min(self._seconds - self._total_seconds * leaving, self._total_seconds * share)
        if is_long:
            seconds = min(seconds, self._long_prompt_seconds)
        return min(tokens, self._cost_model.tokens_within(seconds, context))

    def logprob_tokens_for(self, per_token: int, given: int) -> int:
        """Most tokens that a prompt may take whose logits are read, each with ``per_token`` logprobs, after those
        ``given`` in this step.

        It is at least one for the first prompt in the step that asks.
        """
        is_first = self._logprobs == LOGPROBS_AT_ONCE
        return min(self._logprob_tokens - given, max(self._logprobs // per_token, int(is_first)))

    def spend_logprobs(self, count: int) -> None:
        """Take so many logprobs of a prompt."""
        self._logprobs -= count

    def spend(self, tokens: int, context: int, *, is_long: bool = False) -> None:
        """Take what so many tokens of a request cost."""
        self._tokens -= tokens
        if self._seconds != float("inf"):
            seconds = self._cost_model.added_seconds(tokens, tokens * (context + tokens / 2))
            self._seconds -= seconds
            if is_long:
                self._long_prompt_seconds -= seconds
