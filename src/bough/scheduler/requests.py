"""All requests of a scheduler, wherever they are, and the ways they move.

Whatever a request holds (a slot, KV, a lock in the prefix cache, a place in the queue, followers) it takes and gives
back here and nowhere else.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bough.config.server_args import ServerArgs
from bough.constrained.base import mask_words
from bough.constrained.masks import are_masks_late
from bough.mem_cache.kv_cache_manager import KVCacheManager, RequestKV, make_kv
from bough.mem_cache.req_to_token_pool import ReqToTokenPool
from bough.model_executor.worker_info import WorkerInfo
from bough.observability.stats import SchedulerStats
from bough.scheduler.device_news import DeviceNews
from bough.scheduler.planned import Planned
from bough.scheduler.prefix_sharing import PrefixSharing
from bough.scheduler.req import Req, ReqStage
from bough.scheduler.request_table import RequestTable
from bough.scheduler.waiting_queue import WaitingQueue

if TYPE_CHECKING:
    from bough.constrained.compiler import CompileJob

logger = logging.getLogger(__name__)

MIN_SHARED_PIECE_TOKENS = 512
"""Pieces of an unfinished prompt are shared in lots of this size, unless a request waits for them: each costs a walk
down the tree, and a node."""


class Requests:
    """The requests of one scheduler.

    Attributes:
        unfinished: those whose prompt is partly computed or planned, in order of arrival.
        compiling: those that wait for their grammar, and for what.
        in_flight: steps that were launched and whose results are not processed, oldest first.
        stats: counters of all that happens to them, and to the steps that compute them.
    """

    def __init__(self, kv: KVCacheManager, table: RequestTable, queue: WaitingQueue, sharing: PrefixSharing) -> None:
        self.kv = kv
        self.table = table
        self.waiting_queue = queue
        self.sharing = sharing
        self.unfinished: list[Req] = []
        self.in_flight: deque[Planned] = deque()
        self.compiling: dict[Req, CompileJob] = {}
        self.stats = SchedulerStats()
        self._by_rid: dict[str, Req] = {}
        self.news = DeviceNews()

    def __len__(self) -> int:
        return len(self._by_rid)

    def __contains__(self, rid: object) -> bool:
        return rid in self._by_rid

    def __iter__(self) -> Iterator[Req]:
        return iter(list(self._by_rid.values()))

    @property
    def are_unfinished(self) -> bool:
        """True if any request is alive or any step in flight."""
        return bool(self._by_rid or self.in_flight)

    @property
    def num_waiting(self) -> int:
        """Requests without a slot."""
        return len(self.waiting_queue) + len(self.sharing) + len(self.compiling)

    @property
    def num_holding(self) -> int:
        """Requests with a slot."""
        return len(self._by_rid) - self.num_waiting

    def find(self, rid: str, *, exact: bool) -> list[Req]:
        """Requests whose id is ``rid``, or starts with it."""
        if exact:
            req = self._by_rid.get(rid)
            return [] if req is None else [req]
        return [req for key, req in self._by_rid.items() if key.startswith(rid)]

    def add(self, req: Req, job: CompileJob | None = None) -> None:
        """Take a new request; it goes to the waiting queue, or waits for its grammar beside it."""
        self._by_rid[req.rid] = req
        if job is None:
            self.waiting_queue.push(req)
        else:
            req.state = ReqStage.COMPILING
            self.compiling[req] = job

    def compiled(self, req: Req) -> None:
        """Queue a request whose grammar is ready, in the order of its arrival."""
        del self.compiling[req]
        self.waiting_queue.push(req)

    def start(self, req: Req, kv: RequestKV) -> None:
        """A waiting request has got a slot and the KV that the prefix cache had for it."""
        self.waiting_queue.remove(req)
        req.kv = kv
        req.slot = kv.req_slot
        req.computed_len = kv.length
        req.state = ReqStage.PREFILL
        if req.first_step_time is None:
            req.first_step_time = time.monotonic()
            req.cached_tokens = kv.length
            self.stats.cached_tokens_total += kv.length
        self.table.occupy(req, prefix_len=kv.length)
        if kv.length:
            self.news.add_table_write(req.slot, 0, self.kv.req_to_token.table[req.slot, : kv.length].copy())
        self.news.add_request(req)
        self.unfinished.append(req)
        self.unfinished.sort(key=lambda r: r.order)
        self.sharing.lead(req)

    def end_of_prompt_planned(self, req: Req, *, samples: bool) -> None:
        """The last piece of the prompt is part of a plan."""
        self.unfinished.remove(req)
        req.state = ReqStage.RUNNING
        if samples:
            self.table.planned_out[req.slot] += 1
            self.table.decoding[req.slot] = True

    def computed(self, req: Req, num_tokens: int) -> None:
        """The first ``num_tokens`` tokens of a request have their KV: share them through the prefix cache."""
        assert req.kv is not None
        req.computed_len = num_tokens
        small = num_tokens - req.kv.owned_len < MIN_SHARED_PIECE_TOKENS
        if small and num_tokens < req.fill_len and not self.sharing.has_followers(req):
            return
        tokens = self.table.tokens[req.slot, :num_tokens]
        for start, slots in self.kv.checkpoint(req.kv, tokens, num_tokens):
            self.news.add_table_write(req.slot, start, slots)
        if num_tokens >= req.fill_len:
            self.waiting_queue.extend(self.sharing.left(req))
        else:
            self.waiting_queue.extend(self.sharing.progressed(req, req.kv.owned_len))

    def is_complete(self, req: Req) -> bool:
        """Return whether a grammar has found an end that no step has reported: a token may still wait to be looked at.

        A step in flight may have a thread ask the same matcher, and will report it.
        """
        if req.matcher is None or any(req.slot in planned.plan.req_slots for planned in self.in_flight):
            return False
        try:
            return req.matcher.is_terminated
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic: the step that needs its mask meets it again
            logger.exception("Could not ask the grammar of request %r", req.rid)
            return False

    def retract(self, req: Req) -> None:
        """Take a request's memory; it waits again and will continue where it was, from what is still cached.

        Not for a request that :meth:`is_complete`: computing it again, only to end, is wasted work.
        """
        self._give_back(req, keep=True)
        req.num_retractions += 1
        self.stats.num_retracted_total += 1
        self.waiting_queue.push(req)

    def release(self, req: Req, *, keep: bool = True) -> None:
        """A request has ended, in any state: everything it holds goes back. Its KV may serve others if it can be
        trusted (``keep``)."""
        if req.state is ReqStage.WAITING:
            self.waiting_queue.remove(req)
        elif req.state is ReqStage.PARKED:
            self.sharing.remove(req)
        elif req.state is ReqStage.COMPILING:
            del self.compiling[req]
        elif req.state is not ReqStage.FINISHED:
            self._give_back(req, keep=keep)
        req.state = ReqStage.FINISHED
        req.matcher = None
        del self._by_rid[req.rid]

    def forget(self, req: Req) -> None:
        """Strike out a request that an error has kept from giving back what it holds, whatever it still has.

        What is lost shows in the accounts when nothing runs any more.
        """
        self._by_rid.pop(req.rid, None)
        self.compiling.pop(req, None)
        if req.state is ReqStage.WAITING and req in self.waiting_queue:
            self.waiting_queue.remove(req)
        elif req.state is ReqStage.PARKED:
            self.sharing.remove(req)
        if req.slot >= 0 and self.table.reqs[req.slot] is req:
            self._clear_slot(req.slot)
        if req in self.unfinished:
            self.unfinished.remove(req)
        req.state = ReqStage.FINISHED
        req.matcher = None
        self.waiting_queue.extend(self.sharing.left(req))

    def take_back(self, planned: Planned, num_steps: int) -> None:
        """The last so many steps of a plan were not run: what was set aside for them is free again."""
        slots = planned.plan.req_slots[planned.alive]
        self.table.planned_len[slots] -= num_steps
        self.table.planned_out[slots] -= num_steps
        self.kv.shrink(slots, num_steps)

    def _give_back(self, req: Req, *, keep: bool) -> None:
        """Free all that a request holds; what it has generated moves to ``output_before_slot``."""
        assert req.kv is not None
        slot, valid = req.slot, self.table.num_valid(req)
        req.jump_from = -1
        self.kv.finish(req.kv, self.table.tokens[slot, :valid], valid, keep=keep)
        req.output_before_slot = self.table.output_ids(req)
        self._clear_slot(slot)
        if req in self.unfinished:
            self.unfinished.remove(req)
        req.kv = None
        req.slot = -1
        self.waiting_queue.extend(self.sharing.left(req))

    def _clear_slot(self, slot: int) -> None:
        """A slot has no owner any more: no step's result is for it, and its next owner hears nothing of the last."""
        for planned in self.in_flight:
            planned.drop_slot(slot)
        self.table.vacate(slot)
        self.news.forget(slot)


def make_requests(server_args: ServerArgs, info: WorkerInfo, *, queue_seed: int) -> Requests:
    """Make the empty accounts of a model's KV pool and request slots; ``queue_seed`` is for the ``random`` policy."""
    reuses_prefixes = info.reuses_prefixes and not server_args.disable_radix_cache
    max_len = info.max_req_len + 1
    kv = make_kv(
        info.max_total_num_tokens,
        info.page_size,
        ReqToTokenPool(info.max_running_requests, max_len),
        server_args.radix_eviction_policy if reuses_prefixes else None,
    )
    words = 0 if are_masks_late(info.vocab_size) else mask_words(info.vocab_size)
    table = RequestTable(info.max_running_requests, max_len, words)
    use_priority = server_args.enable_priority_scheduling
    queue = WaitingQueue(server_args.schedule_policy, kv, use_priority=use_priority, seed=queue_seed)
    return Requests(kv, table, queue, PrefixSharing(enabled=reuses_prefixes))
