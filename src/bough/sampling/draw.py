"""Drawing token ids: integer weights, truncation to the likely tokens, inversion of the cumulative distribution.

A token's weight is ``exp((logit - largest) / temperature)``, between 0 and 1. Weights are summed as integers, in units
of 2**-40, because integers add up to the same in any order: what is drawn for a row then depends neither on the other
rows nor on how its tokens were found. Cumulative sums always run over tokens in ascending order of id.

Shapes: ``n`` rows, ``M`` tokens.
"""

from __future__ import annotations

import torch

from bough.sampling.device_state import DrawParams
from bough.sampling.vocab_blocks import BLOCK, gather_blocks

_UNITS = 2.0**40
"""Units in a weight of 1. 2**23 tokens of that weight fit into 63 bits, and what is rounded away is less likely than
10**-12 times the likeliest token."""


def integer_weights(weights: torch.Tensor) -> torch.Tensor:
    """Weights or sums of weights as int64, rounded down."""
    return (weights * _UNITS).to(torch.int64)


def draw_by_weight(weights: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The first position whose cumulative weight exceeds ``uniform`` times the total.

    Args:
        weights: int64 ``[n, M]``, not negative. Positions of weight 0 are never drawn, unless a row has no others.
        uniform: float64 ``[n, 1]`` in [0, 1).

    Returns:
        int64 ``[n, 1]``; a valid position whatever a row holds.
    """
    cumulative = weights.cumsum(-1)
    return _invert(cumulative, (uniform * cumulative[:, -1:]).to(torch.int64))


def draw_from_blocks(weights: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """As :func:`draw_by_weight` for a whole vocabulary: first a block is drawn, then a token within it.

    Args:
        weights: float32 ``[n, N * BLOCK]``, contiguous, in [0, 1].
        uniform: float64 ``[n, 1]`` in [0, 1).

    Returns:
        int64 ``[n, 1]``; a valid place whatever a row holds.
    """
    sums = weights.view(len(weights), -1, BLOCK).sum(-1)  # [n, N]
    units = integer_weights(sums)
    cumulative = units.cumsum(-1)
    target = (uniform * cumulative[:, -1:]).to(torch.int64)
    block = _invert(cumulative, target)
    width = units.gather(1, block)
    # How far the target lies into its block is the uniform number that draws within the block.
    inside = (target - cumulative.gather(1, block) + width).to(torch.float64) / width
    within = gather_blocks(weights, block).squeeze(1) / sums.gather(1, block)  # [n, BLOCK]
    return block * BLOCK + draw_by_weight(integer_weights(within), inside)


def total_weight(weights: torch.Tensor) -> torch.Tensor:
    """Sum of a vocabulary's weights ``[n, N * BLOCK]`` in units, int64 ``[n, 1]``."""
    return integer_weights(weights.view(len(weights), -1, BLOCK).sum(-1)).sum(-1, keepdim=True)


def kept_prefix(
    scaled: torch.Tensor, total: torch.Tensor | None, params: DrawParams
) -> tuple[torch.Tensor, torch.Tensor]:
    """Which of the likeliest tokens top-k, top-p and min-p keep: always the first ones, at least one.

    Args:
        scaled: float32 ``[n, M]``, ``(logit - largest) / temperature`` of the likeliest tokens, descending.
        total: int64 ``[n, 1]``, the weight of the row's whole vocabulary; ``None`` if no row has a top-p.
        params: of the ``n`` rows.

    Returns:
        bool ``[n, M]`` and the tokens' integer weights ``[n, M]``.
    """
    units = integer_weights(scaled.exp())
    kept = torch.arange(scaled.shape[1], device=scaled.device) < params.top_k
    kept &= scaled >= params.log_min_p
    if total is not None:
        before = units.cumsum(-1) - units
        kept &= before < params.top_p * total
    return kept, units


def _invert(cumulative: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The first position ``[n, 1]`` where a non-decreasing row of ``cumulative`` exceeds ``target`` ``[n, 1]``."""
    # uniform * total may round up to the total.
    target = torch.minimum(target, cumulative[:, -1:] - 1)
    return torch.searchsorted(cumulative, target, right=True).clamp_(max=cumulative.shape[1] - 1)
