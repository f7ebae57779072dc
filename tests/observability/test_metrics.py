"""What scrapers get to see of the other processes."""

from __future__ import annotations

from bough.ipc.messages import Heartbeat, SchedulerStats
from bough.observability.metrics import Metrics


def test_what_processes_count_is_shown_by_process() -> None:
    metrics = Metrics("m")
    metrics.heartbeats["scheduler", 0] = Heartbeat("scheduler", 0, SchedulerStats(num_aborted_total=5), lag_total=3)
    metrics.heartbeats["detokenizer", 0] = Heartbeat("detokenizer", malformed_total=1, num_failed_total=2)
    lines = set(metrics.render().decode().splitlines())
    for name, process, value in (
        ("results_lag_total", "scheduler", 3.0),
        ("malformed_messages_total", "detokenizer", 1.0),
        ("process_failed_requests_total", "detokenizer", 2.0),
    ):
        assert f'bough:{name}{{model_name="m",process="{process}",rank="0"}} {value}' in lines
    assert 'bough:scheduler_aborted_requests_total{model_name="m"} 5.0' in lines
