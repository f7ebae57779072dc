"""Sequences of tokens that an output must not contain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch

from bough.sampling.bad_words import MAX_BANNED_SEQUENCES
from bough.sampling.sampling_params import MAX_BAD_WORD_TOKENS, MAX_TOKENS_PER_BAD_WORD
from bough.sampling.transfer import to_device

_NOTHING_YET = -1

_WIDTH = MAX_TOKENS_PER_BAD_WORD - 1
"""Tokens before the last one of the longest sequence: so much of each output is remembered."""

_BYTES_PER_TOKEN = 40
_BYTES_PER_SEQUENCE = 24
"""Device memory that a step takes for them, as int64 and what is made of it."""

_Int64Array = npt.NDArray[np.int64]


class _Own:
    """The sequences of a request, laid end to end.

    Attributes:
        last: ``[M]``, the last token of each.
        before: ``[T]``, the tokens before the last ones.
        places: ``[T]``, where these are in the last ``_WIDTH`` tokens of an output that ends so.
        of: ``[T]``, whose they are, from 0 to M - 1.
    """

    __slots__ = ("before", "last", "of", "places")

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        counts = np.array([len(each) - 1 for each in sequences], dtype=np.int64)
        num_before = int(counts.sum())
        self.last = np.array([each[-1] for each in sequences], dtype=np.int64)
        self.before = np.fromiter(chain.from_iterable(each[:-1] for each in sequences), np.int64, num_before)
        self.of = np.repeat(np.arange(len(counts)), counts)
        self.places = np.arange(num_before) - np.repeat(np.cumsum(counts), counts) + _WIDTH


class BannedSequences:
    """Bans the last token of a sequence wherever an output ends with the tokens before it, per request slot.

    The tokens that outputs end with live on the device, since the host may plan a step before it knows them.
    """

    def __init__(self, max_running_requests: int, vocab_size: int, device: torch.device) -> None:
        self._vocab_size = vocab_size
        self._device = device
        self._of_slot: list[_Own | None] = [None] * max_running_requests
        # on the device: the last output tokens, the newest last
        self._recent = torch.full((max_running_requests, _WIDTH), _NOTHING_YET, dtype=torch.int64, device=device)
        self._changes = 0
        self._cached_for: tuple[int, bytes, bytes] | None = None
        self._cached = self._places([], [], [])

    @staticmethod
    def max_bytes(max_running_requests: int) -> int:
        """Bound on the device memory that sequences take, if every running request has as many as it may."""
        sequences = MAX_BAD_WORD_TOKENS * _BYTES_PER_TOKEN + MAX_BANNED_SEQUENCES * _BYTES_PER_SEQUENCE
        return max_running_requests * (sequences + 8 * _WIDTH)

    def set(self, slot: int, sequences: tuple[tuple[int, ...], ...], output_ids: Sequence[int]) -> bool:
        """Replace the sequences of a slot, whose output so far is ``output_ids``; returns true if it has any now.
        Raises ``ValueError`` if a sequence is empty or too long, or has an id outside the vocabulary."""
        self._of_slot[slot] = None
        if not sequences:
            return False
        lengths = set(map(len, sequences))
        if min(lengths) < 1 or max(lengths) > MAX_TOKENS_PER_BAD_WORD:
            raise ValueError(f"banned sequences must be of 1 to {MAX_TOKENS_PER_BAD_WORD} tokens")
        if not all(0 <= token < self._vocab_size for each in sequences for token in each):
            raise ValueError(f"banned sequences must be of token ids in [0, {self._vocab_size})")
        self._of_slot[slot] = _Own(sequences)
        self._changes += 1
        known = list(output_ids)[max(len(output_ids) - _WIDTH, 0) :]
        recent = [_NOTHING_YET] * (_WIDTH - len(known)) + [int(token) for token in known]
        self._recent[slot] = to_device(np.array(recent, dtype=np.int64), self._device)
        return True

    def apply(self, logits: torch.Tensor, batch_rows: _Int64Array, slots: _Int64Array) -> None:
        """Ban what may not come next for ``slots`` ``[p]`` in ``batch_rows`` ``[p]`` of ``logits`` ``[S, V]``."""
        key = (self._changes, batch_rows.tobytes(), slots.tobytes())
        if key != self._cached_for:
            each = [self._of_slot[slot] for slot in slots.tolist()]
            self._cached, self._cached_for = self._places(each, slots.tolist(), batch_rows.tolist()), key
        places, before, of, at = self._cached
        differs = (self._recent.view(-1).index_select(0, places) != before).to(torch.float32)
        differences = torch.zeros(len(at), device=self._device).index_add_(0, of, differs)
        addends = torch.zeros_like(differences).masked_fill_(differences == 0, -math.inf)
        logits.view(-1).index_add_(0, at, addends)

    def record(self, slots: _Int64Array, tokens: torch.Tensor) -> None:
        """Note one new token each, int64 ``[p]``, for ``slots`` ``[p]``."""
        at = to_device(slots, self._device)
        recent = self._recent.index_select(0, at)
        self._recent.index_copy_(0, at, torch.cat((recent[:, 1:], tokens.unsqueeze(1)), dim=1))

    def _places(
        self, each: Sequence[_Own | None], slots: Sequence[int], batch_rows: Sequence[int]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """What is compared in a step, for all sequences of its rows.

        Returns:
            Of the tokens before the last ones where an output has them, ``[T]`` in all that is remembered, what they
            are ``[T]`` and whose ``[T]``; and where the last token of each sequence is in the logits, ``[M]``.
        """
        parts: list[list[_Int64Array]] = [[np.zeros(0, dtype=np.int64)] for _ in range(4)]
        num_sequences = 0
        for own, slot, row in zip(each, slots, batch_rows, strict=True):
            if own is None:
                continue
            arrays = (slot * _WIDTH + own.places, own.before, num_sequences + own.of, row * self._vocab_size + own.last)
            for part, array in zip(parts, arrays, strict=True):
                part.append(array)
            num_sequences += len(own.last)
        places, before, of, at = (to_device(np.concatenate(part), self._device) for part in parts)
        return places, before, of, at
