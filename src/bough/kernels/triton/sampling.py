"""From logits to tokens without sorting them: what :mod:`bough.layers.sampler` defines, a program per row.

A token's weight is ``exp((logit - largest) / temperature)`` in whole units of ``2**-40``, as in
:mod:`bough.sampling.draw`, so sums are exact in any order. Truncation keeps a run of the likeliest tokens. Where that
run ends is found by bisecting the distances of logits from the largest one: the bits of a float32 that is not negative,
read as an integer, are in the order of the numbers. A chunk of the vocabulary whose largest logit is too far away is
not read; where nothing is truncated, only the chunk that the token is in is read again.

With the same seed, and so the same uniform numbers, a row gets the token that torch's sampler and the native one would
choose, but for what the rounding of exponentials decides: a uniform number within about ``2**-18`` of the border of two
tokens, or a top-p within as much of a cumulative probability. Tokens whose distances round to the same float32 count as
equally likely.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from bough.kernels.structures import REPEATED
from bough.kernels.triton.launch import next_power_of_2

_CHUNK = 1024
"""Token ids that are looked at together."""

DRAW_FIELDS = ("random", "uniform", "inverse_temperature", "top_p", "top_k", "log_min_p")
"""Columns of what :func:`choose_tokens` is told of a row."""


@triton.jit
def _has_nan(values):
    return tl.max((values != values).to(tl.int32), 0) > 0  # noqa: PLR0124 - what a NaN is known by


@triton.jit
def _chunk_maxima(logits_ptr, maxima_ptr, vocab_size, num_chunks, CHUNK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    ids = chunk * CHUNK + tl.arange(0, CHUNK)
    values = tl.load(logits_ptr + row * vocab_size + ids, mask=ids < vocab_size, other=float("-inf"))
    largest = tl.max(values, 0)
    largest = tl.where(_has_nan(values), float("nan"), largest)
    tl.store(maxima_ptr + row * num_chunks + chunk, largest)


@triton.jit
def _first_id(found, ids):
    """The lowest of ``ids`` where ``found``; a huge number if there is none."""
    return tl.min(tl.where(found, ids, 2147483647), 0)


@triton.jit
def _units(distance, inverse_temperature):
    """Weights of tokens that are ``distance`` below the largest logit; see the module."""
    return (tl.exp(distance * -inverse_temperature) * 1099511627776.0).to(tl.int64)


@triton.jit
def _chunk_distances(row_ptr, chunk, largest, vocab_size, CHUNK: tl.constexpr):
    ids = chunk * CHUNK + tl.arange(0, CHUNK)
    return largest - tl.load(row_ptr + ids, mask=ids < vocab_size, other=float("-inf"))


@triton.jit
def _chunk_weights(
    logits_ptr,
    maxima_ptr,
    draws_ptr,
    weights_ptr,
    vocab_size,
    num_chunks,
    CHUNK: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Program (row, chunk): the weight of the chunk's tokens; 0 in a row that draws nothing."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    weight = tl.full((), 0, tl.int64)
    if tl.load(draws_ptr + row * 6) > 0.0:
        chunks = tl.arange(0, BLOCK_C)
        maxima = tl.load(maxima_ptr + row * num_chunks + chunks, mask=chunks < num_chunks, other=float("-inf"))
        largest = tl.max(maxima, 0)
        # Weights of a row that is not finite are not asked for.
        if (largest > float("-inf")) & (largest < float("inf")) & (_has_nan(maxima) == 0):
            inverse_temperature = tl.load(draws_ptr + row * 6 + 2).to(tl.float32)
            distance = _chunk_distances(logits_ptr + row * vocab_size, chunk, largest, vocab_size, CHUNK)
            weight = tl.sum(_units(distance, inverse_temperature), 0)
    tl.store(weights_ptr + row * num_chunks + chunk, weight)


@triton.jit
def _below(row_ptr, maxima_ptr, pivot, largest, inverse_temperature, vocab_size, num_chunks, CHUNK: tl.constexpr):
    """How many tokens are nearer to the largest than ``pivot``, and their weight."""
    # Added up over the places of a chunk in the end only: until then no thread waits for another.
    counts = tl.zeros([CHUNK], tl.int32)
    weights = tl.zeros([CHUNK], tl.int64)
    for chunk in range(num_chunks):
        if largest - tl.load(maxima_ptr + chunk) < pivot:
            distance = _chunk_distances(row_ptr, chunk, largest, vocab_size, CHUNK)
            near = distance < pivot
            counts += near.to(tl.int32)
            weights += tl.where(near, _units(distance, inverse_temperature), 0)
    return tl.sum(counts, 0), tl.sum(weights, 0)


@triton.jit
def _kept_weights(distance, ties_before, low, high, most_ties, log_min_p, inverse_temperature):
    """Weights of a chunk's tokens, zero where truncation drops them, and how many tie for the last places."""
    keys = distance.to(tl.int32, bitcast=True)
    tied = (keys >= low) & (keys < high)
    ranks = ties_before + tl.cumsum(tied.to(tl.int64), 0)
    kept = (keys < low) | (tied & (ranks <= most_ties))
    kept = kept & (distance * -inverse_temperature >= log_min_p)
    return tl.where(kept, _units(distance, inverse_temperature), 0), tl.sum(tied.to(tl.int64), 0)


@triton.jit
def _choose(
    logits_ptr,
    maxima_ptr,
    draws_ptr,
    weights_ptr,
    tokens_ptr,
    finite_ptr,
    vocab_size,
    num_chunks,
    HAS_RANDOM: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + row * vocab_size
    maxima_ptr += row * num_chunks
    chunks = tl.arange(0, BLOCK_C)
    maxima = tl.load(maxima_ptr + chunks, mask=chunks < num_chunks, other=float("-inf"))
    has_nan = _has_nan(maxima)
    largest = tl.max(maxima, 0)
    finite = (largest > float("-inf")) & (largest < float("inf")) & (has_nan == 0)
    first = tl.minimum(_first_id(maxima == largest, chunks), num_chunks - 1)
    ids = first * CHUNK + tl.arange(0, CHUNK)
    values = tl.load(row_ptr + ids, mask=ids < vocab_size, other=float("-inf"))
    token = tl.minimum(_first_id(values == largest, ids), vocab_size - 1)
    if HAS_RANDOM:
        draws = draws_ptr + row * 6
        if finite & (tl.load(draws) > 0.0):
            uniform = tl.load(draws + 1)
            inverse_temperature = tl.load(draws + 2).to(tl.float32)
            top_p = tl.load(draws + 3)
            top_k = tl.minimum(tl.load(draws + 4), 1.0e9).to(tl.int32)
            log_min_p = tl.load(draws + 5).to(tl.float32)
            # Beyond this distance a weight is less than a unit.
            reach = 28.0 / inverse_temperature
            high = reach.to(tl.int32, bitcast=True) + 1
            low = high
            most_ties = tl.full((), 0, tl.int64)
            weights = tl.load(weights_ptr + row * num_chunks + chunks, mask=chunks < num_chunks, other=0)
            total = tl.sum(weights, 0)
            if (top_p < 2.0) | (top_k < vocab_size):
                # The run ends somewhere in [low, high): low belongs to it, high does not.
                share = tl.minimum(top_p * total.to(tl.float64), 4611686018427387904.0)
                limit = share.to(tl.int64)
                limit += (limit.to(tl.float64) < share).to(tl.int64)
                low = tl.full((), 0, tl.int32)
                low_count = tl.full((), 0, tl.int32)
                low_weight = tl.full((), 0, tl.int64)
                # More than there can be, until a token that does not belong has been seen.
                high_count = low_count + 2147483647
                high_weight = tl.full((), 0, tl.int64)
                while (high - low > 1) & (high_count - low_count > 1):
                    middle = low + (high - low) // 2
                    pivot = middle.to(tl.float32, bitcast=True)
                    count, weight = _below(
                        row_ptr, maxima_ptr, pivot, largest, inverse_temperature, vocab_size, num_chunks, CHUNK
                    )
                    if (count < top_k) & (weight < limit):
                        low = middle
                        low_count = count
                        low_weight = weight
                    else:
                        high = middle
                        high_count = count
                        high_weight = weight
                # What is between is one token, or tokens of the same distance: the first of them belong, as many as
                # have room. None has any weight if all tokens within reach belong.
                most_ties = (top_k - low_count).to(tl.int64)
                tied_weight = (high_weight - low_weight) // tl.maximum(high_count - low_count, 1)
                if tied_weight > 0:
                    most_ties = tl.minimum(most_ties, (limit - low_weight + tied_weight - 1) // tied_weight)
            nearest = high.to(tl.float32, bitcast=True)
            drawn = tl.full((), 2147483647, tl.int32)
            if (low < high) | (log_min_p > float("-inf")):
                kept_total = tl.full((), 0, tl.int64)
                ties = tl.full((), 0, tl.int64)
                for chunk in range(num_chunks):
                    if largest - tl.load(maxima_ptr + chunk) < nearest:
                        distance = _chunk_distances(row_ptr, chunk, largest, vocab_size, CHUNK)
                        kept, tied = _kept_weights(distance, ties, low, high, most_ties, log_min_p, inverse_temperature)
                        kept_total += tl.sum(kept, 0)
                        ties += tied
                target = (uniform * kept_total.to(tl.float64)).to(tl.int64)
                before = tl.full((), 0, tl.int64)
                ties = tl.full((), 0, tl.int64)
                chunk = tl.full((), 0, tl.int32)
                while (chunk < num_chunks) & (drawn == 2147483647):
                    if largest - tl.load(maxima_ptr + chunk) < nearest:
                        distance = _chunk_distances(row_ptr, chunk, largest, vocab_size, CHUNK)
                        kept, tied = _kept_weights(distance, ties, low, high, most_ties, log_min_p, inverse_temperature)
                        cumulative = before + tl.cumsum(kept, 0)
                        drawn = _first_id(cumulative > target, chunk * CHUNK + tl.arange(0, CHUNK))
                        before += tl.sum(kept, 0)
                        ties += tied
                    chunk += 1
            else:
                target = (uniform * total.to(tl.float64)).to(tl.int64)
                chunk = tl.minimum(_first_id(tl.cumsum(weights, 0) > target, chunks), num_chunks - 1)
                before = tl.sum(tl.where(chunks < chunk, weights, 0), 0)
                distance = _chunk_distances(row_ptr, chunk, largest, vocab_size, CHUNK)
                cumulative = before + tl.cumsum(_units(distance, inverse_temperature), 0)
                drawn = _first_id(cumulative > target, chunk * CHUNK + tl.arange(0, CHUNK))
            token = tl.minimum(drawn, vocab_size - 1)
    tl.store(tokens_ptr + row, token.to(tl.int64))
    tl.store(finite_ptr + row, finite)


def choose_tokens(logits: torch.Tensor, draws: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """One token per row.

    Args:
        logits: float32 ``[S, V]``, contiguous, with all penalties, bans, biases and masks in them.
        draws: float64 ``[S, 6]``, contiguous, the :data:`DRAW_FIELDS` of each row: ``random`` is 0 for greedy rows,
            whose other columns are not read; ``top_p`` and ``top_k`` are infinite where there is none. ``None``: all
            rows are greedy.

    Returns:
        ids, int64 ``[S]``, valid whatever a row holds; and bool ``[S]``, false where a row holds NaN or plus
        infinity, or nothing but minus infinity.
    """
    num_rows, vocab_size = logits.shape
    num_chunks = triton.cdiv(vocab_size, _CHUNK)
    device = logits.device
    maxima = torch.empty(num_rows, num_chunks, dtype=torch.float32, device=device)
    tokens = torch.empty(num_rows, dtype=torch.int64, device=device)
    finite = torch.empty(num_rows, dtype=torch.bool, device=device)
    if num_rows:
        block_c = next_power_of_2(num_chunks)
        _chunk_maxima[(num_rows, num_chunks)](logits, maxima, vocab_size, num_chunks, CHUNK=_CHUNK, num_warps=4)
        weights = None
        if draws is not None:
            weights = torch.empty(num_rows, num_chunks, dtype=torch.int64, device=device)
            _chunk_weights[(num_rows, num_chunks)](
                logits, maxima, draws, weights, vocab_size, num_chunks, CHUNK=_CHUNK, BLOCK_C=block_c, num_warps=4
            )
        _choose[(num_rows,)](
            logits,
            maxima,
            logits if draws is None else draws,
            logits if weights is None else weights,
            tokens,
            finite,
            vocab_size,
            num_chunks,
            HAS_RANDOM=draws is not None,
            CHUNK=_CHUNK,
            BLOCK_C=block_c,
            num_warps=8,
        )
    return tokens, finite


@triton.jit(do_not_specialize=["num_entries"])
def _penalise(
    logits_ptr,
    rows_ptr,
    table_rows_ptr,
    strengths_ptr,
    counts_ptr,
    vocab_size,
    num_entries,
    REPEATED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    entry = tl.program_id(0)
    ids = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = ids < vocab_size
    counts_at = counts_ptr + tl.load(table_rows_ptr + entry).to(tl.int64) * vocab_size + ids
    counts = tl.load(counts_at, mask=inside, other=0)
    touched = counts > 0
    if tl.max(counts, 0) > 0:
        frequency = tl.load(strengths_ptr + entry)
        presence = tl.load(strengths_ptr + num_entries + entry)
        repetition = tl.load(strengths_ptr + 2 * num_entries + entry)
        scoped = tl.load(strengths_ptr + 3 * num_entries + entry) > 0.0
        produced = tl.where(scoped, counts % REPEATED, counts)
        repeated = tl.where(scoped, counts >= REPEATED, touched)
        cost = tl.where(produced > 0, frequency * produced.to(tl.float32) + presence, 0.0)
        at = logits_ptr + tl.load(rows_ptr + entry).to(tl.int64) * vocab_size + ids
        values = tl.load(at, mask=touched, other=0.0)
        values = tl.where(scoped, values, values - cost)
        values = tl.where(repeated, tl.where(values > 0.0, values / repetition, values * repetition), values)
        tl.store(at, tl.where(scoped, values - cost, values), mask=touched)


def penalise(
    logits: torch.Tensor, rows: torch.Tensor, table_rows: torch.Tensor, strengths: torch.Tensor, counts: torch.Tensor
) -> None:
    """Penalise tokens by how often they were generated, in place; see :class:`bough.sampling.penalties.PenaltyTable`.

    Args:
        logits: float32 ``[S, V]``, contiguous.
        rows: int64 ``[p]``, rows of ``logits``.
        table_rows: int64 ``[p]``, rows of ``counts`` for the same requests.
        strengths: float32 ``[4, p]``, contiguous: frequency, presence, repetition, and 1 for rows with a scope.
        counts: int32 ``[rows, V]``, contiguous.
    """
    vocab_size = logits.shape[1]
    grid = (len(rows), triton.cdiv(vocab_size, _CHUNK))
    _penalise[grid](
        *(logits, rows, table_rows, strengths, counts, vocab_size, len(rows)),
        REPEATED=REPEATED,
        BLOCK=_CHUNK,
        num_warps=4,
    )


@triton.jit
def _mask(logits_ptr, rows_ptr, bits_ptr, vocab_size, num_words, BLOCK: tl.constexpr):
    entry = tl.program_id(0).to(tl.int64)
    ids = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = ids < vocab_size
    words = tl.load(bits_ptr + entry * num_words + ids // 32, mask=inside, other=-1)
    forbidden = ((words >> (ids % 32)) & 1) == 0
    at = logits_ptr + tl.load(rows_ptr + entry).to(tl.int64) * vocab_size + ids
    tl.store(at, tl.full([BLOCK], float("-inf"), tl.float32), mask=inside & forbidden)


def mask_tokens(logits: torch.Tensor, rows: torch.Tensor, bits: torch.Tensor) -> None:
    """Make minus infinity, in place, of the logits of tokens that are not allowed.

    Args:
        logits: float32 ``[S, V]``, contiguous.
        rows: int64 ``[G]``, rows of ``logits``.
        bits: int32 ``[G, ceil(V / 32)]``, contiguous: token ``t`` is bit ``t % 32`` of word ``t // 32``.
    """
    vocab_size = logits.shape[1]
    grid = (len(rows), triton.cdiv(vocab_size, _CHUNK))
    _mask[grid](logits, rows, bits, vocab_size, bits.shape[1], BLOCK=_CHUNK, num_warps=4)


@triton.jit
def _log_totals(logits_ptr, largest_ptr, out_ptr, vocab_size, num_chunks, CHUNK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.load(largest_ptr + row)
    sums = tl.zeros([CHUNK], tl.float64)
    for chunk in range(num_chunks):
        distance = _chunk_distances(logits_ptr + row * vocab_size, chunk, largest, vocab_size, CHUNK)
        sums += tl.exp(-distance).to(tl.float64)
    tl.store(out_ptr + row, tl.log(tl.sum(sums, 0)).to(tl.float32))


def log_total_weights(logits: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """``log(sum(exp(row - largest)))`` of each row, summed in an order that only the vocabulary's size decides.

    Float32 ``logits`` ``[k, V]``, contiguous, and the ``largest`` of each row ``[k, 1]`` to float32 ``[k, 1]``.
    """
    num_rows, vocab_size = logits.shape
    out = torch.empty_like(largest)
    if num_rows:
        num_chunks = triton.cdiv(vocab_size, _CHUNK)
        _log_totals[(num_rows,)](logits, largest, out, vocab_size, num_chunks, CHUNK=_CHUNK, num_warps=4)
    return out


def compile_all(vocab_size: int, device: torch.device) -> None:
    """Run every kernel once on a row of zeros, which compiles what is not in Triton's cache."""
    logits = torch.zeros(1, vocab_size, device=device)
    row = torch.zeros(1, dtype=torch.int64, device=device)
    choose_tokens(logits, None)
    choose_tokens(logits, torch.zeros(1, len(DRAW_FIELDS), dtype=torch.float64, device=device))
    counts = torch.zeros(1, vocab_size, dtype=torch.int32, device=device)
    penalise(logits, row, row, torch.zeros(4, 1, device=device), counts)
    log_total_weights(logits, logits[:, :1])
    mask_tokens(logits, row, torch.zeros(1, triton.cdiv(vocab_size, 32), dtype=torch.int32, device=device))
