"""The radix tree over token prefixes: requests that start alike share the keys and values of what they share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.eviction import EVICTION_POLICIES, EvictionQueue
from bough.mem_cache.outline import NodeOutline, outline
from bough.mem_cache.tree_check import TreeCounters, check_tree
from bough.mem_cache.tree_node import NO_SLOTS, TOKEN_BYTES, NodeKey, TreeNode, as_run
from bough.step_plan import IntArray


class MatchResult(NamedTuple):
    """Answer of :meth:`RadixCache.match_prefix`."""

    slots: IntArray
    """KV slots of the matched tokens, a fresh copy; its length is a multiple of the page size."""
    node: TreeNode
    """Last node of the matched path, the root if nothing matched; to be locked before anything else is inserted or
    evicted, or it may be gone."""


class InsertResult(NamedTuple):
    """Answer of :meth:`RadixCache.insert`: who owns what now.

    ::

        0            existing_len          owned_len          len(token_ids)
        | at the slots | at the slots given  | still the         |
        | it had before| by the caller       | caller's          |
        |<------- owned by the cache ------->|
    """

    existing_len: int
    """Tokens that the cache had before, at slots of its own: where the caller's slots differ from them, they are
    duplicates, still the caller's, and must be freed."""
    owned_len: int
    """Tokens that the cache owns now: the run's whole pages, or 0 for a cache that keeps nothing."""
    node: TreeNode
    """Last node of the run's path; to be locked before anything else is inserted or evicted."""


class RadixCache:
    """A compressed trie whose edges are runs of whole pages (RadixAttention, arXiv 2312.07104, section 3).

    Remembers at which KV slots the tokens of earlier runs are. It owns the slots of what it remembers and gives them
    back to the allocator on :meth:`evict` and :meth:`reset`. A run belongs to a namespace, ``extra_key``; namespaces
    share nothing (``None`` is one of them, ``""`` another).

    A namespace is part of the key of the nodes below the root, so that it costs nothing until something is inserted
    and leaves nothing behind. Two children of a node differ within their first page; what they share of it is not
    shared in memory.

    Every operation costs one dictionary lookup and one ``memcmp`` per node on its path, plus the copies it returns or
    keeps; the size of the tree does not enter.
    Every size and length is in tokens. No method is safe against concurrent calls.

    Attributes, read-only for others:
        page_size: tokens per page; only whole pages are remembered.
        num_nodes: nodes in the tree, without the root.
        evictable_size: tokens that :meth:`evict` could give back now.
        protected_size: tokens that are kept by locks.
    """

    def __init__(self, allocator: SlotAllocator, page_size: int, eviction_policy: str = "lru") -> None:
        if page_size != allocator.page_size:
            raise ValueError(f"page size {page_size} is not the allocator's, {allocator.page_size}")
        if eviction_policy not in EVICTION_POLICIES:
            raise ValueError(f"unknown eviction policy {eviction_policy!r}, not one of {', '.join(EVICTION_POLICIES)}")
        self.page_size = page_size
        self._page_bytes = page_size * TOKEN_BYTES
        self._allocator = allocator
        self._queue = EvictionQueue(EVICTION_POLICIES[eviction_policy])
        self._root = TreeNode.root()
        self._clock = 0
        self.num_nodes = 0
        self.evictable_size = 0
        self.protected_size = 0

    @property
    def locks_held(self) -> int:
        """Calls of :meth:`lock` that were not undone yet: every lock passes the root."""
        return self._root.lock_count

    def match_prefix(self, token_ids: IntArray, extra_key: str | None = None) -> MatchResult:
        """Find the longest known prefix of ``token_ids`` [n] in whole pages.

        Mutates: access time and hits along the path; splits a node where the match ends inside one. The result's
        slots are a copy, but what they name stays in place only until the next :meth:`evict` or :meth:`reset`, unless
        the node is locked before.
        """
        node, _, partial, shared = self._descend(as_run(token_ids), extra_key)
        if partial is not None:
            node = partial.split(shared, self._page_bytes)
            self.num_nodes += 1
        self._clock = now = self._clock + 1
        runs: list[IntArray] = []
        for step in node.upwards():
            step.note_use(now)
            step.hits += 1
            runs.append(step.slots)
        self._requeue_accessed(node)
        if not runs:
            return MatchResult(NO_SLOTS, node)
        runs.reverse()
        return MatchResult(np.concatenate(runs), node)

    def matched_len(self, token_ids: IntArray, extra_key: str | None = None) -> int:
        """Return how many tokens :meth:`match_prefix` would match. Mutates nothing."""
        # Asked of every waiting request in every step, mostly in vain: one page is enough to tell.
        first_page = as_run(token_ids[: self.page_size])
        if (first_page if extra_key is None else (extra_key, first_page)) not in self._root.children:
            return 0
        _, matched, _, shared = self._descend(as_run(token_ids), extra_key)
        return (matched + shared) // TOKEN_BYTES

    def unheld_len(self, token_ids: IntArray, extra_key: str | None = None) -> int:
        """Return how many of the tokens that :meth:`match_prefix` would match no lock keeps. Mutates nothing."""
        node, _, partial, shared = self._descend(as_run(token_ids), extra_key)
        unheld = shared // TOKEN_BYTES if partial is not None and partial.lock_count == 0 else 0
        for step in node.upwards():
            if step.lock_count:
                break  # so is all above it
            unheld += len(step.slots)
        return unheld

    def insert(
        self,
        token_ids: IntArray,
        slots: IntArray,
        extra_key: str | None = None,
        priority: int = 0,
        *,
        below: TreeNode | None = None,
    ) -> InsertResult:
        """Remember the whole pages of a run ``[n]``, whose token ``i`` is at ``slots[i]``; raises ``ValueError`` for
        fewer slots than tokens.

        ``slots`` must lie in whole pages like the tokens. Mutates: takes ownership of ``slots[existing_len:owned_len]``
        of the result (:class:`InsertResult` says what remains the caller's), copies what it keeps, refreshes access
        times and raises priorities along the path, may split a node.

        The run continues the path of the locked node ``below``, so that the path need not be looked up again, and
        lengths of the result count from its end; ``None``: it starts at the root.
        """
        run = as_run(token_ids)
        end = len(run) - len(run) % self._page_bytes
        owned_len = end // TOKEN_BYTES
        if len(slots) < owned_len:
            raise ValueError(f"{len(slots)} slots for {owned_len} tokens")
        node, matched, partial, shared = self._descend(run, extra_key, below)
        if partial is not None:
            node = partial.split(shared, self._page_bytes)
            self.num_nodes += 1
            matched += shared
        existing_len = matched // TOKEN_BYTES
        if matched < end:
            # An own copy: the caller's array is usually a view into a table that it goes on writing to.
            own_slots = np.array(slots[existing_len:owned_len], dtype=np.int32)
            node = self._add_leaf(node, run[matched:end], own_slots, extra_key)
            node.priority = priority
        self._clock = now = self._clock + 1
        for step in node.upwards():
            step.note_use(now)
            step.priority = max(step.priority, priority)
        if matched < end:
            node.created = now
            self._queue.offer(node)
        else:
            self._requeue_accessed(node)
        return InsertResult(existing_len, owned_len, node)

    def slots_of(self, node: TreeNode, start: int = 0) -> IntArray:
        """Return a copy of the slots of the path from the root to ``node``, from token ``start`` of the path on."""
        runs = [step.slots for step in node.upwards()]
        runs.reverse()
        return np.concatenate([NO_SLOTS, *runs])[start:]

    def lock(self, node: TreeNode) -> None:
        """Keep the path from the root to ``node`` from being evicted, until as many calls of :meth:`unlock`.

        A later split of the path stays locked as a whole. Raises ``RuntimeError`` if the node is not in the
        cache any more.
        """
        if node.parent is None and node is not self._root:
            raise RuntimeError(f"cannot lock {node!r}: it was evicted")
        for step in node.upwards():
            if step.lock_count == 0:
                self.evictable_size -= len(step.slots)
                self.protected_size += len(step.slots)
            step.lock_count += 1
        self._root.lock_count += 1

    def unlock(self, node: TreeNode) -> None:
        """Undo one :meth:`lock` of ``node``; raises ``RuntimeError`` if the node is not locked."""
        if node.lock_count == 0:
            raise RuntimeError(f"cannot unlock {node!r}: it is not locked")
        for step in node.upwards():
            step.lock_count -= 1
            if step.lock_count == 0:
                self.evictable_size += len(step.slots)
                self.protected_size -= len(step.slots)
        self._root.lock_count -= 1
        if node.is_evictable_leaf:
            self._queue.offer(node)

    def evict(self, num_tokens: int) -> int:
        """Remove whole leaves, in the policy's order, until ``num_tokens`` are free or only locked nodes remain;
        returns the tokens given back."""
        freed = 0
        runs: list[IntArray] = []
        while freed < num_tokens:
            node = self._queue.pop()
            if node is None:
                break
            runs.append(node.slots)
            freed += len(node.slots)
            parent = self._detach(node)
            if parent.is_evictable_leaf:
                self._queue.offer(parent)
        if runs:
            self.evictable_size -= freed
            self._allocator.free(np.concatenate(runs))
        return freed

    def owned_slots(self) -> IntArray:
        """Return every slot in the tree. Walks all of it."""
        return np.concatenate([NO_SLOTS, *(node.slots for node in self._root.below())])

    def outline(self, max_nodes: int) -> list[NodeOutline]:
        """Describe the nodes that were used last, at most ``max_nodes``, parents before children."""
        return outline(self._root, self._clock, max_nodes)

    def reset(self) -> None:
        """Forget everything and give every slot back. All nodes become invalid. Raises ``RuntimeError`` if a lock is
        held; nothing was changed."""
        if self._root.lock_count:
            raise RuntimeError(
                f"cannot reset the prefix cache: {self._root.lock_count} locks keep {self.protected_size} tokens"
            )
        slots = self.owned_slots()
        self.discard()
        self._allocator.free(slots)

    def discard(self) -> None:
        """Forget everything, locks included, without giving back a slot: the caller resets the allocator as well."""
        self._root = TreeNode.root()
        self._queue.clear()
        self.num_nodes = 0
        self.evictable_size = 0
        self.protected_size = 0

    def check_integrity(self) -> None:
        """Walk the whole tree and compare links, pages, locks, sizes and the eviction queue with the counters. Raises
        ``RuntimeError`` if they disagree; the message has the numbers."""
        counters = TreeCounters(self.num_nodes, self.evictable_size, self.protected_size)
        check_tree(self._root, counters, self._allocator, self._queue)

    def _descend(
        self, run: bytes, extra_key: str | None, start: TreeNode | None = None
    ) -> tuple[TreeNode, int, TreeNode | None, int]:
        """Follow ``run`` down from ``start``, by default the root. Mutates nothing.

        Returns:
            the last node that matches wholly, the bytes matched down to its end, and the child of it in which the
            match goes on and ends, or ``None``, with the bytes matched there (whole pages, more than 0).
        """
        page_bytes = self._page_bytes
        end = len(run) - len(run) % page_bytes
        node = self._root if start is None else start
        matched = 0
        key: NodeKey = run[:page_bytes]
        if extra_key is not None and node is self._root:
            key = (extra_key, run[:page_bytes])
        while matched < end:
            child = node.children.get(key)
            if child is None:
                break
            if not run.startswith(child.tokens, matched):
                return node, matched, child, self._shared_bytes(run, matched, child.tokens)
            node = child
            matched += len(child.tokens)
            key = run[matched : matched + page_bytes]
        return node, matched, None, 0

    def _shared_bytes(self, run: bytes, start: int, tokens: bytes) -> int:
        """Bytes of whole pages that ``run[start:]`` and ``tokens`` share, which are not all of ``tokens``."""
        limit = min(len(run) - start, len(tokens)) // TOKEN_BYTES
        differs = np.frombuffer(run, np.int32, limit, start) != np.frombuffer(tokens, np.int32, limit)
        first = int(differs.argmax())
        shared = (first if differs[first] else limit) * TOKEN_BYTES
        return shared - shared % self._page_bytes

    def _add_leaf(self, parent: TreeNode, tokens: bytes, slots: IntArray, extra_key: str | None) -> TreeNode:
        key: NodeKey = tokens[: self._page_bytes]
        if parent is self._root and extra_key is not None:
            key = (extra_key, tokens[: self._page_bytes])
        leaf = TreeNode(parent, key, tokens, slots)
        parent.children[key] = leaf
        self.num_nodes += 1
        self.evictable_size += len(slots)
        return leaf

    def _detach(self, leaf: TreeNode) -> TreeNode:
        """Take a leaf out of the tree; return its parent."""
        parent = leaf.parent
        assert parent is not None  # the root is never queued for eviction
        del parent.children[leaf.key]
        leaf.parent = None
        self.num_nodes -= 1
        return parent

    def _requeue_accessed(self, node: TreeNode) -> None:
        if self._queue.policy.falls_on_access and node.is_evictable_leaf:
            self._queue.offer(node)
