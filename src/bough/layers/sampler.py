"""From logits to tokens.

For each row, in this order: tokens that its mask does not allow, or that would complete a banned sequence, are taken
out; penalties, bans of ``min_new_tokens`` and logit bias change the logits; a row that is not finite is reported; a
greedy row takes its largest logit, the lowest token id if several are equal. The logits of any other row are divided by
its temperature and truncated: of the tokens in descending order of probability, ties by ascending id, those are kept
that

- are among the first ``top_k``,
- have less than ``top_p`` of the row's whole probability before them (the smallest set that reaches ``top_p``),
- are at least ``min_p`` times as likely as the first one,

each condition judged on the untruncated distribution. One of the kept tokens is drawn by inverting their cumulative
distribution, in ascending order of id, at the row's own random number (:mod:`bough.sampling.random_stream`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.sampling import NativeSampler
from bough.kernels.thread_pool import ThreadPool
from bough.kernels.triton.available import kernels_for
from bough.layers.logprobs import GatheredLogprobs, LogprobReader
from bough.sampling.device_state import DeviceDrawParams, Needs, SamplingRows, SamplingState
from bough.sampling.draw import draw_from_vocabulary, integer_weights
from bough.sampling.mask_rows import RowMasks
from bough.sampling.transfer import to_device
from bough.sampling.truncation import draw_selected, draw_sorted
from bough.sampling.truncation_cpu import draw_truncated
from bough.sampling.vocab_blocks import BLOCK, block_maxima, first_maximum, num_blocks
from bough.step_plan import IntArray, RowLogprobs

RowIndices = npt.NDArray[np.int64]

_MOST_SELECTED = 512
"""Up to this top-k, an accelerator selects that many tokens instead of sorting the row."""

_CPU_TILE_BYTES = 1 << 20
"""Rows become weights in tiles of about this size, which the caches of a core hold from one pass to the next."""

_DEVICE_TILE_BYTES = 16 << 20
"""The same elsewhere, where a tile has only to fill the device. Sorting a tile takes about 12 times its size."""


@dataclass(frozen=True, slots=True)
class SampleOutput:
    """The tokens of one step, on the device."""

    next_token_ids: torch.Tensor
    """int64 [S], always valid ids, also where ``finite`` is false"""
    finite: torch.Tensor
    """bool [S], false where a row's logits hold NaN or +inf, or allow no token at all"""
    logprobs: GatheredLogprobs | None = None
    """Of the chosen tokens, a row for each of ``requests``; ``None`` if no row asked"""
    requests: tuple[RowLogprobs, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """One step's rows and what was found out about all of them."""

    rows: SamplingRows
    logits: torch.Tensor
    """float32 [S, V]"""
    maxima: torch.Tensor
    """float32 [S, N], of every block"""
    largest: torch.Tensor
    """float32 [S, 1]"""
    next_token_ids: torch.Tensor
    """int64 [S]"""

    def take(self, table: torch.Tensor, at: RowIndices) -> torch.Tensor:
        """The rows ``at``, ascending, of a table ``[S, ...]``, without a copy where they are neighbours."""
        first, last = int(at[0]), int(at[-1])
        if last - first + 1 == len(at):
            return table[first : last + 1]
        return table.index_select(0, to_device(at, table.device))

    def put(self, at: RowIndices, tokens: torch.Tensor) -> None:
        """Set the tokens of the rows ``at``, int64 ``[n]``."""
        self.next_token_ids.index_copy_(0, to_device(at, tokens.device), tokens)

    def any_has(self, at: RowIndices, need: int) -> bool:
        """True if any of the rows ``at`` has a need."""
        return bool((self.rows.needs[at] & need).any())


class Sampler:
    """Chooses the next token of each sampling row.

    Holds one tile of about 1 MiB (16 MiB on an accelerator) for weights, or one row where that is larger. On a CPU
    with native kernels these choose; with the same seeds they choose the same tokens.
    """

    def __init__(self, state: SamplingState, threads: ThreadPool | None = None) -> None:
        """``threads`` run native kernels, if there are any; the state is in host memory then."""
        self._state = state
        self._threads = threads
        self._native = None if threads is None else NativeSampler(threads, state.vocab_size)
        self._vocab_size = state.vocab_size
        self._on_cpu = state.device.type == "cpu"
        row_width = num_blocks(state.vocab_size) * BLOCK
        tile_rows = (_CPU_TILE_BYTES if self._on_cpu else _DEVICE_TILE_BYTES) // (4 * row_width)
        self._tile_rows = max(1, min(tile_rows, state.max_running_requests))
        # Zeros behind the last token id stay zeros.
        self._tile = torch.zeros(self._tile_rows, row_width, device=state.device)

    @property
    def native(self) -> NativeSampler | None:
        """What chooses on a CPU with native kernels."""
        return self._native

    def compile_kernels(self) -> None:
        """Compile the Triton kernels of this device now, if it has any, so that no request waits for that."""
        kernels = kernels_for(self._tile, "sampling")
        if kernels is not None:
            kernels.compile_all(self._vocab_size, self._tile.device)

    def sample(
        self,
        logits: torch.Tensor,
        req_slots: IntArray,
        logprobs: tuple[RowLogprobs, ...] = (),
        masks: RowMasks | None = None,
    ) -> SampleOutput:
        """Choose one token per row and record it in the state (last token, number of outputs, penalty counts).

        Args:
            logits: float32 ``[S, V]``, contiguous; penalties, bans and biases are applied to it in place.
            req_slots: int32 ``[S]``, the request slot of each row, each at most once.
            logprobs: what rows want to know; ``row`` is an index into ``S``, ``first`` and ``targets`` are ignored.
                Values are of the distribution after penalties, bans, biases and masks, its logits divided by the
                temperature unless the row is greedy, before truncation.
            masks: which tokens some rows may have; a row that may have none counts as not finite.

        Raises:
            ValueError: the shapes do not fit.
        """
        if logits.shape != (len(req_slots), self._vocab_size):
            raise ValueError(f"logits are {tuple(logits.shape)}, expected {(len(req_slots), self._vocab_size)}")
        rows = self._state.rows(req_slots)
        self._state.ban_sequences(logits, rows)
        if self._native is not None:
            if masks is not None and logprobs:
                # Where they only keep tokens from being chosen, masked logits are not all overwritten.
                masks.apply(logits)
                masks = None
            next_token_ids, finite = self._choose_natively(self._native, logits, rows, masks)
        else:
            if masks is not None:
                # Before all else: nothing that follows makes a number of minus infinity.
                masks.apply(logits)
            next_token_ids, finite = self._choose(logits, rows)
        answers = self.logprob_reader(rows.slots, logprobs).read(logits, next_token_ids) if logprobs else None
        self._state.record(rows, next_token_ids)
        return SampleOutput(next_token_ids, finite, answers, logprobs)

    def _choose_natively(
        self, native: NativeSampler, logits: torch.Tensor, rows: SamplingRows, masks: RowMasks | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The tokens of all rows and which rows are finite. Applies penalties, bans and biases to ``logits``."""
        described, kept = self._state.describe(rows)
        if masks is not None:
            masks.describe(described)
        tokens, finite = native.sample(logits.numpy(), described)
        del kept  # the native code has read it
        return torch.from_numpy(tokens), torch.from_numpy(finite)

    def _choose(self, logits: torch.Tensor, rows: SamplingRows) -> tuple[torch.Tensor, torch.Tensor]:
        """The same with Triton kernels where the logits are on a device for them, else with torch and numpy."""
        self._state.apply_logits_bias(logits, rows)
        kernels = kernels_for(logits, "sampling")
        if kernels is not None:
            draws = None
            if rows.union & Needs.RANDOM:
                draws = to_device(self._state.draw_table(rows), logits.device)
            chosen: tuple[torch.Tensor, torch.Tensor] = kernels.choose_tokens(logits, draws)
            return chosen
        maxima = block_maxima(logits)
        largest, next_token_ids = first_maximum(logits, maxima)
        if rows.union & Needs.RANDOM:
            self._draw_random_rows(_Step(rows, logits, maxima, largest.unsqueeze(1), next_token_ids))
        return next_token_ids, largest.abs() < math.inf

    def _draw_random_rows(self, step: _Step) -> None:
        """Replace the tokens of all rows that are not greedy."""
        truncated = step.rows.having(Needs.TRUNCATION)
        plain = step.rows.having(Needs.RANDOM) & ~truncated
        if plain.any():
            self._draw_plain(step, np.flatnonzero(plain))
        if not truncated.any():
            return
        if self._on_cpu:
            self._draw_truncated_on_cpu(step, np.flatnonzero(truncated))
            return
        # To learn that a selection was too short, the host would have to wait for the device, so rows that are not
        # known beforehand to keep few tokens are sorted.
        few = self._state.top_k(step.rows.slots) <= _MOST_SELECTED
        for at in self._tiles(np.flatnonzero(truncated & few)):
            self._draw_truncated_on_device(step, at, sort=False)
        for at in self._tiles(np.flatnonzero(truncated & ~few)):
            self._draw_truncated_on_device(step, at, sort=True)

    def _tiles(self, at: RowIndices) -> Iterator[RowIndices]:
        for start in range(0, len(at), self._tile_rows):
            yield at[start : start + self._tile_rows]

    def _draw_plain(self, step: _Step, at: RowIndices) -> None:
        """Draw the rows ``at`` from their whole distributions."""
        device = step.logits.device
        params = self._state.draw_params(step.rows, at)
        inverse_temperature = to_device(params.inverse_temperature, device).unsqueeze(1)
        tokens = draw_from_vocabulary(
            step.logits,
            to_device(at, device),
            step.take(step.largest, at),
            inverse_temperature,
            self._block_sums(step, at, inverse_temperature),
            to_device(params.uniform, device).unsqueeze(1),
        )
        step.put(at, tokens.squeeze(1))

    def _draw_truncated_on_cpu(self, step: _Step, at: RowIndices) -> None:
        """Draw the rows ``at`` from what truncation keeps. Rows that are not finite keep the token they have."""
        at = at[np.isfinite(step.largest.numpy()[at, 0])]
        if not at.size:
            return
        params = self._state.draw_params(step.rows, at)
        totals = None
        if step.any_has(at, Needs.TOP_P):
            inverse_temperature = torch.from_numpy(params.inverse_temperature).unsqueeze(1)
            totals = integer_weights(self._block_sums(step, at, inverse_temperature)).sum(-1).numpy()
        tokens = draw_truncated(step.logits.numpy(), step.maxima.numpy(), at, params, totals)
        step.put(at, torch.from_numpy(tokens))

    def _draw_truncated_on_device(self, step: _Step, at: RowIndices, *, sort: bool) -> None:
        """Draw the rows ``at``, at most a tile, from what truncation keeps, without waiting for the device."""
        device = step.logits.device
        params = DeviceDrawParams.upload(self._state.draw_params(step.rows, at), device)
        logits = step.take(step.logits, at)
        totals = None
        if step.any_has(at, Needs.TOP_P):
            block_sums = self._block_sums(step, at, params.inverse_temperature)
            totals = integer_weights(block_sums).sum(-1, keepdim=True)
        if sort:
            tokens = draw_sorted(logits, params, totals)
        else:
            k = min(int(self._state.top_k(step.rows.slots[at]).max()), self._vocab_size)
            tokens = draw_selected(logits, step.take(step.maxima, at), k, params, totals)
        step.put(at, tokens.squeeze(1))

    def _block_sums(self, step: _Step, at: RowIndices, inverse_temperature: torch.Tensor) -> torch.Tensor:
        """Sums over blocks of ``exp((logit - largest) / temperature)`` for the rows ``at``: float32 ``[n, N]``."""
        block_sums = torch.empty(len(at), step.maxima.shape[1], device=step.logits.device)
        for start in range(0, len(at), self._tile_rows):
            end = min(start + self._tile_rows, len(at))
            part = at[start:end]
            tile = self._tile[: end - start]
            weights = tile[:, : self._vocab_size]
            torch.sub(step.take(step.logits, part), step.take(step.largest, part), out=weights)
            if step.any_has(part, Needs.TEMPERATURE):
                weights.mul_(inverse_temperature[start:end])
            weights.exp_()
            torch.sum(tile.view(end - start, -1, BLOCK), dim=-1, out=block_sums[start:end])
        return block_sums

    def logprob_reader(self, slots: RowIndices, requests: tuple[RowLogprobs, ...]) -> LogprobReader:
        """What reads logprobs in every step of the rows with request slots ``[S]``; of at least one request."""
        scales = self._state.inverse_temperatures(slots[[request.row for request in requests]])
        return LogprobReader(requests, scales, self._vocab_size, self._tile_rows, self._threads)
