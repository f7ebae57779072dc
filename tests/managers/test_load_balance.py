"""Policies that choose the replica of a request."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bough.config.engine_args import LoadBalanceMethod
from bough.ipc.routing import MAX_PAGES, PAGE_TOKENS, RequestShape, page_hashes
from bough.managers.load_balance import (
    POLICIES,
    TOLERATED_REQUESTS,
    CacheAware,
    Load,
    LoadBalancer,
    PrefixTree,
    ReplicaLoad,
)
from bough.observability.stats import SchedulerStats
from tests.tables import table

IDLE = (Load(), Load(), Load())


def prompt_bytes(tokens: Sequence[int]) -> bytes:
    return array("i", tokens).tobytes()


def shape_of(tokens: Sequence[int]) -> RequestShape:
    return RequestShape(len(tokens), pages=page_hashes(prompt_bytes(tokens)))


def send(policy: LoadBalancer, shape: RequestShape, loads: Sequence[Load]) -> int:
    """Choose the replica of a request and send it there."""
    chosen = policy.choose(shape, loads)
    policy.on_sent(shape, chosen)
    return chosen


@table("method", ["round_robin", "total_requests", "total_tokens"])
def test_a_conversation_stays_where_its_prefix_is(method: LoadBalanceMethod) -> None:
    policy = POLICIES[method](3)
    first = shape_of(range(4 * PAGE_TOKENS))
    begun = send(policy, first, IDLE)
    for length in (5, 6, 9):
        goes_on = msgspec.structs.replace(shape_of(range(length * PAGE_TOKENS)), goes_on=True)
        assert send(policy, goes_on, IDLE) == begun
    assert send(policy, first, IDLE) != begun, "another request with this beginning"
    crowded = [Load(), Load(), Load()]
    crowded[begun] = Load(num_requests=TOLERATED_REQUESTS + 1)
    assert send(policy, msgspec.structs.replace(first, goes_on=True), crowded) != begun


@given(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 3), max_size=4))
def test_hashes_are_equal_as_far_as_prompts_are(one: list[int], other: list[int]) -> None:
    hashes = [page_hashes(prompt_bytes([page for page in pages for _ in range(PAGE_TOKENS)])) for pages in (one, other)]
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    assert hashes[0][:same] == hashes[1][:same]
    assert not set(hashes[0][same:]) & set(hashes[1][same:])


def test_hashes_are_of_whole_pages_bounded_and_of_one_namespace() -> None:
    long = prompt_bytes(range((MAX_PAGES + 5) * PAGE_TOKENS))
    assert len(page_hashes(long)) == MAX_PAGES
    assert page_hashes(long[: 4 * PAGE_TOKENS - 4]) == ()
    assert page_hashes(long[: 8 * PAGE_TOKENS - 4]) == page_hashes(long[: 4 * PAGE_TOKENS])
    assert not set(page_hashes(long, "salt")) & set(page_hashes(long))
    page_hashes(long, "\ud800")


@given(st.lists(st.lists(st.integers(0, 2), max_size=5), max_size=30), st.integers(1, 12))
def test_the_tree_is_bounded_and_forgets_no_page_before_those_behind_it(prompts: list[list[int]], most: int) -> None:
    tree = PrefixTree()
    tree.max_pages = most
    prefixes: set[tuple[int, ...]] = set()
    for prompt in prompts:
        pages = [hash(tuple(prompt[: i + 1])) for i in range(len(prompt))]
        tree.add(pages)
        prefixes |= {tuple(pages[: i + 1]) for i in range(len(pages))}
        assert len(tree) <= most
        assert tree.match(pages) == min(len(pages), most), "the newest prompt is known from its beginning"
    known = sum(tree.match(prefix) == len(prefix) for prefix in prefixes)
    assert known == len(tree), "each known page can be reached from the first"
    tree.clear()
    assert len(tree) == 0


@table("name", POLICIES)
def test_every_policy_spreads_new_prompts_evenly(name: str) -> None:
    policy = POLICIES[name](3)
    counts = Counter(send(policy, shape_of([prompt] * 2 * PAGE_TOKENS), IDLE) for prompt in range(300))
    assert counts == {0: 100, 1: 100, 2: 100}


@table(
    "name, loads, chosen",
    [
        ("total_requests", [Load(3, 10), Load(2, 900), Load(2, 800)], 2),
        ("total_tokens", [Load(3, 10), Load(1, 900), Load(2, 10)], 2),
        ("cache_aware", [Load(3, 10), Load(1, 900), Load(2, 10)], 1),
    ],
)
def test_the_least_loaded_replica_is_chosen(name: str, loads: list[Load], chosen: int) -> None:
    policy = POLICIES[name](3)
    assert [send(policy, shape_of([1]), loads) for _ in range(3)] == [chosen] * 3


def test_prompts_follow_their_prefix_until_others_have_much_less_to_do() -> None:
    policy = CacheAware(2)
    system = list(range(3 * PAGE_TOKENS))
    home = send(policy, shape_of(system), IDLE[:2])
    for question in range(5):
        assert send(policy, shape_of([*system, question]), IDLE[:2]) == home
    loads = [Load(), Load()]
    loads[home] = Load(TOLERATED_REQUESTS)
    assert send(policy, shape_of(system), loads) == home
    loads[home] = Load(TOLERATED_REQUESTS + 1)
    assert send(policy, shape_of(system), loads) == 1 - home
    assert send(policy, shape_of(system), loads) == 1 - home, "now it is known there, too"


def test_prefixes_are_forgotten_with_the_cache_that_held_them() -> None:
    policy, prompt = CacheAware(2), shape_of([9] * 500)
    home = send(policy, prompt, IDLE[:2])
    policy.on_heartbeat(home, SchedulerStats(max_total_num_tokens=10_000, evictable_tokens=500))
    assert [send(policy, prompt, IDLE[:2]) for _ in range(3)] == [home] * 3
    early = SchedulerStats(max_total_num_tokens=10_000, requests_received_total=3)
    policy.on_heartbeat(home, early)
    assert send(policy, prompt, IDLE[:2]) == home, "the replica had not received all"
    policy.on_heartbeat(home, SchedulerStats(max_total_num_tokens=10_000, requests_received_total=5))
    policy.on_heartbeat(1 - home, SchedulerStats(max_total_num_tokens=10_000))
    send(policy, shape_of([8] * 500), [Load(1), Load(1)])
    homes = {send(policy, shape_of([8] * 500), IDLE[:2]), send(policy, prompt, IDLE[:2])}
    assert homes == {0, 1}


def test_groups_of_prompts_with_common_prefixes_are_computed_once() -> None:
    """Sixteen groups of twenty prompts, interleaved: each group's prefix is at one replica, and groups are spread."""
    rng = random.Random(2)
    groups = [[rng.randrange(5000) for _ in range(8 * PAGE_TOKENS)] for _ in range(16)]
    prompts = [(group, [*groups[group], rng.randrange(5000)]) for group in range(16) for _ in range(20)]
    rng.shuffle(prompts)
    policy = CacheAware(2)
    homes: dict[int, set[int]] = {}
    for group, prompt in prompts:
        homes.setdefault(group, set()).add(send(policy, shape_of(prompt), IDLE[:2]))
    assert all(len(home) == 1 for home in homes.values())
    assert Counter(min(home) for home in homes.values()) == {0: 8, 1: 8}


def test_a_load_is_what_was_reported_and_what_was_not_received_by_then() -> None:
    load = ReplicaLoad()
    load.on_sent(RequestShape(100, num_outputs=2))
    load.on_sent(RequestShape(10))
    assert load.now == Load(3, 110)
    stats = SchedulerStats(num_running_reqs=3, num_queue_reqs=4, num_used_tokens=50, num_waiting_tokens=60)
    stats.requests_received_total = 1
    load.on_heartbeat(stats)
    assert load.now == Load(8, 120)
    load.on_sent(RequestShape(1))
    stats.requests_received_total = 3
    load.on_heartbeat(stats)
    assert load.now == Load(7, 110)
