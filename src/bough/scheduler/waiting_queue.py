"""Requests that wait for memory and time, and the order in which they get it."""

from __future__ import annotations

import bisect
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from bough.config.engine_args import SchedulePolicy
from bough.scheduler.req import Req, ReqStage
from bough.step_plan import IntArray

AGE_LIMIT_SECONDS = 5.0
"""A request that has waited longer is overtaken only by a higher priority, whatever the policy."""

SHORT_PROMPT_TOKENS = 512
"""A prompt of at most this length starts however many longer ones are unfinished, and goes before them."""

CACHE_AWARE_QUEUE_LIMIT = 128
"""Longest queue that is ordered by a look into the prefix cache for every request; beyond it, arrival order."""

_SortKey = tuple[float, float, int]


class PrefixLookup(Protocol):
    """Questions of cache-aware policies about the KV memory."""

    def match(self, token_ids: IntArray, extra_key: str | None) -> int:
        """Tokens of a prompt that the prefix cache holds."""


class WaitingQueue:
    """The waiting requests under a policy.

    ``fcfs``, ``lof`` (longest output first), ``random`` and ``priority`` give each request a key when it enters, and a
    sorted list is kept. ``lpm`` (longest prefix match) and ``dfs-weight`` depend on what is cached now and sort when
    asked. With priorities enabled, larger ones go first under any policy.
    """

    def __init__(self, policy: SchedulePolicy, lookup: PrefixLookup, *, use_priority: bool = False, seed: int = 0):
        self.policy = policy
        self._lookup = lookup
        self.use_priority = use_priority or policy == "priority"
        self._rng = random.Random(seed)
        self._by_arrival: list[tuple[tuple[float, int], Req]] = []
        self._by_key: list[tuple[_SortKey, Req]] = []
        self._short_by_key: list[tuple[_SortKey, Req]] = []
        self._keys: dict[Req, _SortKey] = {}
        self.only: frozenset[Req] | None = None
        """The requests that may start now, in order of arrival; ``None`` for all."""

    def __len__(self) -> int:
        return len(self._by_arrival)

    def __contains__(self, req: Req) -> bool:
        return req in self._keys

    def __iter__(self) -> Iterator[Req]:
        """All requests, those of a higher priority first, in arrival order."""
        return (req for _, req in self._by_arrival)

    def precedence(self, req: Req) -> tuple[int, int]:
        """Return a key that sorts requests by how long they keep memory: the oldest of the highest priority first."""
        return (-req.priority if self.use_priority else 0, req.order)

    def push(self, req: Req) -> None:
        """Add a request; one that comes back takes the place that its arrival gives it."""
        req.state = ReqStage.WAITING
        key = self._static_key(req)
        self._keys[req] = key
        bisect.insort(self._by_arrival, ((key[0], req.order), req), key=_arrival)
        bisect.insort(self._by_key, (key, req), key=_key)
        if req.fill_len <= SHORT_PROMPT_TOKENS:
            bisect.insort(self._short_by_key, (key, req), key=_key)

    def extend(self, reqs: Iterable[Req]) -> None:
        """Add several requests."""
        for req in reqs:
            self.push(req)

    def remove(self, req: Req) -> None:
        """Take a request out; raises ``KeyError`` if it is not in the queue."""
        key = self._keys.pop(req)
        del self._by_arrival[bisect.bisect_left(self._by_arrival, (key[0], req.order), key=_arrival)]
        del self._by_key[bisect.bisect_left(self._by_key, key, key=_key)]
        if req.fill_len <= SHORT_PROMPT_TOKENS:
            del self._short_by_key[bisect.bisect_left(self._short_by_key, key, key=_key)]

    def ordered(self, now: float, limit: int) -> list[tuple[Req, bool]]:
        """The next ``limit`` requests in the order in which they should start, and for each whether only a higher
        priority may overtake it.

        Within a priority such old ones come first, in order of arrival. The queue is not changed.
        """
        if self.only is not None:
            return [(req, True) for req in sorted(self.only & self._keys.keys(), key=lambda req: req.order)][:limit]
        horizon = now - AGE_LIMIT_SECONDS
        aged = [req for _, req in islice(self._by_arrival, limit) if req.arrival_time <= horizon]
        if len(aged) >= limit and not self.use_priority:
            return [(req, True) for req in aged]
        old = set(aged)
        fresh = islice((req for req in self._policy_order(limit + len(old)) if req not in old), limit)
        result = [(req, True) for req in aged] + [(req, False) for req in fresh]
        if self.use_priority:
            result.sort(key=lambda entry: self._keys[entry[0]][0])
        return result[:limit]

    def short(self, limit: int) -> list[Req]:
        """The first ``limit`` requests with short prompts, in the order of keys; none where only some may start."""
        return [] if self.only is not None else [req for _, req in islice(self._short_by_key, limit)]

    def _policy_order(self, limit: int) -> Sequence[Req]:
        if self.policy in ("lpm", "dfs-weight") and len(self) <= CACHE_AWARE_QUEUE_LIMIT:
            reqs = [req for _, req in self._by_key]
            if len(reqs) == 1:
                return reqs
            return self._longest_prefix_first(reqs) if self.policy == "lpm" else self._depth_first(reqs)
        return [req for _, req in islice(self._by_key, limit)]

    def _static_key(self, req: Req) -> _SortKey:
        priority = -float(req.priority) if self.use_priority else 0.0
        if self.policy == "lof":
            return (priority, -float(req.max_new_tokens), req.order)
        if self.policy == "random":
            return (priority, self._rng.random(), req.order)
        return (priority, 0.0, req.order)

    def _longest_prefix_first(self, reqs: list[Req]) -> list[Req]:
        matched = {req: self._lookup.match(req.fill_ids, req.extra_key) for req in reqs}
        return sorted(reqs, key=lambda req: (self._keys[req][0], -matched[req], req.order))

    def _depth_first(self, reqs: list[Req]) -> list[Req]:
        """Requests in the order of a depth-first walk over what they share with the cache, heaviest branch first.

        Requests whose cached prefixes are equal form a branch; a branch lies below another if its cached prefix
        extends the other's. The weight of a branch is the number of requests in and below it.
        """
        prefixes: dict[Req, tuple[str, bytes]] = {}
        for req in reqs:
            fill = req.fill_ids
            length = self._lookup.match(fill, req.extra_key)
            prefixes[req] = (req.extra_key or "", fill[:length].tobytes())
        # Sorting by content puts every branch directly before those below it: a walk in which siblings are still
        # in the order of their tokens.
        branches: dict[tuple[str, bytes], list[Req]] = {}
        for req in reqs:
            branches.setdefault(prefixes[req], []).append(req)
        children: dict[tuple[str, bytes] | None, list[tuple[str, bytes]]] = {None: []}
        stack: list[tuple[str, bytes]] = []
        weight: dict[tuple[str, bytes], int] = {}
        for branch in sorted(branches):
            while stack and not (stack[-1][0] == branch[0] and branch[1].startswith(stack[-1][1])):
                stack.pop()
            children.setdefault(stack[-1] if stack else None, []).append(branch)
            stack.append(branch)
            for ancestor in stack:
                weight[ancestor] = weight.get(ancestor, 0) + len(branches[branch])
        ordered: list[Req] = []
        pending = sorted(children[None], key=lambda b: weight[b])
        while pending:
            branch = pending.pop()
            ordered.extend(sorted(branches[branch], key=lambda req: self._keys[req]))
            pending.extend(sorted(children.get(branch, []), key=lambda b: weight[b]))
        if self.use_priority:
            ordered.sort(key=lambda req: self._keys[req][0])
        return ordered


def _arrival(entry: tuple[tuple[float, int], Req]) -> tuple[float, int]:
    return entry[0]


def _key(entry: tuple[_SortKey, Req]) -> _SortKey:
    return entry[0]
