"""Which pieces of keys, and which tiles of queries, a step's attention has: the planning half of the Triton backend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class DecodePieces:
    """The keys of decode rows, cut into pieces at multiples of a fixed length."""

    pieces: IntArray
    """[n, 2]: row, first key; by row, then ascending"""
    num_pieces: IntArray
    """[1]: n"""
    first_piece: IntArray
    """[R + 1]: where the pieces of each row begin, and n"""


def decode_pieces(seq_lens: IntArray, window: int | None, split_keys: int) -> DecodePieces:
    """Cut the keys that the newest token of each row sees.

    Args:
        seq_lens: ``[R]``, tokens of each sequence, the newest included; 0 for a row without any.
        window: most keys that are seen.
        split_keys: length of a piece; the first and the last one of a row may see fewer keys.
    """
    first_seen = np.maximum(seq_lens - window, 0) if window is not None else np.zeros_like(seq_lens)
    first_split = first_seen // split_keys
    counts = -(-seq_lens // split_keys) - first_split
    first_piece = np.zeros(len(seq_lens) + 1, dtype=np.int32)
    np.cumsum(counts, out=first_piece[1:])
    rows = np.repeat(np.arange(len(seq_lens), dtype=np.int32), counts)
    splits = np.arange(len(rows), dtype=np.int32) - first_piece[rows] + first_split[rows]
    pieces = np.stack((rows, splits * split_keys), axis=1).astype(np.int32)
    return DecodePieces(pieces, np.array([len(rows)], dtype=np.int32), first_piece)


def row_groups(seq_lens: IntArray, max_pieces: int, split_keys: int) -> list[slice]:
    """Runs of decode rows that have at most so many pieces together: as few as go, in order; none for no rows.

    Raises:
        ValueError: if a row alone has more.
    """
    ends = np.cumsum(-(-seq_lens.astype(np.int64) // split_keys))
    groups, begin, before = [], 0, 0
    while begin < len(ends):
        end = int(np.searchsorted(ends, before + max_pieces, side="right"))
        if end == begin:
            raise ValueError(f"a sequence of {seq_lens[begin]} tokens has more than {max_pieces} pieces")
        groups.append(slice(begin, end))
        begin, before = end, int(ends[end - 1])
    return groups


def extend_tiles(req_slots: IntArray, prefix_lens: IntArray, extend_lens: IntArray, tile_queries: int) -> IntArray:
    """Cut the new tokens of each row into tiles of queries ``[n, 4]``, those with the most keys first.

    A tile is request slot, index of the first new token, number of tokens, position of the first.
    """
    counts = -(-extend_lens // tile_queries)
    rows = np.repeat(np.arange(len(extend_lens)), counts)
    within = (np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)) * tile_queries
    begins = np.cumsum(extend_lens) - extend_lens
    lengths = np.minimum(extend_lens[rows] - within, tile_queries)
    positions = prefix_lens[rows] + within
    tiles = np.stack((req_slots[rows], begins[rows] + within, lengths, positions), axis=1).astype(np.int32)
    # What takes longest begins first, so that the device is busy to the end.
    return tiles[np.argsort(-(positions + lengths), kind="stable")]
