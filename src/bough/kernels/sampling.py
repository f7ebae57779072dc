"""The native sampler: choosing tokens from logits in host memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from bough.kernels.library import load_library
from bough.kernels.structures import SampleCall, SampleRow
from bough.kernels.thread_pool import ThreadPool

SAMPLE_ROW = np.dtype(SampleRow)
"""How arrays hold what is asked of the rows of a step."""


class NativeSampler:
    """Memory and threads to sample with."""

    def __init__(self, threads: ThreadPool, vocab_size: int) -> None:
        self._library = load_library()
        self._threads = threads
        self._vocab_size = vocab_size
        size = self.scratch_bytes(vocab_size, threads.num_threads)
        # Never written, never taken: most rows look at few of their tokens.
        self._scratch = np.empty(size, dtype=np.uint8)

    @property
    def scratch(self) -> int:
        """Address of the memory that sampling takes."""
        return self._scratch.ctypes.data

    @staticmethod
    def scratch_bytes(vocab_size: int, num_threads: int) -> int:
        """Memory that sampling with so many threads takes, in bytes."""
        size: int = load_library().bough_sample_scratch_bytes(vocab_size, num_threads)
        return size

    def sample(
        self, logits: npt.NDArray[np.float32], rows: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Choose a token per row of contiguous ``logits`` ``[S, V]``; penalties and edits are applied in place.

        Returns:
            tokens ``[n]``, and which of ``rows``, :data:`SAMPLE_ROW` ``[n]``, were finite ``[n]``.
        """
        tokens = np.empty(len(rows), dtype=np.int64)
        finite = np.empty(len(rows), dtype=np.bool_)
        call = SampleCall(
            logits=logits.ctypes.data,
            logits_stride=logits.shape[1],
            vocab_size=self._vocab_size,
            rows=rows.ctypes.data,
            num_rows=len(rows),
            tokens=tokens.ctypes.data,
            finite=finite.ctypes.data,
            scratch=self._scratch.ctypes.data,
        )
        self._library.bough_sample(self._threads.handle, ctypes.byref(call))
        return tokens, finite
