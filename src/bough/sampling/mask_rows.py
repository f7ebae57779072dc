"""Token masks on the device: logits of tokens that a row may not have become minus infinity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.triton.available import kernels_for
from bough.sampling.transfer import to_device

_ALLOWED = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little") != 0
_BOUNDS_OF_BYTES = np.where(_ALLOWED, np.float32(math.inf), np.float32(-math.inf))
"""float32 ``[256, 8]``: what bounds the logits of eight tokens, by the byte of a mask that says which are allowed."""

_TILE_LOGITS = 2**18
"""Logits that are looked at together: a megabyte."""


@dataclass(frozen=True, slots=True)
class RowMasks:
    """Tokens that some rows may have."""

    rows: npt.NDArray[np.int64]
    """``[G]``, ascending, of the logits"""
    bits: npt.NDArray[np.int32]
    """``[G, ceil(vocab_size / 32)]``, contiguous: token ``t`` is bit ``t % 32`` of word ``t // 32``"""

    def apply(self, logits: torch.Tensor) -> None:
        """Take all other tokens out of ``logits``, float32 ``[S, V]``, in place."""
        if logits.device.type == "cpu":
            self._apply_on_cpu(logits)
        else:
            self._apply_on_device(logits)

    def describe(self, described: npt.NDArray[Any]) -> None:
        """Point rows for the native sampler, :data:`~bough.kernels.sampling.SAMPLE_ROW` ``[S]``, at their masks."""
        stride = self.bits.shape[1] * self.bits.itemsize
        described["allowed"][self.rows] = self.bits.ctypes.data + np.arange(len(self.rows), dtype=np.uint64) * stride

    def _apply_on_cpu(self, logits: torch.Tensor) -> None:
        # In one thread: this is less work than waking others takes.
        values = logits.numpy()
        for part in self._tiles(values.shape[1]):
            rows = self.rows[part]
            at = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else rows
            # fmin takes NaN for missing: a token that is not allowed is not, whatever its logit.
            values[at] = np.fmin(values[at], self._bounds(part, values.shape[1]))

    def _tiles(self, vocab_size: int) -> Iterator[slice]:
        step = max(_TILE_LOGITS // vocab_size, 1)
        return (slice(start, start + step) for start in range(0, len(self.rows), step))

    def _bounds(self, part: slice, vocab_size: int) -> npt.NDArray[np.float32]:
        """Bounds of the logits of some rows, ``[n, V]``: infinity, and minus infinity for tokens not allowed."""
        of_bytes = self.bits[part].view(np.uint8)
        bounds: npt.NDArray[np.float32] = _BOUNDS_OF_BYTES.take(of_bytes.reshape(-1), axis=0)
        return bounds.reshape(len(of_bytes), -1)[:, :vocab_size]

    def _apply_on_device(self, logits: torch.Tensor) -> None:
        rows = to_device(self.rows.astype(np.int64), logits.device)
        bits = to_device(self.bits, logits.device)
        kernels = kernels_for(logits, "sampling")
        if kernels is not None:
            kernels.mask_tokens(logits, rows, bits)
            return
        places = torch.arange(32, dtype=torch.int32, device=logits.device)
        allowed = (bits.unsqueeze(-1) >> places).bitwise_and_(1).view(len(self.rows), -1)[:, : logits.shape[1]]
        logits.index_copy_(0, rows, logits.index_select(0, rows).masked_fill_(allowed == 0, -math.inf))
