"""Sharing a prefix that is not computed yet.

When several requests that start alike arrive together, the first computes the common part and the others wait for it,
outside the queue, instead of computing it once each. Parallel samples of one prompt (``n > 1``) are such requests.
"""

from __future__ import annotations

from typing import TypeAlias

from bough.mem_cache.kv_cache_manager import KVCacheManager
from bough.scheduler.req import Req, ReqStage
from bough.scheduler.step_budget import LOGPROB_CHUNK_TOKENS, LOGPROBS_AT_ONCE
from bough.step_plan import IntArray

MIN_SHARED_TOKENS = 32
"""Waiting for less than this costs more than computing it again."""

_Beginning: TypeAlias = tuple[str | None, bytes]
"""The namespace and the first :data:`MIN_SHARED_TOKENS` tokens of a prompt: what two must have in common to share."""


class PrefixSharing:
    """Leaders, whose prompts are being computed, and the requests parked behind them."""

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled
        self._followers: dict[Req, list[Req]] = {}
        """By leader: every request whose prompt is not wholly in the prefix cache yet."""
        self._by_beginning: dict[_Beginning, list[Req]] = {}
        """The leaders, by how their prompts begin."""
        self._beginnings: dict[Req, _Beginning] = {}
        self._num_parked = 0

    def __len__(self) -> int:
        """Number of parked requests."""
        return self._num_parked

    @property
    def parked(self) -> list[Req]:
        """All parked requests."""
        return [req for followers in self._followers.values() for req in followers]

    def park_if_sharing(self, req: Req, kv: KVCacheManager) -> bool:
        """Park ``req`` if a leader is about to compute a good part of its prompt."""
        if not self._by_beginning or req.max_prefix_len < MIN_SHARED_TOKENS:
            return False
        fill, page = req.fill_ids, kv.page_size
        best, best_len = None, 0
        for leader in self._by_beginning.get(_beginning(req), ()):
            shared = min(_common_prefix_len(fill, leader.fill_ids), req.max_prefix_len, _quick_len(leader))
            shared = shared // page * page
            if shared > best_len:
                best, best_len = leader, shared
        if best is None or best.kv is None or best.kv.owned_len >= best_len:
            return False
        if best_len - kv.match(fill, req.extra_key) < MIN_SHARED_TOKENS:
            return False
        req.state = ReqStage.PARKED
        req.waits_for, req.waits_len = best, best_len
        self._followers[best].append(req)
        self._num_parked += 1
        return True

    def lead(self, req: Req) -> None:
        """``req`` has begun to compute its prompt."""
        if self.enabled:
            self._followers[req] = []
            beginning = self._beginnings[req] = _beginning(req)
            self._by_beginning.setdefault(beginning, []).append(req)

    def has_followers(self, req: Req) -> bool:
        """Return whether any request waits for the prompt of ``req``."""
        return bool(self._followers.get(req))

    def progressed(self, req: Req, owned_len: int) -> list[Req]:
        """The first ``owned_len`` tokens of a leader are in the prefix cache: return the requests that the caller is to
        queue again."""
        followers = self._followers.get(req)
        if not followers:
            return []
        ready = [follower for follower in followers if follower.waits_len <= owned_len]
        if ready:
            self._followers[req] = [follower for follower in followers if follower.waits_len > owned_len]
            self._release(ready)
        return ready

    def left(self, req: Req) -> list[Req]:
        """``req`` leads no more: its prompt is computed, or it has lost its slot. Returns who waited for it."""
        followers = self._followers.pop(req, None)
        if followers is None:
            return []
        beginning = self._beginnings.pop(req)
        leaders = self._by_beginning[beginning]
        leaders.remove(req)
        if not leaders:
            del self._by_beginning[beginning]
        self._release(followers)
        return followers

    def remove(self, req: Req) -> None:
        """A parked request is aborted."""
        assert req.waits_for is not None
        self._followers[req.waits_for].remove(req)
        self._release([req])

    def _release(self, reqs: list[Req]) -> None:
        self._num_parked -= len(reqs)
        for req in reqs:
            req.waits_for = None


def _beginning(req: Req) -> _Beginning:
    return req.extra_key, req.fill_ids[:MIN_SHARED_TOKENS].tobytes()


def _quick_len(leader: Req) -> int:
    """Tokens of a leader that are worth waiting for: not those whose many logprobs keep its pieces small.

    With few of them it is mostly time that bounds the pieces, and other prompts would take some of it.
    """
    has_many = leader.logprobs_per_token * LOGPROB_CHUNK_TOKENS > LOGPROBS_AT_ONCE
    return leader.logprob_next - 1 if has_many and leader.logprob_next < leader.prompt_len else leader.fill_len


def _common_prefix_len(a: IntArray, b: IntArray) -> int:
    length = min(len(a), len(b))
    differs = a[:length] != b[:length]
    first = int(differs.argmax())
    return first if differs[first] else length
