"""Attention of encoders: every token of a sequence sees every other one, and nothing outside the step.

Sequences come sorted by length. Those of similar length are padded to the longest of them and computed as one block,
so that neither a loop over sequences nor padding to the longest of all is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

PADDING_SHARE = 0.25
"""How much longer than its shortest sequence the longest one of a block may be."""

PADDING_TOKENS = 4
"""Lengths that differ by so little are taken together however short they are."""


@dataclass(frozen=True, slots=True)
class LengthGroup:
    """Neighbouring sequences that are computed as one block of ``[num_rows, width]`` tokens."""

    start: int
    """First token."""
    stop: int
    """One after the last token."""
    num_rows: int
    width: int
    """Tokens of the longest sequence."""
    padded: torch.Tensor | None
    """int64 [num_rows * width], which token of the group stands where; ``None`` if all have the same length."""
    places: torch.Tensor | None
    """int64 [stop - start], where in the block each token of the group is; ``None`` likewise."""
    mask: torch.Tensor | None
    """bool [num_rows, 1, 1, width], true for tokens; ``None`` likewise."""


def group_by_length(lengths: Sequence[int], device: torch.device) -> tuple[LengthGroup, ...]:
    """Take sequences of similar length together; ``lengths``, in tokens, are ascending and at least 1."""
    groups: list[LengthGroup] = []
    first, start = 0, 0
    while first < len(lengths):
        limit = max(int(lengths[first] * (1 + PADDING_SHARE)), lengths[first] + PADDING_TOKENS)
        end = first
        while end < len(lengths) and lengths[end] <= limit:
            end += 1
        group = _group(start, np.asarray(lengths[first:end], dtype=np.int64), device)
        groups.append(group)
        first, start = end, group.stop
    return tuple(groups)


def _group(start: int, lengths: np.ndarray, device: torch.device) -> LengthGroup:
    num_rows, width, total = len(lengths), int(lengths[-1]), int(lengths.sum())
    if lengths[0] == width:
        return LengthGroup(start, start + total, num_rows, width, None, None, None)
    columns = np.arange(width)
    is_token = columns < lengths[:, None]
    begins = np.cumsum(lengths) - lengths
    # Padding repeats the sequence's last token: any would do, since nobody sees it.
    padded = (begins[:, None] + np.minimum(columns, lengths[:, None] - 1)).reshape(-1)
    return LengthGroup(
        start,
        start + total,
        num_rows,
        width,
        torch.from_numpy(padded).to(device),
        torch.from_numpy(np.flatnonzero(is_token)).to(device),
        torch.from_numpy(is_token[:, None, None, :]).to(device),
    )


def bidirectional_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, groups: Sequence[LengthGroup]
) -> torch.Tensor:
    """Softmax attention within each sequence, scaled by the square root of ``head_dim``.

    ``[num_tokens, num_heads, head_dim]`` each, in the order of ``groups``, to ``[num_tokens, num_heads * head_dim]``.
    """
    outputs = [_attend(q, k, v, group) for group in groups]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, group: LengthGroup) -> torch.Tensor:
    q, k, v = (_block(x[group.start : group.stop], group) for x in (q, k, v))
    output = functional.scaled_dot_product_attention(q, k, v, attn_mask=group.mask)
    flat = output.transpose(1, 2).reshape(group.num_rows * group.width, -1)
    return flat if group.places is None else flat.index_select(0, group.places)


def _block(x: torch.Tensor, group: LengthGroup) -> torch.Tensor:
    """``[tokens, heads, head_dim]`` as ``[num_rows, heads, width, head_dim]``."""
    rows = x if group.padded is None else x.index_select(0, group.padded)
    return rows.view(group.num_rows, group.width, *x.shape[1:]).transpose(1, 2)
