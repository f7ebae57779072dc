"""Reading log-probabilities out of logits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.logprobs import LogprobReads, read_logprobs
from bough.kernels.thread_pool import ThreadPool
from bough.kernels.triton.available import kernels_for
from bough.sampling.transfer import to_device
from bough.sampling.vocab_blocks import BLOCK, block_maxima, top_tokens
from bough.step_plan import RowLogprobs


class GatheredLogprobs(NamedTuple):
    """Logprobs read from ``k`` rows of logits: natural logarithms, float32, on the device of the logits.

    Where rows have requests of their own, ``c`` and ``top_n`` are the largest of any; ignore what a row has beyond its
    own.
    """

    targets: torch.Tensor
    """[k]"""
    top_values: torch.Tensor
    """[k, top_n], descending, ties by ascending id"""
    top_ids: torch.Tensor
    """int64 [k, top_n]"""
    chosen: torch.Tensor
    """[k, c]"""


def gather_logprobs(
    logits: torch.Tensor,
    targets: torch.Tensor,
    top_n: int = 0,
    token_ids: tuple[int, ...] | torch.Tensor = (),
    threads: ThreadPool | None = None,
) -> GatheredLogprobs:
    """Log-softmax of each row, read at the row's target, at its ``top_n`` likeliest tokens and at ``token_ids``.

    Nothing of the size of the vocabulary is kept but, where torch computes, one temporary of the size of ``logits``;
    the caller bounds ``k``. A row's result does not depend on the other rows.

    Args:
        logits: float32 ``[k, V]``, contiguous; not modified.
        targets: int64 ``[k]``.
        top_n: how many of the likeliest tokens to return per row; cut to ``V``.
        token_ids: the ids ``[c]`` to read in every row, or int64 ``[k, c]`` with each row's own.
    """
    if isinstance(token_ids, tuple):
        token_ids = to_device(np.array(token_ids, dtype=np.int64), logits.device).expand(len(logits), -1)
    top_n = min(top_n, logits.shape[1])
    if threads is not None:
        reads = LogprobReads(top_n, token_ids.numpy())
        read_logprobs(threads, logits, targets, reads)
        return GatheredLogprobs(*map(torch.from_numpy, reads.of_step(0)))
    maxima = block_maxima(logits)
    largest = maxima.amax(-1, keepdim=True)
    log_total = _log_total_weights(logits, largest)
    if top_n:
        top_values, top_ids = top_tokens(logits, maxima, top_n)
    else:
        top_values, top_ids = logits.new_empty(len(logits), 0), targets.new_empty(len(logits), 0)
    # The largest logit goes first, because subtracting close numbers is exact.
    return GatheredLogprobs(
        targets=(logits.gather(1, targets.unsqueeze(1)) - largest - log_total).squeeze(1),
        top_values=top_values - largest - log_total,
        top_ids=top_ids,
        chosen=logits.gather(1, token_ids) - largest - log_total,
    )


def _log_total_weights(logits: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """``log(sum(exp(row - largest)))`` of each row: float32 ``[k, 1]``, summed in an order that only ``V`` decides."""
    kernels = kernels_for(logits, "sampling")
    if kernels is not None:
        totals: torch.Tensor = kernels.log_total_weights(logits, largest)
        return totals
    rows, vocab_size = logits.shape
    weights = torch.sub(logits, largest).exp_()
    whole = vocab_size // BLOCK
    sums = weights[:, : whole * BLOCK].view(rows, whole, BLOCK).sum(-1)
    total = sums.sum(-1, keepdim=True, dtype=torch.float64)
    total += weights[:, whole * BLOCK :].sum(-1, keepdim=True)
    return total.log_().to(torch.float32)


class LogprobReader:
    """Reads what rows want to know of the tokens that were chosen for them."""

    def __init__(
        self,
        requests: tuple[RowLogprobs, ...],
        scales: npt.NDArray[np.float32],
        vocab_size: int,
        tile_rows: int,
        threads: ThreadPool | None,
    ) -> None:
        """Read logprobs of the same rows in every step.

        Args:
            requests: what rows want to know; ``row`` is an index into the ``S`` rows of the logits. At least one.
            scales: ``[k]``, what the logits of each are multiplied by, above 0.
            tile_rows: where torch computes, so many rows of logits are copied at a time.
        """
        self._scales = scales
        self._top_n = min(max(request.top_n for request in requests), vocab_size)
        self._ids = np.zeros((len(requests), max(len(request.token_ids) for request in requests)), dtype=np.int64)
        for i, request in enumerate(requests):
            self._ids[i, : len(request.token_ids)] = request.token_ids
        self._at = np.array([request.row for request in requests], dtype=np.int64)
        self._tile_rows = tile_rows
        self._threads = threads

    def native_reads(self, num_steps: int) -> LogprobReads:
        """Questions for the native kernel in so many steps, and room for its answers."""
        return LogprobReads(self._top_n, self._ids, num_steps=num_steps, logits_rows=self._at, scales=self._scales)

    def read(self, logits: torch.Tensor, tokens: torch.Tensor) -> GatheredLogprobs:
        """Logprobs of a step, a row for each request, of the tokens chosen, int64 ``[S]``.

        ``logits`` float32 ``[S, V]`` have penalties, bans, biases and masks applied, and are not modified.
        """
        device = logits.device
        if self._threads is not None:
            reads = self.native_reads(1)
            read_logprobs(self._threads, logits, tokens.index_select(0, to_device(self._at, device)), reads)
            return GatheredLogprobs(*map(torch.from_numpy, reads.of_step(0)))
        parts = []
        for start in range(0, len(self._at), self._tile_rows):
            part = slice(start, start + self._tile_rows)
            places = to_device(self._at[part], device)
            wanted = logits.index_select(0, places).mul_(to_device(self._scales[part], device).unsqueeze(1))
            targets = tokens.index_select(0, places)
            parts.append(gather_logprobs(wanted, targets, self._top_n, to_device(self._ids[part], device)))
        return GatheredLogprobs(*map(torch.cat, zip(*parts, strict=True)))
