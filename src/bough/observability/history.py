"""Keep a server's last minutes of load, counters and latencies for pages that are opened later."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bough.observability.stats import SchedulerStats

if TYPE_CHECKING:
    from bough.observability.metrics import Histogram

WINDOW_S = 300.0
"""Seconds of history that are kept."""

SAMPLE_S = 0.5
"""Least seconds between two samples; heartbeats come every second, and on every change."""

SNAPSHOT_S = 5.0
"""Least seconds between two snapshots of the latencies."""


class History:
    """Bounded record of samples, taken from heartbeats so that the scheduler has no extra work."""

    def __init__(self, latencies: Mapping[str, Histogram]) -> None:
        self._latencies = latencies
        self._samples: deque[tuple[float, ...]] = deque(maxlen=int(WINDOW_S / SAMPLE_S))
        self._snapshots: deque[tuple[float, dict[str, list[int]]]] = deque([(0.0, self._snapshot())])

    def sample(self, uptime: float, stats: SchedulerStats) -> None:
        """Take a sample of all schedulers together, unless the last one is too recent; ``uptime`` never decreases."""
        if not self._samples or uptime - self._samples[-1][0] >= SAMPLE_S:
            self._samples.append((round(uptime, 3), *stats.shown("page").values()))
        if uptime - self._snapshots[-1][0] >= SNAPSHOT_S:
            self._snapshots.append((uptime, self._snapshot()))
        while len(self._snapshots) > 1 and self._snapshots[1][0] <= uptime - WINDOW_S:
            self._snapshots.popleft()

    def columns(self, uptime: float) -> dict[str, list[float]]:
        """Return the samples of the window that ends at ``uptime``, one list per field, oldest first."""
        rows = [row for row in self._samples if row[0] >= uptime - WINDOW_S]
        return {name: [row[at] for row in rows] for at, name in enumerate(("time", *SchedulerStats().shown("page")))}

    def latencies(self) -> dict[str, dict[str, Any]]:
        """Return the histograms: upper bounds in seconds, counts since the start and in the window.

        The last count is for values above the highest bound.
        """
        before = self._snapshots[0][1]
        return {
            name: {
                "bounds": histogram.bounds,
                "counts": histogram.counts,
                "recent": [now - then for now, then in zip(histogram.counts, before[name], strict=True)],
            }
            for name, histogram in self._latencies.items()
        }

    def _snapshot(self) -> dict[str, list[int]]:
        return {name: list(histogram.counts) for name, histogram in self._latencies.items()}
