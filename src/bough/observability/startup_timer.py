"""Durations of the phases of a start-up."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path


class StartupTimer:
    """Splits the time since a beginning into phases without gaps, so that their sum is the wall time, in seconds.

    ``started_before_s`` seconds had passed before this object was made.
    """

    def __init__(self, started_before_s: float = 0.0) -> None:
        self._start = time.perf_counter() - started_before_s
        self._last = self._start
        self.phases: dict[str, float] = {}

    @classmethod
    def from_process_start(cls) -> StartupTimer:
        """A timer that includes the start of the interpreter and the imports until now."""
        return cls(seconds_since_process_start())

    def end_phase(self, name: str) -> None:
        """Book the time since the end of the last phase under ``name``."""
        now = time.perf_counter()
        self.phases[name] = self.phases.get(name, 0.0) + now - self._last
        self._last = now

    @property
    def total(self) -> float:
        """Seconds from the beginning to the end of the last phase: the sum of all phases."""
        return self._last - self._start


def describe_phases(phases: Mapping[str, float]) -> str:
    """``"imports 0.81, weights 0.20"``, in seconds; without what rounds to nothing."""
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in phases.items() if seconds >= 0.005)


def seconds_since_process_start() -> float:
    """Age of this process in seconds; 0.0 where the system does not say (no Linux)."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, 0.0)
    except (OSError, AttributeError):
        return 0.0
