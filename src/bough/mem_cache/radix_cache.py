"""The radix tree over token prefixes: requests that start alike share the keys and values of what they share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.base_prefix_cache import (
    NO_SLOTS,
    InsertResult,
    MatchResult,
    NodeKey,
    PrefixCache,
    TreeNode,
    as_run,
)
from bough.mem_cache.eviction import EVICTION_POLICIES, EvictionQueue
from bough.mem_cache.outline import NodeOutline, outline
from bough.step_plan import IntArray

_TOKEN_BYTES = np.dtype(np.int32).itemsize


class RadixCache(PrefixCache):
    """A compressed trie whose edges are runs of whole pages (RadixAttention, arXiv 2312.07104, section 3).

    A namespace is part of the key of the nodes below the root, so that it costs nothing until something is inserted
    and leaves nothing behind. Two children of a node differ within their first page; what they share of it is not
    shared in memory.

    Every operation costs one dictionary lookup and one ``memcmp`` per node on its path, plus the copies it returns or
    keeps; the size of the tree does not enter.
    """

    def __init__(self, allocator: SlotAllocator, page_size: int, eviction_policy: str = "lru") -> None:
        if page_size != allocator.page_size:
            raise ValueError(f"page size {page_size} is not the allocator's, {allocator.page_size}")
        if eviction_policy not in EVICTION_POLICIES:
            raise ValueError(f"unknown eviction policy {eviction_policy!r}, not one of {', '.join(EVICTION_POLICIES)}")
        self.page_size = page_size
        self._page_bytes = page_size * _TOKEN_BYTES
        self._allocator = allocator
        self._queue = EvictionQueue(EVICTION_POLICIES[eviction_policy])
        self._root = TreeNode.root()
        self._clock = 0
        self._num_nodes = 0
        self._evictable_size = 0
        self._protected_size = 0

    @property
    def num_nodes(self) -> int:
        """Nodes in the tree, without the root."""
        return self._num_nodes

    @property
    def evictable_size(self) -> int:
        """Tokens that :meth:`evict` could give back now."""
        return self._evictable_size

    @property
    def protected_size(self) -> int:
        """Tokens that are kept by locks."""
        return self._protected_size

    @property
    def locks_held(self) -> int:
        """Calls of :meth:`lock` that were not undone yet: every lock passes the root."""
        return self._root.lock_count

    def match_prefix(self, token_ids: IntArray, extra_key: str | None = None) -> MatchResult:
        """Find the longest known prefix, splitting the node in which it ends (see :class:`PrefixCache`)."""
        node, _, partial, shared = self._descend(as_run(token_ids), extra_key)
        if partial is not None:
            node = self._split(partial, shared)
        self._clock = now = self._clock + 1
        runs: list[IntArray] = []
        for step in self._upwards(node):
            self._note_use(step, now)
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
        return (matched + shared) // _TOKEN_BYTES

    def unheld_len(self, token_ids: IntArray, extra_key: str | None = None) -> int:
        """Return how many of the tokens that :meth:`match_prefix` would match no lock keeps. Mutates nothing."""
        node, _, partial, shared = self._descend(as_run(token_ids), extra_key)
        unheld = shared // _TOKEN_BYTES if partial is not None and partial.lock_count == 0 else 0
        for step in self._upwards(node):
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
        """Hang the pages that the tree does not know below those that it does (see :class:`PrefixCache`)."""
        run = as_run(token_ids)
        end = len(run) - len(run) % self._page_bytes
        owned_len = end // _TOKEN_BYTES
        if len(slots) < owned_len:
            raise ValueError(f"{len(slots)} slots for {owned_len} tokens")
        node, matched, partial, shared = self._descend(run, extra_key, below)
        if partial is not None:
            node = self._split(partial, shared)
            matched += shared
        existing_len = matched // _TOKEN_BYTES
        if matched < end:
            # An own copy: the caller's array is usually a view into a table that it goes on writing to.
            own_slots = np.array(slots[existing_len:owned_len], dtype=np.int32)
            node = self._add_leaf(node, run[matched:end], own_slots, extra_key)
            node.priority = priority
        self._clock = now = self._clock + 1
        for step in self._upwards(node):
            self._note_use(step, now)
            step.priority = max(step.priority, priority)
        if matched < end:
            node.created = now
            self._queue.offer(node)
        else:
            self._requeue_accessed(node)
        return InsertResult(existing_len, owned_len, node)

    def slots_of(self, node: TreeNode, start: int = 0) -> IntArray:
        """Return a copy of the slots of the path to ``node``, from token ``start`` of the path on."""
        runs = [step.slots for step in self._upwards(node)]
        runs.reverse()
        return np.concatenate([NO_SLOTS, *runs])[start:]

    def lock(self, node: TreeNode) -> None:
        """Keep the path to ``node`` from being evicted; a later split of the path stays locked as a whole."""
        if node.parent is None and node is not self._root:
            raise RuntimeError(f"cannot lock {node!r}: it was evicted")
        for step in self._upwards(node):
            if step.lock_count == 0:
                self._evictable_size -= len(step.slots)
                self._protected_size += len(step.slots)
            step.lock_count += 1
        self._root.lock_count += 1

    def unlock(self, node: TreeNode) -> None:
        """Undo one :meth:`lock` of ``node``."""
        if node.lock_count == 0:
            raise RuntimeError(f"cannot unlock {node!r}: it is not locked")
        for step in self._upwards(node):
            step.lock_count -= 1
            if step.lock_count == 0:
                self._evictable_size += len(step.slots)
                self._protected_size -= len(step.slots)
        self._root.lock_count -= 1
        if node.is_evictable_leaf:
            self._queue.offer(node)

    def evict(self, num_tokens: int) -> int:
        """Remove whole leaves, in the policy's order, until ``num_tokens`` are free or only locked nodes remain."""
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
            self._evictable_size -= freed
            self._allocator.free(np.concatenate(runs))
        return freed

    def owned_slots(self) -> IntArray:
        """Return every slot in the tree. Walks all of it."""
        return np.concatenate([NO_SLOTS, *(node.slots for node in self._nodes())])

    def outline(self, max_nodes: int) -> list[NodeOutline]:
        """Describe the nodes that were used last (see :func:`~bough.mem_cache.outline.outline`)."""
        return outline(self._root, self._clock, max_nodes)

    def reset(self) -> None:
        """Forget everything and give every slot back; refused while a lock is held."""
        if self._root.lock_count:
            raise RuntimeError(
                f"cannot reset the prefix cache: {self._root.lock_count} locks keep {self._protected_size} tokens"
            )
        slots = self.owned_slots()
        self.discard()
        self._allocator.free(slots)

    def discard(self) -> None:
        """Forget everything, locks included, without giving back a slot."""
        self._root = TreeNode.root()
        self._queue.clear()
        self._num_nodes = 0
        self._evictable_size = 0
        self._protected_size = 0

    def check_integrity(self) -> None:
        """Compare links, pages, locks, sizes and the eviction queue with a walk over the whole tree."""
        sizes = {True: 0, False: 0}
        leaves: set[int] = set()
        num_nodes = 0
        for node in self._nodes():
            num_nodes += 1
            sizes[node.lock_count > 0] += len(node.slots)
            self._check_node(node)
            if node.is_evictable_leaf:
                leaves.add(id(node))
        counted = (num_nodes, sizes[False], sizes[True])
        kept = (self._num_nodes, self._evictable_size, self._protected_size)
        if counted != kept:
            raise RuntimeError(f"(nodes, evictable, protected) are {counted}, the counters say {kept}")
        if self._root.lock_count < sum(child.lock_count for child in self._root.children.values()):
            raise RuntimeError(f"{self._root.lock_count} locks at the root are fewer than those below it")

        slots = self.owned_slots()
        distinct = len(np.unique(slots))
        if distinct != len(slots):
            raise RuntimeError(f"{len(slots)} tokens in the tree have only {distinct} distinct slots")
        if num_free := int(np.count_nonzero(self._allocator.is_free(slots))):
            raise RuntimeError(f"{num_free} of {len(slots)} slots in the tree are free in the allocator")

        entries = self._queue.live_entries()
        queued = {id(node) for _, node in entries}
        if not leaves <= queued:
            raise RuntimeError(f"{len(leaves - queued)} of {len(leaves)} evictable leaves are not queued for eviction")
        if not len(queued) == len(entries) == self._queue.num_live:
            raise RuntimeError(
                f"the eviction queue has {len(entries)} live entries for {len(queued)} nodes, "
                f"its counter says {self._queue.num_live}"
            )
        late = sum(key > self._queue.policy.key(node) for key, node in entries if id(node) in leaves)
        if late:
            raise RuntimeError(f"{late} of {len(leaves)} evictable leaves are queued later than their turn")

    def _check_node(self, node: TreeNode) -> None:
        num_tokens = len(node.slots)
        if num_tokens == 0 or num_tokens % self.page_size or len(node.tokens) != num_tokens * _TOKEN_BYTES:
            raise RuntimeError(
                f"{num_tokens} slots for {len(node.tokens) // _TOKEN_BYTES} tokens, pages are {self.page_size}"
            )
        pages = node.slots.reshape(-1, self.page_size)
        if (pages[:, 0] % self.page_size).any() or (np.diff(pages, axis=1) != 1).any():
            raise RuntimeError(f"the slots of {node!r} do not lie in whole pages of {self.page_size}")
        first_page = node.key[1] if isinstance(node.key, tuple) else node.key
        if first_page != node.tokens[: self._page_bytes]:
            raise RuntimeError(f"{node!r} hangs under a key that is not its first page")
        parent = node.parent
        if parent is None or parent.children.get(node.key) is not node:
            raise RuntimeError(f"{node!r} is not linked with its parent")
        if isinstance(node.key, tuple) and parent is not self._root:
            raise RuntimeError(f"{node!r} has a namespace below the first level")
        below = sum(child.lock_count for child in node.children.values())
        if node.lock_count < below:
            raise RuntimeError(f"{node!r} has fewer locks than the {below} of its children")

    @staticmethod
    def _note_use(node: TreeNode, now: int) -> None:
        node.last_access = now
        siblings = node.parent.children  # type: ignore[union-attr]  # the root is never used by itself
        siblings[node.key] = siblings.pop(node.key)

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
        limit = min(len(run) - start, len(tokens)) // _TOKEN_BYTES
        differs = np.frombuffer(run, np.int32, limit, start) != np.frombuffer(tokens, np.int32, limit)
        first = int(differs.argmax())
        shared = (first if differs[first] else limit) * _TOKEN_BYTES
        return shared - shared % self._page_bytes

    def _split(self, node: TreeNode, at: int) -> TreeNode:
        """Cut a node after ``at`` bytes; return the new upper part, which the caller enters as accessed.

        The node object stays the lower part: whoever locked it has locked both, and its place in the eviction queue
        stays right. Both parts get copies, because views would keep the whole run in memory after one part is gone.
        """
        parent = node.parent
        assert parent is not None  # the root has no tokens to be split
        at_token = at // _TOKEN_BYTES
        upper = TreeNode(parent, node.key, node.tokens[:at], node.slots[:at_token].copy())
        upper.lock_count = node.lock_count
        upper.hits = node.hits
        upper.created = node.created
        upper.priority = node.priority
        parent.children[node.key] = upper
        node.parent = upper
        node.key = node.tokens[at : at + self._page_bytes]
        node.tokens = node.tokens[at:]
        node.slots = node.slots[at_token:].copy()
        upper.children[node.key] = node
        self._num_nodes += 1
        return upper

    def _add_leaf(self, parent: TreeNode, tokens: bytes, slots: IntArray, extra_key: str | None) -> TreeNode:
        key: NodeKey = tokens[: self._page_bytes]
        if parent is self._root and extra_key is not None:
            key = (extra_key, tokens[: self._page_bytes])
        leaf = TreeNode(parent, key, tokens, slots)
        parent.children[key] = leaf
        self._num_nodes += 1
        self._evictable_size += len(slots)
        return leaf

    def _detach(self, leaf: TreeNode) -> TreeNode:
        """Take a leaf out of the tree; return its parent."""
        parent = leaf.parent
        assert parent is not None  # the root is never queued for eviction
        del parent.children[leaf.key]
        leaf.parent = None
        self._num_nodes -= 1
        return parent

    def _requeue_accessed(self, node: TreeNode) -> None:
        if self._queue.policy.falls_on_access and node.is_evictable_leaf:
            self._queue.offer(node)

    @staticmethod
    def _upwards(node: TreeNode) -> Iterator[TreeNode]:
        """Yield ``node`` and its ancestors, without the root."""
        parent = node.parent
        while parent is not None:
            yield node
            node, parent = parent, parent.parent

    def _nodes(self) -> Iterator[TreeNode]:
        """Yield every node, without the root."""
        stack = list(self._root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())
