"""Single logits that a request wants changed: banned token ids and biases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from bough.sampling.transfer import to_device

_NOTHING = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))


class LogitEdits:
    """A number to add to each of a few logits, per request slot; ``-inf`` bans the token.

    The places to change are put together once per composition of the batch and not once per step.
    """

    def __init__(self, max_running_requests: int, vocab_size: int, device: torch.device) -> None:
        self._vocab_size = vocab_size
        self._device = device
        # per slot: ids int64 and addends float32, of one length
        self._of_slot = [_NOTHING] * max_running_requests
        self._changes = 0
        self._cached_for: tuple[int, bytes, bytes] | None = None
        self._cached = (torch.zeros(0, dtype=torch.int64), torch.zeros(0))

    def set(self, slot: int, ids: Sequence[int], addends: Sequence[float]) -> bool:
        """Replace the edits of a slot, by nothing if both are empty; returns true if it has edits now. Raises
        ``ValueError`` if an id is outside the vocabulary, or occurs twice."""
        if not ids:
            self._of_slot[slot] = _NOTHING
            return False
        if min(ids) < 0 or max(ids) >= self._vocab_size or len(set(ids)) != len(ids):
            raise ValueError(f"token ids to edit must be distinct and in [0, {self._vocab_size})")
        self._of_slot[slot] = (np.array(ids, dtype=np.int64), np.array(addends, dtype=np.float32))
        self._changes += 1
        return True

    def of(self, slot: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The ids and addends of a slot, to be read only; not changed when the slot is set anew."""
        return self._of_slot[slot]

    def apply(self, logits: torch.Tensor, batch_rows: npt.NDArray[np.int64], slots: npt.NDArray[np.int64]) -> None:
        """Add the edits of ``slots`` ``[p]`` to ``batch_rows`` ``[p]`` of ``logits`` ``[S, V]``, in place."""
        key = (self._changes, batch_rows.tobytes(), slots.tobytes())
        if key != self._cached_for:
            edits = [self._of_slot[slot] for slot in slots]
            places = [ids + row * self._vocab_size for row, (ids, _) in zip(batch_rows.tolist(), edits, strict=True)]
            addends = [values for _, values in edits]
            self._cached = (
                to_device(np.concatenate(places), self._device),
                to_device(np.concatenate(addends), self._device),
            )
            self._cached_for = key
        at, addend = self._cached
        logits.view(-1).index_add_(0, at, addend)
