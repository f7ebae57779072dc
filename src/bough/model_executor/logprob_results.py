"""From log-probabilities on the device to the records of a step's result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

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


class SampledFields(TypedDict):
    """Those fields of a ``RowLogprobResult`` that speak of the sampled token."""

    sampled_logprob: float
    sampled_top: TopTokens | None
    sampled_chosen: FloatArray | None


def sampled_fields(requests: Sequence[RowLogprobs], arrays: HostArrays) -> list[SampledFields]:
    """Answers about the sampled token of each request; ``arrays`` are the fields of :class:`GatheredLogprobs`."""
    values, top_values, top_ids, chosen = arrays
    return [
        SampledFields(
            sampled_logprob=float(values[index]),
            sampled_top=(top_values[index, : request.top_n], top_ids[index, : request.top_n].astype(np.int32))
            if request.top_n
            else None,
            sampled_chosen=chosen[index, : len(request.token_ids)] if request.token_ids else None,
        )
        for index, request in enumerate(requests)
    ]


def sampled_results(requests: Sequence[RowLogprobs], arrays: HostArrays) -> tuple[RowLogprobResult, ...]:
    """Results of rows that want to know of nothing but their sampled tokens; for ``arrays``, :func:`sampled_fields`."""
    return tuple(
        RowLogprobResult(request.row, *target_fields(request, None), **fields)
        for request, fields in zip(requests, sampled_fields(requests, arrays), strict=True)
    )


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


def target_fields(
    request: RowLogprobs, arrays: HostArrays | None
) -> tuple[FloatArray, TopTokens | None, FloatArray | None]:
    """Logprobs of a row's targets: values, top tokens and chosen tokens as a ``RowLogprobResult`` has them.

    Args:
        arrays: fields of :class:`GatheredLogprobs`; ``None`` if there are no targets.
    """
    if arrays is None:
        none: FloatArray = np.empty(0, np.float32)
        arrays = [
            none,
            np.empty((0, request.top_n)),
            np.empty((0, request.top_n)),
            np.empty((0, len(request.token_ids))),
        ]
    targets, top_values, top_ids, chosen = arrays
    top = (top_values.astype(np.float32, copy=False), top_ids.astype(np.int32)) if request.top_n else None
    return targets, top, chosen.astype(np.float32, copy=False) if request.token_ids else None
