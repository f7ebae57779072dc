from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.chunk_cache import ChunkCache
from bough.mem_cache.kv_cache_manager import KVCacheManager, RequestKV
from bough.mem_cache.radix_cache import RadixCache
from bough.mem_cache.req_to_token_pool import ReqToTokenPool
from bough.step_plan import IntArray
from tests.thoroughness import examples

MAX_CONTEXT = 96


def build(
    page_size: int = 1, num_tokens: int = 256, max_requests: int = 4, *, radix: bool = True, context: int = MAX_CONTEXT
) -> KVCacheManager:
    allocator = SlotAllocator(num_tokens, page_size)
    cache: RadixCache = RadixCache(allocator, page_size) if radix else ChunkCache(allocator, page_size)
    return KVCacheManager(cache, allocator, ReqToTokenPool(max_requests, context))


def run_of(length: int, first: int = 0) -> IntArray:
    return np.arange(first, first + length, dtype=np.int32)


def begin(manager: KVCacheManager, token_ids: IntArray, extra_key: str | None = None) -> RequestKV:
    """Begin a request as the scheduler does: its last token is always computed."""
    kv = manager.begin(token_ids, extra_key, len(token_ids) - 1)
    assert kv is not None
    return kv


def compute(manager: KVCacheManager, token_ids: IntArray, extra_key: str | None = None) -> RequestKV:
    kv = begin(manager, token_ids, extra_key)
    assert manager.extend(kv, len(token_ids) - kv.length) is not None
    return kv


def serve(manager: KVCacheManager, token_ids: IntArray, extra_key: str | None = None) -> int:
    """Run a request from beginning to end; return how many tokens it found in the cache."""
    kv = begin(manager, token_ids, extra_key)
    found = kv.length
    assert manager.extend(kv, len(token_ids) - found) is not None
    manager.finish(kv, token_ids, len(token_ids))
    return found


def test_a_second_request_finds_what_the_first_computed() -> None:
    for page_size in [1, 4, 16]:
        manager = build(page_size)
        prompt = run_of(50)
        assert serve(manager, prompt) == 0
        whole_pages = 50 // page_size * page_size
        assert manager.match(prompt) == whole_pages
        kv = begin(manager, prompt)
        assert kv.length == kv.owned_len == 49 // page_size * page_size
        assert manager.usage().protected == kv.owned_len
        assert manager.extend(kv, 50 - kv.length) is not None
        manager.check_integrity()
        manager.finish(kv, prompt, 50)
        assert manager.check_idle() is None
        assert manager.usage().evictable == whole_pages


def test_a_wholly_cached_prompt_of_whole_pages_computes_its_last_page_again() -> None:
    for page_size in [4, 16]:
        manager = build(page_size)
        prompt = run_of(3 * page_size)
        serve(manager, prompt)
        kv = compute(manager, prompt)
        assert kv.owned_len == 2 * page_size
        rewrites = manager.checkpoint(kv, prompt, len(prompt))
        assert [(start, len(slots)) for start, slots in rewrites] == [(2 * page_size, page_size)]
        assert kv.owned_len == kv.length == 3 * page_size
        manager.check_integrity()
        next_slot = manager.extend(kv, 1)
        assert next_slot is not None
        assert next_slot[0] % page_size == 0
        manager.finish(kv, np.append(prompt, np.int32(1)), 3 * page_size + 1)
        assert manager.check_idle() is None
        assert manager.usage().evictable == 3 * page_size


def test_two_requests_that_computed_the_same_keep_one_copy() -> None:
    manager = build(page_size=4)
    prompt = run_of(18)
    first, second = compute(manager, prompt), compute(manager, prompt)
    own = manager.req_to_token.table[second.req_slot, :18].copy()
    assert manager.checkpoint(first, prompt, 18) == []
    free = manager.allocator.available_size
    ((start, slots),) = manager.checkpoint(second, prompt, 18)
    assert start == 0
    assert slots.tolist() == manager.req_to_token.table[first.req_slot, :16].tolist()
    assert manager.allocator.is_free(own[:16]).all()
    assert manager.allocator.available_size == free + 16
    table = manager.req_to_token.table[second.req_slot]
    assert table[:18].tolist() == [*slots.tolist(), *own[16:].tolist()]
    manager.check_integrity()
    for kv in (first, second):
        manager.finish(kv, prompt, 18)
    assert manager.check_idle() is None


def test_chunks_become_visible_as_they_are_computed() -> None:
    manager = build(page_size=4)
    prompt = run_of(30)
    kv = begin(manager, prompt)
    for computed, visible in ((10, 8), (11, 8), (20, 20), (30, 28)):
        assert manager.extend(kv, computed - kv.length) is not None
        assert manager.checkpoint(kv, prompt, computed) == []
        assert manager.match(prompt) == kv.owned_len == visible
        manager.check_integrity()
    manager.finish(kv, prompt, 30)
    assert manager.check_idle() is None


def test_namespaces_never_share() -> None:
    manager = build()
    prompt = run_of(20)
    assert [serve(manager, prompt, key) for key in (None, "a", "b")] == [0, 0, 0]
    assert [serve(manager, prompt, key) for key in (None, "a", "b")] == [19, 19, 19]


def test_without_a_radix_cache_nothing_is_reused_and_nothing_lost() -> None:
    manager = build(page_size=4, radix=False)
    prompt = run_of(30)
    kv = compute(manager, prompt)
    assert manager.checkpoint(kv, prompt, 30) == []
    assert kv.owned_len == 0
    assert manager.usage().private == 32
    manager.check_integrity()
    manager.finish(kv, prompt, 30)
    assert manager.check_idle() is None
    assert manager.available_tokens == manager.allocator.available_size == 256
    assert serve(manager, prompt) == 0


def test_a_finished_request_can_leave_nothing_in_the_cache() -> None:
    manager = build(page_size=4)
    prompt = run_of(30)
    kv = compute(manager, prompt)
    manager.finish(kv, prompt, 30, keep=False)
    assert manager.match(prompt) == 0
    assert manager.allocator.available_size == 256


def test_no_row_no_request() -> None:
    manager = build(max_requests=1)
    serve(manager, run_of(10))
    kv = begin(manager, run_of(10))
    before = manager.usage()
    assert manager.begin(run_of(10), None, 9) is None
    assert manager.usage() == before
    manager.finish(kv, run_of(10), 0, keep=False)
    assert manager.check_idle() is None


def test_extending_evicts_what_nobody_uses() -> None:
    manager = build(page_size=4, num_tokens=64)
    serve(manager, run_of(40))
    kv = begin(manager, run_of(60, first=100))
    assert manager.extend(kv, 60) is not None
    assert manager.match(run_of(40)) == 0
    manager.finish(kv, run_of(60, first=100), 60)
    assert manager.check_idle() is None


def test_extending_beyond_what_eviction_can_give_changes_nothing() -> None:
    manager = build(page_size=4, num_tokens=64)
    serve(manager, run_of(40))
    kv = begin(manager, run_of(90))
    assert kv.length == 40
    before = manager.usage()
    assert manager.extend(kv, 25) is None
    assert manager.usage() == before
    assert kv.length == 40
    assert manager.extend(kv, 24) is not None
    assert manager.available_tokens == 0
    manager.finish(kv, run_of(90), 64)
    assert manager.check_idle() is None


def test_decode_extends_all_rows_or_none() -> None:
    manager = build(page_size=4, num_tokens=32)
    a, b = compute(manager, run_of(12)), compute(manager, run_of(15, first=50))
    rows = np.array([a.req_slot, b.req_slot], dtype=np.int32)
    slots = manager.extend_decode(rows)
    assert slots is not None
    assert (a.length, b.length) == (13, 16)
    assert manager.req_to_token.table[rows, [12, 15]].tolist() == slots.tolist()
    assert manager.available_tokens == 0
    before = manager.usage()
    assert manager.extend_decode(rows) is None
    assert manager.usage() == before
    assert (a.length, b.length) == (13, 16)
    assert manager.extend_decode(rows[:1]) is not None
    manager.check_integrity()


def test_decode_evicts_what_nobody_uses() -> None:
    manager = build(page_size=4, num_tokens=32)
    serve(manager, run_of(16))
    kv = compute(manager, run_of(16, first=50))
    assert manager.allocator.available_size == 0
    assert manager.extend_decode(np.array([kv.req_slot], dtype=np.int32)) is not None
    assert manager.match(run_of(16)) == 0
    manager.check_integrity()


def test_only_a_request_s_own_slots_are_taken_back() -> None:
    manager = build(page_size=4, num_tokens=64)
    serve(manager, run_of(16))
    kv = compute(manager, run_of(20))
    rows = np.array([kv.req_slot], dtype=np.int32)
    before = manager.usage()
    for count in (-1, 5, 100):
        with pytest.raises(ValueError, match=f"cannot take {count} of the 20 tokens of row"):
            manager.shrink(rows, count)
    assert manager.usage() == before
    manager.shrink(rows, 0)
    assert (kv.length, manager.usage()) == (20, before)
    manager.check_integrity()


def test_decoding_nothing_gives_nothing() -> None:
    slots = build().extend_decode(np.zeros(0, dtype=np.int32))
    assert slots is not None
    assert len(slots) == 0


def test_rows_do_not_overflow() -> None:
    manager = build(num_tokens=256, context=32)
    kv = compute(manager, run_of(32))
    usage = manager.usage()
    with pytest.raises(ValueError, match="a row holds 32"):
        manager.extend(kv, 1)
    with pytest.raises(ValueError, match=r"rows \[0\] hold 32 tokens already"):
        manager.extend_decode(np.array([kv.req_slot], dtype=np.int32))
    assert manager.usage() == usage
    manager.finish(kv, run_of(32), 32)
    longer = manager.begin(run_of(40), None)
    assert longer is not None
    assert longer.length == 32


def test_a_checkpoint_walks_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = build(page_size=4)
    kv = begin(manager, run_of(24))
    manager.extend(kv, 24)
    manager.checkpoint(kv, run_of(16), 16)
    inserted: list[int] = []
    insert = manager.prefix_cache.insert

    def record(token_ids: IntArray, *args: Any, **kwargs: Any) -> Any:
        inserted.append(len(token_ids))
        return insert(token_ids, *args, **kwargs)

    monkeypatch.setattr(manager.prefix_cache, "insert", record)
    manager.checkpoint(kv, run_of(24), 24)
    assert (inserted, kv.owned_len) == ([8], 24)
    assert manager.match(run_of(24)) == 24
    manager.check_integrity()
    manager.finish(kv, run_of(24), 24)
    assert manager.check_idle() is None


def test_claims_beyond_what_is_held_are_refused() -> None:
    manager = build()
    kv = begin(manager, run_of(20))
    manager.extend(kv, 10)
    with pytest.raises(ValueError, match="11 computed tokens, but 20 ids and 10 slots"):
        manager.checkpoint(kv, run_of(20), 11)
    with pytest.raises(ValueError, match="9 computed tokens, but 8 ids"):
        manager.finish(kv, run_of(8), 9)
    with pytest.raises(ValueError, match="cannot extend"):
        manager.extend(kv, -1)
    manager.finish(kv, run_of(10), 10)
    assert manager.check_idle() is None


def test_a_finished_record_is_dead() -> None:
    manager = build()
    kv = compute(manager, run_of(10))
    manager.finish(kv, run_of(10), 10)
    assert (kv.req_slot, kv.length) == (-1, 0)
    for call in (
        lambda: manager.extend(kv, 1),
        lambda: manager.checkpoint(kv, run_of(10), 0),
        lambda: manager.finish(kv, run_of(10), 0),
    ):
        with pytest.raises(RuntimeError, match="given back"):
            call()
    assert manager.check_idle() is None


def test_page_sizes_must_agree() -> None:
    allocator, other = SlotAllocator(64, 4), SlotAllocator(64, 8)
    with pytest.raises(ValueError, match="page sizes differ: 8 and 4"):
        KVCacheManager(RadixCache(other, 8), allocator, ReqToTokenPool(1, 8))


def test_idle_check_names_what_is_held_and_repair_gives_it_back() -> None:
    manager = build(page_size=4)
    serve(manager, run_of(16))
    compute(manager, run_of(24))
    fault = manager.check_idle()
    assert fault is not None
    assert "232 free + 0 evictable + 16 protected tokens, of 256" in fault
    assert "1 of 4 request slots are taken" in fault
    assert "1 locks" in fault
    assert manager.repair() == 24
    assert manager.check_idle() is None
    assert manager.usage() == (256, 256, 0, 0, 0, 0)
    manager.check_integrity()
    assert serve(manager, run_of(16)) == 0
    assert manager.check_idle() is None


def test_idle_check_notices_a_lost_page_and_a_leaked_lock() -> None:
    manager = build(page_size=4)
    assert manager.allocator.alloc_extend(3, 0, -1) is not None
    assert "252 free" in str(manager.check_idle())
    assert manager.repair() == 4
    manager.prefix_cache.lock(manager.prefix_cache.match_prefix(run_of(1)).node)
    assert manager.check_idle() == "1 locks on the prefix cache are held"
    assert manager.repair() == 0
    assert manager.check_idle() is None


def test_requests_of_before_a_repair_are_dead() -> None:
    manager = build()
    kv = compute(manager, run_of(10))
    manager.repair()
    with pytest.raises(RuntimeError, match="given back"):
        manager.finish(kv, run_of(10), 10)
    assert manager.check_idle() is None


class TestIntegrityCheck:
    """It must be able to fail: each test breaks one thing."""

    def two_requests(self) -> tuple[KVCacheManager, RequestKV, RequestKV]:
        manager = build(page_size=4)
        serve(manager, run_of(16))
        first, second = compute(manager, run_of(24)), compute(manager, run_of(24, first=50))
        manager.check_integrity()
        return manager, first, second

    def test_a_page_with_two_owners(self) -> None:
        manager, first, second = self.two_requests()
        table = manager.req_to_token.table
        table[first.req_slot, 20:24] = table[second.req_slot, 20:24]
        manager._last_slots[first.req_slot] = table[first.req_slot, 23]
        with pytest.raises(RuntimeError, match="1 pages have several owners"):
            manager.check_integrity()

    def test_a_page_without_owner(self) -> None:
        manager, _, _ = self.two_requests()
        manager.allocator.alloc_extend(1, 0, -1)
        with pytest.raises(RuntimeError, match="0 pages have several owners"):
            manager.check_integrity()

    def test_a_prefix_that_is_not_the_caches(self) -> None:
        manager, first, _ = self.two_requests()
        manager.req_to_token.table[first.req_slot, 0] += 1
        with pytest.raises(RuntimeError, match="differs from the cache's"):
            manager.check_integrity()

    def test_a_stale_last_slot(self) -> None:
        manager, first, _ = self.two_requests()
        manager._last_slots[first.req_slot] += 1
        with pytest.raises(RuntimeError, match="ends at"):
            manager.check_integrity()

    def test_a_lock_without_request(self) -> None:
        manager, first, _ = self.two_requests()
        manager.prefix_cache.lock(first.node)
        with pytest.raises(RuntimeError, match="3 locks for 2 requests"):
            manager.check_integrity()


class TrackedRequest:
    """A request in the model: its tokens so far, and how many of them have their KV written."""

    def __init__(self, kv: RequestKV, token_ids: IntArray, extra_key: str | None) -> None:
        self.kv = kv
        self.token_ids = token_ids
        self.extra_key = extra_key


class RequestsAgainstContent(RuleBasedStateMachine):
    """Random requests on a tiny pool, with a simulated KV pool that remembers what was written to each slot.

    The content of a token's slot is a digest of its namespace and every token up to it. A slot that two parties own
    at once shows as foreign content; the device's table is kept from the returned slots and rewrites alone.
    """

    @initialize(
        page_size=st.sampled_from([1, 2, 4, 16]),
        num_pages=st.integers(2, 14),
        radix=st.sampled_from([True, True, True, False]),
        policy=st.sampled_from(["lru", "lfu", "fifo", "mru", "priority"]),
    )
    def build(self, page_size: int, num_pages: int, radix: bool, policy: str) -> None:
        self.page_size = page_size
        self.allocator = SlotAllocator(num_pages * page_size, page_size)
        cache: RadixCache = ChunkCache(self.allocator, page_size)
        if radix:
            cache = RadixCache(self.allocator, page_size, policy)
        self.radix = radix
        self.manager = KVCacheManager(cache, self.allocator, ReqToTokenPool(3, MAX_CONTEXT))
        self.content = np.zeros(self.allocator.num_slots, dtype=np.int64)
        self.device_table = np.full((3, MAX_CONTEXT), -1, dtype=np.int32)
        self.running: list[TrackedRequest] = []

    @staticmethod
    def digests(request: TrackedRequest) -> list[int]:
        digest, digests = hash(request.extra_key), []
        for token in request.token_ids.tolist():
            digest = hash((digest, token))
            digests.append(digest)
        return digests

    def pick(self, index: int) -> TrackedRequest:
        return self.running[index % len(self.running)]

    def prompt(self, pages: list[int], extra: int) -> IntArray:
        """Whole pages of equal tokens, and a few more: prompts share much, and often end on a page border."""
        run = np.repeat(np.array(pages, dtype=np.int32), self.page_size)
        return np.append(run, np.full(extra, 3, dtype=np.int32))[: MAX_CONTEXT - 8]

    def write(self, request: TrackedRequest, start: int, slots: IntArray) -> None:
        self.device_table[request.kv.req_slot, start : start + len(slots)] = slots
        self.content[slots] = self.digests(request)[start : start + len(slots)]

    @precondition(lambda self: len(self.running) < 4)
    @rule(
        pages=st.lists(st.integers(0, 1), min_size=1, max_size=5),
        extra=st.sampled_from([0, 0, 1, 3]),
        key=st.sampled_from([None, None, "a"]),
        whole=st.booleans(),
        priority=st.integers(-1, 1),
    )
    def begin(self, pages: list[int], extra: int, key: str | None, whole: bool, priority: int) -> None:
        prompt = self.prompt(pages, extra)
        limit = len(prompt) if whole else len(prompt) - 1
        expected = min(self.manager.match(prompt, key), limit) // self.page_size * self.page_size
        kv = self.manager.begin(prompt, key, limit, priority)
        assert (kv is None) == (len(self.running) == 3)
        if kv is None:
            return
        assert kv.length == kv.owned_len == expected
        row = self.manager.req_to_token.table[kv.req_slot]
        self.device_table[kv.req_slot, : kv.length] = row[: kv.length]
        self.running.append(TrackedRequest(kv, prompt, key))

    @precondition(lambda self: self.running)
    @rule(index=st.integers(0, 2), num_new=st.integers(0, 40))
    def prefill(self, index: int, num_new: int) -> None:
        request = self.pick(index)
        start = request.kv.length
        num_new = min(num_new, len(request.token_ids) - start)
        possible = self.allocator.num_new_pages_extend(num_new, start) * self.page_size
        possible_now = possible <= self.manager.available_tokens
        slots = self.manager.extend(request.kv, num_new)
        assert (slots is not None) == possible_now
        if slots is not None:
            self.write(request, start, slots)

    @precondition(lambda self: self.running)
    @rule(token=st.integers(0, 1))
    def decode(self, token: int) -> None:
        ready = [r for r in self.running if r.kv.length == len(r.token_ids) < MAX_CONTEXT]
        rows = np.array([r.kv.req_slot for r in ready], dtype=np.int32)
        needed = self.allocator.num_new_pages_decode(self.manager.lengths[rows]) * self.page_size
        possible = needed <= self.manager.available_tokens
        slots = self.manager.extend_decode(rows)
        assert (slots is not None) == possible
        if slots is None:
            return
        for request, slot in zip(ready, slots, strict=True):
            request.token_ids = np.append(request.token_ids, np.int32(token))
            self.write(request, len(request.token_ids) - 1, np.array([slot]))

    @precondition(lambda self: self.running)
    @rule(token=st.integers(0, 1), num_steps=st.integers(1, 20), num_used=st.integers(0, 20))
    def decode_steps(self, token: int, num_steps: int, num_used: int) -> None:
        """Set places aside for several steps, of which not all are run."""
        ready = [r for r in self.running if r.kv.length == len(r.token_ids) <= MAX_CONTEXT - num_steps]
        rows = np.array([r.kv.req_slot for r in ready], dtype=np.int32)
        if not ready:
            return
        lengths = self.manager.lengths[rows].tolist()

        def needed(count: int) -> int:
            return sum(self.allocator.num_new_pages_extend(count, length) for length in lengths) * self.page_size

        available = self.manager.available_tokens
        possible = max(count for count in range(num_steps + 1) if needed(count) <= available)
        slots = self.manager.extend_steps(num_steps, rows)
        assert slots.shape == (possible, len(ready))
        used = min(num_used, possible)
        self.manager.shrink(rows, possible - used)
        for request, places in zip(ready, slots.T, strict=True):
            start = len(request.token_ids)
            request.token_ids = np.append(request.token_ids, np.full(used, token, dtype=np.int32))
            self.write(request, start, places[:used])

    @precondition(lambda self: self.running)
    @rule(index=st.integers(0, 2), behind=st.integers(0, 3))
    def checkpoint(self, index: int, behind: int) -> None:
        request = self.pick(index)
        computed = max(request.kv.length - behind, 0)
        owned_len = request.kv.owned_len
        for start, slots in self.manager.checkpoint(request.kv, request.token_ids, computed):
            self.device_table[request.kv.req_slot, start : start + len(slots)] = slots
        whole_pages = computed // self.page_size * self.page_size
        assert request.kv.owned_len == (max(whole_pages, owned_len) if self.radix else 0)
        known = self.manager.match(request.token_ids, request.extra_key)
        assert known >= request.kv.owned_len

    @precondition(lambda self: self.running)
    @rule(index=st.integers(0, 2), behind=st.integers(0, 3), keep=st.booleans())
    def finish(self, index: int, behind: int, keep: bool) -> None:
        request = self.pick(index)
        self.running.remove(request)
        self.manager.finish(request.kv, request.token_ids, max(request.kv.length - behind, 0), keep)

    @precondition(lambda self: not self.running)
    @rule()
    def flush(self) -> None:
        self.manager.prefix_cache.reset()
        assert self.allocator.available_size == self.allocator.total_size

    @invariant()
    def every_request_sees_its_own_content(self) -> None:
        if not hasattr(self, "manager"):
            return
        self.manager.check_integrity()
        for request in self.running:
            row = self.device_table[request.kv.req_slot, : request.kv.length]
            assert row.tolist() == self.manager.req_to_token.table[request.kv.req_slot, : request.kv.length].tolist()
            assert self.content[row].tolist() == self.digests(request)[: request.kv.length]
        if not self.running:
            assert self.manager.check_idle() is None

    def teardown(self) -> None:
        if not hasattr(self, "manager"):
            return
        for request in self.running:
            self.manager.finish(request.kv, request.token_ids, request.kv.length)
        assert self.manager.check_idle() is None
        self.manager.prefix_cache.reset()
        assert self.allocator.available_size == self.allocator.total_size


RequestsAgainstContent.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=40)
TestRequestsAgainstContent = RequestsAgainstContent.TestCase
