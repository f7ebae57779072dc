"""A request inside the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from bough.ipc.messages import FinishReason, PositionLogprobs, RequestExtras
from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import IntArray

if TYPE_CHECKING:
    from bough.constrained.base import MaskWords
    from bough.constrained.llguidance_backend import GrammarMatcher
    from bough.mem_cache.kv_cache_manager import RequestKV
    from bough.scheduler.text_stops import TextStops
    from bough.scheduler.thinking_limit import ThinkingLimit

UNLIMITED = np.iinfo(np.int32).max


class ReqStage(Enum):
    """State of a request."""

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
    """Properties of an embedding request: the vector's ``dimensions`` (``None``: all), and the text of a pair that each
    token ``[prompt]`` belongs to (``None``: all to the first)."""

    dimensions: int | None = None
    token_types: IntArray | None = None


@dataclass(slots=True, eq=False, repr=False)
class Req:
    """One output to generate (a request with ``n > 1`` is ``n`` of these).

    Counters that every decode step touches do not live here but in the :class:`RequestTable`, where they are updated
    for all rows at once; while the request holds a slot, its token ids are the table's row.
    """

    rid: str
    prompt: IntArray
    prompt_tokens: int
    """Tokens that the client has sent: those of :attr:`prompt`, and padding behind it that is not computed."""
    sampling_params: SamplingParams
    seed: int
    max_new_tokens: int
    stop_token_ids: frozenset[int]
    """Every id that ends this request: its own and, unless ignored, the model's end-of-sequence ids."""
    extra_ends: tuple[int, ...]
    """Stop tokens that may come wherever the grammar may end, besides end-of-sequence tokens."""
    stream: bool
    send_interval: int
    """Output tokens per delta."""
    extras: RequestExtras
    order: int
    """Arrival number, unique; retraction does not change it."""
    arrival_time: float
    created_time: float
    """Time of arrival in the main process: limits of time count from then."""
    return_logprob: bool
    top_logprobs_num: int
    token_ids_logprob: tuple[int, ...]
    logprob_next: int
    """First prompt position whose logprob is wanted and not known yet; the prompt's length if there is none."""
    pooling: Pooling | None
    """How the prompt is pooled; ``None`` for a request that generates."""
    jumps: bool
    """True if tokens that the grammar leaves no choice about are taken without asking the model."""
    allowed: MaskWords | None
    """The tokens that may be sampled, whatever else there is; ``None`` for all."""
    banned_sequences: tuple[tuple[int, ...], ...]
    """Sequences of tokens that the output must not contain."""
    text_stops: TextStops | None
    thinking: ThinkingLimit | None
    """Bounds the thoughts; has read what was looked at of the output, retracted or not."""
    matcher: GrammarMatcher | None = None
    """Follows the output through the request's grammar; has accepted every token of it, retracted or not."""
    input_logprobs: list[PositionLogprobs] = field(default_factory=list)
    """Logprobs of prompt tokens that no delta has carried yet."""
    pending_logprobs: list[PositionLogprobs] = field(default_factory=list)
    """Logprobs of output tokens that no delta has carried yet."""
    state: ReqStage = ReqStage.WAITING
    slot: int = -1
    kv: RequestKV | None = None
    output_before_slot: IntArray = field(default_factory=lambda: _NO_TOKENS)
    """Output generated before the request lost its slot by retraction."""
    cached_tokens: int = 0
    num_retractions: int = 0
    announced: bool = False
    """True once a delta has introduced this request to the detokenizer."""
    sent_len: int = 0
    """Output tokens that deltas have carried."""
    finish_reason: FinishReason | None = None
    jump_from: int = -1
    """While output that was not sampled is being computed: tokens whose KV is known to be valid; else -1."""
    computed_len: int = 0
    """While the prompt is being computed: tokens whose KV is known to be valid."""
    first_step_time: float | None = None
    first_token_time: float | None = None
    waits_for: Req | None = None
    waits_len: int = 0
    """While parked: goes on when ``waits_for`` has this many tokens in the prefix cache."""

    @property
    def priority(self) -> int:
        """Higher goes first."""
        return self.extras.priority or 0

    @property
    def extra_key(self) -> str | None:
        """Namespace of the prefix cache."""
        return self.extras.extra_key

    @property
    def masked_until_min(self) -> tuple[int, ...]:
        """Token ids that may not be sampled before ``min_new_tokens``."""
        return tuple(sorted(self.stop_token_ids)) if self.sampling_params.min_new_tokens > 0 else ()

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
