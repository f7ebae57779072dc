"""Token masks on the device: logits of tokens that a row may not have become minus infinity."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from bough.sampling.transfer import to_device


@dataclass(frozen=True, slots=True)
class RowMasks:
    """Which tokens some rows may have."""

    rows: npt.NDArray[np.int64]
    """``[G]``, ascending, of the logits"""
    bits: npt.NDArray[np.int32]
    """``[G, ceil(vocab_size / 32)]``: token ``t`` is bit ``t % 32`` of word ``t // 32``"""

    def apply(self, logits: torch.Tensor) -> None:
        """Take all other tokens out of ``logits``, float32 ``[S, V]``, in place."""
        if logits.device.type == "cpu":
            self._apply_on_cpu(logits)
        else:
            self._apply_on_device(logits)

    def _apply_on_cpu(self, logits: torch.Tensor) -> None:
        vocab_size = logits.shape[1]
        forbidden = np.unpackbits(np.invert(self.bits).view(np.uint8), axis=1, bitorder="little", count=vocab_size)
        mask = torch.from_numpy(forbidden).view(torch.bool)
        first, last = int(self.rows[0]), int(self.rows[-1])
        if last - first + 1 == len(self.rows):
            logits[first : last + 1].masked_fill_(mask, -math.inf)
            return
        for row, each in zip(self.rows.tolist(), mask, strict=True):
            logits[row].masked_fill_(each, -math.inf)

    def _apply_on_device(self, logits: torch.Tensor) -> None:
        rows = to_device(self.rows.astype(np.int64), logits.device)
        bits = to_device(self.bits, logits.device)
        places = torch.arange(32, dtype=torch.int32, device=logits.device)
        allowed = (bits.unsqueeze(-1) >> places).bitwise_and_(1).view(len(self.rows), -1)[:, : logits.shape[1]]
        logits.index_copy_(0, rows, logits.index_select(0, rows).masked_fill_(allowed == 0, -math.inf))
