"""Every message that crosses a process border, as MessagePack-encoded structs.

One schema for both ends: a message is a tagged, array-like :class:`msgspec.Struct`, so a decoder checks types and
arity, and nothing is ever unpickled. Fields may be appended with defaults; they are never reordered.

Token ids of a prompt travel as ``bytes`` (little-endian int32), because a list of a million ids would cost its
receiver a million objects before it could say no.
"""

from __future__ import annotations

from typing import Any, Literal, Union, get_args

import msgspec

from bough.config.ranks import ProcessKey
from bough.merging import Merge
from bough.observability.stats import SchedulerStats
from bough.sampling.sampling_params import SamplingParams


class Message(msgspec.Struct, array_like=True, tag=True):
    """Base of everything that is sent on its own."""


class Record(msgspec.Struct, array_like=True, gc=False):
    """Base of the parts of messages: plain data without cycles, which the garbage collector need not visit."""


class ThoughtMarkers(msgspec.Struct, frozen=True, omit_defaults=True):
    """Markers of the thoughts of one output, and of their ends."""

    start: str
    """Before them."""
    ends: tuple[str, ...]
    """Behind them, and whatever else ends them."""
    close: tuple[int, ...]
    """Tokens of the first of ``ends``, with the white space before it that the model knows."""
    behind: tuple[int, ...] = ()
    """Tokens that come behind that."""
    begun: bool = False
    """True if the output begins inside of them."""
    recur: bool = False
    """True if there may be more of them behind."""
    never: str = ""
    """Marker behind which there are none any more."""
    at_last: tuple[int, ...] = ()
    """Tokens after ``behind`` for an output that thinks again all the same."""
    answer: str = ""
    """End of the header that ``never`` begins."""
    hide_stops: bool = False
    """True if stop strings apply to the answer only, not to the thoughts."""


class RequestExtras(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Properties of a request besides its prompt and its sampling.

    Edges fill it, every layer passes it whole, and only the consumer of a field reads that.
    """

    priority: int | None = None
    timeout: float | None = None
    """Seconds that it may take, from its arrival."""
    extra_key: str | None = None
    """Namespace of the prefix cache (cache salt included): requests share KV only within one."""
    routed_dp_rank: int | None = None
    """Replica that is to compute it, and in a replica's scheduler the one that does; ``None``: any."""
    goes_on: bool = False
    """True if it continues a session or a stored response, so that a replica has its prefix."""
    routed_experts_from: int | None = None
    """First position of the experts that are wanted with the end of the output; ``None``: none are."""


NO_EXTRAS = RequestExtras()


class TokenizedGenerateReqInput(Message):
    """Generate from one prompt, ``len(rids)`` times independently."""

    rids: list[str]
    """One id per parallel sample; ``len(rids) == sampling_params.n``."""
    input_ids: bytes
    """Prompt, int32 little-endian, at least one token."""
    sampling_params: SamplingParams
    stream: bool = False
    return_logprob: bool = False
    logprob_start_len: int = -1
    """First prompt position whose logprob is wanted; -1: none of the prompt's."""
    top_logprobs_num: int = 0
    token_ids_logprob: list[int] | None = None
    extras: RequestExtras = NO_EXTRAS
    banned_sequences: tuple[tuple[int, ...], ...] = ()
    """Tokens that the ``bad_words`` of ``sampling_params`` are written with."""
    thoughts: ThoughtMarkers | None = None
    """Markers of the thoughts that ``thinking_token_budget`` of ``sampling_params`` bounds."""
    arrival_time: float | None = None
    """When it arrived in the main process, seconds on the monotonic clock, which the processes of a machine share on
    Linux; ``None``: when it arrives in the scheduler."""


class TokenizedEmbeddingReqInput(Message):
    """Make one vector, an embedding or class scores, of a prompt."""

    rid: str
    input_ids: bytes
    """Prompt, int32 little-endian, at least one token."""
    token_types: bytes | None = None
    """Which text of a pair each token belongs to, one byte a token; ``None``: all to the first."""
    dimensions: int | None = None
    """Number of the vector's numbers that are wanted; ``None``: all."""
    extras: RequestExtras = NO_EXTRAS
    arrival_time: float | None = None
    """As for generating."""


class AbortReq(Message):
    """Stop every request whose id starts with ``rid`` (or all of them); each still gets a last delta.

    A front end that aborts on behalf of one client sets ``exact``, so that no other client's longer id is hit.
    """

    rid: str = ""
    abort_all: bool = False
    exact: bool = False


PauseMode = Literal["abort", "retract", "in_place"]
"""Fate of the requests of a scheduler that is paused."""


ControlStage = Literal["run", "promise", "prepare", "release", "withdraw"]
"""Stage of a control call. Most calls have one, ``run``. One that all schedulers carry out, or none, has several with
the same id: ``promise`` asks each of them for its consent, after which it launches no step; ``prepare``, where a call
has it, does all that can fail without changing anything; after ``run``, ``release`` lets all go on together, and so
does ``withdraw`` after a failure. The last two get no reply."""

MemoryTag = Literal["weights", "kv_cache", "cuda_graph"]
"""Memory of an engine that can be given back."""
MEMORY_TAGS: tuple[MemoryTag, ...] = get_args(MemoryTag)

WeightsAsleep = Literal["keep", "reread", "drop"]
"""Fate of weights in memory that is given back: those of a trainer are kept; only those of a checkpoint come back; all
are discarded."""


CheckAction = Literal["snapshot", "reset_tensors", "compare"]
"""Step of a check that updates reach every weight: note what all are; overwrite them with random numbers; compare them
with what was noted."""


class ControlReq(Message):
    """Call a named control handler of the scheduler, which answers with a :class:`ControlReply`."""

    call_id: str
    method: str
    params: dict[str, Any] = {}
    stage: ControlStage = "run"


class ShutdownReq(Message):
    """End the loop after what is in flight."""


class FinishReason(Record):
    """Why an output ended.

    ``matched`` is the stop token's id or the stop string or pattern; ``None`` for ``length`` and ``abort``, and where
    the output has ended because its grammar allows no more.
    """

    type: Literal["stop", "length", "abort"]
    matched: int | str | None = None
    length: int | None = None
    message: str | None = None
    status_code: int | None = None
    """HTTP status of an abort that is an error; ``None`` for an abort that the user asked for."""
    param: str | None = None
    """Sampling parameter at fault, if the error is about one."""
    code: str | None = None
    """Machine-readable reason of such an error, where there is one."""


class PositionLogprobs(Record):
    """Logprobs at one position.

    ``logprob`` is ``None`` at the first prompt position. ``top`` and ``chosen`` hold (logprob, token id) pairs: the
    likeliest ``top_logprobs_num`` tokens, descending, and the ids asked for by ``token_ids_logprob``, in that order.
    """

    logprob: float | None
    token_id: int
    top: list[tuple[float, int]] | None = None
    chosen: list[tuple[float, int]] | None = None


class DecodeInit(Record):
    """Facts that a detokenizer needs about a request before its first token; part of the request's first delta."""

    prompt_tail: list[int]
    """The last few prompt ids: context for decoding, never part of the text."""
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    no_stop_trim: bool = False


class OutputDelta(Record):
    """News of one output since the last delta of the same ``rid``.

    The scheduler leaves ``text`` ``None`` and the detokenizer fills it, except for requests with text stops: their
    text is decided, cut and held back in the scheduler, and the detokenizer passes it on. A delta with a
    ``finish_reason`` is the last one of its ``rid``.
    """

    rid: str
    token_ids: list[int]
    text: str | None = None
    finish_reason: FinishReason | None = None
    completion_tokens: int = 0
    """Tokens generated so far, these included."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens whose KV was reused instead of computed."""
    logprobs: list[PositionLogprobs] | None = None
    """One entry per token of ``token_ids``."""
    input_logprobs: list[PositionLogprobs] | None = None
    """For the prompt from ``logprob_start_len`` on; a long prompt's come in several deltas, before the first token."""
    decode: DecodeInit | None = None
    num_retractions: int = 0
    queue_time: float | None = None
    """Seconds between arrival in the scheduler and the first step; in the first delta only."""
    embedding: bytes | None = None
    """The vector of an embedding request, float32 little-endian; in its only delta, unless it failed."""
    first_token_delay: float | None = None
    """Seconds between arrival in the scheduler and the sampling of the first token; in the first delta only."""
    last_token_delay: float | None = None
    """Seconds between arrival in the scheduler and its last word; in the last delta only, and only if it was taken."""
    dp_rank: int | None = None
    """Replica that computes it, where there are several; in the first delta only."""
    routed_experts: bytes | None = None
    """Experts that have computed its tokens, int32 little-endian ``[tokens, layers, experts of a token]``; in the last
    delta only."""


class BatchTokenIDOutput(Message):
    """Results of one step, as ids."""

    deltas: list[OutputDelta]


class BatchEmbeddingOutput(Message):
    """Results of one step of an embedding model: each delta is its request's only one."""

    deltas: list[OutputDelta]


class BatchStrOutput(Message):
    """Results of one step, with text."""

    deltas: list[OutputDelta]


class ControlReply(Message):
    """Answer of one scheduler to a :class:`ControlReq`."""

    call_id: str
    process: ProcessKey
    success: bool
    message: str = ""
    data: dict[str, Any] = {}
    merge: dict[str, Merge] = {}
    """Rules for the fields of ``data``; ``first`` for those that are not named."""


class Heartbeat(Message):
    """Sent at a fixed interval by every child, whether or not it has work, to show that its loop turns; and before
    something that takes long."""

    process: ProcessKey
    stats: SchedulerStats | None = None
    lag_total: int = 0
    """Number of times that this process could not send its results at once, because the receiver had fallen behind."""
    malformed_total: int = 0
    """Messages that this process has dropped because they did not fit the schema."""
    num_failed_total: int = 0
    """Outputs that this process has ended because it could not go on with them; only the detokenizer counts them."""
    cpu_seconds: float = 0.0
    """Processor time of all threads of this process."""
    resident_bytes: int = 0
    """Memory of this process that is in RAM."""
    expected_silence: float = 0.0
    """Seconds that what is computed now may take until the loop turns again, where that is long."""


ToScheduler = Union[TokenizedGenerateReqInput, TokenizedEmbeddingReqInput, AbortReq, ControlReq, ShutdownReq]  # noqa: UP007
ToDetokenizer = Union[BatchTokenIDOutput, ShutdownReq]  # noqa: UP007
ToTokenizer = Union[BatchStrOutput, BatchTokenIDOutput, BatchEmbeddingOutput, ControlReply, Heartbeat]  # noqa: UP007
