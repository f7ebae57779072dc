"""Drawing token ids by inverting cumulative distributions, on any device.

A token's weight is ``exp((logit - largest) / temperature)``, between 0 and 1. Weights are summed as integers, in units
of 2**-40, because integers add up to the same in any order: what is drawn for a row then depends neither on the other
rows nor on how its tokens were found. Cumulative sums always run over tokens in ascending order of id.

Shapes: ``n`` rows, ``M`` tokens, ``N`` blocks of the vocabulary.
"""

from __future__ import annotations

import torch

from bough.sampling.vocab_blocks import BLOCK, gather_blocks

UNITS = 2.0**40
"""Units in a weight of 1. 2**23 tokens of that weight fit into 63 bits, and what is rounded away is less likely than
10**-12 times the likeliest token."""


def integer_weights(weights: torch.Tensor) -> torch.Tensor:
    """Weights, or sums of weights, in units: int64, rounded down."""
    return (weights * UNITS).to(torch.int64)


def draw_by_weight(weights: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The first position, int64 ``[n, 1]``, whose cumulative weight exceeds ``uniform`` (float64 ``[n, 1]``, to ``1 -
    2**-48``) times the total.

    Of the ``weights``, int64 ``[n, M]``, not negative, those of 0 are never drawn, unless a row has no others. The
    position is valid whatever a row holds.
    """
    return _invert(weights.cumsum(-1), uniform)[0]


def draw_from_vocabulary(
    logits: torch.Tensor,
    batch_rows: torch.Tensor,
    largest: torch.Tensor,
    inverse_temperature: torch.Tensor,
    block_sums: torch.Tensor,
    uniform: torch.Tensor,
) -> torch.Tensor:
    """Draw from all tokens, int64 ``[n, 1]``, valid whatever a row holds: first a block, then a token within it.

    Args:
        logits: float32 ``[S, V]``, contiguous; ``batch_rows``, int64 ``[n]``, are drawn for.
        largest, inverse_temperature: float32 ``[n, 1]``.
        block_sums: float32 ``[n, N]``, sums of their weights.
        uniform: float64 ``[n, 1]``, from 0 to ``1 - 2**-40``.
    """
    units = integer_weights(block_sums)
    cumulative = units.cumsum(-1)
    block, target = _invert(cumulative, uniform)
    # How far the target lies into its block is the uniform number that draws within the block.
    size = units.gather(1, block)
    inside = (target - cumulative.gather(1, block) + size) / size.to(torch.float64)
    scaled = (gather_blocks(logits, block, batch_rows).squeeze(1) - largest) * inverse_temperature
    weights = scaled.exp_() / block_sums.gather(1, block)  # [n, BLOCK], relative to the block's sum
    token = draw_by_weight(integer_weights(weights), inside).add_(block, alpha=BLOCK)
    # Only a row that is not finite can have drawn a place behind the last id.
    return token if logits.shape[1] % BLOCK == 0 else token.clamp_(max=logits.shape[1] - 1)


def _invert(cumulative: torch.Tensor, uniform: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where non-decreasing rows first exceed ``uniform`` times their last entry, and that target; both ``[n, 1]``."""
    target = (uniform * cumulative[:, -1:]).to(torch.int64)
    return torch.searchsorted(cumulative, target, right=True).clamp_(max=cumulative.shape[1] - 1), target
