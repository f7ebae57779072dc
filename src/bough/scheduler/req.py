"""A request inside the scheduler."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from bough.ipc.messages import FinishReason, PositionLogprobs, TokenizedGenerateReqInput
from bough.step_plan import IntArray

if TYPE_CHECKING:
    from bough.constrained.base import MaskWords
    from bough.constrained.llguidance_backend import GrammarMatcher
    from bough.mem_cache.kv_cache_manager import RequestKV
    from bough.scheduler.text_stops import TextStops
    from bough.scheduler.thinking_limit import ThinkingLimit

UNLIMITED = np.iinfo(np.int32).max


class ReqState(Enum):
    """Where a request is."""

    COMPILING = "compiling"
    """Its grammar is being compiled; holds no memory."""
    WAITING = "waiting"
    """In the waiting queue; holds no memory."""
    PARKED = "parked"
    """Waits for another request to compute a prefix that both share; holds no memory."""
    PREFILL = "prefill"
    """Holds a request slot and KV; part of its prompt is not yet computed or planned."""
    RUNNING = "running"
    """Its whole prompt is computed or planned; it decodes."""
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Pooling:
    """What an embedding request wants of its prompt.

    Attributes:
        dimensions: how many numbers of the vector; ``None``: all.
        token_types: [prompt], which text of a pair a token belongs to; ``None``: all to the first.
    """

    dimensions: int | None = None
    token_types: IntArray | None = None


class Req:
    """One output to generate (a request with ``n > 1`` is ``n`` of these).

    Counters that every decode step touches do not live here but in the :class:`RequestTable`, where they are updated
    for all rows at once; while the request holds a slot, its token ids are the table's row.
    """

    __slots__ = (
        "allowed",
        "announced",
        "arrival_time",
        "banned_sequences",
        "cached_tokens",
        "computed_len",
        "created_time",
        "extra_ends",
        "extra_key",
        "finish_reason",
        "first_step_time",
        "first_token_time",
        "input_logprobs",
        "jump_from",
        "jumps",
        "kv",
        "logprob_next",
        "logprob_start_len",
        "masked_until_min",
        "matcher",
        "max_new_tokens",
        "num_retractions",
        "order",
        "output_before_slot",
        "pending_logprobs",
        "pooling",
        "priority",
        "prompt",
        "prompt_tokens",
        "return_logprob",
        "rid",
        "sampling_params",
        "seed",
        "send_interval",
        "sent_len",
        "slot",
        "state",
        "stop_token_ids",
        "stream",
        "text_stops",
        "thinking",
        "token_ids_logprob",
        "top_logprobs_num",
        "waits_for",
        "waits_len",
    )

    def __init__(
        self,
        message: TokenizedGenerateReqInput,
        index: int,
        *,
        prompt: IntArray,
        prompt_tokens: int,
        order: int,
        seed: int,
        max_new_tokens: int,
        stop_token_ids: frozenset[int],
        send_interval: int,
    ) -> None:
        params = message.sampling_params
        self.rid = message.rids[index]
        self.prompt = prompt
        self.prompt_tokens = prompt_tokens
        """Tokens that the client has sent: those of :attr:`prompt`, and padding behind it that is not computed."""
        self.sampling_params = params
        self.seed = seed
        self.max_new_tokens = max_new_tokens
        self.stop_token_ids = stop_token_ids
        """Every id that ends this request: its own and, unless ignored, the model's end-of-sequence ids."""
        self.masked_until_min = tuple(sorted(stop_token_ids)) if params.min_new_tokens > 0 else ()
        self.stream = message.stream
        self.send_interval = send_interval
        """Output tokens per delta."""
        self.priority = message.priority or 0
        self.extra_key = message.extra_key
        self.order = order
        """Arrival number, unique; retraction does not change it."""
        self.arrival_time = time.monotonic()
        created = message.arrival_time
        self.created_time = created if created is not None and created <= self.arrival_time else self.arrival_time
        """When it arrived in the main process: limits of time count from then."""

        self.return_logprob = message.return_logprob
        self.top_logprobs_num = message.top_logprobs_num if message.return_logprob else 0
        self.token_ids_logprob = tuple(message.token_ids_logprob or ()) if message.return_logprob else ()
        self.logprob_start_len = message.logprob_start_len if message.return_logprob else -1
        self.logprob_next = len(prompt) if self.logprob_start_len < 0 else min(self.logprob_start_len, len(prompt))
        """First prompt position whose logprob is wanted and not known yet; the prompt's length if there is none."""
        self.input_logprobs: list[PositionLogprobs] = []
        """Logprobs of prompt tokens that no delta has carried yet."""
        self.pending_logprobs: list[PositionLogprobs] = []
        """Logprobs of output tokens that no delta has carried yet."""

        self.pooling: Pooling | None = None
        """What is wanted of the pooled prompt; ``None`` for a request that generates."""
        self.state = ReqState.WAITING
        self.slot = -1
        self.kv: RequestKV | None = None
        self.output_before_slot: IntArray = _NO_TOKENS
        """Output generated before the request lost its slot by retraction."""
        self.cached_tokens = 0
        self.num_retractions = 0
        self.announced = False
        """Whether a delta has introduced this request to the detokenizer."""
        self.sent_len = 0
        """Output tokens that deltas have carried."""
        self.finish_reason: FinishReason | None = None
        self.text_stops: TextStops | None = None
        self.thinking: ThinkingLimit | None = None
        """Bounds the thoughts; has read what was looked at of the output, retracted or not."""
        self.matcher: GrammarMatcher | None = None
        """Follows the output through the request's grammar; has accepted every token of it, retracted or not."""
        self.jumps = False
        """Whether tokens that the grammar leaves no choice about are taken without asking the model."""
        self.allowed: MaskWords | None = None
        """The tokens that may be sampled, whatever else there is; ``None`` for all."""
        self.banned_sequences: tuple[tuple[int, ...], ...] = ()
        """Sequences of tokens that the output must not contain."""
        self.jump_from = -1
        """While output that was not sampled is being computed: tokens whose KV is known to be valid; else -1."""
        self.extra_ends: tuple[int, ...] = ()
        """Stop tokens that may come wherever the grammar may end, besides end-of-sequence tokens."""
        self.computed_len = 0
        """While the prompt is being computed: tokens whose KV is known to be valid."""
        self.first_step_time: float | None = None
        self.first_token_time: float | None = None
        self.waits_for: Req | None = None
        self.waits_len = 0
        """While parked: goes on when ``waits_for`` has this many tokens in the prefix cache."""

    @property
    def forced(self) -> int | None:
        """The token that has to come next, to end the thoughts; ``None`` if there is a choice."""
        return None if self.thinking is None else self.thinking.forced

    @property
    def prompt_len(self) -> int:
        """Tokens of the prompt that are computed."""
        return len(self.prompt)

    @property
    def logprobs_per_token(self) -> int:
        """Logprobs that each token has whose logprob is wanted: its own and those of alternatives."""
        return 1 + self.top_logprobs_num + len(self.token_ids_logprob)

    @property
    def fill_ids(self) -> IntArray:
        """Tokens to have in the KV cache before decoding goes on: the prompt and what retraction interrupted."""
        if len(self.output_before_slot) == 0:
            return self.prompt
        return np.concatenate((self.prompt, self.output_before_slot))

    @property
    def fill_len(self) -> int:
        """Length of :attr:`fill_ids`, without building it."""
        return len(self.prompt) + len(self.output_before_slot)

    @property
    def max_prefix_len(self) -> int:
        """Most tokens that may come from the prefix cache.

        The last token is always computed, because its logits choose the next one; so is everything from the token
        before the first whose logprob is wanted.
        """
        limit = self.fill_len - 1
        if self.logprob_next < self.prompt_len:
            limit = min(limit, max(self.logprob_next - 1, 0))
        return limit

    def __repr__(self) -> str:
        return f"Req({self.rid!r}, {self.state.value}, prompt={self.prompt_len})"


_NO_TOKENS: IntArray = np.zeros(0, dtype=np.int32)
