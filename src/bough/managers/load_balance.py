"""Choice of the replica that computes a request: policies that know loads and prefixes, and nothing of sockets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bough.config.engine_args import LoadBalanceMethod
from bough.ipc.routing import PAGE_TOKENS, RequestShape
from bough.observability.stats import SchedulerStats

DEFAULT_MAX_PAGES = 4096
"""Pages that a replica's cache is thought to hold until its heartbeat says how many tokens it has room for."""

TOLERATED_REQUESTS = 8
"""Outputs that the replica with the longest prefix may have beyond the least loaded one, however few those are."""

TOLERATED_RATIO = 1.5
"""The same as a multiple of what the least loaded one has."""


@dataclass(frozen=True, slots=True)
class Load:
    """Work of a replica that is not finished."""

    num_requests: int = 0
    """Outputs that are computed or wait."""
    num_tokens: int = 0
    """Tokens that they hold, or will need for their prompts."""


class ReplicaLoad:
    """Load of one replica: what its last heartbeat reports, and the requests that it had not received by then."""

    def __init__(self) -> None:
        self._reported = Load()
        self._num_sent = 0
        self._unreported: deque[Load] = deque()
        self._added = Load()

    @property
    def now(self) -> Load:
        """The load as it is known now."""
        reported, added = self._reported, self._added
        return Load(reported.num_requests + added.num_requests, reported.num_tokens + added.num_tokens)

    def on_sent(self, shape: RequestShape) -> None:
        """Count a request that is sent now."""
        self._num_sent += 1
        self._unreported.append(Load(shape.num_outputs, shape.num_tokens))
        added = self._added
        self._added = Load(added.num_requests + shape.num_outputs, added.num_tokens + shape.num_tokens)

    def on_heartbeat(self, stats: SchedulerStats) -> None:
        """Take over what the replica reports, and forget the requests that it had received."""
        num_requests, num_tokens = self._added.num_requests, self._added.num_tokens
        while len(self._unreported) > max(self._num_sent - stats.requests_received_total, 0):
            gone = self._unreported.popleft()
            num_requests, num_tokens = num_requests - gone.num_requests, num_tokens - gone.num_tokens
        self._added = Load(num_requests, num_tokens)
        self._reported = Load(
            stats.num_running_reqs + stats.num_queue_reqs, stats.num_used_tokens + stats.num_waiting_tokens
        )


class PrefixTree:
    """Approximation of a replica's prefix cache: the prefixes that were sent to it, at most :attr:`max_pages` pages.

    A hash stands for a page and all pages before it, so that a set of hashes is a tree. The least recently used page is
    forgotten first, and never before those behind it.
    """

    def __init__(self, max_pages: int = DEFAULT_MAX_PAGES) -> None:
        self.max_pages = max_pages
        self._pages: OrderedDict[int, None] = OrderedDict()
        """In order of use, the most recent last."""

    def __len__(self) -> int:
        return len(self._pages)

    def match(self, pages: Sequence[int]) -> int:
        """Return the number of pages at the beginning that are known."""
        known = self._pages
        return next((count for count, page in enumerate(pages) if page not in known), len(pages))

    def add(self, pages: Sequence[int]) -> None:
        """Remember a prompt that is sent to the replica."""
        for page in reversed(pages):
            self._pages[page] = None
            self._pages.move_to_end(page)
        while len(self._pages) > self.max_pages:
            self._pages.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._pages.clear()


class LoadBalancer(ABC):
    """Chooses the replica of each request."""

    @abstractmethod
    def choose(self, shape: RequestShape, loads: Sequence[Load]) -> int:
        """Return the index of the replica that gets a request.

        Args:
            loads: of each replica, at least one, the request left out.
        """

    def on_sent(self, shape: RequestShape, replica: int) -> None:  # noqa: B027 (most ignore caches)
        """Learn that a replica gets a request, be it another one than was chosen."""

    def on_heartbeat(self, replica: int, stats: SchedulerStats) -> None:  # noqa: B027 (most ignore caches)
        """Learn of the cache of a replica."""


class RoundRobin(LoadBalancer):
    """One replica after the other."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, shape: RequestShape, loads: Sequence[Load]) -> int:
        """Return the replica after that of the last request."""
        return self.order(len(loads))[0]

    def order(self, count: int) -> tuple[int, ...]:
        """Return the indices of so many replicas, beginning with the next one."""
        first = self._next % count
        self._next = first + 1
        return (*range(first, count), *range(first))


class LeastLoaded(LoadBalancer):
    """The replica with the least load by ``measure``, and among equal ones each in its turn."""

    def __init__(self, measure: Callable[[Load], tuple[int, ...]]) -> None:
        self._measure = measure
        self._turns = RoundRobin()

    def choose(self, shape: RequestShape, loads: Sequence[Load]) -> int:
        """Return the least loaded replica."""
        return min(self._turns.order(len(loads)), key=lambda index: self._measure(loads[index]))


class CacheAware(LoadBalancer):
    """The replica with the longest prefix in its cache, unless others have much less to do."""

    def __init__(self, num_replicas: int) -> None:
        self._trees = [PrefixTree() for _ in range(num_replicas)]
        self._num_sent = [0] * num_replicas
        self._turns = RoundRobin()

    def choose(self, shape: RequestShape, loads: Sequence[Load]) -> int:
        """Return the replica."""
        # Among equally loaded ones, the one that has fewer prefixes to keep.
        order = self._turns.order(len(loads))
        chosen = min(order, key=lambda index: (loads[index].num_requests, len(self._trees[index])))
        matches = [tree.match(shape.pages) for tree in self._trees]
        longest = max(matches)
        if longest > matches[chosen]:
            # Among those with the same prefix, the least loaded.
            best = min((loads[index].num_requests, index) for index in range(len(loads)) if matches[index] == longest)
            least = loads[chosen].num_requests
            if best[0] <= max(least + TOLERATED_REQUESTS, least * TOLERATED_RATIO):
                chosen = best[1]
        return chosen

    def on_sent(self, shape: RequestShape, replica: int) -> None:
        """Remember that a replica will have the prompt."""
        self._num_sent[replica] += 1
        self._trees[replica].add(shape.pages)

    def on_heartbeat(self, replica: int, stats: SchedulerStats) -> None:
        """Learn how much the cache of a replica holds, and forget its prefixes if that is nothing: it was flushed."""
        tree = self._trees[replica]
        tree.max_pages = max(stats.max_total_num_tokens // PAGE_TOKENS, 1)
        has_all = stats.requests_received_total >= self._num_sent[replica]
        is_idle = has_all and not stats.num_running_reqs and not stats.num_queue_reqs
        if is_idle and not stats.num_used_tokens and not stats.evictable_tokens:
            tree.clear()


class KeepsConversations(LoadBalancer):
    """Another policy, except that a request which goes on from an earlier one follows its prefix."""

    def __init__(self, policy: LoadBalancer, num_replicas: int) -> None:
        self._policy = policy
        self._by_prefix = CacheAware(num_replicas)

    def choose(self, shape: RequestShape, loads: Sequence[Load]) -> int:
        """Return the replica."""
        return (self._by_prefix if shape.goes_on else self._policy).choose(shape, loads)

    def on_sent(self, shape: RequestShape, replica: int) -> None:
        """Tell both policies."""
        self._by_prefix.on_sent(shape, replica)
        self._policy.on_sent(shape, replica)

    def on_heartbeat(self, replica: int, stats: SchedulerStats) -> None:
        """Tell both policies."""
        self._by_prefix.on_heartbeat(replica, stats)
        self._policy.on_heartbeat(replica, stats)


def by_requests(load: Load) -> tuple[int, ...]:
    """Measure a load by its outputs, then its tokens."""
    return load.num_requests, load.num_tokens


def by_tokens(load: Load) -> tuple[int, ...]:
    """Measure a load by its tokens, then its outputs."""
    return load.num_tokens, load.num_requests


POLICIES: dict[LoadBalanceMethod, Callable[[int], LoadBalancer]] = {
    "auto": CacheAware,
    "cache_aware": CacheAware,
    "round_robin": lambda num_replicas: KeepsConversations(RoundRobin(), num_replicas),
    "total_requests": lambda num_replicas: KeepsConversations(LeastLoaded(by_requests), num_replicas),
    "shortest_queue": lambda num_replicas: KeepsConversations(LeastLoaded(by_requests), num_replicas),
    "total_tokens": lambda num_replicas: KeepsConversations(LeastLoaded(by_tokens), num_replicas),
}
"""Makers of policies by name, for a number of replicas."""
