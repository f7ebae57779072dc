"""Per-request sampling state, indexed by request slot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.sampling import SAMPLE_ROW
from bough.sampling.banned_sequences import BannedSequences
from bough.sampling.logit_edits import LogitEdits
from bough.sampling.penalties import PenaltyTable
from bough.sampling.random_stream import stream_key, uniforms
from bough.sampling.sampling_params import ALL_TOKENS
from bough.sampling.transfer import to_device

if TYPE_CHECKING:
    from bough.step_plan import ForcedTokens, IntArray, NewRequest

BoolArray = npt.NDArray[np.bool_]


class Needs:
    """Stages of token choice that a request needs beyond taking the largest logit; bits to be combined.

    Plain integers: a step asks for them dozens of times, and an enumeration's members take a microsecond each.
    """

    RANDOM: Final = 1
    """It is not greedy."""
    TEMPERATURE: Final = 2
    """Its temperature is not 1."""
    TRUNCATION: Final = 4
    """It has a top-k, top-p or min-p."""
    TOP_P: Final = 8
    PENALTIES: Final = 16
    MIN_TOKENS: Final = 32
    """Some tokens are banned until it has produced enough."""
    LOGIT_BIAS: Final = 64
    BANNED_SEQUENCES: Final = 128


_DRAW_FIELDS = ("inverse_temperature", "top_p", "top_k", "log_min_p")

_EDITS = Needs.PENALTIES | Needs.MIN_TOKENS | Needs.LOGIT_BIAS


@dataclass(frozen=True, slots=True)
class SamplingRows:
    """The rows of one step, as the host knows them: enough to decide which stages run without asking the device."""

    slots: npt.NDArray[np.int64]
    """[S]"""
    num_outputs: npt.NDArray[np.int64]
    """[S], tokens produced before this step"""
    needs: npt.NDArray[np.uint8]
    """[S], :class:`Needs` of each row"""
    union: int
    """Needs of all rows together"""

    def of(self, at: BoolArray) -> SamplingRows:
        """Those of some rows, of which none that has needs is left out."""
        return SamplingRows(self.slots[at], self.num_outputs[at], self.needs[at], self.union)

    def having(self, needs: int) -> BoolArray:
        """[S], which rows have any of these needs."""
        having: BoolArray = (self.needs & needs) != 0
        return having


@dataclass(frozen=True, slots=True)
class StepDraws:
    """Description of several steps for the native sampler."""

    rows: npt.NDArray[Any]
    """:data:`~bough.kernels.sampling.SAMPLE_ROW` [num_steps, S], whose addresses are valid until the state changes"""
    num_outputs: int
    """Address of int64 ``[max_running_requests]``, where the tokens of each request slot are counted."""
    history_size: int
    """Tokens for which the histories of penalties have room."""
    kept: list[npt.NDArray[Any]]
    """Arrays that must live as long as the rows."""


@dataclass(frozen=True, slots=True)
class DrawParams:
    """Parameters of ``n`` rows that are drawn at random, on the host, each ``[n]``."""

    uniform: npt.NDArray[np.float64]
    """the random number of this token, from 0 to ``1 - 2**-40``"""
    inverse_temperature: npt.NDArray[np.float32]
    top_p: npt.NDArray[np.float64]
    """infinity where there is none"""
    top_k: npt.NDArray[np.float64]
    """whole numbers; infinity where there is none"""
    log_min_p: npt.NDArray[np.float32]
    """natural logarithm; minus infinity where there is none"""

    def of(self, rows: npt.NDArray[np.int64]) -> DrawParams:
        """Those of some of the rows."""
        return DrawParams(
            self.uniform[rows],
            self.inverse_temperature[rows],
            self.top_p[rows],
            self.top_k[rows],
            self.log_min_p[rows],
        )


@dataclass(frozen=True, slots=True)
class DeviceDrawParams:
    """:class:`DrawParams` on the device, each ``[n, 1]`` and of the same type."""

    uniform: torch.Tensor
    inverse_temperature: torch.Tensor
    top_p: torch.Tensor
    top_k: torch.Tensor
    log_min_p: torch.Tensor

    @classmethod
    def upload(cls, params: DrawParams, device: torch.device) -> DeviceDrawParams:
        """Copy to the device, all at once."""
        packed = np.array((params.uniform, params.inverse_temperature, params.top_p, params.top_k, params.log_min_p))
        uniform, inverse_temperature, top_p, top_k, log_min_p = to_device(packed, device).unsqueeze(-1).unbind(0)
        return cls(uniform, inverse_temperature.to(torch.float32), top_p, top_k, log_min_p.to(torch.float32))


class SamplingState:
    """Everything that choosing the next token of a request needs to know about the request.

    One table per parameter, with a row per request slot, written when a request takes the slot and not rebuilt per
    step. Scalars live on the host, where they decide which stages of sampling run at all, and the ones a step needs
    go to the device in one small copy; how many tokens a request has produced needs no word from the device either,
    since every step that samples adds one. What grows with the vocabulary or depends on sampled tokens (penalty
    counts, last tokens) lives on the device.

    Attributes:
        last_token: int64 ``[max_running_requests]`` on the device, the token sampled last for each request slot.
            ``Sampler.sample`` writes it; the model runner reads it to resolve ``FUTURE_TOKEN``.
    """

    def __init__(self, max_running_requests: int, vocab_size: int, device: torch.device) -> None:
        self.max_running_requests = max_running_requests
        self.vocab_size = vocab_size
        self.device = device
        self.last_token = torch.zeros(max_running_requests, dtype=torch.int64, device=device)
        if device.type == "cpu":
            self._host_last_token = self.last_token.numpy()
        self._needs = np.zeros(max_running_requests, dtype=np.uint8)
        self._num_outputs = np.zeros(max_running_requests, dtype=np.int64)
        self._num_outputs_address = self._num_outputs.ctypes.data
        self._min_new_tokens = np.zeros(max_running_requests, dtype=np.int64)
        self._stream_key = np.zeros(max_running_requests, dtype=np.uint64)
        # [4, slots]: inverse temperature, top-p, top-k, log(min-p); float64 holds every top-k exactly
        self._shape_of_draw = np.zeros((4, max_running_requests), dtype=np.float64)
        # What the native sampler is told of a slot in every step.
        self._described = np.zeros(max_running_requests, dtype=SAMPLE_ROW)
        self._penalties = PenaltyTable(max_running_requests, vocab_size, device)
        self._banned = LogitEdits(max_running_requests, vocab_size, device)
        self._bias = LogitEdits(max_running_requests, vocab_size, device)
        self._banned_sequences = BannedSequences(max_running_requests, vocab_size, device)
        self._slots_sent: tuple[bytes, torch.Tensor] = (b"", torch.zeros(0, dtype=torch.int64, device=device))

    @staticmethod
    def max_bytes(max_running_requests: int, vocab_size: int) -> int:
        """Bound on the device memory that the state can come to hold: about ``10 * slots * vocab_size`` bytes if every
        running request has penalties, and 180 KB each if all have as many banned sequences as they may."""
        tables = PenaltyTable.max_bytes(max_running_requests, vocab_size) + 8 * max_running_requests
        return tables + BannedSequences.max_bytes(max_running_requests)

    def admit(self, new: NewRequest) -> None:
        """Set every table entry of a slot, whatever it held before.

        A request that comes back after a retraction brings its output along: penalty counts, the number of tokens
        produced, and with it the random stream, and the last token continue exactly. Raises ``ValueError`` if the slot
        or a token id of ``logit_bias`` is out of range.
        """
        slot, params = int(new.req_slot), new.sampling_params
        if not 0 <= slot < self.max_running_requests:
            raise ValueError(f"request slot {slot} is outside [0, {self.max_running_requests})")
        needs = 0
        if not params.is_greedy:
            needs |= Needs.RANDOM
            if params.temperature != 1.0:
                needs |= Needs.TEMPERATURE
            if params.top_p < 1.0:
                needs |= Needs.TRUNCATION | Needs.TOP_P
            if params.top_k != ALL_TOKENS or params.min_p > 0.0:
                needs |= Needs.TRUNCATION
            self._shape_of_draw[:, slot] = (
                1.0 / params.temperature,
                params.top_p if params.top_p < 1.0 else np.inf,
                np.inf if params.top_k == ALL_TOKENS else params.top_k,
                math.log(params.min_p) if params.min_p > 0.0 else -np.inf,
            )
            self._stream_key[slot] = stream_key(new.seed)
        described = self._described[slot : slot + 1]
        described["random"] = not params.is_greedy
        for name, value in zip(_DRAW_FIELDS, self._shape_of_draw[:, slot], strict=True):
            described[name] = value
        produced = len(new.output_ids)
        if params.has_penalties:
            needs |= Needs.PENALTIES
            self._penalties.set(slot, params, new.output_ids, new.prompt_ids)
        else:
            self._penalties.drop(slot)
        # An end-of-sequence id that the model has no logit for cannot be sampled and needs no ban.
        banned = [i for i in dict.fromkeys(new.masked_until_min) if 0 <= i < self.vocab_size]
        if produced >= params.min_new_tokens:
            banned = []
        if self._banned.set(slot, banned, [-np.inf] * len(banned)):
            needs |= Needs.MIN_TOKENS
        bias = params.logit_bias or {}
        if self._bias.set(slot, list(bias), list(bias.values())):
            needs |= Needs.LOGIT_BIAS
        if self._banned_sequences.set(slot, new.banned_sequences, new.output_ids.tolist()):
            needs |= Needs.BANNED_SEQUENCES
        self._min_new_tokens[slot] = params.min_new_tokens
        self._num_outputs[slot] = produced
        self._needs[slot] = needs
        if produced:
            self.last_token[slot].fill_(int(new.output_ids[-1]))

    def append(self, forced: Sequence[ForcedTokens]) -> None:
        """Note that requests, each named once and without banned sequences, have got tokens that were not sampled."""
        slots = np.array([each.req_slot for each in forced], dtype=np.int64)
        last = np.array([each.token_ids[-1] for each in forced], dtype=np.int64)
        for i in np.flatnonzero(self._needs[slots] & Needs.PENALTIES).tolist():
            slot, first = slots[i : i + 1], np.zeros(1, dtype=np.int64)
            for n, token in enumerate(forced[i].token_ids):
                produced = self._num_outputs[slot] + n
                self._penalties.record(first, slot, produced, to_device(np.array([token]), self.device))
        self._num_outputs[slots] += [len(each.token_ids) for each in forced]
        self._set_last_tokens(slots, to_device(last, self.device))

    def rows(self, req_slots: IntArray) -> SamplingRows:
        """Look up the rows of a step, ``[S]``, each slot at most once. Ends bans that have run out."""
        slots = req_slots.astype(np.int64)
        num_outputs = self._num_outputs[slots]
        needs = self._needs[slots]
        union = int(np.bitwise_or.reduce(needs)) if needs.size else 0
        if union & Needs.MIN_TOKENS:
            over = ((needs & Needs.MIN_TOKENS) != 0) & (num_outputs >= self._min_new_tokens[slots])
            if over.any():
                needs[over] &= ~np.uint8(Needs.MIN_TOKENS)
                self._needs[slots] = needs
                union = int(np.bitwise_or.reduce(needs))
        return SamplingRows(slots, num_outputs, needs, union)

    def ban_sequences(self, logits: torch.Tensor, rows: SamplingRows) -> None:
        """Ban in ``logits`` float32 ``[S, V]``, in place, tokens that would complete a sequence that is not to be."""
        if rows.union & Needs.BANNED_SEQUENCES:
            at = np.flatnonzero(rows.having(Needs.BANNED_SEQUENCES))
            self._banned_sequences.apply(logits, at, rows.slots[at])

    def apply_logits_bias(self, logits: torch.Tensor, rows: SamplingRows) -> None:
        """Apply penalties, bans and biases to ``logits`` float32 ``[S, V]`` in place, where rows have any."""
        if not rows.union & _EDITS:
            return
        if rows.union & Needs.PENALTIES:
            at = np.flatnonzero(rows.having(Needs.PENALTIES))
            self._penalties.apply(logits, at, rows.slots[at], rows.num_outputs[at])
        for need, edits in ((Needs.MIN_TOKENS, self._banned), (Needs.LOGIT_BIAS, self._bias)):
            if rows.union & need:
                at = np.flatnonzero(rows.having(need))
                edits.apply(logits, at, rows.slots[at])

    def describe(self, rows: SamplingRows) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]]]:
        """All that the native sampler needs to know of a step's rows (``SAMPLE_ROW`` ``[S]``); for a state in host
        memory.

        Its addresses are valid until the state changes, while the arrays returned beside it live.
        """
        described = self._described[rows.slots]
        described["logits_row"] = np.arange(len(rows.slots))
        if rows.union & Needs.RANDOM:
            described["uniform"] = uniforms(self._stream_key[rows.slots], rows.num_outputs)
        kept: list[npt.NDArray[Any]] = []
        if not rows.union & _EDITS:
            return described, kept
        if rows.union & Needs.PENALTIES:
            at = np.flatnonzero(rows.having(Needs.PENALTIES))
            part = described[at]
            self._penalties.describe(part, rows.slots[at], rows.num_outputs[at])
            described[at] = part
        for at in np.flatnonzero(rows.having(Needs.MIN_TOKENS | Needs.LOGIT_BIAS)).tolist():
            sources = ((Needs.MIN_TOKENS, self._banned), (Needs.LOGIT_BIAS, self._bias))
            edits = [source.of(int(rows.slots[at])) for need, source in sources if rows.needs[at] & need]
            ids, addends = (np.concatenate(arrays) for arrays in zip(*edits, strict=True))
            kept += (ids, addends)
            described["num_edits"][at] = len(ids)
            described["edit_ids"][at] = ids.ctypes.data
            described["edit_addends"][at] = addends.ctypes.data
        return described, kept

    def describe_steps(self, rows: SamplingRows, num_steps: int) -> StepDraws:
        """The same for several steps, in each of which every row gets a token; no ban of tokens runs out meanwhile.

        Native code notes all there is to note of these tokens. None of the rows has banned sequences.
        """
        history_size = 0
        if rows.union & Needs.PENALTIES:
            at = rows.having(Needs.PENALTIES)
            history_size = self._penalties.reserve(rows.slots[at], rows.num_outputs[at] + num_steps)
        first, kept = self.describe(rows)
        if num_steps == 1:
            return StepDraws(first[np.newaxis], self._num_outputs_address, history_size, kept)
        described = np.empty((num_steps, len(first)), dtype=SAMPLE_ROW)
        described[:] = first
        num_outputs = rows.num_outputs + np.arange(num_steps)[:, np.newaxis]
        if rows.union & Needs.RANDOM:
            described["uniform"] = uniforms(self._stream_key[rows.slots], num_outputs)
        if rows.union & Needs.PENALTIES:
            at = rows.having(Needs.PENALTIES)
            described["num_history"][:, at] = self._penalties.history_lengths(rows.slots[at], num_outputs[:, at])
        return StepDraws(described, self._num_outputs_address, history_size, kept)

    def draw_params(self, rows: SamplingRows, at: npt.NDArray[np.int64]) -> DrawParams:
        """Parameters of the rows ``at`` ``[n]``, none of them greedy."""
        slots = rows.slots[at]
        inverse_temperature, top_p, top_k, log_min_p = self._shape_of_draw[:, slots]
        return DrawParams(
            uniforms(self._stream_key[slots], rows.num_outputs[at]),
            inverse_temperature.astype(np.float32),
            top_p,
            top_k,
            log_min_p.astype(np.float32),
        )

    def draw_table(self, rows: SamplingRows) -> npt.NDArray[np.float64]:
        """Description of all rows for the Triton kernel: float64 ``[S, 6]``, columns as its ``DRAW_FIELDS``."""
        table = np.empty((len(rows.slots), 2 + len(_DRAW_FIELDS)))
        table[:, 0] = rows.having(Needs.RANDOM)
        table[:, 1] = uniforms(self._stream_key[rows.slots], rows.num_outputs)
        table[:, 2:] = self._shape_of_draw[:, rows.slots].T
        return table

    def top_k(self, slots: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Top-k of ``slots`` ``[n]``; infinity where there is none, arbitrary for greedy requests."""
        top_k: npt.NDArray[np.float64] = self._shape_of_draw[2, slots]
        return top_k

    def inverse_temperatures(self, slots: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Factor of logits before they become probabilities; 1 for greedy requests. ``[k]``."""
        random = (self._needs[slots] & Needs.RANDOM) != 0
        return np.where(random, self._shape_of_draw[0, slots], 1.0).astype(np.float32)

    def record_choices(self, req_slots: IntArray, tokens: IntArray) -> None:
        """Note the tokens ``[S]`` that rows without penalties have got on a CPU."""
        self._num_outputs[req_slots] += 1
        self._host_last_token[req_slots] = tokens

    def record(self, rows: SamplingRows, next_token_ids: torch.Tensor) -> None:
        """Note that each row's request has produced one more token, ``next_token_ids`` int64 ``[S]``."""
        self._num_outputs[rows.slots] += 1
        self._set_last_tokens(rows.slots, next_token_ids)
        if rows.union & Needs.PENALTIES:
            at = np.flatnonzero(rows.having(Needs.PENALTIES))
            self._penalties.record(at, rows.slots[at], rows.num_outputs[at], next_token_ids)
        if rows.union & Needs.BANNED_SEQUENCES:
            at = np.flatnonzero(rows.having(Needs.BANNED_SEQUENCES))
            tokens = next_token_ids.index_select(0, to_device(at, self.device))
            self._banned_sequences.record(rows.slots[at], tokens)

    def _set_last_tokens(self, slots: npt.NDArray[np.int64], tokens: torch.Tensor) -> None:
        if self.device.type == "cpu":
            self._host_last_token[slots] = tokens.numpy()
        else:
            self.last_token.index_copy_(0, self._slots_on_device(slots), tokens)

    def _slots_on_device(self, slots: npt.NDArray[np.int64]) -> torch.Tensor:
        # While no request comes or goes, they are those of the step before.
        key = slots.tobytes()
        if key != self._slots_sent[0]:
            self._slots_sent = (key, to_device(slots, self.device))
        return self._slots_sent[1]
