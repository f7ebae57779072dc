"""What every prefix cache does, and the handles it gives out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bough.step_plan import IntArray

if TYPE_CHECKING:
    from bough.mem_cache.outline import NodeOutline

NodeKey = bytes | tuple[str, bytes]
"""Key of a child: the bytes of its first page of token ids; below the root together with the namespace, if any."""

NO_SLOTS: IntArray = np.zeros(0, dtype=np.int32)


class TreeNode:
    """A run of tokens that follows its parent's run. Outside the caches it is an opaque handle.

    Attributes:
        parent: ``None`` for the root and for a node that was evicted.
        key: where the node hangs in ``parent.children``.
        tokens: the run's int32 token ids as bytes. Bytes, because Python then compares runs with ``memcmp`` and takes
            child keys by slicing, without an array object in between; :attr:`token_ids` is the array.
        slots: KV slot of each token of the run, int32.
        lock_count: locks that end at this node or below it.
        hits: matches that reached the node.
        last_access: logical time of the last match or insertion that reached the node.
        created: logical time at which the run was inserted.
        priority: highest priority of the requests that inserted the run.
        queued_key: the order key under which the node waits in an eviction queue; owned by that queue.
    """

    __slots__ = (
        "children",
        "created",
        "hits",
        "key",
        "last_access",
        "lock_count",
        "parent",
        "priority",
        "queued_key",
        "slots",
        "tokens",
    )

    def __init__(self, parent: TreeNode | None, key: NodeKey, tokens: bytes, slots: IntArray) -> None:
        self.parent = parent
        self.key = key
        self.tokens = tokens
        self.slots = slots
        self.children: dict[NodeKey, TreeNode] = {}
        self.lock_count = 0
        self.hits = 0
        self.last_access = 0
        self.created = 0
        self.priority = 0
        self.queued_key: tuple[int, int] | None = None

    @classmethod
    def root(cls) -> TreeNode:
        """A node with an empty run and no parent."""
        return cls(None, b"", b"", NO_SLOTS)

    @property
    def token_ids(self) -> IntArray:
        """The run's token ids, read-only."""
        return np.frombuffer(self.tokens, dtype=np.int32)

    @property
    def is_evictable_leaf(self) -> bool:
        """Whether nothing hangs below the node and nobody holds it."""
        return not self.children and self.lock_count == 0 and self.parent is not None

    def __repr__(self) -> str:
        return f"TreeNode({len(self.slots)} tokens, {len(self.children)} children, {self.lock_count} locks)"


class MatchResult(NamedTuple):
    """Answer of :meth:`PrefixCache.match_prefix`."""

    slots: IntArray
    """KV slots of the matched tokens, a fresh copy; its length is a multiple of the page size."""
    node: TreeNode
    """Last node of the matched path, the root if nothing matched; to be locked before anything else is inserted or
    evicted, or it may be gone."""


class InsertResult(NamedTuple):
    """Answer of :meth:`PrefixCache.insert`: who owns what now.

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


class PrefixCache(ABC):
    """Remembers at which KV slots the tokens of earlier runs are.

    A run belongs to a namespace, ``extra_key``; namespaces share nothing (``None`` is one of them, ``""`` another).
    Only whole pages are remembered. The cache owns the slots of what it remembers and gives them back to the
    allocator on :meth:`evict` and :meth:`reset`.

    Every size and length is in tokens. No method is safe against concurrent calls.

    Attributes:
        page_size: tokens per page.
    """

    page_size: int

    @abstractmethod
    def match_prefix(self, token_ids: IntArray, extra_key: str | None = None) -> MatchResult:
        """Find the longest known prefix of ``token_ids`` [n] in whole pages.

        Mutates: access time and hits along the path; splits a node where the match ends inside one. The result's
        slots are a copy, but what they name stays in place only until the next :meth:`evict` or :meth:`reset`, unless
        the node is locked before.
        """

    @abstractmethod
    def matched_len(self, token_ids: IntArray, extra_key: str | None = None) -> int:
        """Return how many tokens :meth:`match_prefix` would match. Mutates nothing."""

    @abstractmethod
    def unheld_len(self, token_ids: IntArray, extra_key: str | None = None) -> int:
        """Return how many of the tokens that :meth:`match_prefix` would match no lock keeps. Mutates nothing."""

    @abstractmethod
    def insert(
        self,
        token_ids: IntArray,
        slots: IntArray,
        extra_key: str | None = None,
        priority: int = 0,
        *,
        below: TreeNode | None = None,
    ) -> InsertResult:
        """Remember the whole pages of a run, whose token ``i`` is at ``slots[i]``.

        ``slots`` must lie in whole pages like the tokens. Mutates: takes ownership of
        ``slots[existing_len:owned_len]`` of the result (:class:`InsertResult` says what remains the caller's), copies
        what it keeps, refreshes access times and raises priorities along the path, may split a node.

        Args:
            token_ids: [n]
            slots: at least [n]
            extra_key: namespace.
            priority: for the ``priority`` eviction policy.
            below: a locked node whose path the run continues, so that the path need not be looked up again; lengths
                of the result count from its end. ``None``: the run starts at the root.

        Raises:
            ValueError: fewer slots than tokens.
        """

    @abstractmethod
    def slots_of(self, node: TreeNode, start: int = 0) -> IntArray:
        """Return a copy of the slots of the path from the root to ``node``, from token ``start`` of the path on."""

    @abstractmethod
    def lock(self, node: TreeNode) -> None:
        """Keep the path from the root to ``node`` from being evicted, until as many calls of :meth:`unlock`.

        Raises:
            RuntimeError: the node is no longer in the cache.
        """

    @abstractmethod
    def unlock(self, node: TreeNode) -> None:
        """Undo one :meth:`lock` of ``node``.

        Raises:
            RuntimeError: the node is not locked.
        """

    @abstractmethod
    def evict(self, num_tokens: int) -> int:
        """Give back at least ``num_tokens`` tokens' slots, or all that are not locked if these are fewer.

        Mutates: removes unlocked leaves in the order of the eviction policy and frees their slots.

        Returns:
            tokens given back.
        """

    @property
    @abstractmethod
    def evictable_size(self) -> int:
        """Tokens that :meth:`evict` could give back now."""

    @property
    @abstractmethod
    def protected_size(self) -> int:
        """Tokens that are kept by locks."""

    @property
    @abstractmethod
    def locks_held(self) -> int:
        """Calls of :meth:`lock` that were not undone yet."""

    @abstractmethod
    def owned_slots(self) -> IntArray:
        """Return every slot that the cache owns, in no particular order. Walks the whole cache."""

    def outline(self, max_nodes: int) -> list[NodeOutline]:
        """Describe the nodes that were used last, at most ``max_nodes``, parents before children."""
        return []

    @abstractmethod
    def reset(self) -> None:
        """Forget everything and give every slot back. All nodes become invalid.

        Raises:
            RuntimeError: a lock is held; nothing was changed.
        """

    @abstractmethod
    def discard(self) -> None:
        """Forget everything, locks included, and give back nothing.

        For rebuilding after a fault, together with the allocator: whoever calls it resets that as well.
        """

    @abstractmethod
    def check_integrity(self) -> None:
        """Walk the whole cache and compare it with what its counters say.

        Raises:
            RuntimeError: they disagree; the message has the numbers.
        """


def as_run(token_ids: npt.NDArray[np.integer]) -> bytes:
    """Bytes of the token ids as contiguous int32, the form in which runs are kept and compared."""
    return np.ascontiguousarray(token_ids, dtype=np.int32).tobytes()
