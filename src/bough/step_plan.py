"""The seam between planning and execution: what one step computes, as a plain value.

Rank 0 makes a plan, every rank runs it. A plan holds no tensors and no references into the scheduler, so it can be
sent, recorded and replayed (:mod:`bough.step_codec`). Only the masks of rows that have a grammar may still be owed:
they are computed while the device works.

Shapes: ``R`` rows (one per request in the step), ``T`` new tokens over all rows, in row order.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NewType

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from bough.constrained.masks import StepMasks
from bough.sampling.sampling_params import SamplingParams

ReqSlot = NewType("ReqSlot", int)
"""Row of a request in the request table (``ReqToTokenPool``) and in every per-request device table."""

KVSlot = NewType("KVSlot", int)
"""Place of one token's keys and values in the KV pool."""

IntArray = npt.NDArray[np.int32]

FUTURE_TOKEN = -1
"""Input id that stands for "the token sampled last for this row's request": the device resolves it."""


class PlanStruct(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, eq=False):
    """Base of plans and results: values that do not change, in the form in which they are sent.

    Two of them are never equal, as their arrays cannot be compared in one go.
    """


class ForwardMode(Enum):
    """Kinds of rows that a step has. A row that adds one already sampled token is a decode row."""

    EXTEND = "extend"
    DECODE = "decode"
    MIXED = "mixed"


class NewRequest(PlanStruct, frozen=True):
    """A request that takes its slot with this step: what the device tables must know of it.

    A retracted request comes back as a new one, with the output it already has.
    """

    req_slot: ReqSlot
    sampling_params: SamplingParams
    seed: int
    """Seed of the request's random stream; drawn by the scheduler where the client gave none."""
    masked_until_min: tuple[int, ...]
    """Token ids (EOS and stop tokens) that may not be sampled before ``min_new_tokens``; may be empty."""
    prompt_len: int
    output_ids: IntArray
    """Tokens generated before a retraction (penalties count them); usually empty."""
    banned_sequences: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that the output must not contain."""
    prompt_ids: IntArray | None = None
    """Prompt tokens, if penalties count them."""


class ForcedTokens(PlanStruct, frozen=True):
    """Output that a request has got without sampling, because its grammar left no other.

    The device counts it, and its last token is what ``FUTURE_TOKEN`` stands for until another one is sampled.
    """

    req_slot: ReqSlot
    token_ids: tuple[int, ...]
    """at least one"""


class TableWrite(PlanStruct, frozen=True):
    """``req_to_token[req_slot, start:start + len(slots)] = slots``, to be done before the step's own tokens."""

    req_slot: ReqSlot
    start: int
    slots: IntArray


class RowLogprobs(PlanStruct, frozen=True):
    """Logprobs that one row must return.

    ``targets[i]`` is the token whose logprob is read from the logits after the row's new token ``first + i``
    (prompt logprobs; usually empty). If the row samples, the sampled token's logprob is returned as well.
    """

    row: int
    first: int
    targets: IntArray
    top_n: int
    token_ids: tuple[int, ...]


class RowPooling(PlanStruct, frozen=True):
    """A row of an embedding model: the states of its tokens are pooled, together with those of earlier chunks."""

    row: int
    ends: bool
    """True if the sequence ends with this step, so that its vector is wanted."""
    dimensions: int | None = None
    """Number of the vector's numbers that are wanted; ``None``: all."""


class FurtherSteps(PlanStruct, frozen=True):
    """Decode steps after a plan's own, without the scheduler in between: its rows, each with the token chosen last.

    Attributes:
        out_slots: [N, R], KV slots of the tokens of each of these steps.
        checks_eos: [R], whether the model's end-of-sequence ids end the row's request.
        seconds: that all steps together, the plan's own included, may take; none begins that would go beyond.
        reports_each: whether each step's result is wanted before the next one begins.
    """

    out_slots: IntArray
    checks_eos: npt.NDArray[np.bool_]
    seconds: float
    reports_each: bool = False


class StepPlan(PlanStruct, frozen=True):
    """One step of the engine.

    Rows come in two groups: first ``num_decode_rows`` decode rows (one new token each, always sampling), then the
    extend rows: prompts, and output that was not sampled. KV of a row's ``prefix_lens[r]`` earlier tokens is in the
    pool already, at the slots that ``req_to_token[req_slots[r], :prefix_lens[r]]`` names; the step computes the
    following ``extend_lens[r]`` tokens, stores their KV at ``out_slots`` and enters these into the table.
    """

    step_id: int
    mode: ForwardMode
    num_decode_rows: int
    req_slots: IntArray
    """[R]"""
    prefix_lens: IntArray
    """[R], tokens already in the KV pool"""
    extend_lens: IntArray
    """[R], new tokens, at least 1"""
    input_ids: IntArray
    """[T]; ``FUTURE_TOKEN`` for decode rows"""
    out_slots: IntArray
    """[T], KV slots of the new tokens"""
    sample: npt.NDArray[np.bool_]
    """[R], whether a next token is wanted; false for a chunk that does not end its prompt"""
    new_requests: tuple[NewRequest, ...] = ()
    table_writes: tuple[TableWrite, ...] = ()
    logprobs: tuple[RowLogprobs, ...] = ()
    forced: tuple[ForcedTokens, ...] = ()
    """To be counted before the step samples."""
    pooling: tuple[RowPooling, ...] = ()
    """Ascending by row; of an embedding model every row has one."""
    token_types: IntArray | None = None
    """[T], which text of a pair a token belongs to, for models that want to know; ``None``: all to the first"""
    masks: StepMasks | None = None
    """Tokens that may be sampled, for the rows that have a grammar; ``None`` if no sampling row has one."""
    further: FurtherSteps | None = None
    """Steps that may follow, if all rows are decode rows. A worker runs these steps as it would run the plans that
    :meth:`following` makes, but stops after one in which a row fails or ends, when their time is over, and where the
    scheduler has got news."""

    def following(self) -> StepPlan:
        """The plan of the first of the further steps, and of those after it."""
        assert self.further is not None, "none follow"
        out_slots = self.further.out_slots
        return replace(
            self,
            prefix_lens=self.prefix_lens + 1,
            out_slots=out_slots[0],
            new_requests=(),
            table_writes=(),
            forced=(),
            further=replace(self.further, out_slots=out_slots[1:]) if len(out_slots) > 1 else None,
        )

    def split(self) -> tuple[StepPlan, StepPlan]:
        """The forward pass of the decode rows and that of the extend rows: tokens and slots, nothing else."""
        rows = self.num_decode_rows
        bare = replace(
            self, new_requests=(), table_writes=(), logprobs=(), forced=(), pooling=(), token_types=None, masks=None
        )
        first, second = (
            {
                name: getattr(self, name)[part]
                for name in ("req_slots", "prefix_lens", "extend_lens", "input_ids", "out_slots", "sample")
            }
            for part in (slice(None, rows), slice(rows, None))
        )
        return (
            replace(bare, mode=ForwardMode.DECODE, **first),
            replace(bare, mode=ForwardMode.EXTEND, num_decode_rows=0, **second),
        )

    @property
    def num_rows(self) -> int:
        """Requests in the step."""
        return len(self.req_slots)

    @property
    def num_tokens(self) -> int:
        """New tokens in the step."""
        return len(self.input_ids)

    @property
    def num_steps(self) -> int:
        """Steps in the plan: its own, and those that may follow."""
        return 1 if self.further is None else 1 + len(self.further.out_slots)


class RowLogprobResult(PlanStruct, frozen=True):
    """Answer to a :class:`RowLogprobs` for one token of the row: natural logarithms, float32.

    Top lists are descending. ``sampled_*`` are ``None`` if the row did not sample.
    """

    row: int
    target_logprobs: npt.NDArray[np.float32]
    """[len(targets)]"""
    target_top: tuple[npt.NDArray[np.float32], IntArray] | None = None
    """values and ids, each [len(targets), top_n]; ``None`` if ``top_n == 0``"""
    target_chosen: npt.NDArray[np.float32] | None = None
    """[len(targets), len(token_ids)]"""
    sampled_logprob: float | None = None
    sampled_top: tuple[npt.NDArray[np.float32], IntArray] | None = None
    """values and ids, each [top_n]"""
    sampled_chosen: npt.NDArray[np.float32] | None = None
    """[len(token_ids)]"""


class RowEmbedding(PlanStruct, frozen=True):
    """Answer to a :class:`RowPooling` whose sequence has ended."""

    row: int
    vector: npt.NDArray[np.float32]
    """[dimensions]: an embedding, or class scores; finite"""


class StepResult(PlanStruct, frozen=True):
    """Result of a step, or of several in a row: a run of tokens for each row, of any length.

    Where each step of a plan is to be reported, each has a result.
    """

    step_id: int
    tokens: IntArray
    """[N], sampled tokens, those of the first row first; see :func:`token_runs`"""
    counts: IntArray
    """[R], tokens of each row; 0 for rows that did not sample"""
    logprobs: tuple[RowLogprobResult, ...] = ()
    """Those of a row in the order of its tokens; its first one has the targets."""
    failed_rows: tuple[int, ...] = ()
    """Rows whose logits were not finite in the last step; their requests are aborted and nothing else is."""
    embeddings: tuple[RowEmbedding, ...] = ()
    """Ascending by row"""
    num_steps: int = 1
    """Steps that were run."""
    seconds: float = 0.0
    """Time that the device took, measured around the forward pass; of all steps together."""
    goes_on: bool = False
    """True if another step of the plan may be asked for. No row has failed, nor ended as far as workers know."""


def token_runs(tokens: IntArray, failed_rows: Sequence[int] = ()) -> tuple[IntArray, IntArray]:
    """Order the tokens of steps in a row by their rows: ``tokens`` ``[N]`` and ``counts`` ``[R]`` of a result.

    ``tokens`` ``[S, R]`` has ``FUTURE_TOKEN`` where a row has not sampled; what ``failed_rows`` have in the last step
    is overwritten with it.
    """
    num_steps, num_rows = tokens.shape
    if len(failed_rows):
        tokens[-1, failed_rows] = FUTURE_TOKEN
    by_row = tokens.T
    is_sampled = by_row != FUTURE_TOKEN
    if is_sampled.all():
        return by_row.reshape(-1), np.full(num_rows, num_steps, dtype=np.int32)
    return by_row[is_sampled], is_sampled.sum(axis=1, dtype=np.int32)
