"""From log-probabilities on the device to the records of a step's result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.thread_pool import ThreadPool
from bough.layers.logprobs import GatheredLogprobs, gather_logprobs
from bough.model_executor.readback import HostArrays
from bough.sampling.transfer import to_device
from bough.step_plan import IntArray, RowLogprobResult, RowLogprobs

LOGIT_CHUNK_ELEMENTS = 2**24
"""Logits of prompt tokens are computed this many at a time: 64 MiB in float32."""

FloatArray = npt.NDArray[np.float32]
TopTokens = tuple[FloatArray, IntArray]
"""Logprobs and token ids, descending by logprob."""


_ALL = slice(None)


def logprob_results(
    requests: Sequence[RowLogprobs],
    targets: Sequence[HostArrays | None],
    sampled: HostArrays | None,
    samples: Sequence[bool],
) -> tuple[RowLogprobResult, ...]:
    """Answers to requests; arrays are the fields of :class:`GatheredLogprobs`.

    ``targets`` are of each request, ``None`` if it has none; ``sampled`` has a row for each request that ``samples``.
    """
    results, index = [], 0
    for request, arrays, does_sample in zip(requests, targets, samples, strict=True):
        of_targets = _fields(request, _no_targets(request) if arrays is None else arrays)
        of_sample: tuple[Any, ...] = ()
        if sampled is not None and does_sample:
            logprob, top, chosen = _fields(request, sampled, index)
            of_sample, index = (float(logprob), top, chosen), index + 1
        results.append(RowLogprobResult(request.row, *of_targets, *of_sample))
    return tuple(results)


def _fields(
    request: RowLogprobs, arrays: HostArrays, at: int | slice = _ALL
) -> tuple[Any, TopTokens | None, FloatArray | None]:
    """Values, top tokens and chosen tokens, as far as asked for; of one position, or of some ``[n]``."""
    values, top_values, top_ids, chosen = arrays
    top_n, num_chosen = request.top_n, len(request.token_ids)
    top = (top_values[at, :top_n], top_ids[at, :top_n].astype(np.int32)) if top_n else None
    return values[at], top, chosen[at, :num_chosen] if num_chosen else None


def _no_targets(request: RowLogprobs) -> HostArrays:
    tops = np.empty((0, request.top_n), np.float32)
    return [np.empty(0, np.float32), tops, tops, np.empty((0, len(request.token_ids)), np.float32)]


def gather_targets(
    hidden_states: torch.Tensor,
    request: RowLogprobs,
    compute_logits: Callable[[torch.Tensor], torch.Tensor],
    chunk_rows: int,
    threads: ThreadPool | None = None,
) -> GatheredLogprobs | None:
    """Logprobs of a row's targets, on the device; ``None`` if it has none.

    Logits exist for ``chunk_rows`` positions at a time, whatever the length of the prompt.

    Args:
        hidden_states: ``[len(request.targets), hidden_size]``, those that predict the targets.
    """
    if not len(request.targets):
        return None
    targets = to_device(request.targets.astype(np.int64), hidden_states.device)
    pieces = [
        gather_logprobs(
            compute_logits(hidden_states[start : start + chunk_rows]),
            targets[start : start + chunk_rows],
            request.top_n,
            request.token_ids,
            threads,
        )
        for start in range(0, len(targets), chunk_rows)
    ]
    return GatheredLogprobs(*map(torch.cat, zip(*pieces, strict=True)))
