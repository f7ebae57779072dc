from __future__ import annotations

import numpy as np
import pytest

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.eviction import EVICTION_POLICIES, EvictionQueue
from bough.mem_cache.radix_cache import RadixCache
from bough.mem_cache.tree_node import TreeNode
from bough.step_plan import IntArray


class Tree:
    """A cache of runs that are named by their first token and share nothing."""

    def __init__(self, policy: str) -> None:
        self.allocator = SlotAllocator(4096, 1)
        self.cache = RadixCache(self.allocator, 1, policy)
        self.names: list[int] = []

    def insert(self, name: int, *, priority: int = 0) -> TreeNode:
        slots = self.allocator.alloc_extend(2, 0, -1)
        assert slots is not None
        result = self.cache.insert(self.run(name), slots, priority=priority)
        self.allocator.free(slots[: result.existing_len])
        if name not in self.names:
            self.names.append(name)
        return result.node

    def use(self, name: int) -> None:
        assert len(self.cache.match_prefix(self.run(name)).slots) == 2

    def evict_all(self) -> list[int]:
        """Evict one leaf at a time; return their names in order."""
        order = []
        while self.cache.evict(1):
            gone = [name for name in self.names if self.cache.matched_len(self.run(name)) == 0]
            self.names = [name for name in self.names if name not in gone]
            order += gone
        return order

    @staticmethod
    def run(name: int) -> IntArray:
        return np.array([name, 0], dtype=np.int32)


def used_tree(policy: str) -> Tree:
    tree = Tree(policy)
    for name in (1, 2, 3, 4):
        tree.insert(name)
    for name in (2, 1, 2, 4, 1, 2):
        tree.use(name)
    return tree


def test_order_of_eviction() -> None:
    cases = [
        ("lru", [3, 4, 1, 2]),
        ("lfu", [3, 4, 1, 2]),
        ("fifo", [1, 2, 3, 4]),
        ("mru", [2, 1, 4, 3]),
        ("priority", [3, 4, 1, 2]),
    ]
    for policy, order in cases:
        assert used_tree(policy).evict_all() == order


def test_lfu_prefers_rarely_used_to_long_unused() -> None:
    tree = Tree("lfu")
    tree.insert(1)
    tree.use(1)
    tree.use(1)
    tree.insert(2)
    tree.use(2)
    assert tree.evict_all() == [2, 1]


def test_priority_goes_before_age_and_is_the_highest_ever_asked_for() -> None:
    tree = Tree("priority")
    tree.insert(1, priority=5)
    tree.insert(2, priority=-1)
    tree.insert(3, priority=0)
    tree.insert(1, priority=-5)
    tree.insert(4, priority=-3)
    tree.insert(4, priority=9)
    tree.use(2)
    assert tree.evict_all() == [2, 3, 1, 4]


def test_a_parent_goes_after_its_children() -> None:
    for policy in sorted(EVICTION_POLICIES):
        allocator = SlotAllocator(64, 1)
        cache = RadixCache(allocator, 1, policy)
        for last in (8, 9):
            slots = allocator.alloc_extend(3, 0, -1)
            assert slots is not None
            result = cache.insert(np.array([1, 2, last], dtype=np.int32), slots)
            allocator.free(slots[: result.existing_len])
        shared = np.array([1, 2], dtype=np.int32)
        cache.match_prefix(shared)
        assert cache.evict(1) == 1
        assert cache.evict(1) == 1
        assert cache.matched_len(shared) == 2
        assert cache.evict(1) == 2


def test_a_leaf_that_was_locked_takes_its_turn_again() -> None:
    for policy in sorted(EVICTION_POLICIES):
        tree = Tree(policy)
        nodes = [tree.insert(name) for name in (1, 2, 3)]
        for node in nodes:
            tree.cache.lock(node)
        assert tree.evict_all() == []
        for node in reversed(nodes):
            tree.cache.unlock(node)
        assert sorted(tree.evict_all()) == [1, 2, 3]


def test_the_queue_does_not_grow_with_accesses() -> None:
    for policy in sorted(EVICTION_POLICIES):
        tree = Tree(policy)
        for name in range(10):
            tree.insert(name)
        for i in range(5000):
            tree.use(i * 7 % 10)
        assert len(tree.cache._queue) <= 2 * 10 + 64
        assert len(tree.evict_all()) == 10


def test_offering_a_leaf_again_queues_it_once() -> None:
    queue = EvictionQueue(EVICTION_POLICIES["lru"])
    root = TreeNode.root()
    leaf = TreeNode(root, b"leaf", b"leaf", np.array([1], dtype=np.int32))
    queue.offer(leaf)
    queue.offer(leaf)
    assert len(queue) == 1
    assert queue.pop() is leaf
    assert queue.pop() is None


def test_evicting_costs_no_walk_over_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys computed for one eviction do not grow with the number of leaves."""
    tree = Tree("lru")
    for name in range(2000):
        tree.insert(name)
    asked = 0
    policy = tree.cache._queue.policy

    def counted(node: TreeNode) -> tuple[int, int]:
        nonlocal asked
        asked += 1
        return policy.key(node)

    monkeypatch.setattr(tree.cache._queue, "policy", policy._replace(key=counted))
    assert tree.cache.evict(1) == 2
    assert asked == 1
