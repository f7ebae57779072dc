"""Nodes of the radix tree: runs of tokens and where their keys and values are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bough.step_plan import IntArray

NodeKey = bytes | tuple[str, bytes]
"""Key of a child: the bytes of its first page of token ids; below the root together with the namespace, if any."""

NO_SLOTS: IntArray = np.zeros(0, dtype=np.int32)

TOKEN_BYTES = np.dtype(np.int32).itemsize


@dataclass(slots=True, eq=False, repr=False)
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

    parent: TreeNode | None
    key: NodeKey
    tokens: bytes
    slots: IntArray
    children: dict[NodeKey, TreeNode] = field(default_factory=dict)
    lock_count: int = 0
    hits: int = 0
    last_access: int = 0
    created: int = 0
    priority: int = 0
    queued_key: tuple[int, int] | None = None

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
        """True if nothing hangs below the node and no lock holds it."""
        return not self.children and self.lock_count == 0 and self.parent is not None

    def upwards(self) -> Iterator[TreeNode]:
        """Yield this node and its ancestors, without the root."""
        node, parent = self, self.parent
        while parent is not None:
            yield node
            node, parent = parent, parent.parent

    def below(self) -> Iterator[TreeNode]:
        """Yield every node below this one."""
        stack = list(self.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def note_use(self, now: int) -> None:
        """Make this node, which is not the root, the one of its siblings that was used last."""
        self.last_access = now
        siblings = self.parent.children  # type: ignore[union-attr]  # the root is never used by itself
        siblings[self.key] = siblings.pop(self.key)

    def split(self, at: int, page_bytes: int) -> TreeNode:
        """Cut a node after ``at`` bytes; return the new upper part, which the caller enters as accessed.

        The node object stays the lower part: its lock holders have locked both, and its place in the eviction queue
        stays right. Both parts get copies, because views would keep the whole run in memory after one part is gone.
        """
        parent = self.parent
        assert parent is not None  # the root has no tokens to be split
        at_token = at // TOKEN_BYTES
        upper = TreeNode(parent, self.key, self.tokens[:at], self.slots[:at_token].copy())
        upper.lock_count = self.lock_count
        upper.hits = self.hits
        upper.created = self.created
        upper.priority = self.priority
        parent.children[self.key] = upper
        self.parent = upper
        self.key = self.tokens[at : at + page_bytes]
        self.tokens = self.tokens[at:]
        self.slots = self.slots[at_token:].copy()
        upper.children[self.key] = self
        return upper

    def __repr__(self) -> str:
        return f"TreeNode({len(self.slots)} tokens, {len(self.children)} children, {self.lock_count} locks)"


def as_run(token_ids: npt.NDArray[np.integer]) -> bytes:
    """Bytes of the token ids as contiguous int32, the form in which runs are kept and compared."""
    return np.ascontiguousarray(token_ids, dtype=np.int32).tobytes()
