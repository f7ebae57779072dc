"""The prefix cache that remembers nothing, for serving without reuse."""

from __future__ import annotations

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.base_prefix_cache import NO_SLOTS, InsertResult, MatchResult, PrefixCache, TreeNode
from bough.step_plan import IntArray


class ChunkCache(PrefixCache):
    """Matches nothing and takes nothing: every slot stays its request's until the request frees it.

    Its one node is the root, which is what every match and insertion returns; locks of it are counted, so that a lock
    that is not given back shows here as it does in a tree.
    """

    def __init__(self, allocator: SlotAllocator, page_size: int) -> None:
        if page_size != allocator.page_size:
            raise ValueError(f"page size {page_size} is not the allocator's, {allocator.page_size}")
        self.page_size = page_size
        self._root = TreeNode.root()

    @property
    def evictable_size(self) -> int:
        """Always 0."""
        return 0

    @property
    def protected_size(self) -> int:
        """Always 0."""
        return 0

    @property
    def locks_held(self) -> int:
        """Calls of :meth:`lock` that were not undone yet."""
        return self._root.lock_count

    def match_prefix(self, token_ids: IntArray, extra_key: str | None = None) -> MatchResult:
        """Return no slots and the root."""
        return MatchResult(NO_SLOTS, self._root)

    def matched_len(self, token_ids: IntArray, extra_key: str | None = None) -> int:
        """Return 0."""
        return 0

    def unheld_len(self, token_ids: IntArray, extra_key: str | None = None) -> int:
        """Return 0."""
        return 0

    def insert(
        self,
        token_ids: IntArray,
        slots: IntArray,
        extra_key: str | None = None,
        priority: int = 0,
        *,
        below: TreeNode | None = None,
    ) -> InsertResult:
        """Take nothing: ``existing_len`` and ``owned_len`` are 0, all slots remain the caller's."""
        return InsertResult(0, 0, self._root)

    def slots_of(self, node: TreeNode, start: int = 0) -> IntArray:
        """Return no slots."""
        return NO_SLOTS

    def lock(self, node: TreeNode) -> None:
        """Count the lock."""
        if node is not self._root:
            raise RuntimeError(f"cannot lock {node!r}: it is not of this cache")
        node.lock_count += 1

    def unlock(self, node: TreeNode) -> None:
        """Undo one :meth:`lock`."""
        if node is not self._root or node.lock_count == 0:
            raise RuntimeError(f"cannot unlock {node!r}: it is not locked")
        node.lock_count -= 1

    def evict(self, num_tokens: int) -> int:
        """Return 0: there is nothing to give back."""
        return 0

    def owned_slots(self) -> IntArray:
        """Return no slots."""
        return NO_SLOTS

    def reset(self) -> None:
        """Do nothing; refused while a lock is held, as in a tree."""
        if self._root.lock_count:
            raise RuntimeError(f"cannot reset the prefix cache: {self._root.lock_count} locks are held")

    def discard(self) -> None:
        """Forget the locks."""
        self._root = TreeNode.root()

    def check_integrity(self) -> None:
        """Check that nothing was hung below the root."""
        if self._root.children:
            raise RuntimeError(f"{len(self._root.children)} nodes in a cache that keeps none")
