"""Heartbeats: what the front end learns of the scheduler without asking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bough.config.ranks import ProcessKey
from bough.ipc.messages import ControlReply, Heartbeat, ToScheduler
from bough.scheduler.arrivals import Arrivals
from bough.scheduler.pause import Pause
from bough.scheduler.reports import Reports


class SchedulerMessages(Protocol):
    """The scheduler's end of its channels, as far as the loop needs it; only ``recv`` blocks."""

    @property
    def heartbeat_due(self) -> bool:
        """True if it is time to show that the loop runs."""

    @property
    def descriptors(self) -> Sequence[int]:
        """File descriptors of which one can be read from once messages have arrived after :meth:`recv` found none."""

    def recv(self, timeout_s: float) -> Sequence[ToScheduler]:
        """Messages that have arrived; waits at most ``timeout_s`` seconds for the first."""

    def send_to_tokenizer(self, message: ControlReply | Heartbeat) -> None:
        """Send a control reply or a heartbeat."""


class Heartbeats:
    """Sends heartbeats of the scheduler ``key`` when they are due, and when it accepts requests no longer or again."""

    def __init__(self, key: ProcessKey, reports: Reports, arrivals: Arrivals, pause: Pause) -> None:
        self.messages: SchedulerMessages | None = None
        self._key = key
        self._reports = reports
        self._arrivals = arrivals
        self._pause = pause
        self._last_state = (False, False)

    def send_news(self) -> None:
        """Send a heartbeat if it is time, or if the queue's being full or the pause has changed since the last."""
        last, self._last_state = self._last_state, (self._arrivals.queue_is_full, self._pause.is_on)
        if self.messages is not None and (self.messages.heartbeat_due or last != self._last_state):
            self.announce(self._reports.expected_silence())

    def announce_if_long(self) -> None:
        """Send a heartbeat if the steps in flight may take long."""
        silence = self._reports.expected_silence()
        if silence:
            self.announce(silence)

    def announce(self, expected_silence: float) -> None:
        """Send a heartbeat after which there may be no other for ``expected_silence`` seconds."""
        if self.messages is not None:
            heartbeat = Heartbeat(self._key, self._reports.stats(), expected_silence=expected_silence)
            self.messages.send_to_tokenizer(heartbeat)
