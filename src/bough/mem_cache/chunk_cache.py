"""The prefix cache that remembers nothing, for serving without reuse."""

from __future__ import annotations

from bough.mem_cache.radix_cache import InsertResult, RadixCache
from bough.mem_cache.tree_node import TreeNode
from bough.step_plan import IntArray


class ChunkCache(RadixCache):
    """A tree that stays empty: every slot stays its request's until the request frees it.

    Locks of its root are counted, so that a lock that is not given back shows here as it does in a tree.
    """

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
