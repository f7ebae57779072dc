"""Frequency, presence and repetition penalties: how often each request has produced each token, and what that costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.triton.available import kernels_for
from bough.sampling.sampling_params import SamplingParams
from bough.sampling.transfer import to_device

SlotArray = npt.NDArray[np.int64]

_NO_ROW = -1
_FIRST_ROWS = 4
_FIRST_COLUMNS = 256
_DENSE_FROM = 4
"""Once a request's output is longer than ``vocab_size / _DENSE_FROM`` tokens, the whole vocabulary is visited instead
of the output: reading it in order is then about as cheap, and the history need not grow further."""


class PenaltyTable:
    """Token counts of the requests that have penalties, and of no others.

    A count table ``[rows, vocab_size]`` says how often a token was produced; a history ``[rows, columns]`` lists the
    tokens, so that a step touches only logits that a penalty can change, and not the vocabulary. A token that occurs
    twice in the history is computed twice with the same result, so the order of writing does not matter.

    Memory grows by doubling with the number of rows in use and with the longest output, up to :meth:`max_bytes`.
    """

    def __init__(self, max_running_requests: int, vocab_size: int, device: torch.device) -> None:
        self._vocab_size = vocab_size
        self._device = device
        self._max_rows = max_running_requests
        self._max_columns = _max_columns(vocab_size)
        self._row_of = np.full(max_running_requests, _NO_ROW, dtype=np.int64)
        self._free_rows: list[int] = []
        # [3, slots]: frequency, presence, repetition
        self._strengths = np.zeros((3, max_running_requests), dtype=np.float32)
        self._counts = torch.zeros((0, vocab_size), dtype=torch.int32, device=device)
        self._history = torch.zeros((0, 0), dtype=torch.int32, device=device)

    @staticmethod
    def max_bytes(max_running_requests: int, vocab_size: int) -> int:
        """Device memory if every request has penalties and a long output, twice the full tables: while a table grows,
        the smaller one lives beside it for a moment."""
        return 2 * max_running_requests * 4 * (vocab_size + _max_columns(vocab_size))

    @property
    def allocated_bytes(self) -> int:
        """Device memory in use now."""
        return self._counts.numel() * 4 + self._history.numel() * 4

    def set(self, slot: int, params: SamplingParams, output_ids: npt.NDArray[np.int32]) -> None:
        """Start counting for a slot that takes a request with penalties; ``output_ids`` are counted already."""
        row = int(self._row_of[slot])
        if row == _NO_ROW:
            row = self._take_row()
            self._row_of[slot] = row
        self._strengths[:, slot] = (params.frequency_penalty, params.presence_penalty, params.repetition_penalty)
        counts = self._counts[row].zero_()
        length = len(output_ids)
        if length == 0:
            return
        tokens = to_device(output_ids.astype(np.int64), self._device)
        counts.index_add_(0, tokens, torch.ones(length, dtype=torch.int32, device=self._device))
        kept = min(length, self._max_columns)
        self._grow_columns(kept)
        self._history[row, :kept] = tokens[:kept]

    def drop(self, slot: int) -> None:
        """Stop counting for a slot that takes a request without penalties."""
        row = int(self._row_of[slot])
        if row != _NO_ROW:
            self._row_of[slot] = _NO_ROW
            self._free_rows.append(row)

    def apply(
        self, logits: torch.Tensor, batch_rows: SlotArray, slots: SlotArray, num_outputs: npt.NDArray[np.int64]
    ) -> None:
        """Penalise logits in place.

        For a token that was produced ``c > 0`` times, first ``logit -= frequency * c + presence``, then a positive
        logit is divided by ``repetition`` and a negative one multiplied.

        Args:
            logits: float32 ``[S, V]``, contiguous.
            batch_rows: ``[p]``, rows of ``logits``.
            slots: ``[p]``, their request slots, each :meth:`set` before.
            num_outputs: ``[p]``, how many tokens each has produced.
        """
        kernels = kernels_for(logits, "sampling")
        if kernels is not None:
            arrays = (batch_rows, self._row_of[slots], np.ascontiguousarray(self._strengths[:, slots]))
            kernels.penalise(logits, *(to_device(x, self._device) for x in arrays), self._counts)
            return
        is_long = num_outputs > self._max_columns
        for group in (np.flatnonzero(~is_long & (num_outputs > 0)), np.flatnonzero(is_long)):
            if group.size == 0:
                continue
            rows = to_device(self._row_of[slots[group]], self._device).unsqueeze(1)  # [p, 1]
            if is_long[group[0]]:
                tokens = torch.arange(self._vocab_size, device=self._device).unsqueeze(0)  # [1, V]
            else:
                # Columns behind a row's own output hold leftovers, whose counts are zero or which are its own tokens:
                # both are right as they are.
                tokens = self._history[:, : int(num_outputs[group].max())].index_select(0, rows.squeeze(1))
            frequency, presence, repetition = to_device(self._strengths[:, slots[group]], self._device).unsqueeze(-1)
            at = tokens + to_device(batch_rows[group], self._device).unsqueeze(1) * self._vocab_size
            counts = self._counts.view(-1).take(tokens + rows * self._vocab_size)
            produced = counts > 0
            values = logits.view(-1).take(at)
            values -= frequency * counts + presence * produced
            scaled = torch.where(values > 0, values / repetition, values * repetition)
            logits.view(-1).index_put_((at,), torch.where(produced, scaled, values))

    def describe(self, target: npt.NDArray[Any], slots: SlotArray, num_outputs: npt.NDArray[np.int64]) -> None:
        """Tell the native sampler what :meth:`apply` would do; for tables in host memory.

        Args:
            target: :data:`~bough.kernels.sampling.SAMPLE_ROW` ``[p]``; the addresses written into it are valid until
                the table changes.
            slots: ``[p]``, their request slots, each :meth:`set` before.
            num_outputs: ``[p]``, how many tokens each has produced.
        """
        rows = self._row_of[slots].astype(np.uint64)
        for name, values in zip(
            ("frequency_penalty", "presence_penalty", "repetition_penalty"), self._strengths[:, slots], strict=True
        ):
            target[name] = values
        target["num_history"] = self.history_lengths(num_outputs)
        target["counts"] = np.uint64(self._counts.data_ptr()) + rows * np.uint64(4 * self._counts.stride(0))
        target["history"] = np.uint64(self._history.data_ptr()) + rows * np.uint64(4 * self._history.stride(0))

    def reserve(self, num_outputs: int) -> int:
        """Make room for histories of so many tokens, as far as they are kept.

        Returns:
            tokens that each has room for.
        """
        self._grow_columns(min(num_outputs, self._max_columns))
        return self._history.shape[1]

    def history_lengths(self, num_outputs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """What the native sampler is told of the histories of requests with so many tokens, of any shape."""
        return np.where(num_outputs > self._max_columns, -1, num_outputs)

    def record(self, batch_rows: SlotArray, slots: SlotArray, num_outputs: SlotArray, tokens: torch.Tensor) -> None:
        """Count one new token per slot.

        Args:
            batch_rows: ``[p]``, where in ``tokens`` the slots' tokens are.
            slots: ``[p]``.
            num_outputs: ``[p]``, how many tokens each had produced before this one.
            tokens: int64 ``[S]``.
        """
        self._grow_columns(min(int(num_outputs.max()) + 1, self._max_columns))
        table_rows = self._row_of[slots]
        rows = to_device(table_rows, self._device)
        new = tokens.index_select(0, to_device(batch_rows, self._device))
        ones = torch.ones(1, dtype=torch.int32, device=self._device).expand(len(slots))
        self._counts.index_put_((rows, new), ones, accumulate=True)
        columns = np.minimum(num_outputs, self._history.shape[1] - 1)
        self._history.index_put_((rows, to_device(columns, self._device)), new.to(torch.int32))

    def _take_row(self) -> int:
        if not self._free_rows:
            in_use = self._counts.shape[0]
            rows = min(max(_FIRST_ROWS, 2 * in_use), self._max_rows)
            self._counts = _enlarged(self._counts, (rows, self._vocab_size))
            self._history = _enlarged(self._history, (rows, self._history.shape[1]))
            self._free_rows = list(range(rows - 1, in_use - 1, -1))
        return self._free_rows.pop()

    def _grow_columns(self, wanted: int) -> None:
        columns = self._history.shape[1]
        if wanted > columns:
            columns = min(max(_FIRST_COLUMNS, 2 * columns, wanted), self._max_columns)
            self._history = _enlarged(self._history, (self._history.shape[0], columns))


def _max_columns(vocab_size: int) -> int:
    return max(1, vocab_size // _DENSE_FROM)


def _enlarged(table: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    larger = table.new_zeros(shape)
    larger[: table.shape[0], : table.shape[1]] = table
    return larger
