"""History of load and latencies for pages that are opened later."""

from __future__ import annotations

from itertools import pairwise

from bough.config.ranks import DETOKENIZER, SCHEDULER
from bough.ipc.messages import Heartbeat
from bough.observability.history import SAMPLE_S, WINDOW_S, History
from bough.observability.metrics import Histogram, Metrics
from bough.observability.stats import SchedulerStats


def test_samples_are_sums_over_ranks_of_a_bounded_window() -> None:
    history = History({})
    for second in range(1000):
        ranks = [
            SchedulerStats(num_running_reqs=2, decode_tokens_total=10 * second, num_queue_reqs=rank) for rank in (0, 1)
        ]
        history.sample(float(second), SchedulerStats.merged(ranks))
    columns = history.columns(999.0)
    assert columns["time"] == [float(second) for second in range(int(999 - WINDOW_S), 1000)]
    assert columns["generated_total"] == [20 * time for time in columns["time"]]
    assert set(columns["running"]) == {4}
    assert set(columns["waiting"]) == {1}
    assert {len(column) for column in columns.values()} == {int(WINDOW_S) + 1}
    assert history.columns(5000.0)["time"] == []


def test_heartbeats_that_come_often_are_sampled_seldom() -> None:
    history = History({})
    for tick in range(100_000):
        history.sample(tick / 100, SchedulerStats())
    times = history.columns(1000.0)["time"]
    assert len(times) <= WINDOW_S / SAMPLE_S
    assert times[0] <= 1000 - WINDOW_S + 2
    assert min(later - earlier for earlier, later in pairwise(times)) >= SAMPLE_S


def test_latencies_of_the_window_leave_out_what_was_before() -> None:
    histogram = Histogram((1.0, 2.0))
    history = History({"wait": histogram})
    histogram.observe(0.5, 7)
    assert history.latencies()["wait"]["recent"] == [7, 0, 0], "a young server has seen all within the window"
    for second in range(1000):
        if second == 800:
            histogram.observe(1.5, 3)
        history.sample(float(second), SchedulerStats())
    assert history.latencies()["wait"] == {"bounds": (1.0, 2.0), "counts": [7, 3, 0], "recent": [0, 3, 0]}
    for second in range(1000, 1200):
        history.sample(float(second), SchedulerStats())
    assert history.latencies()["wait"]["recent"] == [0, 0, 0]


def test_only_schedulers_are_sampled() -> None:
    metrics = Metrics("m")
    metrics.on_heartbeat(Heartbeat(DETOKENIZER))
    assert metrics.history.columns(metrics.uptime)["time"] == []
    metrics.on_heartbeat(Heartbeat(SCHEDULER, SchedulerStats(num_running_reqs=3)))
    assert metrics.history.columns(metrics.uptime)["running"] == [3]
