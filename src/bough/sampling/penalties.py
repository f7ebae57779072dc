"""Apply frequency, presence and repetition penalties, using counts of the tokens that each request has generated.

A repetition penalty with a scope (``repetition_window``) also counts tokens of the prompt, and is applied before the
other two, as in transformers, vLLM and llama.cpp. Without a scope it counts output only and comes last, as in SGLang.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.structures import REPEATED
from bough.kernels.triton.available import kernels_for
from bough.sampling.sampling_params import ALL_OF_CONTEXT, MAX_REPETITION_WINDOW, SamplingParams
from bough.sampling.transfer import to_device

SlotArray = npt.NDArray[np.int64]

_NO_ROW = -1
_FIRST_ROWS = 4
_FIRST_COLUMNS = 256
_DENSE_FROM = 4
"""Once a request's output is longer than ``vocab_size / _DENSE_FROM`` tokens, the whole vocabulary is visited instead
of the output: reading it in order is then about as cheap, and the history need not grow further."""


@dataclass(slots=True)
class _Window:
    """Last tokens of one request, which leave the scope of its repetition penalty one by one."""

    tokens: torch.Tensor
    """int32 ``[window]``; the token at position ``p`` of prompt and output is at ``p % window``."""
    prompt_len: int


class PenaltyTable:
    """Token counts of the requests that have penalties.

    A count table ``[rows, vocab_size]`` holds how often each token was generated. For requests with a scope it also
    holds, in units of :data:`~bough.kernels.structures.REPEATED`, how often the token is in the window, or 1 if it
    never leaves the scope. A history ``[rows, columns]`` lists the tokens, prompt first, so that a step touches only
    logits that a penalty can change instead of the whole vocabulary. A token that occurs twice in the history is
    computed twice with the same result, so the order of writes does not matter.

    Memory grows by doubling with the number of rows in use and with the longest output, up to :meth:`max_bytes`.
    """

    def __init__(self, max_running_requests: int, vocab_size: int, device: torch.device) -> None:
        self._vocab_size = vocab_size
        self._device = device
        self._max_rows = max_running_requests
        self._max_columns = _max_columns(vocab_size)
        self._row_of = np.full(max_running_requests, _NO_ROW, dtype=np.int64)
        self._free_rows: list[int] = []
        # [4, slots]: frequency, presence, repetition, and 1 if the repetition penalty has a scope
        self._strengths = np.zeros((4, max_running_requests), dtype=np.float32)
        # Prompt tokens before the output in each slot's history.
        self._listed = np.zeros(max_running_requests, dtype=np.int64)
        # [2, slots]: increment for the count of a new token, and the bit that the token then gets
        self._steps = np.zeros((2, max_running_requests), dtype=np.int32)
        self._windows: dict[int, _Window] = {}
        self._counts = torch.zeros((0, vocab_size), dtype=torch.int32, device=device)
        self._history = torch.zeros((0, 0), dtype=torch.int32, device=device)

    @staticmethod
    def max_bytes(max_running_requests: int, vocab_size: int) -> int:
        """Device memory if every request has penalties and a long output, twice the full tables: while a table grows,
        the smaller one lives beside it for a moment."""
        windows = max_running_requests * 4 * MAX_REPETITION_WINDOW
        return 2 * max_running_requests * 4 * (vocab_size + _max_columns(vocab_size)) + windows

    @property
    def allocated_bytes(self) -> int:
        """Device memory in use now."""
        windows = sum(window.tokens.numel() for window in self._windows.values())
        return 4 * (self._counts.numel() + self._history.numel() + windows)

    def set(
        self,
        slot: int,
        params: SamplingParams,
        output_ids: npt.NDArray[np.int32],
        prompt_ids: npt.NDArray[np.int32] | None = None,
    ) -> None:
        """Start counting for a slot that takes a request with penalties, from its ``output_ids`` so far and what it
        needs of the prompt."""
        row = int(self._row_of[slot])
        if row == _NO_ROW:
            row = self._take_row()
            self._row_of[slot] = row
        scoped, moves = params.penalises_prompt, params.has_moving_window
        repetition = params.repetition_penalty if params.penalises_repetition else 1.0
        self._strengths[:, slot] = (params.frequency_penalty, params.presence_penalty, repetition, scoped)
        self._steps[:, slot] = (1 + REPEATED * moves, REPEATED * (scoped and not moves))
        self._windows.pop(slot, None)
        self._listed[slot] = 0
        self._counts[row].zero_()
        if len(output_ids):
            self._add(row, output_ids, np.ones(len(output_ids), dtype=np.int32))
        history = output_ids
        if scoped:
            assert prompt_ids is not None, "the scheduler sends it where penalties count it"
            listed = self._set_scope(slot, row, params, prompt_ids, output_ids)
            self._listed[slot] = len(listed)
            history = np.concatenate((listed, output_ids))
        kept = min(len(history), self._max_columns)
        if kept:
            self._grow_columns(kept)
            self._history[row, :kept] = to_device(history[:kept].astype(np.int32), self._device)

    def _set_scope(
        self,
        slot: int,
        row: int,
        params: SamplingParams,
        prompt_ids: npt.NDArray[np.int32],
        output_ids: npt.NDArray[np.int32],
    ) -> npt.NDArray[np.int32]:
        """Mark the tokens in the scope of a repetition penalty, each prompt token once."""
        window = params.repetition_window
        assert window is not None
        tokens: npt.NDArray[Any]
        times: npt.NDArray[Any]
        if window == ALL_OF_CONTEXT:
            marked = np.zeros(self._vocab_size, dtype=np.bool_)
            marked[prompt_ids] = True
            listed = np.flatnonzero(marked)
            marked[output_ids] = True
            tokens = np.flatnonzero(marked)
            times = np.ones(len(tokens), dtype=np.int32)
        else:
            length = len(prompt_ids) + len(output_ids)
            recent = np.concatenate((prompt_ids[-window:], output_ids))[-window:]
            listed = np.unique(prompt_ids[-window:])
            tokens, times = np.unique(recent, return_counts=True)
            last = np.zeros(window, dtype=np.int32)
            last[np.arange(length - len(recent), length) % window] = recent
            self._windows[slot] = _Window(to_device(last, self._device), len(prompt_ids))
        self._add(row, tokens, REPEATED * times)
        return listed.astype(np.int32)

    def _add(self, row: int, tokens: npt.NDArray[Any], counts: npt.NDArray[Any]) -> None:
        at, added = to_device(tokens.astype(np.int64), self._device), to_device(counts.astype(np.int32), self._device)
        self._counts[row].index_add_(0, at, added)

    def drop(self, slot: int) -> None:
        """Stop counting for a slot that takes a request without penalties."""
        row = int(self._row_of[slot])
        if row != _NO_ROW:
            self._row_of[slot] = _NO_ROW
            self._free_rows.append(row)
            self._windows.pop(slot, None)

    def apply(
        self, logits: torch.Tensor, batch_rows: SlotArray, slots: SlotArray, num_outputs: npt.NDArray[np.int64]
    ) -> None:
        """Penalise ``logits``, float32 ``[S, V]``, contiguous, in place: at ``batch_rows`` ``[p]``, for the request
        ``slots`` ``[p]``.

        A token that was generated ``c > 0`` times gets ``logit -= frequency * c + presence``. The positive logit of a
        repeated token is divided by ``repetition``, a negative one multiplied by it: before that if the penalty has a
        scope, otherwise after it. :meth:`set` was called for each slot, which has generated ``num_outputs`` ``[p]``
        tokens.
        """
        kernels = kernels_for(logits, "sampling")
        if kernels is not None:
            arrays = (batch_rows, self._row_of[slots], np.ascontiguousarray(self._strengths[:, slots]))
            kernels.penalise(logits, *(to_device(x, self._device) for x in arrays), self._counts)
            return
        lengths = num_outputs + self._listed[slots]
        is_long = lengths > self._max_columns
        for group in (np.flatnonzero(~is_long & (lengths > 0)), np.flatnonzero(is_long)):
            if group.size == 0:
                continue
            rows = to_device(self._row_of[slots[group]], self._device).unsqueeze(1)  # [p, 1]
            if is_long[group[0]]:
                tokens = torch.arange(self._vocab_size, device=self._device).unsqueeze(0)  # [1, V]
            else:
                # Columns behind a row's own output hold leftovers, whose counts are zero or which are its own tokens:
                # both are right as they are.
                tokens = self._history[:, : int(lengths[group].max())].index_select(0, rows.squeeze(1))
            strengths = to_device(self._strengths[:, slots[group]], self._device).unsqueeze(-1)
            at = tokens + to_device(batch_rows[group], self._device).unsqueeze(1) * self._vocab_size
            counts = self._counts.view(-1).take(tokens + rows * self._vocab_size)
            values = _penalised(logits.view(-1).take(at), counts, *strengths)
            logits.view(-1).index_put_((at,), values)

    def describe(self, target: npt.NDArray[Any], slots: SlotArray, num_outputs: npt.NDArray[np.int64]) -> None:
        """Tell the native sampler (:data:`~bough.kernels.sampling.SAMPLE_ROW` ``[p]``) what :meth:`apply` would do; for
        tables in host memory.

        The addresses written into ``target`` are valid until the table changes.
        """
        rows = self._row_of[slots].astype(np.uint64)
        names = ("frequency_penalty", "presence_penalty", "repetition_penalty", "scoped")
        for name, values in zip(names, self._strengths[:, slots], strict=True):
            target[name] = values
        target["num_history"] = self.history_lengths(slots, num_outputs)
        target["counts"] = np.uint64(self._counts.data_ptr()) + rows * np.uint64(4 * self._counts.stride(0))
        target["history"] = np.uint64(self._history.data_ptr()) + rows * np.uint64(4 * self._history.stride(0))

    def reserve(self, slots: SlotArray, num_outputs: npt.NDArray[np.int64]) -> int:
        """Make room for histories of ``slots`` ``[p]`` with this many tokens each, if histories are used; returns how
        many fit into each."""
        self._grow_columns(min(int((num_outputs + self._listed[slots]).max()), self._max_columns))
        return self._history.shape[1]

    def history_lengths(self, slots: SlotArray, num_outputs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return history lengths for the native sampler, for ``slots`` ``[p]`` and these token counts, ``[..., p]``."""
        lengths = num_outputs + self._listed[slots]
        return np.where(lengths > self._max_columns, -1, lengths)

    def record(self, batch_rows: SlotArray, slots: SlotArray, num_outputs: SlotArray, tokens: torch.Tensor) -> None:
        """Count one new token, of int64 ``tokens`` ``[S]`` at ``batch_rows`` ``[p]``, per slot ``[p]``, after
        ``num_outputs`` ``[p]`` tokens of each."""
        lengths = num_outputs + self._listed[slots]
        self._grow_columns(min(int(lengths.max()) + 1, self._max_columns))
        table_rows = self._row_of[slots]
        rows = to_device(table_rows, self._device)
        new = tokens.index_select(0, to_device(batch_rows, self._device))
        if self._strengths[3, slots].any():
            steps, bits = to_device(self._steps[:, slots], self._device)
            self._counts.index_put_((rows, new), (self._counts[rows, new] + steps) | bits)
            for i in np.flatnonzero([slot in self._windows for slot in slots.tolist()]).tolist():
                self._move(self._windows[int(slots[i])], int(table_rows[i]), int(num_outputs[i]), new[i])
        else:
            ones = torch.ones(1, dtype=torch.int32, device=self._device).expand(len(slots))
            self._counts.index_put_((rows, new), ones, accumulate=True)
        columns = np.minimum(lengths, self._history.shape[1] - 1)
        self._history.index_put_((rows, to_device(columns, self._device)), new.to(torch.int32))

    def _move(self, window: _Window, row: int, num_outputs: int, new: torch.Tensor) -> None:
        """Replace the token that leaves the window by a new one, int64 ``[]``."""
        position = window.prompt_len + num_outputs
        place = window.tokens[position % len(window.tokens)]
        if position >= len(window.tokens):
            self._counts[row].index_add_(0, place.view(1), place.new_full((1,), -REPEATED))
        place.copy_(new)

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


def _penalised(
    values: torch.Tensor,
    counts: torch.Tensor,
    frequency: torch.Tensor,
    presence: torch.Tensor,
    repetition: torch.Tensor,
    scoped: torch.Tensor,
) -> torch.Tensor:
    """Return logits ``[p, n]`` after the penalties with strengths ``[p, 1]``; see :meth:`PenaltyTable.apply`."""
    in_scope = scoped > 0
    produced = torch.where(in_scope, counts % REPEATED, counts)
    repeated = torch.where(in_scope, counts >= REPEATED, counts > 0)
    cost = frequency * produced + presence * (produced > 0)
    values = torch.where(in_scope, values, values - cost)
    scaled = torch.where(values > 0, values / repetition, values * repetition)
    values = torch.where(repeated, scaled, values)
    return torch.where(in_scope, values - cost, values)


def _max_columns(vocab_size: int) -> int:
    return max(1, vocab_size // _DENSE_FROM)


def _enlarged(table: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    larger = table.new_zeros(shape)
    larger[: table.shape[0], : table.shape[1]] = table
    return larger
