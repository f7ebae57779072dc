"""Memory on huge pages, handed out in pieces."""

from __future__ import annotations

import errno
import gc
import itertools
import mmap

import pytest
import torch

from bough.errors import StartupError
from bough.kernels.host_memory import HUGE_PAGE_BYTES, HugePageArena, huge_pages
from tests.tables import table

CHUNK = 2**26
SIZES = [0, 1, 64, 65, CHUNK - 1, CHUNK, CHUNK + 1]


@table("size", SIZES)
def test_memory_is_of_the_size_zero_and_begins_with_a_huge_page(size: int) -> None:
    memory = huge_pages(size)
    assert memory.shape == (size,)
    assert memory.dtype == torch.uint8
    assert size == 0 or memory.data_ptr() % HUGE_PAGE_BYTES == 0
    assert not memory[:4096].any()
    assert not memory[-4096:].any()


def test_what_the_system_refuses_is_said_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(StartupError, match=r"refuses 3\.00 GiB \(Cannot allocate memory\); lower .*--max-total-tokens"):
        huge_pages(3 * 2**30 - HUGE_PAGE_BYTES)


def test_pieces_are_aligned_zeros_that_do_not_overlap() -> None:
    arena = HugePageArena()
    pieces = [arena.zeros(size) for size in (1, 0, 64, 63, 65, 3, CHUNK - 64, 7, CHUNK + 1, 130, 2**20)]
    filled = [piece for piece in pieces if len(piece)]
    for piece in filled:
        assert piece.data_ptr() % 64 == 0
        assert not piece[:4096].any()
    ranges = sorted((piece.data_ptr(), piece.data_ptr() + len(piece)) for piece in filled)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ranges))


def test_small_pieces_share_a_chunk() -> None:
    arena = HugePageArena()
    first, second = arena.zeros(100), arena.zeros(100)
    assert second.data_ptr() - first.data_ptr() == 128


def test_a_chunk_lives_as_long_as_a_piece_of_it() -> None:
    arena = HugePageArena()
    arena.zeros(1000).fill_(1)
    piece = arena.zeros(1000).fill_(7)
    del arena
    gc.collect()
    others = [huge_pages(CHUNK)[:4096].fill_(9) for _ in range(3)]
    assert bool((piece == 7).all())
    assert all(bool((other == 9).all()) for other in others)
