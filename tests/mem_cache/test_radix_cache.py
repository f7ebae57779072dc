from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.eviction import EVICTION_POLICIES
from bough.mem_cache.radix_cache import InsertResult, RadixCache
from bough.mem_cache.tree_check import _check_node
from bough.mem_cache.tree_node import TreeNode
from bough.step_plan import IntArray
from tests.thoroughness import examples

PAGE_SIZES = [1, 2, 16, 64]


def ids(*values: int) -> IntArray:
    return np.array(values, dtype=np.int32)


def build(page_size: int = 1, num_tokens: int = 1024, policy: str = "lru") -> tuple[SlotAllocator, RadixCache]:
    allocator = SlotAllocator(num_tokens, page_size)
    return allocator, RadixCache(allocator, page_size, policy)


def put(
    cache: RadixCache,
    allocator: SlotAllocator,
    token_ids: IntArray,
    extra_key: str | None = None,
    priority: int = 0,
) -> InsertResult:
    """Insert a run as a request does that has computed all of it: what the cache does not own is freed."""
    slots = allocator.alloc_extend(len(token_ids), 0, -1)
    assert slots is not None
    result = cache.insert(token_ids, slots, extra_key, priority)
    allocator.free(slots[: result.existing_len])
    allocator.free(slots[result.owned_len :])
    return result


def test_an_empty_cache_matches_nothing() -> None:
    _, cache = build()
    result = cache.match_prefix(ids(1, 2, 3))
    assert len(result.slots) == 0
    assert result.slots.dtype == np.int32
    assert cache.matched_len(ids(1, 2, 3)) == 0
    assert len(cache.match_prefix(ids()).slots) == 0


def test_what_was_inserted_is_found_at_its_slots() -> None:
    _, cache = build()
    assert cache.insert(ids(1, 2, 3), ids(7, 8, 9)) == (0, 3, cache.match_prefix(ids(1, 2, 3)).node)
    assert cache.match_prefix(ids(1, 2, 3, 4)).slots.tolist() == [7, 8, 9]
    assert cache.match_prefix(ids(1, 2)).slots.tolist() == [7, 8]
    assert cache.match_prefix(ids(2, 3)).slots.tolist() == []


def test_the_cache_keeps_copies() -> None:
    _, cache = build()
    tokens, slots = ids(1, 2, 3), ids(7, 8, 9)
    cache.insert(tokens, slots)
    tokens[:] = 0
    slots[:] = 0
    match = cache.match_prefix(ids(1, 2, 3)).slots
    assert match.tolist() == [7, 8, 9]
    match[:] = 0
    assert cache.match_prefix(ids(1, 2, 3)).slots.tolist() == [7, 8, 9]


def test_strided_and_wider_ids_mean_the_same() -> None:
    _, cache = build()
    cache.insert(ids(1, 2, 3), ids(7, 8, 9))
    assert cache.matched_len(np.array([1, 0, 2, 0, 3, 0])[::2]) == 3  # type: ignore[arg-type]


def test_slots_that_existed_before_remain_the_callers() -> None:
    allocator, cache = build()
    first = put(cache, allocator, ids(1, 2, 3, 4))
    second = put(cache, allocator, ids(1, 2, 9, 9, 9))
    assert (first.existing_len, first.owned_len) == (0, 4)
    assert (second.existing_len, second.owned_len) == (2, 5)
    assert allocator.total_size - allocator.available_size == cache.evictable_size == 7
    shared = cache.match_prefix(ids(1, 2)).slots.tolist()
    assert cache.slots_of(first.node).tolist()[:2] == cache.slots_of(second.node).tolist()[:2] == shared
    assert cache.slots_of(second.node, start=3).tolist() == cache.slots_of(second.node).tolist()[3:]


def test_too_few_slots_are_refused() -> None:
    _, cache = build()
    with pytest.raises(ValueError, match="2 slots for 3 tokens"):
        cache.insert(ids(1, 2, 3), ids(7, 8))
    assert cache.num_nodes == 0


def test_only_whole_pages_are_kept_and_matched() -> None:
    for page_size in [4, 16]:
        allocator, cache = build(page_size)
        run = np.arange(3 * page_size + page_size // 2, dtype=np.int32)
        result = put(cache, allocator, run)
        assert result.owned_len == cache.evictable_size == 3 * page_size
        assert len(cache.match_prefix(run).slots) == 3 * page_size
        assert cache.matched_len(run[: 2 * page_size + 1]) == 2 * page_size
        assert cache.matched_len(run[: page_size - 1]) == 0
        late = run.copy()
        late[2 * page_size - 1] += 1
        assert cache.matched_len(late) == page_size
        assert put(cache, allocator, run[: page_size - 1]).owned_len == 0


def test_matching_does_not_depend_on_lookups_that_mutate_nothing() -> None:
    allocator, cache = build()
    put(cache, allocator, np.arange(10, dtype=np.int32))
    before = (cache.num_nodes, cache.match_prefix(np.arange(10, dtype=np.int32)).node.last_access)
    assert cache.matched_len(ids(0, 1, 2, 99)) == 3
    after = (cache.num_nodes, cache._root.children[ids(0).tobytes()].last_access)
    assert before == after


def test_namespaces_share_nothing() -> None:
    allocator, cache = build()
    run = ids(1, 2, 3)
    for extra_key in (None, "", "a", "b"):
        assert cache.matched_len(run, extra_key) == 0
        assert put(cache, allocator, run, extra_key).existing_len == 0
    found = [cache.match_prefix(run, key).slots.tolist() for key in (None, "", "a", "b")]
    assert len({slot for slots in found for slot in slots}) == 12
    cache.check_integrity()


def test_an_evicted_namespace_leaves_nothing_behind() -> None:
    allocator, cache = build()
    for salt in range(50):
        put(cache, allocator, ids(1, 2, 3), f"salt {salt}")
        cache.match_prefix(ids(9), f"never inserted {salt}")
    cache.evict(1024)
    assert cache.num_nodes == 0
    assert not cache._root.children
    assert len(cache._queue) == 0


def test_a_locked_path_is_not_evicted() -> None:
    allocator, cache = build()
    node = put(cache, allocator, ids(1, 2, 3)).node
    put(cache, allocator, ids(1, 2, 9, 9))
    cache.lock(node)
    assert (cache.evictable_size, cache.protected_size, cache.locks_held) == (2, 3, 1)
    assert cache.evict(1024) == 2
    assert cache.matched_len(ids(1, 2, 3)) == 3
    cache.unlock(node)
    assert (cache.evictable_size, cache.protected_size, cache.locks_held) == (3, 0, 0)
    assert cache.evict(1024) == 3
    assert allocator.available_size == 1024


def test_a_lock_outlives_a_split_of_its_node() -> None:
    allocator, cache = build()
    node = put(cache, allocator, ids(1, 2, 3, 4)).node
    cache.lock(node)
    upper = cache.match_prefix(ids(1, 2)).node
    assert cache.slots_of(node).tolist()[:2] == cache.slots_of(upper).tolist()
    assert cache.evict(1024) == 0
    cache.unlock(node)
    cache.check_integrity()
    assert cache.evict(1024) == 4


def test_both_parts_of_a_split_run_keep_its_rank_for_eviction() -> None:
    allocator, cache = build()
    lower = put(cache, allocator, ids(1, 2, 3, 4), priority=3).node
    put(cache, allocator, ids(9))
    cache.match_prefix(ids(1, 2, 3, 4))
    upper = cache.match_prefix(ids(1, 2)).node
    assert upper is lower.parent
    assert (upper.hits, lower.hits) == (2, 1)
    assert upper.last_access > lower.last_access
    assert (upper.priority, upper.created) == (lower.priority, lower.created) == (3, 1)


def test_unlocking_what_is_not_locked_raises() -> None:
    allocator, cache = build()
    node = put(cache, allocator, ids(1, 2)).node
    with pytest.raises(RuntimeError, match="not locked"):
        cache.unlock(node)


def test_locking_an_evicted_node_raises() -> None:
    allocator, cache = build()
    node = put(cache, allocator, ids(1, 2)).node
    cache.evict(1)
    with pytest.raises(RuntimeError, match="evicted"):
        cache.lock(node)
    assert cache.locks_held == 0


def test_the_root_can_be_locked() -> None:
    _, cache = build()
    node = cache.match_prefix(ids(1)).node
    cache.lock(node)
    assert cache.locks_held == 1
    cache.unlock(node)
    assert cache.locks_held == 0


def test_eviction_stops_when_enough_is_free() -> None:
    allocator, cache = build()
    for first in range(5):
        put(cache, allocator, ids(first, 0, 0))
    assert cache.evict(4) == 6
    assert cache.evict(0) == 0
    assert cache.evictable_size == 9
    assert allocator.available_size == 1024 - 9


def test_reset_gives_everything_back() -> None:
    allocator, cache = build(page_size=16)
    put(cache, allocator, np.arange(100, dtype=np.int32), "a")
    put(cache, allocator, np.arange(80, dtype=np.int32))
    cache.reset()
    assert allocator.available_size == 1024
    assert cache.evictable_size == cache.num_nodes == 0
    assert cache.matched_len(np.arange(100, dtype=np.int32), "a") == 0
    put(cache, allocator, np.arange(100, dtype=np.int32), "a")
    cache.check_integrity()


def test_reset_is_refused_while_a_lock_is_held() -> None:
    allocator, cache = build()
    node = put(cache, allocator, ids(1, 2)).node
    cache.lock(node)
    with pytest.raises(RuntimeError, match="1 locks keep 2 tokens"):
        cache.reset()
    assert cache.matched_len(ids(1, 2)) == 2


def test_a_long_chain_does_not_recurse() -> None:
    depth = 2000
    allocator, cache = build(num_tokens=depth)
    run = np.arange(depth, dtype=np.int32)
    slots = allocator.alloc_extend(depth, 0, -1)
    assert slots is not None
    for length in range(1, depth + 1):
        cache.insert(run[:length], slots[:length])
    assert cache.num_nodes == depth
    cache.check_integrity()
    node = cache.match_prefix(run).node
    cache.lock(node)
    cache.unlock(node)
    assert cache.evict(depth) == depth


def test_unknown_policy_and_foreign_page_size_are_refused() -> None:
    allocator = SlotAllocator(64, 4)
    with pytest.raises(ValueError, match="unknown eviction policy 'best', not one of lru, lfu, fifo, mru, priority"):
        RadixCache(allocator, 4, "best")
    with pytest.raises(ValueError, match="not the allocator's"):
        RadixCache(allocator, 8)


class TestIntegrityCheck:
    """It must be able to fail: each test breaks one thing."""

    def broken(self) -> tuple[RadixCache, TreeNode, TreeNode]:
        allocator, cache = build(page_size=2)
        upper = put(cache, allocator, ids(1, 2)).node
        lower = put(cache, allocator, ids(1, 2, 3, 4)).node
        cache.check_integrity()
        return cache, upper, lower

    def test_sizes(self) -> None:
        cache, _, _ = self.broken()
        cache.evictable_size += 2
        with pytest.raises(RuntimeError, match=r"evictable=4.*evictable=6"):
            cache.check_integrity()

    def test_lock_counts(self) -> None:
        cache, upper, lower = self.broken()
        cache.lock(lower)
        upper.lock_count = 0
        with pytest.raises(RuntimeError, match="fewer locks than the 1 of its children"):
            cache.check_integrity()

    def test_locks_at_the_root(self) -> None:
        cache, _, lower = self.broken()
        cache.lock(lower)
        cache._root.lock_count = 0
        with pytest.raises(RuntimeError, match="0 locks at the root"):
            cache.check_integrity()

    def test_a_slot_twice(self) -> None:
        cache, upper, lower = self.broken()
        lower.slots = upper.slots.copy()
        with pytest.raises(RuntimeError, match="4 tokens in the tree have only 2 distinct slots"):
            cache.check_integrity()

    def test_a_free_slot(self) -> None:
        cache, _, lower = self.broken()
        cache._allocator.free(lower.slots)
        with pytest.raises(RuntimeError, match="2 of 4 slots in the tree are free"):
            cache.check_integrity()

    def test_slots_out_of_page(self) -> None:
        cache, _, lower = self.broken()
        lower.slots = lower.slots[::-1].copy()
        with pytest.raises(RuntimeError, match="whole pages of 2"):
            cache.check_integrity()

    def test_tokens_without_slots(self) -> None:
        cache, _, lower = self.broken()
        lower.slots = lower.slots[:0]
        with pytest.raises(RuntimeError, match="0 slots for 2 tokens"):
            _check_node(lower, cache._root, cache.page_size)

    def test_wrong_key(self) -> None:
        cache, _, lower = self.broken()
        lower.tokens = ids(5, 6).tobytes()
        with pytest.raises(RuntimeError, match="not its first page"):
            cache.check_integrity()

    def test_unlinked(self) -> None:
        cache, _, lower = self.broken()
        lower.parent = cache._root
        with pytest.raises(RuntimeError, match="not linked"):
            cache.check_integrity()

    def test_a_leaf_that_eviction_would_miss(self) -> None:
        cache, _, lower = self.broken()
        lower.queued_key = None
        with pytest.raises(RuntimeError, match="1 of 1 evictable leaves are not queued"):
            cache.check_integrity()

    def test_the_queue_counts_wrong(self) -> None:
        cache, _, _ = self.broken()
        cache._queue.num_live += 1
        with pytest.raises(RuntimeError, match="2 live entries for 2 nodes, its counter says 3"):
            cache.check_integrity()

    def test_a_leaf_queued_later_than_its_turn(self) -> None:
        cache, _, lower = self.broken()
        lower.last_access = -1
        with pytest.raises(RuntimeError, match="queued later than their turn"):
            cache.check_integrity()


class TreeAgainstModel(RuleBasedStateMachine):
    """The tree against a dictionary from every known prefix of whole pages to the slots of its last page.

    Prompts are sequences of pages out of a few patterns, of which some differ in their last token only, and a piece
    of a page.
    """

    @initialize(
        page_size=st.sampled_from(PAGE_SIZES),
        policy=st.sampled_from(sorted(EVICTION_POLICIES)),
    )
    def build(self, page_size: int, policy: str) -> None:
        self.page_size = page_size
        self.allocator = SlotAllocator(24 * page_size, page_size)
        self.cache = RadixCache(self.allocator, page_size, policy)
        self.known: dict[tuple[str | None, tuple[int, ...]], tuple[int, ...]] = {}
        self.locks: list[tuple[str | None, tuple[int, ...], TreeNode]] = []

    def tokens(self, pages: tuple[int, ...], tail: int) -> IntArray:
        run = np.zeros((len(pages), self.page_size), dtype=np.int32)
        run[:, -1] = pages
        return np.append(run.ravel(), np.full(tail % self.page_size, 7, dtype=np.int32))

    def known_pages(self, key: str | None, pages: tuple[int, ...]) -> int:
        count = 0
        while count < len(pages) and (key, pages[: count + 1]) in self.known:
            count += 1
        return count

    def known_slots(self, key: str | None, pages: tuple[int, ...]) -> list[int]:
        return [slot for i in range(len(pages)) for slot in self.known[key, pages[: i + 1]]]

    def locked_prefixes(self) -> set[tuple[str | None, tuple[int, ...]]]:
        return {(key, pages[: i + 1]) for key, pages, _ in self.locks for i in range(len(pages))}

    keys = st.sampled_from([None, "a"])
    prompts = st.lists(st.integers(0, 2), max_size=6).map(tuple)
    tails = st.integers(0, 63)

    @rule(key=keys, pages=prompts, tail=tails)
    def match(self, key: str | None, pages: tuple[int, ...], tail: int) -> None:
        run = self.tokens(pages, tail)
        count = self.known_pages(key, pages)
        assert self.cache.matched_len(run, key) == count * self.page_size
        slots, node = self.cache.match_prefix(run, key)
        assert slots.tolist() == self.known_slots(key, pages[:count]) == self.cache.slots_of(node).tolist()
        assert self.cache.matched_len(run, key) == count * self.page_size

    @rule(key=keys, pages=prompts, tail=tails, priority=st.integers(-1, 2))
    def insert(self, key: str | None, pages: tuple[int, ...], tail: int, priority: int) -> None:
        run = self.tokens(pages, tail)
        count = self.known_pages(key, pages)
        prefix = self.known_slots(key, pages[:count])
        new = self.allocator.alloc_extend(len(run) - len(prefix), len(prefix), prefix[-1] if prefix else -1)
        if new is None:
            return
        slots = np.append(ids(*prefix), new)
        existing_len, owned_len, node = self.cache.insert(run, slots, key, priority)
        assert existing_len == count * self.page_size
        assert owned_len == len(pages) * self.page_size
        assert self.cache.slots_of(node).tolist() == slots[:owned_len].tolist()
        self.allocator.free(slots[owned_len:])
        for i in range(count, len(pages)):
            page = slots[i * self.page_size : (i + 1) * self.page_size]
            self.known[key, pages[: i + 1]] = tuple(page.tolist())

    @rule(key=keys, pages=prompts)
    def insert_duplicates(self, key: str | None, pages: tuple[int, ...]) -> None:
        """A run computed without looking: all of its slots are new, those of known pages come back."""
        run = self.tokens(pages, 0)
        slots = self.allocator.alloc_extend(len(run), 0, -1)
        if slots is None:
            return
        existing_len, owned_len, node = self.cache.insert(run, slots, key)
        count = self.known_pages(key, pages)
        assert existing_len == count * self.page_size
        assert owned_len == len(run)
        self.allocator.free(slots[:existing_len])
        for i in range(count, len(pages)):
            page = slots[i * self.page_size : (i + 1) * self.page_size]
            self.known[key, pages[: i + 1]] = tuple(page.tolist())
        assert self.cache.slots_of(node).tolist() == self.known_slots(key, pages)

    @rule(key=keys, pages=prompts)
    def lock(self, key: str | None, pages: tuple[int, ...]) -> None:
        slots, node = self.cache.match_prefix(self.tokens(pages, 0), key)
        self.cache.lock(node)
        self.locks.append((key, pages[: len(slots) // self.page_size], node))

    @precondition(lambda self: self.locks)
    @rule(pick=st.integers(0, 100))
    def unlock(self, pick: int) -> None:
        _, _, node = self.locks.pop(pick % len(self.locks))
        self.cache.unlock(node)

    @rule(num_pages=st.integers(0, 8))
    def evict(self, num_pages: int) -> None:
        evictable = self.cache.evictable_size
        available = self.allocator.available_size
        freed = self.cache.evict(num_pages * self.page_size)
        assert freed >= min(num_pages * self.page_size, evictable)
        assert self.allocator.available_size == available + freed
        locked = self.locked_prefixes()
        for prefix, slots in list(self.known.items()):
            if self.allocator.is_free(ids(*slots)).all():
                assert prefix not in locked
                del self.known[prefix]
        for key, pages in self.known:
            assert len(pages) == 1 or (key, pages[:-1]) in self.known

    @rule()
    def evict_first_in_order(self) -> None:
        """The lazily kept queue names the same leaf as a look at all of them."""
        leaves = [node for node in self.cache._root.below() if node.is_evictable_leaf]
        first = min(leaves, key=self.cache._queue.policy.key, default=None)
        freed = self.cache.evict(1)
        assert freed == (0 if first is None else len(first.slots))
        if first is not None:
            assert self.allocator.is_free(first.slots).all()
            freed_pages = {tuple(page) for page in first.slots.reshape(-1, self.page_size).tolist()}
            self.known = {prefix: page for prefix, page in self.known.items() if page not in freed_pages}

    @precondition(lambda self: not self.locks)
    @rule()
    def reset(self) -> None:
        self.cache.reset()
        self.known.clear()
        assert self.allocator.available_size == self.allocator.total_size

    @invariant()
    def everything_adds_up(self) -> None:
        if not hasattr(self, "cache"):
            return
        self.cache.check_integrity()
        self.allocator.check_integrity()
        locked = len(self.locked_prefixes()) * self.page_size
        assert self.cache.protected_size == locked
        assert self.cache.evictable_size == len(self.known) * self.page_size - locked
        assert self.cache.locks_held == len(self.locks)
        assert sorted(self.cache.owned_slots().tolist()) == sorted(s for page in self.known.values() for s in page)
        assert self.allocator.available_size + len(self.known) * self.page_size == self.allocator.total_size


TreeAgainstModel.TestCase.settings = settings(max_examples=examples(120), stateful_step_count=40)
TestTreeAgainstModel = TreeAgainstModel.TestCase
