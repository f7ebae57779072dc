"""What token choice must do, written the slow and obvious way, in float64 and with full sorts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bough.layers.sampler import Sampler
from bough.sampling.device_state import SamplingState
from bough.sampling.mask_rows import RowMasks
from bough.sampling.sampling_params import ALL_TOKENS, SamplingParams
from bough.step_plan import NewRequest, ReqSlot

CPU = torch.device("cpu")


def edited_logits(
    logits: np.ndarray,
    params: SamplingParams,
    output_ids: Sequence[int] = (),
    masked: Sequence[int] = (),
    prompt_ids: Sequence[int] = (),
) -> np.ndarray:
    """One row ``[V]`` after penalties, bans and biases."""
    row = logits.astype(np.float64)
    window, factor = params.repetition_window, params.repetition_penalty
    if window is not None:
        everything = [*prompt_ids, *output_ids]
        for token in set(everything[-window:] if window > 0 else everything if window == -1 else ()):
            row[token] = row[token] / factor if row[token] > 0 else row[token] * factor
    for token in set(output_ids):
        row[token] -= params.frequency_penalty * list(output_ids).count(token) + params.presence_penalty
    if len(output_ids) < params.min_new_tokens:
        row[list(masked)] = -np.inf
    for token in set(output_ids) if window is None else ():
        row[token] = row[token] / factor if row[token] > 0 else row[token] * factor
    for token, bias in (params.logit_bias or {}).items():
        row[token] += bias
    return row


def probabilities(row: np.ndarray, params: SamplingParams) -> np.ndarray:
    """The distribution ``[V]`` that an edited row is drawn from."""
    if params.is_greedy:
        result = np.zeros(len(row))
        result[np.argmax(row)] = 1.0
        return result
    scaled = row.astype(np.float64) / params.temperature
    weights = np.exp(scaled - scaled.max())
    order = np.lexsort((np.arange(len(row)), -row))
    sorted_weights = weights[order]
    before = np.cumsum(sorted_weights) - sorted_weights
    keep = before < params.top_p * weights.sum()
    if params.top_k != ALL_TOKENS:
        keep &= np.arange(len(row)) < params.top_k
    keep &= sorted_weights >= params.min_p
    kept = np.zeros(len(row))
    kept[order[keep]] = weights[order[keep]]
    return kept / kept.sum()


def new_request(
    slot: int,
    params: SamplingParams,
    *,
    seed: int = 0,
    masked: Sequence[int] = (),
    output_ids: Sequence[int] = (),
    prompt_len: int = 1,
    prompt_ids: Sequence[int] = (),
) -> NewRequest:
    return NewRequest(
        req_slot=ReqSlot(slot),
        sampling_params=params,
        seed=seed,
        masked_until_min=tuple(masked),
        prompt_len=prompt_len,
        output_ids=np.array(output_ids, dtype=np.int32),
        prompt_ids=np.array(prompt_ids, dtype=np.int32) if params.penalises_prompt else None,
    )


def make_sampler(vocab_size: int, requests: Sequence[NewRequest], *, slots: int | None = None) -> Sampler:
    """A sampler whose state has admitted ``requests``."""
    size = slots if slots is not None else 1 + max(request.req_slot for request in requests)
    state = SamplingState(size, vocab_size, CPU)
    for request in requests:
        state.admit(request)
    return Sampler(state)


def same_params(vocab_size: int, params: SamplingParams, count: int) -> Sampler:
    """A sampler with ``count`` requests that differ in their seeds only."""
    return make_sampler(vocab_size, [new_request(slot, params, seed=slot) for slot in range(count)])


def slots_of(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int32)


def model_like_logits(rows: int, vocab_size: int, seed: int = 0) -> torch.Tensor:
    """Logits with a few likely tokens and a long tail, scattered over the vocabulary."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 2.0, (rows, vocab_size))
    head = min(200, vocab_size // 2)
    for row in logits:
        row[rng.choice(vocab_size, head, replace=False)] += np.linspace(12.0, 1.0, head)
    return torch.from_numpy(logits.astype(np.float32))


def masks_of(allowed: np.ndarray, rows: Sequence[int]) -> RowMasks:
    """From booleans ``[G, V]``."""
    words = -(-allowed.shape[1] // 32)
    padded = np.zeros((len(allowed), 32 * words), dtype=np.bool_)
    padded[:, : allowed.shape[1]] = allowed
    return RowMasks(np.array(rows, dtype=np.int64), np.packbits(padded, axis=1, bitorder="little").view(np.int32))
