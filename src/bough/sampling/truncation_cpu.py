"""Top-k, top-p and min-p where logits lie in the host's memory.

Which tokens are kept is defined in :mod:`bough.layers.sampler`. Here the number of tokens looked at may follow the
data: first what lies in the blocks with the largest maxima, more only for rows that may keep more. The tokens of all
rows form one flat list, ``m`` entries, by row and then by id, and numpy does the rest in a fixed number of calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bough.sampling.device_state import DrawParams
from bough.sampling.draw import UNITS
from bough.sampling.vocab_blocks import BLOCK

FloatArray = npt.NDArray[np.float32]
IndexArray = npt.NDArray[np.int64]

_BLOCKS = (64, 1024)
"""How many blocks to look into at first and, for the rows that may keep more, next; then all. What k blocks are
searched for holds the k likeliest tokens, and usually little more."""

_TILE_BLOCKS = 4096
"""Blocks that are looked into at once: 1 MiB of logits."""

_TILE_TOKENS = 2048
"""Tokens at once where all tokens of rows are; a row may have more. Rows are sorted faster one by one, but short ones
cost mostly the calls."""

_TILE_ROWS = 32
"""Rows at once: the totals of that many fit into one int64."""

_LANES = np.arange(BLOCK)


def draw_truncated(
    logits: FloatArray,
    maxima: FloatArray,
    batch_rows: IndexArray,
    params: DrawParams,
    totals: IndexArray | None,
) -> IndexArray:
    """Draw one token per row from those that truncation keeps.

    Args:
        logits: ``[S, V]``, contiguous.
        maxima: ``[S, N]``, their block maxima.
        batch_rows: ``[n]``, the rows to draw for, all of them finite.
        params: of these rows.
        totals: ``[n]``, the weight of each row's whole vocabulary in units; ``None`` if no row has a top-p.

    Returns:
        token ids ``[n]``.
    """
    tokens = np.zeros(len(batch_rows), dtype=np.int64)
    num_blocks = maxima.shape[1]
    only_top_k = (params.top_p == np.inf) & (params.log_min_p == -np.inf)
    at_least = np.where(only_top_k, params.top_k, 1.0)
    done = np.zeros(len(batch_rows), dtype=np.bool_)
    for blocks in (*(b for b in _BLOCKS if b < num_blocks), num_blocks):
        now = np.flatnonzero(~done & (at_least <= blocks) if blocks < num_blocks else ~done)
        if not now.size:
            continue
        if blocks < num_blocks:
            best = maxima[batch_rows[now]]
            floor = np.partition(best, num_blocks - blocks, axis=-1)[:, num_blocks - blocks]
            wanted = best >= floor[:, np.newaxis]
            tiles = _tiles(wanted.sum(-1).tolist())
        else:
            tiles = _equal_tiles(len(now), max(1, _TILE_TOKENS // logits.shape[1]))
        for tile in tiles:
            part = now[tile]
            if blocks < num_blocks:
                listed = _list_tokens(logits, batch_rows[part], wanted[tile], floor[tile])
            else:
                listed = _Tokens.all_of(logits[batch_rows[part]])
            tokens[part], done[part] = _draw(listed, params.of(part), None if totals is None else totals[part])
    return tokens


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The likeliest tokens of ``n`` rows, at least one each, ascending by row and then by id."""

    row: IndexArray
    """[m]"""
    ids: IndexArray
    """[m]"""
    logits: FloatArray
    """[m]"""
    counts: IndexArray
    """[n], tokens of each row"""

    @classmethod
    def all_of(cls, logits: FloatArray) -> _Tokens:
        """All tokens of some rows ``[n, V]``."""
        rows, vocab_size = logits.shape
        row = np.repeat(np.arange(rows), vocab_size)
        ids = np.tile(np.arange(vocab_size), rows)
        return cls(row, ids, logits.reshape(-1), np.full(rows, vocab_size))

    def spread(self, of_rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What is known per row ``[n]``, for each token: ``[m]``, or ``[1]`` if there is only one row."""
        return of_rows if len(of_rows) == 1 else of_rows[self.row]

    def descending(self) -> FloatArray:
        """The logits of each row in descending order, ``[m]``.

        Several rows are sorted at once, as integers: the bits of a float32, read as an integer, order positive
        numbers; the magnitude bits of negative ones are flipped. The mapping is its own inverse.
        """
        if len(self.counts) == 1:
            return np.sort(self.logits)[::-1]
        keys = _ordered_bits((self.logits + np.float32(0.0)).view(np.int32))  # + 0.0 joins -0.0 with 0.0
        rows = self.row << 32
        return _ordered_bits((rows - np.sort(rows - keys)).astype(np.int32)).view(np.float32)


def _tiles(blocks_of_row: list[int]) -> Iterator[slice]:
    """Split rows so that a tile has at most ``_TILE_ROWS`` of them and, but for its last one, few enough blocks."""
    start = blocks = 0
    for row, count in enumerate(blocks_of_row):
        blocks += count
        if blocks >= _TILE_BLOCKS or row - start + 1 == _TILE_ROWS:
            yield slice(start, row + 1)
            start, blocks = row + 1, 0
    if start < len(blocks_of_row):
        yield slice(start, len(blocks_of_row))


def _equal_tiles(num_rows: int, size: int) -> Iterator[slice]:
    size = min(size, _TILE_ROWS)
    for start in range(0, num_rows, size):
        yield slice(start, start + size)


def _list_tokens(
    logits: FloatArray, batch_rows: IndexArray, wanted: npt.NDArray[np.bool_], floor: FloatArray
) -> _Tokens:
    """All tokens of each row with at least the logit ``floor`` ``[n]``; the blocks ``wanted`` ``[n, N]`` have them."""
    vocab_size = logits.shape[1]
    num_blocks = wanted.shape[1]
    row, block = np.nonzero(wanted)
    if vocab_size % BLOCK == 0:
        values = logits.reshape(-1, BLOCK)[batch_rows[row] * num_blocks + block]
    else:
        first = batch_rows[row] * vocab_size + block * BLOCK
        values = logits.reshape(-1).take(first[:, np.newaxis] + _LANES, mode="clip")
        values[block == num_blocks - 1, vocab_size % BLOCK :] = np.nan
    at = np.flatnonzero(values >= floor[row][:, np.newaxis])
    found = at // BLOCK  # which of the listed blocks
    token_row = row[found]
    return _Tokens(
        row=token_row,
        ids=block[found] * BLOCK + at % BLOCK,
        logits=values.reshape(-1)[at],
        counts=np.bincount(token_row, minlength=len(batch_rows)),
    )


def _draw(tokens: _Tokens, params: DrawParams, totals: IndexArray | None) -> tuple[IndexArray, npt.NDArray[np.bool_]]:
    """Draw one of each row's tokens, and tell whether they were all that the row may keep; both ``[n]``.

    Sums run through all rows; what a row's sum started from is subtracted or added where one row is meant.
    """
    spread, counts = tokens.spread, tokens.counts
    start = np.cumsum(counts) - counts
    inverse_temperature = spread(params.inverse_temperature)
    descending = tokens.descending()
    largest = spread(descending[start])
    scaled = (descending - largest) * inverse_temperature
    kept = np.arange(len(scaled)) - spread(start) < spread(params.top_k)
    kept &= scaled >= spread(params.log_min_p)
    if totals is not None:
        before = _sum_before(_integer_weights(scaled))
        kept &= before - spread(before[start]) < spread(params.top_p * totals)
    count = np.maximum(_sum_per_row(kept, start), 1)

    # Kept is what is above the last kept logit, and of the tokens that tie with it the first ones.
    bound = spread(descending[start + count - 1])
    keep = tokens.logits > bound
    tied = tokens.logits == bound
    room = count - _sum_per_row(keep, start)
    if (_sum_per_row(tied, start) > room).any():
        tied_before = _sum_before(tied.astype(np.int64))
        tied &= tied_before - spread(tied_before[start]) < spread(room)
    keep |= tied

    weights = _integer_weights((tokens.logits - largest) * inverse_temperature)
    weights *= keep
    cumulative = np.cumsum(weights)
    base = cumulative[start] - weights[start]
    total = cumulative[start + counts - 1] - base
    target = (params.uniform * total).astype(np.int64)
    drawn = np.searchsorted(cumulative, base + target, side="right")
    return tokens.ids[drawn], (count < counts) | (params.top_k <= counts)


def _ordered_bits(bits: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    ordered: npt.NDArray[np.int32] = bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))
    return ordered


def _integer_weights(scaled: FloatArray) -> IndexArray:
    weights: IndexArray = (np.exp(scaled) * np.float32(UNITS)).astype(np.int64)
    return weights


def _sum_before(values: IndexArray) -> IndexArray:
    """The sum of everything before each entry."""
    before: IndexArray = np.cumsum(values) - values
    return before


def _sum_per_row(flags: npt.NDArray[np.bool_], start: IndexArray) -> IndexArray:
    """How many of each row's tokens, which begin at ``start`` ``[n]``, have a flag."""
    if len(start) == 1:
        return np.array([np.count_nonzero(flags)])
    sums: IndexArray = np.add.reduceat(flags, start, dtype=np.int64)
    return sums
