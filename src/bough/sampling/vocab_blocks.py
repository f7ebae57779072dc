"""Reductions and selections over the vocabulary in two levels: blocks of neighbouring token ids, then tokens.

A vocabulary has 10^4 to 10^5 ids, and whatever picks single tokens out of them one by one is slow: ``argmax``, ``topk``
and ``cumsum`` of torch run scalar loops with an index beside each value. Reductions of fixed blocks run at the speed
of memory, and after them only a few blocks are left to look into. It also fixes the order in which anything is
summed: per block, then over the blocks, whatever the number of rows or threads.

Shapes: ``S`` rows, ``V`` token ids, ``N = ceil(V / BLOCK)`` blocks; the last block may be shorter.
"""

from __future__ import annotations

import torch

BLOCK = 64
"""Token ids per block. Selecting k tokens looks at V / BLOCK + k * BLOCK values: least where BLOCK = sqrt(V / k)."""

_LOW_WORD = (1 << 32) - 1


def num_blocks(vocab_size: int) -> int:
    """Number of blocks of a vocabulary, the last one possibly shorter."""
    return -(-vocab_size // BLOCK)


def block_maxima(logits: torch.Tensor) -> torch.Tensor:
    """The largest value of every block: ``[S, V]`` contiguous -> ``[S, N]``. A NaN makes its block NaN."""
    rows, vocab_size = logits.shape
    whole = vocab_size // BLOCK
    if whole * BLOCK == vocab_size:
        return logits.view(rows, whole, BLOCK).amax(-1)
    tail = logits[:, whole * BLOCK :].amax(-1, keepdim=True)
    if whole == 0:
        return tail
    body = logits[:, : whole * BLOCK].view(rows, whole, BLOCK).amax(-1)
    return torch.cat((body, tail), dim=1)


def gather_blocks(logits: torch.Tensor, blocks: torch.Tensor, batch_rows: torch.Tensor) -> torch.Tensor:
    """Copy blocks ``[n, k]`` out of ``batch_rows`` ``[n]`` of ``logits`` ``[S, V]``, contiguous, to ``[n, k, BLOCK]``.

    Places behind the last token id hold -inf.
    """
    vocab_size = logits.shape[1]
    if vocab_size % BLOCK == 0:
        flat = torch.add(blocks, batch_rows.unsqueeze(1), alpha=vocab_size // BLOCK)
        return logits.view(-1, BLOCK).index_select(0, flat.view(-1)).view(*blocks.shape, BLOCK)
    ids = blocks.unsqueeze(-1) * BLOCK + torch.arange(BLOCK, device=logits.device)
    inside = torch.add(ids.clamp(max=vocab_size - 1), batch_rows.view(-1, 1, 1), alpha=vocab_size)
    return logits.view(-1).take(inside).masked_fill_(ids >= vocab_size, float("-inf"))


def first_maximum(logits: torch.Tensor, maxima: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest value ``[S]`` of each row and the lowest token id, int64 ``[S]``, that has it, by
    :func:`block_maxima` ``[S, N]``.

    A row with a NaN has the value NaN and the id of a NaN.
    """
    values, blocks = maxima.max(-1)
    batch_rows = torch.arange(len(logits), device=logits.device)
    inside = gather_blocks(logits, blocks.unsqueeze(1), batch_rows).squeeze(1).argmax(-1)
    return values, inside.add_(blocks, alpha=BLOCK)


def top_tokens(logits: torch.Tensor, maxima: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The ``k`` largest values, float32 ``[S, k]``, of each row and their ids, int64 ``[S, k]``, largest first and ties
    by ascending id, exactly.

    Each of them lies in one of the ``k`` blocks whose own best token comes first in that order, so only those blocks
    are searched. Rows with a NaN hold arbitrary values and valid ids.
    """
    rows, vocab_size = logits.shape
    device = logits.device
    blocks = torch.arange(maxima.shape[1], device=device).expand(rows, -1)
    if k < maxima.shape[1]:
        blocks = _LOW_WORD - (_sort_keys(maxima, blocks).topk(k, sorted=False).values & _LOW_WORD)
    values = gather_blocks(logits, blocks, torch.arange(rows, device=device))
    ids = blocks.unsqueeze(-1) * BLOCK + torch.arange(BLOCK, device=device)
    best = _sort_keys(values.flatten(1), ids.flatten(1)).topk(k).values
    # NaNs with a sign bit sort below the places behind the last id, which then come up.
    top_ids = (_LOW_WORD - (best & _LOW_WORD)).clamp_(max=vocab_size - 1)
    return logits.gather(1, top_ids), top_ids


def _sort_keys(values: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """int64 keys whose descending order is (value descending, id ascending); the low 32 bits hold the id, negated.

    The bits of a float32, read as an integer, order positive numbers; the magnitude bits of negative ones are flipped.
    """
    bits = (values + 0.0).view(torch.int32)  # + 0.0 makes -0.0 the tie with 0.0 that it is
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (ordered.to(torch.int64) << 32) + (_LOW_WORD - ids)
