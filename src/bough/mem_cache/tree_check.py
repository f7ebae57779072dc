"""Checks that a radix tree is what its counters say; for tests and for finding faults."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.eviction import EvictionQueue
from bough.mem_cache.tree_node import NO_SLOTS, TOKEN_BYTES, TreeNode


class TreeCounters(NamedTuple):
    """Numbers that a tree keeps up to date."""

    num_nodes: int
    evictable: int
    protected: int


def check_tree(root: TreeNode, counters: TreeCounters, allocator: SlotAllocator, queue: EvictionQueue) -> None:
    """Walk a whole tree and compare links, pages, locks, sizes and the eviction queue with the counters. Raises
    ``RuntimeError`` if they disagree; the message has the numbers."""
    sizes = {True: 0, False: 0}
    leaves: set[int] = set()
    num_nodes = 0
    for node in root.below():
        num_nodes += 1
        sizes[node.lock_count > 0] += len(node.slots)
        _check_node(node, root, allocator.page_size)
        if node.is_evictable_leaf:
            leaves.add(id(node))
    counted = TreeCounters(num_nodes, sizes[False], sizes[True])
    if counted != counters:
        raise RuntimeError(f"counted {counted}, the counters say {counters}")
    if root.lock_count < sum(child.lock_count for child in root.children.values()):
        raise RuntimeError(f"{root.lock_count} locks at the root are fewer than those below it")

    slots = np.concatenate([NO_SLOTS, *(node.slots for node in root.below())])
    distinct = len(np.unique(slots))
    if distinct != len(slots):
        raise RuntimeError(f"{len(slots)} tokens in the tree have only {distinct} distinct slots")
    if num_free := int(np.count_nonzero(allocator.is_free(slots))):
        raise RuntimeError(f"{num_free} of {len(slots)} slots in the tree are free in the allocator")

    entries = queue.live_entries()
    queued = {id(node) for _, node in entries}
    if not leaves <= queued:
        raise RuntimeError(f"{len(leaves - queued)} of {len(leaves)} evictable leaves are not queued for eviction")
    if not len(queued) == len(entries) == queue.num_live:
        raise RuntimeError(
            f"the eviction queue has {len(entries)} live entries for {len(queued)} nodes, "
            f"its counter says {queue.num_live}"
        )
    late = sum(key > queue.policy.key(node) for key, node in entries if id(node) in leaves)
    if late:
        raise RuntimeError(f"{late} of {len(leaves)} evictable leaves are queued later than their turn")


def _check_node(node: TreeNode, root: TreeNode, page_size: int) -> None:
    num_tokens = len(node.slots)
    if num_tokens == 0 or num_tokens % page_size or len(node.tokens) != num_tokens * TOKEN_BYTES:
        raise RuntimeError(f"{num_tokens} slots for {len(node.tokens) // TOKEN_BYTES} tokens, pages are {page_size}")
    pages = node.slots.reshape(-1, page_size)
    if (pages[:, 0] % page_size).any() or (np.diff(pages, axis=1) != 1).any():
        raise RuntimeError(f"the slots of {node!r} do not lie in whole pages of {page_size}")
    first_page = node.key[1] if isinstance(node.key, tuple) else node.key
    if first_page != node.tokens[: page_size * TOKEN_BYTES]:
        raise RuntimeError(f"{node!r} hangs under a key that is not its first page")
    parent = node.parent
    if parent is None or parent.children.get(node.key) is not node:
        raise RuntimeError(f"{node!r} is not linked with its parent")
    if isinstance(node.key, tuple) and parent is not root:
        raise RuntimeError(f"{node!r} has a namespace below the first level")
    below = sum(child.lock_count for child in node.children.values())
    if node.lock_count < below:
        raise RuntimeError(f"{node!r} has fewer locks than the {below} of its children")
