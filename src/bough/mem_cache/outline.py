"""A bounded picture of the radix tree, for people who want to watch it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from bough.mem_cache.tree_node import TreeNode

HEAD_TOKENS = 16
"""Token ids of a node that are shown."""

CHILDREN_SEEN = 128
"""Children of a node that are looked at, those used last: a root may have any number of them."""


@dataclass(frozen=True)
class NodeOutline:
    """Picture of a node.

    Attributes:
        node_id: made of the path to the node, so that it stays the same while the node does.
        parent_id: "" below the root.
        namespace: of the path; ``None`` for the common one.
        head: the first token ids of the run.
        locks: running requests that hold the node or something below it.
        age: matches and insertions, of the whole tree, since it was last used.
        num_children: below it in the tree, shown or not.
    """

    node_id: str
    parent_id: str
    namespace: str | None
    head: list[int]
    num_tokens: int
    locks: int
    hits: int
    age: int
    num_children: int


def outline(root: TreeNode, now: int, max_nodes: int) -> list[NodeOutline]:
    """Return the ``max_nodes`` nodes of a tree that were used last, parents before children; ``now`` is its logical
    time.

    The cost is bounded by ``max_nodes`` times :data:`CHILDREN_SEEN`.
    """
    found: list[NodeOutline] = []
    # A node is never used later than its parent, so the most recent ones are found from the top down.
    frontier: list[tuple[int, int, TreeNode, str, str | None]] = []
    num_seen = 0

    def look_below(node: TreeNode, node_id: str, namespace: str | None) -> None:
        nonlocal num_seen
        for child in _last_used(node.children.values()):
            num_seen += 1  # no two entries are equal: nodes cannot be compared
            heapq.heappush(frontier, (-child.last_access, num_seen, child, node_id, namespace))

    look_below(root, "", None)
    while frontier and len(found) < max_nodes:
        _, _, node, parent_id, namespace = heapq.heappop(frontier)
        first_page = node.key
        if isinstance(first_page, tuple):
            namespace, first_page = first_page
        digest = blake2b(parent_id.encode(), digest_size=8)
        digest.update(repr(namespace).encode())
        digest.update(first_page)
        node_id = digest.hexdigest()
        found.append(
            NodeOutline(
                node_id,
                parent_id,
                namespace,
                node.token_ids[:HEAD_TOKENS].tolist(),
                len(node.slots),
                node.lock_count,
                node.hits,
                now - node.last_access,
                len(node.children),
            )
        )
        look_below(node, node_id, namespace)
    return found


def _last_used(children: Iterable[TreeNode]) -> Iterable[TreeNode]:
    """Some of them, beginning with the one used last: they are kept in the order of their use."""
    return islice(reversed(children), CHILDREN_SEEN)  # type: ignore[call-overload]
