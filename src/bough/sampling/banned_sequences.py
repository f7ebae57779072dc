"""Sequences of tokens that an output must not contain."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from bough.sampling.transfer import to_device

_NOTHING_YET = -1
_ANYTHING = -2


class BannedSequences:
    """Bans the last token of a sequence wherever an output ends with the tokens before it, per request slot.

    The tokens that outputs end with live on the device, since the host may plan a step before it knows them.
    """

    def __init__(self, max_running_requests: int, vocab_size: int, device: torch.device) -> None:
        self._vocab_size = vocab_size
        self._device = device
        self._of_slot: list[tuple[tuple[int, ...], ...]] = [()] * max_running_requests
        # [slots, W] on the device: the last W output tokens, the newest last, for as many as the longest sequence needs
        self._recent = torch.full((max_running_requests, 0), _NOTHING_YET, dtype=torch.int64, device=device)
        self._changes = 0
        self._cached_for: tuple[int, bytes, bytes] | None = None
        self._cached = self._places([], np.zeros(0, dtype=np.int64), [])

    def set(self, slot: int, sequences: tuple[tuple[int, ...], ...], output_ids: Sequence[int]) -> bool:
        """Replace the sequences of a slot, whose output so far is ``output_ids``.

        Returns:
            whether the slot has any now.

        Raises:
            ValueError: a sequence is empty, or has an id outside the vocabulary.
        """
        self._of_slot[slot] = sequences
        if not sequences:
            return False
        if not all(sequences) or not all(0 <= token < self._vocab_size for each in sequences for token in each):
            raise ValueError(f"banned sequences must be of token ids in [0, {self._vocab_size})")
        self._changes += 1
        missing = max(map(len, sequences)) - 1 - self._recent.shape[1]
        if missing > 0:
            self._recent = torch.nn.functional.pad(self._recent, (missing, 0), value=_NOTHING_YET)
        width = self._recent.shape[1]
        known = list(output_ids)[max(len(output_ids) - width, 0) :]
        recent = [_NOTHING_YET] * (width - len(known)) + [int(token) for token in known]
        self._recent[slot] = torch.tensor(recent, dtype=torch.int64, device=self._device)
        return True

    def apply(self, logits: torch.Tensor, batch_rows: npt.NDArray[np.int64], slots: npt.NDArray[np.int64]) -> None:
        """Ban what may not come next for ``slots`` ``[p]`` in ``batch_rows`` ``[p]`` of ``logits`` ``[S, V]``."""
        key = (self._changes, batch_rows.tobytes(), slots.tobytes())
        if key != self._cached_for:
            each = [self._of_slot[slot] for slot in slots]
            self._cached, self._cached_for = self._places(each, slots, batch_rows.tolist()), key
        of_slots, beginnings, at = self._cached
        ends_so = ((self._recent.index_select(0, of_slots) == beginnings) | (beginnings == _ANYTHING)).all(1)
        flat = logits.view(-1)
        flat.index_add_(0, at, torch.zeros(len(at), device=self._device).masked_fill_(ends_so, -math.inf))

    def record(self, slots: npt.NDArray[np.int64], tokens: torch.Tensor) -> None:
        """Note one new token each, int64 ``[p]``, for ``slots`` ``[p]``."""
        if self._recent.shape[1] == 0:
            return
        at = to_device(slots, self._device)
        recent = self._recent.index_select(0, at)
        self._recent.index_copy_(0, at, torch.cat((recent[:, 1:], tokens.unsqueeze(1)), dim=1))

    def _places(
        self, each: Sequence[tuple[tuple[int, ...], ...]], slots: npt.NDArray[np.int64], batch_rows: list[int]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """For each sequence its slot ``[M]``, what precedes its last token ``[M, W]``, and where that is ``[M]``."""
        width = self._recent.shape[1]
        counts = np.array([len(sequences) for sequences in each], dtype=np.int64)
        beginnings = [
            [_ANYTHING] * (width - len(sequence) + 1) + list(sequence[:-1]) for own in each for sequence in own
        ]
        rows_of = zip(batch_rows, each, strict=True)
        at = [row * self._vocab_size + sequence[-1] for row, own in rows_of for sequence in own]
        return (
            to_device(np.repeat(slots, counts), self._device),
            to_device(np.array(beginnings, dtype=np.int64).reshape(len(at), width), self._device),
            to_device(np.array(at, dtype=np.int64), self._device),
        )
