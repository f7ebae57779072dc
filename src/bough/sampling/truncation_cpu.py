"""Top-k, top-p and min-p where logits lie in the host's memory.

Which tokens are kept is defined in :mod:`bough.layers.sampler`. Here the number of tokens looked at may follow the
data: first what lies in the blocks with the largest maxima, more only for rows that may keep more. The tokens of all
rows form one flat list, ``m`` entries, by row and then by id, and numpy does the rest in a fixed number of calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bough.sampling.device_state import DrawParams
from bough.sampling.draw import UNITS
from bough.sampling.vocab_blocks import BLOCK

FloatArray = npt.NDArray[np.float32]
IndexArray = npt.NDArray[np.int64]

_BLOCKS = (64, 512)
"""How many blocks to look into at first and, for the rows that may keep more, next; then the row is sorted. What is
found in k blocks are the k likeliest tokens, and usually little more."""

_TILE_BLOCKS = 4096
"""Blocks that are looked into at once: 1 MiB of logits, and few enough that one int64 can sum the weights of a tile."""

_LANES = np.arange(BLOCK)


def draw_truncated(
    logits: FloatArray,
    maxima: FloatArray,
    batch_rows: IndexArray,
    params: DrawParams,
    totals: IndexArray | None,
) -> IndexArray:
    """Draw one token per row ``[n]`` from those that truncation keeps.

    ``logits`` ``[S, V]`` are contiguous, ``maxima`` ``[S, N]`` their block maxima, ``totals`` ``[n]`` the weight of
    each row's whole vocabulary in units; ``None`` if no row has a top-p. All ``batch_rows`` ``[n]`` are finite.
    """
    tokens = np.zeros(len(batch_rows), dtype=np.int64)
    num_blocks = maxima.shape[1]
    # A token is kept if what is before it weighs less than this; no row has 2**62 units.
    limits = None if totals is None else np.ceil(np.minimum(params.top_p * totals, 2.0**62)).astype(np.int64)
    only_top_k = (params.top_p == np.inf) & (params.log_min_p == -np.inf)
    at_least = np.where(only_top_k, params.top_k, 1.0)
    done = np.zeros(len(batch_rows), dtype=np.bool_)
    for blocks in _BLOCKS:
        now = np.flatnonzero(~done & (at_least <= blocks))
        if blocks >= num_blocks or not now.size:
            continue
        best = maxima[batch_rows[now]]
        floor = np.partition(best, num_blocks - blocks, axis=-1)[:, num_blocks - blocks]
        wanted = best >= floor[:, np.newaxis]
        for tile in _tiles(wanted.sum(-1).tolist()):
            part = now[tile]
            listed = _list_tokens(logits, batch_rows[part], wanted[tile], floor[tile])
            tokens[part], done[part] = _draw(listed, params.of(part), None if limits is None else limits[part])
    for row in np.flatnonzero(~done).tolist():
        tokens[row] = _draw_from_all(logits[batch_rows[row]], params, row, None if limits is None else int(limits[row]))
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

    def descending(self) -> FloatArray:
        """The logits of each row in descending order, ``[m]``, by one sort of integers.

        The bits of a float32, read as an integer, order positive numbers; the magnitude bits of negative ones are
        flipped. The mapping is its own inverse.
        """
        keys = _ordered_bits((self.logits + np.float32(0.0)).view(np.int32))  # + 0.0 joins -0.0 with 0.0
        rows = self.row << 32
        return _ordered_bits((rows - np.sort(rows - keys)).astype(np.int32)).view(np.float32)


def _tiles(blocks_of_row: list[int]) -> Iterator[slice]:
    """Split rows so that each tile, but for its last row, has fewer than ``_TILE_BLOCKS`` blocks."""
    start = blocks = 0
    for row, count in enumerate(blocks_of_row):
        blocks += count
        if blocks >= _TILE_BLOCKS:
            yield slice(start, row + 1)
            start, blocks = row + 1, 0
    if start < len(blocks_of_row):
        yield slice(start, len(blocks_of_row))


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


def _draw(tokens: _Tokens, params: DrawParams, limits: IndexArray | None) -> tuple[IndexArray, npt.NDArray[np.bool_]]:
    """Draw one of each row's tokens, and tell whether they were all that the row may keep; both ``[n]``.

    Sums run through all rows; what a row's sum started from is subtracted or added where one row is meant.
    """
    row, counts = tokens.row, tokens.counts
    start = np.cumsum(counts) - counts
    inverse_temperature = params.inverse_temperature[row]
    descending = tokens.descending()
    largest = descending[start][row]
    scaled = (descending - largest) * inverse_temperature
    kept = np.arange(len(row)) - start[row] < params.top_k[row]
    kept &= scaled >= params.log_min_p[row]
    if limits is not None:
        before = _sum_before(_integer_weights(scaled))
        kept &= before - before[start][row] < limits[row]
    count = np.maximum(_sum_per_row(kept, start), 1)

    # Kept is what is above the last kept logit, and of the tokens that tie with it the first ones.
    bound = descending[start + count - 1][row]
    keep = tokens.logits > bound
    tied = tokens.logits == bound
    room = count - _sum_per_row(keep, start)
    if (_sum_per_row(tied, start) > room).any():
        tied_before = _sum_before(tied.astype(np.int64))
        tied &= tied_before - tied_before[start][row] < room[row]
    keep |= tied

    weights = _integer_weights((tokens.logits - largest) * inverse_temperature)
    weights *= keep
    cumulative = np.cumsum(weights)
    base = cumulative[start] - weights[start]
    total = cumulative[start + counts - 1] - base
    target = (params.uniform * total).astype(np.int64)
    drawn = np.searchsorted(cumulative, base + target, side="right")
    return tokens.ids[drawn], (count < counts) | (params.top_k <= counts)


def _draw_from_all(logits: FloatArray, params: DrawParams, row: int, limit: int | None) -> int:
    """Draw for one row ``[V]``, whose parameters are the ``row``-th, however much it keeps.

    Its sorted values tell the bound of what is kept, and the draw goes by id again. numpy sorts plain numbers with
    vector instructions, a row of 150,000 in 0.4 ms, where sorting them together with their ids takes 10 ms.
    """
    most = int(min(params.top_k[row], len(logits)))
    first = len(logits) - most
    descending = np.sort(logits if first == 0 else np.partition(logits, first)[first:])[::-1].copy()
    largest = descending[0]
    scaled = descending - largest
    scaled *= params.inverse_temperature[row]
    count = most - int(np.searchsorted(scaled[::-1], params.log_min_p[row]))
    if limit is not None:
        count = min(count, _first_above(_integer_weights(scaled), limit - 1) + 1)
    bound = descending[count - 1]

    weights = logits - largest
    weights *= params.inverse_temperature[row]
    np.exp(weights, out=weights)
    weights *= logits >= bound
    surplus = np.count_nonzero(weights) - count
    if surplus > 0:  # ties with the bound, the last of which are not kept
        weights[np.flatnonzero(logits == bound)[-surplus:]] = 0.0
    units = _units(weights)
    return _first_above(units, int(params.uniform[row] * int(units.sum())))


def _first_above(weights: IndexArray, target: int) -> int:
    """The first position ``[M]`` up to which weights add up to more than ``target``, or the last position."""
    whole = len(weights) // BLOCK * BLOCK
    blocks = np.cumsum(weights[:whole].reshape(-1, BLOCK).sum(-1))
    block = int(np.searchsorted(blocks, target, side="right"))
    before = int(blocks[block - 1]) if block else 0
    inside = np.cumsum(weights[block * BLOCK : (block + 1) * BLOCK])
    position = block * BLOCK + int(np.searchsorted(inside, target - before, side="right"))
    return min(position, len(weights) - 1)


def _ordered_bits(bits: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    ordered: npt.NDArray[np.int32] = bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))
    return ordered


def _integer_weights(scaled: FloatArray) -> IndexArray:
    return _units(np.exp(scaled))


def _units(weights: FloatArray) -> IndexArray:
    units: IndexArray = (weights * np.float32(UNITS)).astype(np.int64)
    return units


def _sum_before(values: IndexArray) -> IndexArray:
    """The sum of everything before each entry."""
    before: IndexArray = np.cumsum(values) - values
    return before


def _sum_per_row(flags: npt.NDArray[np.bool_], start: IndexArray) -> IndexArray:
    """Number of each row's tokens, which begin at ``start`` ``[n]``, have a flag."""
    sums: IndexArray = np.add.reduceat(flags, start, dtype=np.int64)
    return sums
