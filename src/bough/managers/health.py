"""Health of the server: an explicit state, and heartbeats of every part.

Three questions have three answers. *Alive* (``/health``): no part is dead or silent; cheap, asks no process. *Ready*
(``/ready``): alive, started, not draining, and the queue has room. *Works* (``/health_generate``): a token makes it
through all processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NoReturn

from bough.config.ranks import DETOKENIZER, SCHEDULER, ProcessKey
from bough.errors import EngineDead, Overloaded
from bough.ipc.messages import Heartbeat

MAX_COUNTED_SILENCE = 1.0
"""Seconds of silence that one look may add. When this process itself was stopped or starved, the others were not
silent; it was deaf."""


class ServerState(Enum):
    """Stages in the life of a server; ``DEAD`` is final."""

    STARTING = "starting"
    READY = "ready"
    SLEEPING = "sleeping"
    DRAINING = "draining"
    DEAD = "dead"


_CLOSED = {
    ServerState.STARTING: "the server is starting",
    ServerState.SLEEPING: "the server is asleep: its memory is given back, or weights that it needs were not sent yet",
    ServerState.DRAINING: "the server is shutting down",
}
_CODES = {ServerState.SLEEPING: "asleep", ServerState.DRAINING: "shutting_down"}


class HealthMonitor:
    """Keeps the state of the server and listens to heartbeats of its parts, the ``processes``.

    After ``max_silence`` seconds without a heartbeat, beyond what it has asked for, a part counts as hung. With
    ``max_queued_requests`` waiting, nothing more is taken (``None``: no bound).
    """

    def __init__(
        self,
        *,
        processes: Iterable[ProcessKey] = (SCHEDULER, DETOKENIZER),
        max_silence: float,
        max_queued_requests: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = ServerState.STARTING
        self.last_progress = 0.0
        """When tokens last arrived from the engine, seconds on ``clock``; 0.0 if never."""
        self._max_silence = max_silence
        self._max_queued_requests = max_queued_requests
        self._queue_lengths: dict[ProcessKey, int] = {}
        self._paused_schedulers: set[ProcessKey] = set()
        self._last_paused = -math.inf
        """When a scheduler was last known to be paused."""
        self._clock = clock
        self._silence: dict[ProcessKey, float] = dict.fromkeys(processes, 0.0)
        self._last_look = clock()
        self._cause_of_death = ""

    def set_ready(self) -> None:
        """All parts have reported: requests may come."""
        if self.state is ServerState.STARTING:
            self.state = ServerState.READY
            self._last_look = self._clock()
            self._silence = dict.fromkeys(self._silence, 0.0)

    def start_draining(self) -> None:
        """No new requests; the running ones may finish."""
        if self.state is not ServerState.DEAD:
            self.state = ServerState.DRAINING

    def set_sleeping(self, sleeping: bool) -> None:
        """Memory that requests need is given back, or there again; a server that takes none for another reason stays
        as it is."""
        there, here = ServerState.SLEEPING, ServerState.READY
        if self.state is (here if sleeping else there):
            self.state = there if sleeping else here

    def set_dead(self, cause: str) -> None:
        """A part has died; there is no way back."""
        if self.state is not ServerState.DEAD:
            self.state = ServerState.DEAD
            self._cause_of_death = cause

    def on_heartbeat(self, heartbeat: Heartbeat) -> bool:
        """A part has shown that its loop turns; returns whether it is one of this server's."""
        self.tick()
        key = heartbeat.process
        if key not in self._silence:
            return False
        self._silence[key] = -max(heartbeat.expected_silence, 0.0)
        if heartbeat.stats is not None:
            self._queue_lengths[key] = heartbeat.stats.num_queue_reqs
            self._on_paused(key, heartbeat.stats.paused)
        return True

    def _on_paused(self, key: ProcessKey, paused: bool) -> None:
        if self._paused_schedulers or paused:
            self._last_paused = self._clock()
        if paused:
            self._paused_schedulers.add(key)
        else:
            self._paused_schedulers.discard(key)

    @property
    def paused(self) -> bool:
        """True if nothing is computed at present because somebody has asked for that. The schedulers say so: whoever
        has asked may have left before they did."""
        return bool(self._paused_schedulers)

    @property
    def computes_nothing(self) -> bool:
        """True if generation is paused, or memory that it needs is given back."""
        return self.paused or self.state is ServerState.SLEEPING

    def was_paused_since(self, moment: float) -> bool:
        """True if generation is paused, or was so at any time since ``moment``, seconds on ``clock``."""
        return self.paused or self._last_paused >= moment

    def on_progress(self) -> None:
        """Tokens have arrived, so scheduler and detokenizer are well."""
        self.last_progress = self._clock()

    def tick(self) -> None:
        """Let time pass; to be called about once a second, so that silence is noticed when nothing else happens."""
        now = self._clock()
        elapsed = min(now - self._last_look, MAX_COUNTED_SILENCE)
        self._last_look = now
        for key in self._silence:
            self._silence[key] += elapsed

    def why_not_alive(self) -> str | None:
        """Cause of a failure, in a few words, or ``None``."""
        if self.state is ServerState.DEAD:
            return self._cause_of_death
        for key, silence in self.silent_for(self._max_silence).items():
            return f"no sign of life from {key} for {silence:.0f} s"
        return None

    def silent_for(self, seconds: float) -> dict[ProcessKey, float]:
        """The parts without a heartbeat for longer than ``seconds``, and for how long; none while starting."""
        if self.state is ServerState.STARTING:
            return {}
        self.tick()
        return {key: silence for key, silence in self._silence.items() if silence > seconds}

    def check_open(self) -> None:
        """Raise :class:`EngineDead` or :class:`Overloaded` unless requests are taken now."""
        self.check_serving()
        if self.state is ServerState.SLEEPING:
            self._refuse()

    def check_serving(self) -> None:
        """Raise :class:`EngineDead` or :class:`Overloaded` unless the server is up, be it asleep."""
        if self.state is ServerState.DEAD:
            raise EngineDead(self._cause_of_death)
        if self.state not in (ServerState.READY, ServerState.SLEEPING):
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise Overloaded(_CLOSED[self.state], code=_CODES.get(self.state, "overloaded"))

    def why_not_open(self) -> str | None:
        """Why no request can be served, however short the queue, in a few words, or ``None``."""
        return _CLOSED.get(self.state) or self.why_not_alive()

    def why_not_ready(self) -> str | None:
        """Why no request should be sent here now, in a few words, or ``None``."""
        closed = self.why_not_open()
        if closed is not None:
            return closed
        if self.paused:
            return "generation is paused"
        limit = self._max_queued_requests
        lengths = self._queue_lengths.values()
        # Without a queue (limit 0) the server would never be ready.
        if limit is not None and lengths and sum(lengths) >= max(limit, 1):
            return f"the queue is full ({limit} requests)"
        return None
