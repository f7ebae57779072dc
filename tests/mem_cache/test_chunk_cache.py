from __future__ import annotations

import numpy as np
import pytest

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.chunk_cache import ChunkCache


@pytest.fixture
def cache() -> ChunkCache:
    return ChunkCache(SlotAllocator(64, 4), 4)


def test_nothing_is_taken_and_nothing_is_found(cache: ChunkCache) -> None:
    run = np.arange(8, dtype=np.int32)
    result = cache.insert(run, run + 4, "a", priority=3)
    assert (result.existing_len, result.owned_len) == (0, 0)
    match = cache.match_prefix(run, "a")
    assert len(match.slots) == cache.matched_len(run, "a") == len(cache.slots_of(match.node)) == 0
    assert match.slots.dtype == np.int32
    assert cache.evictable_size == cache.protected_size == cache.evict(8) == len(cache.owned_slots()) == 0
    cache.check_integrity()


def test_locks_are_counted(cache: ChunkCache) -> None:
    node = cache.match_prefix(np.arange(8, dtype=np.int32)).node
    cache.lock(node)
    assert cache.locks_held == 1
    with pytest.raises(RuntimeError, match="1 locks"):
        cache.reset()
    cache.unlock(node)
    cache.reset()
    with pytest.raises(RuntimeError, match="not locked"):
        cache.unlock(node)


def test_nodes_of_before_a_discard_are_refused(cache: ChunkCache) -> None:
    node = cache.match_prefix(np.arange(8, dtype=np.int32)).node
    cache.lock(node)
    cache.discard()
    assert cache.locks_held == 0
    with pytest.raises(RuntimeError, match="evicted"):
        cache.lock(node)


def test_foreign_page_size_is_refused() -> None:
    with pytest.raises(ValueError, match="not the allocator's"):
        ChunkCache(SlotAllocator(64, 4), 8)
