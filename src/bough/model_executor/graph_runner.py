"""Results of a forward pass, whatever runs it, and the ladders of sizes that CUDA graphs are recorded for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import torch

from bough.model_executor.launched_step import CheckedRows
from bough.step_plan import IntArray


class Wanted(IntEnum):
    """Kind of result that a row of a step wants."""

    NOTHING = 0
    """Its prompt goes on."""
    CHOICE = 1
    """The token with the largest logit, of those that its mask allows if it has one; the lowest id of several."""
    LOGITS = 2


@dataclass(frozen=True, slots=True)
class ForwardOutput:
    """Results of one step. Arrays are the caller's, ``logits`` are valid until the next step."""

    next_token_ids: IntArray
    """[R], where a choice was wanted and made; else ``FUTURE_TOKEN``"""
    finite: npt.NDArray[np.bool_]
    """[R], false where a row without logits is known not to be finite"""
    logits: torch.Tensor | None
    """float32 [rows that want them, V], in row order; may be overwritten; ``None`` if none does"""
    hidden_states: torch.Tensor | None
    """[T, hidden_size], if wanted"""
    checked: CheckedRows | None = None
    """Rows without logits, where the device knows which are finite"""


def batch_sizes(largest: int) -> tuple[int, ...]:
    """The ladder up to ``largest``, ascending: padding adds a third at most, from 32 rows on a tenth."""
    steps = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32]
    while steps[-1] < largest:
        steps.append(steps[-1] + max(4, 1 << (steps[-1].bit_length() - 4)))
    return (*(size for size in steps if size < largest), largest)


_FEWEST_TOKENS = 16
_TOKEN_STEPS = 8
"""For each doubling, beyond the first few sizes."""


def prompt_sizes(largest: int) -> tuple[int, ...]:
    """The same for the tokens of prompts; from 128 on padding adds an eighth at most. None up to 0."""
    steps = [min(_FEWEST_TOKENS, largest)] if largest > 0 else []
    while steps and steps[-1] < largest:
        doubling = 1 << (steps[-1].bit_length() - 1)
        steps.append(min(steps[-1] + max(_FEWEST_TOKENS, doubling // _TOKEN_STEPS), largest))
    return tuple(steps)
