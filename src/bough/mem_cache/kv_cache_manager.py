"""Ownership of KV slots: the one place where slots change hands.

A request's row of the request table, ``length`` tokens long, has two regions::

    0                        owned_len                                          length
    |  the cache's prefix    |                       own                           |
    |  whole pages, locked   |  whole pages ...    |  last page, perhaps a part    |
    |  KV computed/planned   |  KV computed/planned   |  slots without a plan yet  |
    |  others may read it    |  no other request reads or writes it                |

- The prefix ``[0, owned_len)`` belongs to the prefix cache. ``node``'s lock keeps it there; this request must neither
  free nor rewrite it. It grows by ``begin`` (what was found) and ``checkpoint`` (what was computed), only by whole
  pages.
- The rest, ``[owned_len, length)``, belongs to this request alone. ``owned_len`` is a multiple of the page size, so
  no page is in both regions, and ``finish`` can free whole pages.
- ``checkpoint`` offers the cache the whole pages computed so far. Where the cache has got the same tokens from another
  request meanwhile, at other slots, the request's own are duplicates: they are freed and the row is rewritten to the
  cache's. All others change owner without moving.
- At all times: free + evictable + protected + the requests' own pages = total.

Slots may be freed while a step that reads them is still planned or running: steps run in the order of their plans, so
the next owner of the slots writes them in a later step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bough.config.engine_args import EvictionPolicy
from bough.mem_cache.allocator import SlotAllocator
from bough.mem_cache.chunk_cache import ChunkCache
from bough.mem_cache.prefix_namespace import PrefixNamespace
from bough.mem_cache.radix_cache import RadixCache
from bough.mem_cache.req_to_token_pool import ReqToTokenPool
from bough.mem_cache.tree_node import TreeNode
from bough.step_plan import IntArray, ReqSlot


@dataclass(slots=True, eq=False, repr=False)
class RequestKV:
    """Memory that one request holds. Only :class:`KVCacheManager` writes to it.

    Attributes:
        req_slot: the request's row, -1 after it was given back.
        node: last node of the locked prefix.
        owned_len: tokens of the row that belong to the prefix cache, a multiple of the page size.
        extra_key: namespace in the prefix cache.
        priority: what the ``priority`` eviction policy sees of the request.
    """

    req_slot: ReqSlot
    node: TreeNode
    owned_len: int
    extra_key: str | None
    priority: int
    _lengths: IntArray

    @property
    def length(self) -> int:
        """Tokens that have a slot; 0 after the row was given back."""
        return int(self._lengths[self.req_slot]) if self.req_slot >= 0 else 0

    def __repr__(self) -> str:
        return f"RequestKV(row {self.req_slot}, {self.owned_len} of {self.length} tokens in the cache)"


class KVUsage(NamedTuple):
    """Tokens of the KV pool by their owners; the middle four add up to ``total``."""

    total: int
    free: int
    evictable: int
    """in the prefix cache, used by no running request"""
    protected: int
    """in the prefix cache, used by running requests"""
    private: int
    """in pages that a single running request holds outside the cache"""
    num_requests: int
    """requests that hold a row"""


EVICTION_BATCHES = 128
"""Making room evicts at least this part of the pool from the prefix cache."""


class KVCacheManager:
    """Gives requests their rows and slots, and shares prefixes between them.

    Counters by request slot are arrays, so that a decode step costs a handful of numpy calls whatever its rows.

    Attributes:
        req_to_token: the rows; its ``table`` is the host's copy of the device's table.
        lengths: [max_running_requests] int32, tokens that have a slot, by request slot; read-only for others.
        evicted_tokens: tokens that the prefix cache has forgotten so far because their slots were needed.
        num_repairs: calls of :meth:`repair` so far.
        namespace: in which later requests use the prefix cache.
    """

    def __init__(self, prefix_cache: RadixCache, allocator: SlotAllocator, req_to_token: ReqToTokenPool) -> None:
        if prefix_cache.page_size != allocator.page_size:
            raise ValueError(f"page sizes differ: {prefix_cache.page_size} and {allocator.page_size}")
        self.prefix_cache = prefix_cache
        self.allocator = allocator
        self.req_to_token = req_to_token
        self.lengths: IntArray = np.zeros(req_to_token.size, dtype=np.int32)
        self.evicted_tokens = 0
        self.num_repairs = 0
        self.namespace = PrefixNamespace(prefix_cache)
        self._last_slots: IntArray = np.full(req_to_token.size, -1, dtype=np.int32)
        self._live: dict[int, RequestKV] = {}

    @property
    def page_size(self) -> int:
        """Tokens per page."""
        return self.allocator.page_size

    @property
    def available_tokens(self) -> int:
        """Tokens that could get a slot now: free pages, and pages of the cache that no request holds."""
        return self.allocator.available_size + self.prefix_cache.evictable_size

    def usage(self) -> KVUsage:
        """Return where the tokens are. Costs no walk."""
        total, free = self.allocator.total_size, self.allocator.available_size
        evictable, protected = self.prefix_cache.evictable_size, self.prefix_cache.protected_size
        private = total - free - evictable - protected
        return KVUsage(total, free, evictable, protected, private, len(self._live))

    def match(self, token_ids: IntArray, extra_key: str | None = None) -> int:
        """Return how many tokens of ``token_ids`` the cache has now, without touching it."""
        return self.prefix_cache.matched_len(token_ids, self.namespace.key(extra_key))

    def match_unheld(self, token_ids: IntArray, extra_key: str | None = None, max_prefix: int | None = None) -> int:
        """Return how many of the tokens that :meth:`begin` would take from the cache no request holds; touches nothing.

        These are no longer available once it has.
        """
        return self.prefix_cache.unheld_len(
            token_ids[: self._longest_prefix(max_prefix)], self.namespace.key(extra_key)
        )

    def _longest_prefix(self, max_prefix: int | None) -> int:
        row_len = self.req_to_token.max_context_len
        return row_len if max_prefix is None else max(min(max_prefix, row_len), 0)

    def begin(
        self, token_ids: IntArray, extra_key: str | None = None, max_prefix: int | None = None, priority: int = 0
    ) -> RequestKV | None:
        """Give a request for ``token_ids`` ``[n]`` a row, whose first ``owned_len`` tokens are already in the cache.

        At most ``max_prefix`` tokens, rounded down to whole pages, are taken from the cache's namespace ``extra_key``.
        Mutates: locks the matched path and enters its slots in the table. Returns the request's record, ``length ==
        owned_len``; ``None``, with nothing changed, if all rows are taken.
        """
        if self.req_to_token.available_size == 0:
            return None
        extra_key = self.namespace.key(extra_key)
        slots, node = self.prefix_cache.match_prefix(token_ids[: self._longest_prefix(max_prefix)], extra_key)
        self.prefix_cache.lock(node)
        req_slot = self.req_to_token.alloc()
        assert req_slot is not None  # one was available above
        matched = len(slots)
        self.req_to_token.table[req_slot, :matched] = slots
        self._set_length(req_slot, matched)
        kv = RequestKV(req_slot, node, matched, extra_key, priority, self.lengths)
        self._live[req_slot] = kv
        return kv

    def extend(self, kv: RequestKV, num_new: int) -> IntArray | None:
        """Give a request slots ``[num_new]`` more, also in the table, evicting from the cache what is not locked where
        that is needed.

        ``None``, with nothing changed, if not even eviction makes enough room. Raises ``ValueError`` for a negative
        count, or more tokens than a row holds.
        """
        req_slot = self._row_of(kv)
        length = kv.length
        if num_new < 0 or length + num_new > self.req_to_token.max_context_len:
            raise ValueError(
                f"cannot extend {length} tokens by {num_new}, a row holds {self.req_to_token.max_context_len}"
            )
        if not self._make_room(self.allocator.num_new_pages_extend(num_new, length)):
            return None
        slots = self.allocator.alloc_extend(num_new, length, int(self._last_slots[req_slot]))
        assert slots is not None  # room was made above
        self.req_to_token.table[req_slot, length : length + num_new] = slots
        self._set_length(req_slot, length + num_new)
        return slots

    def extend_decode(self, req_slots: IntArray) -> IntArray | None:
        """Give each of R different requests that have begun (rows ``[R]``) one more slot; all or nothing, as
        :meth:`extend`."""
        rows = req_slots.astype(np.intp)
        lengths = self.lengths[rows]
        if len(rows) and lengths.max() >= self.req_to_token.max_context_len:
            full = req_slots[lengths >= self.req_to_token.max_context_len]
            raise ValueError(f"rows {full.tolist()} hold {self.req_to_token.max_context_len} tokens already")
        last_slots = self._last_slots[rows]
        slots = self.allocator.alloc_decode(lengths, last_slots)
        if slots is None:
            if not self._make_room(self.allocator.num_new_pages_decode(lengths)):
                return None
            slots = self.allocator.alloc_decode(lengths, last_slots)
            assert slots is not None  # room was made above
        self.req_to_token.table[rows, lengths] = slots
        self.lengths[rows] = lengths + 1
        self._last_slots[rows] = slots
        return slots

    def extend_steps(self, max_steps: int, req_slots: IntArray) -> IntArray:
        """Give each of R different requests that have begun (rows ``[R]``, at least one) slots, as
        :meth:`extend_decode` would step by step.

        Returns ``[N, R]``, with as large an N, up to ``max_steps``, as there is room for; perhaps 0.
        """
        rows = req_slots.astype(np.intp)
        lengths = self.lengths[rows]
        pages = self.allocator.num_new_pages_steps(max_steps, lengths)
        num_steps = int(np.searchsorted(pages, self.available_tokens // self.page_size, side="right"))
        if num_steps == 0 or not self._make_room(int(pages[num_steps - 1])):
            return np.zeros((0, len(rows)), dtype=np.int32)
        slots = self.allocator.alloc_steps(num_steps, lengths, self._last_slots[rows])
        assert slots is not None  # room was made above
        self.req_to_token.table[rows, lengths + np.arange(num_steps)[:, np.newaxis]] = slots
        self.lengths[rows] = lengths + num_steps
        self._last_slots[rows] = slots[-1]
        return slots

    def shrink(self, req_slots: IntArray, num_tokens: int) -> None:
        """Take the last ``num_tokens`` slots back from each of R different requests, which nothing was written to;
        raises ``ValueError`` if they are not all a request's own."""
        for req_slot in map(ReqSlot, req_slots.tolist()):
            length = int(self.lengths[req_slot])
            kept = length - num_tokens
            if num_tokens < 0 or kept < self._live[req_slot].owned_len:
                raise ValueError(f"cannot take {num_tokens} of the {length} tokens of row {req_slot}")
            whole_pages = -(-kept // self.page_size) * self.page_size
            self.allocator.free(self.req_to_token.table[req_slot, whole_pages:length])
            self._set_length(req_slot, kept)

    def checkpoint(self, kv: RequestKV, token_ids: IntArray, num_computed: int) -> list[tuple[int, IntArray]]:
        """Give the cache the whole pages among the first ``num_computed`` tokens, so that others can use them.

        Their KV is computed, or will be by a step that is planned already; ``token_ids`` has at least them. Mutates:
        the owner of these pages, the row where another request was faster, the lock. Returns the rewrites
        ``row[start:start + len(slots)] = slots`` that device tables need as well; usually none. Raises ``ValueError``
        if ``num_computed`` exceeds the tokens given or the slots held.
        """
        req_slot = self._row_of(kv)
        if num_computed > min(len(token_ids), kv.length):
            raise ValueError(f"{num_computed} computed tokens, but {len(token_ids)} ids and {kv.length} slots")
        whole_pages = num_computed - num_computed % self.page_size
        if whole_pages <= kv.owned_len:
            return []
        row = self.req_to_token.table[req_slot]
        start = kv.owned_len
        result = self.prefix_cache.insert(
            token_ids[start:whole_pages], row[start:whole_pages], kv.extra_key, kv.priority, below=kv.node
        )
        rewrites: list[tuple[int, IntArray]] = []
        stop = start + result.existing_len
        if stop > start:
            slots = self.prefix_cache.slots_of(result.node, start)[: stop - start]
            self.allocator.free(row[start:stop])
            row[start:stop] = slots
            self._set_length(req_slot, kv.length)
            rewrites.append((start, slots))
        self.prefix_cache.lock(result.node)
        self.prefix_cache.unlock(kv.node)
        kv.node = result.node
        kv.owned_len = start + result.owned_len
        return rewrites

    def finish(self, kv: RequestKV, token_ids: IntArray, num_computed: int, keep: bool = True) -> None:
        """Take back all that a request holds, after a last :meth:`checkpoint` if ``keep``; ``kv`` is dead
        afterwards."""
        if keep:
            self.checkpoint(kv, token_ids, num_computed)
        req_slot = self._row_of(kv)
        self.allocator.free(self.req_to_token.table[req_slot, kv.owned_len : kv.length])
        self.prefix_cache.unlock(kv.node)
        self._set_length(req_slot, 0)
        self.req_to_token.free(req_slot)
        del self._live[req_slot]
        kv.req_slot = ReqSlot(-1)

    def check_idle(self) -> str | None:
        """Check what must hold when no request runs, and return what is wrong, with numbers; cheap enough for every
        time the scheduler runs dry."""
        usage = self.usage()
        faults: list[str] = []
        if usage.private or usage.protected:
            faults.append(
                f"{usage.free} free + {usage.evictable} evictable + {usage.protected} protected tokens, "
                f"of {usage.total}; all should be free or evictable"
            )
        if taken := self.req_to_token.size - self.req_to_token.available_size:
            faults.append(f"{taken} of {self.req_to_token.size} request slots are taken")
        if held := self.prefix_cache.locks_held:
            faults.append(f"{held} locks on the prefix cache are held")
        return "; ".join(faults) or None

    def repair(self) -> int:
        """Start again with everything free and an empty cache, after :meth:`check_idle` has found a fault.

        Only when nothing is planned or running: the records of requests that still hold something are dead afterwards.
        Returns the tokens that were neither free nor evictable (or, if negative, that had two owners).
        """
        self.num_repairs += 1
        off = self.allocator.total_size - self.available_tokens
        for kv in self._live.values():
            kv.req_slot = ReqSlot(-1)
        self._live.clear()
        self.lengths[:] = 0
        self._last_slots[:] = -1
        self.prefix_cache.discard()
        self.allocator.reset()
        self.req_to_token.reset()
        return off

    def check_integrity(self) -> None:
        """Check, by a walk over everything, that every page has exactly one owner: the free stack, the cache or one
        request; meant for tests. Raises ``RuntimeError`` if it has not; the message has the numbers."""
        self.allocator.check_integrity()
        self.prefix_cache.check_integrity()
        usage = self.usage()
        owners = np.zeros(self.allocator.num_slots // self.page_size, dtype=np.int32)
        np.add.at(owners, self.prefix_cache.owned_slots()[:: self.page_size] // self.page_size, 1)
        private = 0
        for kv in self._live.values():
            row = self.req_to_token.table[kv.req_slot]
            if kv.length and row[kv.length - 1] != self._last_slots[kv.req_slot]:
                raise RuntimeError(f"{kv!r} ends at {row[kv.length - 1]}, not at {self._last_slots[kv.req_slot]}")
            if not np.array_equal(self.prefix_cache.slots_of(kv.node), row[: kv.owned_len]):
                raise RuntimeError(f"the prefix of {kv!r} differs from the cache's")
            own_pages = row[kv.owned_len : kv.length : self.page_size] // self.page_size
            np.add.at(owners, own_pages, 1)
            private += len(own_pages) * self.page_size
        every_slot = np.arange(self.allocator.num_slots, dtype=np.int32)
        owners += self.allocator.is_free(every_slot[:: self.page_size])
        if (owners[1:] != 1).any() or owners[0]:
            raise RuntimeError(f"{int((owners[1:] > 1).sum())} pages have several owners, {usage}")
        if private != usage.private:
            raise RuntimeError(f"requests hold {private} tokens of their own, but {usage}")
        if self.prefix_cache.locks_held != len(self._live):
            raise RuntimeError(f"{self.prefix_cache.locks_held} locks for {len(self._live)} requests")

    def _make_room(self, num_pages: int) -> bool:
        """Evict until ``num_pages`` pages are free. Returns false, with nothing evicted, if it cannot be."""
        shortage = num_pages * self.page_size - self.allocator.available_size
        if shortage <= 0:
            return True
        if shortage > self.prefix_cache.evictable_size:
            return False
        # Several leaves at a time: a single one costs nearly as much, and the next would be asked for a step later.
        self.evicted_tokens += self.prefix_cache.evict(max(shortage, self.allocator.total_size // EVICTION_BATCHES))
        return True

    def _set_length(self, req_slot: ReqSlot, length: int) -> None:
        self.lengths[req_slot] = length
        self._last_slots[req_slot] = self.req_to_token.table[req_slot, length - 1] if length else -1

    @staticmethod
    def _row_of(kv: RequestKV) -> ReqSlot:
        if kv.req_slot < 0:
            raise RuntimeError("the request has given back its slots already")
        return kv.req_slot


def make_kv(
    num_tokens: int, page_size: int, req_to_token: ReqToTokenPool, eviction_policy: EvictionPolicy | None
) -> KVCacheManager:
    """Make the accounts of an empty pool of ``num_tokens`` tokens; without an ``eviction_policy`` it has no prefix
    cache."""
    allocator = SlotAllocator(num_tokens, page_size)
    cache = RadixCache(allocator, page_size, eviction_policy) if eviction_policy else ChunkCache(allocator, page_size)
    return KVCacheManager(cache, allocator, req_to_token)
