"""From log-probabilities on the device to the records of a step's result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import torch

from bough.kernels.thread_pool import ThreadPool
from bough.layers.logprobs import gather_logprobs
from bough.layers.sampler import SampledLogprobs
from bough.step_plan import IntArray, RowLogprobs

FloatArray = npt.NDArray[np.float32]
TopTokens = tuple[FloatArray, IntArray]
"""Logprobs and token ids, descending by logprob."""


class SampledFields(TypedDict):
    """Those fields of a ``RowLogprobResult`` that speak of the sampled token."""

    sampled_logprob: float
    sampled_top: TopTokens | None
    sampled_chosen: FloatArray | None


def sampled_fields(answers: SampledLogprobs) -> list[SampledFields]:
    """What each of ``answers.requests`` asked about its sampled token. Waits for the device."""
    values = answers.sampled.cpu().numpy()
    top_values, top_ids = _host(answers.top_values), _host(answers.top_ids).astype(np.int32)
    chosen = _host(answers.chosen)
    return [
        SampledFields(
            sampled_logprob=float(values[index]),
            sampled_top=(top_values[index, : request.top_n], top_ids[index, : request.top_n])
            if request.top_n
            else None,
            sampled_chosen=chosen[index, : len(request.token_ids)] if request.token_ids else None,
        )
        for index, request in enumerate(answers.requests)
    ]


def target_fields(
    hidden_states: torch.Tensor,
    request: RowLogprobs,
    compute_logits: Callable[[torch.Tensor], torch.Tensor],
    chunk_rows: int,
    threads: ThreadPool | None = None,
) -> tuple[FloatArray, TopTokens | None, FloatArray | None]:
    """Logprobs of a row's targets: values, top tokens and chosen tokens as a ``RowLogprobResult`` has them.

    Logits exist for ``chunk_rows`` positions at a time, whatever the length of the prompt.

    Args:
        hidden_states: ``[len(request.targets), hidden_size]``, those that predict the targets.
        request: what is asked.
        compute_logits: hidden states to float32 logits.
        chunk_rows: at least 1.
        threads: run native kernels, if there are any.
    """
    targets = torch.from_numpy(request.targets).to(hidden_states.device, torch.int64)
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
    if not pieces:
        top = (np.empty((0, request.top_n), np.float32), np.empty((0, request.top_n), np.int32))
        chosen = np.empty((0, len(request.token_ids)), np.float32)
        return np.empty(0, np.float32), top if request.top_n else None, chosen if request.token_ids else None
    top_values = _host(torch.cat([piece.top_values for piece in pieces]))
    top_ids = _host(torch.cat([piece.top_ids for piece in pieces])).astype(np.int32)
    return (
        _host(torch.cat([piece.targets for piece in pieces])),
        (top_values, top_ids) if request.top_n else None,
        _host(torch.cat([piece.chosen for piece in pieces])) if request.token_ids else None,
    )


def _host(tensor: torch.Tensor) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = tensor.cpu().numpy()
    return array
