"""Finding the request that makes a step fail.

A step that raises has many requests in it, and mostly one of them is to blame. So all of them give back their memory
and compute again, in two groups, one after the other: a group whose step fails as well is halved again, and a request
that fails alone is the culprit. The others go on as after any retraction, with identical output. ``n`` requests with
one culprit among them take about ``2 log2 n`` steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bough.scheduler.req import Req, ReqStage
from bough.scheduler.waiting_queue import WaitingQueue

Suspects = dict[Req, int]
"""Requests, and how many of their tokens have to be computed before they are above suspicion."""

_COMPUTING = (ReqStage.PREFILL, ReqStage.RUNNING)


class Trials:
    """Groups of requests that compute by themselves; meanwhile the waiting queue hands out only those on trial."""

    def __init__(self, queue: WaitingQueue) -> None:
        self._queue = queue
        self._on_trial: Suspects = {}
        self._groups: deque[Suspects] = deque()

    @property
    def running(self) -> bool:
        """True if there are suspects: then a step must be processed before the next is planned."""
        return bool(self._on_trial)

    def accuse(self, suspects: Suspects) -> None:
        """A step failed with these requests in it, which wait again since: try each half by itself.

        Others that were on trial with them, but had no part in the step, follow.
        """
        reqs = list(suspects)
        half = len(reqs) // 2
        rest = {req: mark for req, mark in self._on_trial.items() if req not in suspects}
        groups = [{req: suspects[req] for req in part} for part in (reqs[:half], reqs[half:])]
        self._groups.extendleft(group for group in (rest, *reversed(groups)) if group)
        self._next()

    def clear(self, computed: Callable[[Req], int], *, others_hold: bool = False) -> bool:
        """After a step that did not fail: drop the suspicion of those that have ``computed`` enough tokens.

        ``others_hold``: any request holds memory, cleared ones included. Returns true if others are on trial now, for
        which those that run must make room first.
        """
        num_before = len(self._on_trial)
        self._on_trial = {
            req: mark
            for req, mark in self._on_trial.items()
            if req.state is not ReqStage.FINISHED and computed(req) < mark
        }
        if not self._on_trial:
            self._next()
            return bool(self._on_trial)
        is_held_up = others_hold or len(self._on_trial) < num_before
        if not is_held_up or any(req.state in _COMPUTING for req in self._on_trial):
            return False
        # Those that are cleared go on, maybe for long, and the rest have found no room beside them, or have lost it.
        self._queue.only = frozenset(self._on_trial)
        return True

    def adjourn(self) -> None:
        """Nothing can be computed for those on trial alone: let all requests go on."""
        self._groups.clear()
        self._next()

    def _next(self) -> None:
        self._on_trial = self._groups.popleft() if self._groups else {}
        self._queue.only = frozenset(self._on_trial) if self._on_trial else None
