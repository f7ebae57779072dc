"""Top-k, top-p and min-p on a device that must not be asked in between, all rows at once.

Which tokens are kept is defined in :mod:`bough.layers.sampler`; :mod:`bough.sampling.truncation_cpu` finds the same
ones where memory is the host's.

Shapes: ``n`` rows, ``V`` token ids, ``N`` blocks, ``M`` tokens looked at.
"""

from __future__ import annotations

import torch

from bough.sampling.device_state import DeviceDrawParams
from bough.sampling.draw import draw_by_weight, integer_weights
from bough.sampling.vocab_blocks import top_tokens

_MOST_UNITS = 2.0**62
"""More than any row has, in units of weight."""


def draw_selected(
    logits: torch.Tensor, maxima: torch.Tensor, k: int, params: DeviceDrawParams, totals: torch.Tensor | None
) -> torch.Tensor:
    """Draw tokens, int64 ``[n, 1]``, for rows of ``logits`` (float32 ``[n, V]``, contiguous) that keep at most ``k``.

    ``k`` is at least every row's top-k and at most ``V``, ``maxima`` are the block maxima ``[n, N]``, ``totals`` the
    weight, int64 ``[n, 1]``, of each row's whole vocabulary; ``None`` if no row has a top-p.
    """
    values, ids = top_tokens(logits, maxima, k)
    scaled = (values - values[:, :1]) * params.inverse_temperature
    weights = integer_weights(scaled.exp())
    kept = torch.arange(k, device=logits.device) < _kept_count(scaled, weights, params, totals)
    ids, order = ids.sort(-1)
    return ids.gather(1, draw_by_weight((weights * kept).gather(1, order), params.uniform))


def draw_sorted(logits: torch.Tensor, params: DeviceDrawParams, totals: torch.Tensor | None) -> torch.Tensor:
    """Draw for rows that may keep any number of tokens; arguments and result as of :func:`draw_selected`.

    Takes about twelve times the memory of ``logits``.
    """
    values = logits.sort(-1, descending=True).values
    largest = values[:, :1]
    scaled = (values - largest) * params.inverse_temperature
    count = _kept_count(scaled, integer_weights(scaled.exp()), params, totals)
    # The sorted values alone tell how many tokens are kept and down to which logit; of the tokens that have exactly
    # that logit, the first ones are kept.
    bound = values.gather(1, count - 1)
    above = logits > bound
    tied = logits == bound
    kept = above | (tied & (tied.cumsum(-1) <= count - above.sum(-1, keepdim=True)))
    weights = integer_weights(((logits - largest) * params.inverse_temperature).exp_())
    return draw_by_weight(weights * kept, params.uniform)


def _kept_count(
    scaled: torch.Tensor, weights: torch.Tensor, params: DeviceDrawParams, totals: torch.Tensor | None
) -> torch.Tensor:
    """Number of the likeliest tokens that are kept, int64 ``[n, 1]``, at least 1; ``scaled`` ``[n, M]`` is ``(logit -
    largest) / temperature``, descending."""
    kept = torch.arange(scaled.shape[1], device=scaled.device) < params.top_k
    kept &= scaled >= params.log_min_p
    if totals is not None:
        limit = (params.top_p * totals).clamp_(max=_MOST_UNITS).ceil_().to(torch.int64)
        kept &= weights.cumsum(-1) - weights < limit
    return kept.sum(-1, keepdim=True).clamp_(min=1)
