from __future__ import annotations

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.chunk_cache import ChunkCache
from bough.mem_cache.outline import CHILDREN_SEEN, HEAD_TOKENS
from tests.mem_cache.test_radix_cache import build, ids, put


def test_an_empty_tree_has_no_outline() -> None:
    assert build()[1].outline(10) == []
    assert ChunkCache(SlotAllocator(8, 1), 1).outline(10) == []


def test_parents_come_before_children_and_say_what_there_is() -> None:
    allocator, cache = build()
    put(cache, allocator, ids(1, 2, 3, 4))
    leaf = put(cache, allocator, ids(1, 2, 9)).node
    cache.lock(leaf)
    shared, held, other = cache.outline(10)
    assert (shared.parent_id, shared.head, shared.num_tokens, shared.num_children) == ("", [1, 2], 2, 2)
    assert held.parent_id == other.parent_id == shared.node_id
    assert (held.head, held.locks, other.head, other.locks) == ([9], 1, [3, 4], 0)
    assert (shared.locks, shared.age, held.age) == (1, 0, 0)
    assert other.age > 0
    cache.unlock(leaf)


def test_what_was_used_last_is_shown() -> None:
    allocator, cache = build()
    for first in range(50):
        put(cache, allocator, ids(first, 100))
    cache.match_prefix(ids(7, 100))
    assert [node.head[0] for node in cache.outline(3)] == [7, 49, 48]


def test_what_is_used_is_shown_however_many_came_after_it() -> None:
    allocator, cache = build()
    put(cache, allocator, ids(7, 7))
    for first in range(1000, 1000 + 2 * CHILDREN_SEEN):
        put(cache, allocator, ids(first))
    leaf = put(cache, allocator, ids(7, 7, 8)).node
    cache.lock(leaf)
    assert [(node.head, node.locks) for node in cache.outline(3)] == [
        ([7, 7], 1),
        ([8], 1),
        ([999 + 2 * CHILDREN_SEEN], 0),
    ]
    cache.unlock(leaf)
    cache.match_prefix(ids(1000))
    assert cache.outline(1)[0].head == [1000]
    cache.match_prefix(ids(7, 9))  # cuts the node in two, of which the upper part is used
    assert [(node.head, node.num_tokens) for node in cache.outline(2)] == [([7], 1), ([1000], 1)]
    cache.check_integrity()


def test_the_cost_is_bounded_by_what_is_shown() -> None:
    allocator, cache = build()
    for first in range(2 * CHILDREN_SEEN):
        put(cache, allocator, ids(first))
    assert len(cache.outline(4 * CHILDREN_SEEN)) == CHILDREN_SEEN
    put(cache, allocator, ids(*range(500, 500 + 2 * HEAD_TOKENS)))
    assert len(cache.outline(1)[0].head) == HEAD_TOKENS


def test_names_stay_and_namespaces_have_their_own() -> None:
    allocator, cache = build()
    put(cache, allocator, ids(1, 2))
    before = cache.outline(10)[0]
    put(cache, allocator, ids(1, 2), "tenant")
    put(cache, allocator, ids(1, 2, 3), "tenant")
    nodes = cache.outline(10)
    assert [node.namespace for node in nodes] == ["tenant", "tenant", None]
    assert nodes[-1].node_id == before.node_id
    assert len({node.node_id for node in nodes}) == 3


def test_looking_changes_nothing() -> None:
    allocator, cache = build()
    put(cache, allocator, ids(1, 2, 3))
    first = cache.outline(10)
    assert cache.outline(10) == first
    cache.check_integrity()
