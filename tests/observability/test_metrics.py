"""What scrapers get to see."""

from __future__ import annotations

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from bough.config.ranks import DETOKENIZER, SCHEDULER
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError
from bough.ipc.messages import Heartbeat
from bough.observability.metrics import MAX_REASONS, Histogram, Metrics, ReasonCounter
from bough.observability.stats import SchedulerStats


def samples(metrics: Metrics) -> list[Sample]:
    families = list(text_string_to_metric_families(metrics.render().decode()))
    names = [family.name for family in families]
    assert len(set(names)) == len(names), "a metric comes twice"
    assert all(family.documentation for family in families)
    return [sample for family in families for sample in family.samples]


def busy() -> Metrics:
    metrics = Metrics("m")
    stats = SchedulerStats(
        num_aborted_total=5, max_total_num_tokens=100, num_used_tokens=30, evictable_tokens=20, cached_tokens_total=1
    )
    stats.prefill_tokens_total = 3
    metrics.heartbeats[SCHEDULER] = Heartbeat(SCHEDULER, stats, lag_total=3, cpu_seconds=2.5)
    metrics.heartbeats[DETOKENIZER] = Heartbeat(DETOKENIZER, malformed_total=1, num_failed_total=2)
    metrics.capacities = {"weight_bytes": 2**31, "page_size": 16}
    return metrics


def test_what_processes_count_is_shown_by_process() -> None:
    shown = {(s.name, s.labels.get("process"), s.labels.get("rank")): s.value for s in samples(busy())}
    assert shown["bough:results_lag_total", "scheduler", "0"] == 3
    assert shown["bough:malformed_messages_total", "detokenizer", "0"] == 1
    assert shown["bough:process_failed_requests_total", "detokenizer", "0"] == 2
    assert shown["bough:process_cpu_seconds_total", "scheduler", "0"] == 2.5
    assert shown["bough:process_cpu_seconds_total", "main", "0"] > 0
    assert shown["bough:process_resident_memory_bytes", "main", "0"] > 2**20
    assert shown["bough:scheduler_aborted_requests_total", None, None] == 5


def test_the_kv_cache_is_shown_by_what_its_places_hold() -> None:
    shown = {s.name: s.value for s in samples(busy())}
    assert shown["bough:kv_used_tokens"] == 30
    assert shown["bough:kv_evictable_tokens"] == 20
    assert shown["bough:kv_available_tokens"] == 50
    assert shown["bough:token_usage"] == 0.3
    assert shown["bough:cache_hit_rate"] == 0.25
    assert shown["bough:weight_memory_usage_gb"] == 2
    assert shown["bough:page_size"] == 16


@pytest.mark.parametrize("paused", [False, True])
def test_a_pause_is_shown(*, paused: bool) -> None:
    metrics = busy()
    metrics.heartbeats[SCHEDULER] = Heartbeat(SCHEDULER, SchedulerStats(paused=paused))
    shown = {s.name: s.value for s in samples(metrics)}
    assert shown["bough:paused"] == paused


def test_every_name_has_the_prefix_that_was_asked_for() -> None:
    metrics = Metrics("m", "sglang:")
    names = {sample.name for sample in samples(metrics)}
    assert all(name.startswith("sglang:") for name in names)
    assert names == {name.replace("bough:", "sglang:") for name in (s.name for s in samples(Metrics("m")))}


@pytest.mark.parametrize("prefix", ["1x", "a-b:", "a b", 'x{y="'])
def test_a_prefix_that_no_metric_may_have_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigError, match="metrics_prefix must be made of"):
        ServerArgs(metrics_prefix=prefix)


def test_every_sample_names_the_model_whatever_it_is_called() -> None:
    name = 'a "quoted"\\name\nwith lines'
    assert {sample.labels["model_name"] for sample in samples(Metrics(name))} == {name}


def test_reasons_are_shown_before_the_first_and_their_number_is_bounded() -> None:
    metrics = Metrics("m")
    shown = {s.labels["reason"]: s.value for s in samples(metrics) if s.name == "bough:num_refused_requests_total"}
    assert shown == {"invalid_value": 0, "overloaded": 0, "queue_full": 0, "queue_timeout": 0}
    for number in range(1000):
        metrics.requests.refused_requests.add(f"reason_{number}")
    shown = {s.labels["reason"]: s.value for s in samples(metrics) if s.name == "bough:num_refused_requests_total"}
    assert len(shown) == MAX_REASONS + 1
    assert metrics.requests.refused_requests.total == sum(shown.values()) == 1000
    assert shown["other"] == 1000 - (MAX_REASONS - 4)


def test_a_counter_that_knows_no_reason_has_no_samples() -> None:
    assert ReasonCounter().counts == {}


def test_buckets_are_cumulative_and_end_with_the_count() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.1, 0.5, 0.6, 7.0):
        histogram.observe(value)
    histogram.observe(0.05, weight=2)
    buckets, total = histogram.cumulative()
    assert buckets == [("0.1", 3), ("1.0", 5), ("+Inf", 6)]
    assert math.isclose(total, 8.3)
    assert histogram.count == 6
