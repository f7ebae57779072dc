"""Log-probabilities of logits in host memory, read by the native kernel."""

from __future__ import annotations

import ctypes

import torch

from bough.kernels.library import load_library
from bough.kernels.structures import LogprobCall
from bough.kernels.thread_pool import ThreadPool


def read_logprobs(
    threads: ThreadPool, logits: torch.Tensor, targets: torch.Tensor, top_n: int, token_ids: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """What :func:`bough.layers.logprobs.gather_logprobs` returns, in the order of its fields.

    Args:
        threads: run the kernel.
        logits: float32 ``[k, V]``, contiguous.
        targets: int64 ``[k]``.
        top_n: at most ``V``.
        token_ids: int64 ``[k, c]``; may repeat one row.
    """
    rows, num_chosen = token_ids.shape
    if num_chosen and token_ids.stride(1) != 1:
        token_ids = token_ids.contiguous()
    targets = targets.contiguous()
    targets_read = torch.empty(rows)
    top_read = torch.empty(rows, top_n)
    top_ids = torch.empty(rows, top_n, dtype=torch.int64)
    top_keys = torch.empty(rows, top_n, dtype=torch.int64)
    chosen_read = torch.empty(rows, num_chosen)
    call = LogprobCall(
        logits=logits.data_ptr(),
        logits_stride=logits.stride(0),
        vocab_size=logits.shape[1],
        num_rows=rows,
        targets=targets.data_ptr(),
        top_n=top_n,
        chosen=token_ids.data_ptr(),
        chosen_stride=token_ids.stride(0),
        num_chosen=num_chosen,
        targets_read=targets_read.data_ptr(),
        top_read=top_read.data_ptr(),
        top_ids=top_ids.data_ptr(),
        top_keys=top_keys.data_ptr(),
        chosen_read=chosen_read.data_ptr(),
    )
    load_library().bough_logprobs(threads.handle, ctypes.byref(call))
    return targets_read, top_read, top_ids, chosen_read
