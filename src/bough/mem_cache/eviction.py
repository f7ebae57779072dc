"""In which order the leaves of a prefix cache are given up."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from bough.mem_cache.tree_node import TreeNode

EvictionKey = tuple[int, int]
"""Leaves go in ascending order of it."""


class EvictionPolicy(NamedTuple):
    """An order of leaves."""

    key: Callable[[TreeNode], EvictionKey]
    falls_on_access: bool = False
    """True if an access can move a leaf forward in the order; all other policies only ever move it back."""


EVICTION_POLICIES: dict[str, EvictionPolicy] = {
    # least recently used
    "lru": EvictionPolicy(lambda node: (node.last_access, 0)),
    # least frequently used; the older access first among equals
    "lfu": EvictionPolicy(lambda node: (node.hits, node.last_access)),
    # first in, first out, whatever was used since
    "fifo": EvictionPolicy(lambda node: (node.created, 0)),
    # most recently used, for workloads that scan more than fits, over and over
    "mru": EvictionPolicy(lambda node: (-node.last_access, 0), falls_on_access=True),
    # lowest request priority; the older access first among equals
    "priority": EvictionPolicy(lambda node: (node.priority, node.last_access)),
}


class EvictionQueue:
    """The evictable leaves of a tree, cheapest to lose first.

    A heap with lazy invalidation: neither a lock, a new child nor an access touches it. :meth:`pop` drops entries of
    nodes that are no evictable leaves any more, and puts nodes back whose key has grown since they were queued. So
    code that makes a node an evictable leaf must :meth:`offer` it, and under a policy with ``falls_on_access`` so
    must code that accesses one. A node has one live entry at most, the one under its ``queued_key``.

    The cost is O(log n) per offer, and every entry that a pop drops was paid for by the offer that made it.
    """

    def __init__(self, policy: EvictionPolicy) -> None:
        self.policy = policy
        self._heap: list[tuple[EvictionKey, int, TreeNode]] = []
        self._serial = count()
        self.num_live = 0
        """Nodes that have a live entry."""

    def __len__(self) -> int:
        """Entries in the heap, stale ones included."""
        return len(self._heap)

    def offer(self, node: TreeNode) -> None:
        """Note that ``node`` is an evictable leaf. Offering it again costs little and changes nothing."""
        key = self.policy.key(node)
        queued_key = node.queued_key
        if queued_key is None:
            self.num_live += 1
        elif queued_key <= key:
            return
        self._push(key, node)
        if len(self._heap) > 2 * self.num_live + 64:
            self._compact()

    def pop(self) -> TreeNode | None:
        """Take out the evictable leaf that is first in the policy's order, ``None`` if there is none."""
        while self._heap:
            key, _, node = heapq.heappop(self._heap)
            if node.queued_key != key:
                continue
            if node.is_evictable_leaf:
                current_key = self.policy.key(node)
                if current_key != key:
                    self._push(current_key, node)
                    continue
                self._retire(node)
                return node
            self._retire(node)
        return None

    def clear(self) -> None:
        """Forget all nodes."""
        self._heap.clear()
        self.num_live = 0

    def live_entries(self) -> list[tuple[EvictionKey, TreeNode]]:
        """Return the entries that were not superseded, for checks."""
        return [(key, node) for key, _, node in self._heap if node.queued_key == key]

    def _push(self, key: EvictionKey, node: TreeNode) -> None:
        node.queued_key = key
        heapq.heappush(self._heap, (key, next(self._serial), node))

    def _retire(self, node: TreeNode) -> None:
        node.queued_key = None
        self.num_live -= 1

    def _compact(self) -> None:
        """Drop superseded entries, which accesses pile up under a policy with ``falls_on_access``."""
        self._heap = [entry for entry in self._heap if entry[2].queued_key == entry[0]]
        heapq.heapify(self._heap)
