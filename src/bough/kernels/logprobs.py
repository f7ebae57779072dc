"""Log-probabilities of logits in host memory, read by the native kernel."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.library import load_library
from bough.kernels.structures import LogprobCall, address_of
from bough.kernels.thread_pool import ThreadPool


class LogprobReads:
    """What the kernel is asked about ``k`` rows, and room for what it reads in so many steps.

    ``call`` is that of the first step, and names memory of this object; its caller fills in logits and targets.
    """

    def __init__(
        self,
        top_n: int,
        token_ids: npt.NDArray[np.int64],
        *,
        num_steps: int = 1,
        logits_rows: npt.NDArray[np.int64] | None = None,
        scales: npt.NDArray[np.float32] | None = None,
    ) -> None:
        """See :func:`bough.layers.logprobs.gather_logprobs`.

        Args:
            top_n: at most the size of the vocabulary.
            token_ids: ``[k, c]``; may have stride 0, the same ids for all rows.
            num_steps: at least 1.
            logits_rows: ``[k]``, which rows of the logits; ``None``: all.
            scales: ``[k]``, what each row's logits are multiplied by, above 0; ``None``: nothing.
        """
        rows, num_chosen = token_ids.shape
        if num_chosen and token_ids.strides[1] != token_ids.itemsize:
            token_ids = np.ascontiguousarray(token_ids)
        self._targets = np.empty((num_steps, rows), dtype=np.float32)
        self._top_values = np.empty((num_steps, rows, top_n), dtype=np.float32)
        self._top_ids = np.empty((num_steps, rows, top_n), dtype=np.int64)
        self._chosen = np.empty((num_steps, rows, num_chosen), dtype=np.float32)
        top_keys = np.empty((rows, top_n), dtype=np.uint64)
        self._kept = (token_ids, logits_rows, scales, top_keys)
        self.call = LogprobCall(
            num_rows=rows,
            logits_rows=None if logits_rows is None else address_of(logits_rows),
            scales=None if scales is None else address_of(scales),
            top_n=top_n,
            chosen=address_of(token_ids),
            chosen_stride=token_ids.strides[0] // token_ids.itemsize,
            num_chosen=num_chosen,
            targets_read=address_of(self._targets),
            top_read=address_of(self._top_values),
            top_ids=address_of(self._top_ids),
            top_keys=address_of(top_keys),
            chosen_read=address_of(self._chosen),
        )

    def of_step(self, step: int) -> list[npt.NDArray[Any]]:
        """What was read: the fields of :class:`bough.layers.logprobs.GatheredLogprobs`, in their order."""
        return [self._targets[step], self._top_values[step], self._top_ids[step], self._chosen[step]]


def read_logprobs(threads: ThreadPool, logits: torch.Tensor, targets: torch.Tensor, reads: LogprobReads) -> None:
    """Ask about ``targets``, int64 ``[k]``, in contiguous float32 ``logits`` ``[.., V]``: the first of ``reads``."""
    targets = targets.contiguous()
    call = reads.call
    call.logits, call.logits_stride, call.vocab_size = logits.data_ptr(), logits.stride(0), logits.shape[1]
    call.targets = targets.data_ptr()
    load_library().bough_logprobs(threads.handle, ctypes.byref(call))
