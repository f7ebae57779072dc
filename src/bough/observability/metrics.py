"""Prometheus metrics of a server, with the names that dashboards of this field use, behind a prefix.

The request path only adds to plain Python numbers, all from one thread; exposition objects are made when somebody
scrapes. Every label takes values of a bounded set: what clients send is in none of them.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from bough import __version__
from bough.config.ranks import SCHEDULER, ProcessKey
from bough.observability.history import History
from bough.observability.stats import DERIVED, STATS, SchedulerStats
from bough.process_usage import resident_bytes

if TYPE_CHECKING:
    from bough.ipc.messages import Heartbeat

DEFAULT_PREFIX = "bough:"

LATENCY_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
"""Seconds, for the time to the first token and for queueing."""
E2E_BUCKETS = (*LATENCY_BUCKETS, 600, 1200, 1800, 2400)
ITL_BUCKETS = (
    *(0.001, 0.002, 0.004, 0.006, 0.008, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040, 0.060, 0.080),
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8),
)  # fmt: skip
TOKEN_BUCKETS = (1, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)

STAGES = ("tokenize", "queue", "prefill", "decode", "detokenize")
"""Stages of an output, one after the other."""

MAX_REASONS = 32
"""Reasons that a counter tells apart; what comes beyond that is counted as ``other``."""

_GIB = 2**30

CAPACITIES = (
    ("context_len", "context_len", 1, "Longest sequence, in tokens."),
    ("max_running_requests", "max_running_requests", 1, "Most outputs that are computed at the same time."),
    ("page_size", "page_size", 1, "Tokens in a page of the KV cache."),
    ("weight_memory_usage_gb", "weight_bytes", _GIB, "Memory of the weights, in GiB."),
    ("kv_cache_memory_usage_gb", "kv_bytes", _GIB, "Memory of the KV cache, in GiB."),
)
"""Metric, field of what the scheduler reports, unit of the latter per unit of the former, and meaning."""


_HISTOGRAMS = {
    "time_to_first_token_seconds": "From the arrival of a request to the sampling of its first token, of whole answers "
    "as of streams.",
    "inter_token_latency_seconds": "Between successive tokens of one output; the mean gap, of tokens that come "
    "together.",
    "request_time_per_output_token_seconds": "Mean time per token of an output, after its first.",
    "e2e_request_latency_seconds": "From the arrival of a request to its end.",
    "queue_time_seconds": "From the arrival in the scheduler to the first step.",
    "prompt_tokens_histogram": "Prompt tokens per output.",
    "generation_tokens_histogram": "Generated tokens per output.",
}
"""Meanings of metrics, each an attribute of :class:`RequestMetrics` but for the unit in its name."""

_COUNTERS = {
    "prompt_tokens": "Prompt tokens of outputs that ended, reused ones included.",
    "generation_tokens": "Generated tokens.",
    "cached_tokens": "Prompt tokens of outputs that ended whose computation was reused.",
    "num_requests": "Outputs that ended: finished, aborted, refused or failed. Bodies that cannot be read are not "
    "counted.",
}
"""The same of counters."""

_REASONS = {
    "num_aborted_requests": "Outputs that were ended early: by request, because the client left, or because they took "
    "too long.",
    "num_refused_requests": "Outputs that were never begun: their request was wrong, or there was no room for it.",
    "num_failed_requests": "Outputs that could not be finished.",
}
"""The same of counters by reason, which are attributes without ``num_``."""


_MAIN = ("main", "0")
"""Labels ``process`` and ``rank`` of the main process."""


def _labels(key: ProcessKey) -> tuple[str, str]:
    """Return the same labels of another process."""
    return key.kind, key.ranks or "0"


class Histogram:
    """Counts of values by bucket, not cumulative. Observing costs a binary search and three additions.

    ``bounds`` are the upper bounds of all buckets but the last, ascending.
    """

    __slots__ = ("_sum", "bounds", "counts")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, weight: int = 1) -> None:
        """Count ``value``, ``weight`` times."""
        self.counts[bisect_left(self.bounds, value)] += weight
        self._sum += value * weight

    @property
    def count(self) -> int:
        """Number of values observed."""
        return sum(self.counts)

    def cumulative(self) -> tuple[list[tuple[str, float]], float]:
        """Counts up to each upper bound, by the bound's text, and the sum of all values."""
        buckets: list[tuple[str, float]] = []
        total = 0
        for bound, count in zip((*self.bounds, math.inf), self.counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound == math.inf else str(float(bound)), total))
        return buckets, self._sum


class ReasonCounter:
    """Counts by reason, words of the source code, never of a client; still their number is bounded.

    Reasons that are ``known`` are shown from the start, so that the rate of the first event is seen as well.
    """

    __slots__ = ("counts",)

    def __init__(self, *known: str) -> None:
        self.counts = dict.fromkeys(known, 0)

    def add(self, reason: str) -> None:
        """Count one."""
        if reason not in self.counts and len(self.counts) >= MAX_REASONS:
            reason = "other"
        self.counts[reason] = self.counts.get(reason, 0) + 1

    @property
    def total(self) -> int:
        """Number for all reasons together."""
        return sum(self.counts.values())


class RequestMetrics:
    """Counters and histograms of requests, to which the request path adds. Health probes are not counted."""

    def __init__(self) -> None:
        self.time_to_first_token = Histogram(LATENCY_BUCKETS)
        self.inter_token_latency = Histogram(ITL_BUCKETS)
        self.e2e_request_latency = Histogram(E2E_BUCKETS)
        self.request_time_per_output_token = Histogram(ITL_BUCKETS)
        self.queue_time = Histogram(LATENCY_BUCKETS)
        self.stages = {stage: Histogram(E2E_BUCKETS) for stage in STAGES}
        """Seconds by stage of a request."""
        self.prompt_tokens_histogram = Histogram(TOKEN_BUCKETS)
        self.generation_tokens_histogram = Histogram(TOKEN_BUCKETS)
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.cached_tokens = 0
        self.num_requests = 0
        self.aborted_requests = ReasonCounter("requested", "client_left", "timeout")
        self.refused_requests = ReasonCounter("invalid_value", "overloaded", "queue_full", "queue_timeout")
        self.failed_requests = ReasonCounter("internal_error", "engine_dead", "timeout")


class Metrics(Collector):
    """Everything that ``/metrics`` shows, labelled with a model's name, with a prefix.

    Requests are counted in the main process; loads come with the heartbeats of the ``schedulers``. Attributes
    are public to what counts; all calls come from one thread.
    """

    def __init__(
        self, model_name: str, prefix: str = DEFAULT_PREFIX, schedulers: Sequence[ProcessKey] = (SCHEDULER,)
    ) -> None:
        self._labels = {"model_name": model_name}
        self._prefix = prefix
        self._schedulers = tuple(schedulers)
        self.heartbeats: dict[ProcessKey, Heartbeat] = {}
        """Latest of every other process."""
        self.requests = requests = RequestMetrics()
        self.history = History(
            {
                "time_to_first_token": requests.time_to_first_token,
                "inter_token_latency": requests.inter_token_latency,
                "request_latency": requests.e2e_request_latency,
            }
        )
        self.malformed_messages = 0
        """Dropped by the main process."""
        self.http_requests_active = 0
        self.http_requests: Counter[tuple[str, str]] = Counter()
        """By (endpoint, method)."""
        self.http_responses: Counter[tuple[str, str, int]] = Counter()
        """By (endpoint, method, status)."""
        self.capacities: dict[str, float] = {}
        """Sizes of the server, by the fields of :data:`CAPACITIES`."""
        self.startup_time = 0.0
        """Seconds; shown once it is set."""
        self._started = time.time()
        self._begun = time.monotonic()

    @property
    def uptime(self) -> float:
        """Seconds since this object was created; never decreases."""
        return time.monotonic() - self._begun

    def on_heartbeat(self, beat: Heartbeat) -> None:
        """Store the latest heartbeat of a process, and sample the schedulers' statistics."""
        self.heartbeats[beat.process] = beat
        if beat.stats is not None:
            self.history.sample(self.uptime, SchedulerStats.merged(list(self._scheduler_stats().values())))

    def _scheduler_stats(self) -> dict[ProcessKey, SchedulerStats]:
        """Statistics of each scheduler; before its first heartbeat, its capacity."""
        capacity = int(self.capacities.get("max_total_num_tokens", 0)) // len(self._schedulers)
        beats = {key: self.heartbeats.get(key) for key in self._schedulers}
        known = {key: beat.stats for key, beat in beats.items() if beat is not None}
        return {key: known.get(key) or SchedulerStats(max_total_num_tokens=capacity) for key in self._schedulers}

    def render(self) -> bytes:
        """The text that a scraper gets (Prometheus text format 0.0.4)."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Make the families of a scrape."""
        yield from self._request_metrics()
        yield from self._scheduler_metrics()
        yield from self._static_metrics()
        yield from self._process_metrics()
        yield from self._http_metrics()

    def _request_metrics(self) -> Iterator[Metric]:
        requests = self.requests
        for name, documentation in _HISTOGRAMS.items():
            histogram: Histogram = getattr(requests, name.removesuffix("_seconds"))
            yield self._histogram(name, documentation, {(): histogram})
        stages: dict[tuple[str, ...], Histogram] = {(stage,): histogram for stage, histogram in requests.stages.items()}
        documentation = "What finished outputs have spent in each stage."
        yield self._histogram("per_stage_req_latency_seconds", documentation, stages, "stage")
        for name, documentation in _COUNTERS.items():
            yield self._counter(name, documentation, getattr(requests, name))
        for name, documentation in _REASONS.items():
            reasons: ReasonCounter = getattr(requests, name.removeprefix("num_"))
            yield self._counter(name, documentation, {(reason,): n for reason, n in reasons.counts.items()}, "reason")

    def _scheduler_metrics(self) -> Iterator[Metric]:
        of_each = self._scheduler_stats()
        labels = ("dp_rank",) if len(of_each) > 1 else ()

        def values(name: str) -> dict[tuple[Any, ...], float]:
            return {(key.dp,) if labels else (): getattr(stats, name) for key, stats in of_each.items()}

        for name, stat in STATS.items():
            make = self._gauge if stat.kind == "gauge" else self._counter
            yield make(stat.metric or name, stat.help, values(name), *labels)
        for name in DERIVED:
            documentation = getattr(SchedulerStats, name).__doc__ or ""
            yield self._gauge(name, " ".join(documentation.split()), values(name), *labels)

    def _static_metrics(self) -> Iterator[Metric]:
        for name, field, scale, documentation in CAPACITIES:
            if field in self.capacities:
                yield self._gauge(name, documentation, self.capacities[field] / scale)
        yield self._gauge("build_info", "Always 1; the label says what runs.", {(__version__,): 1}, "version")
        if self.startup_time:
            yield self._gauge("startup_time_seconds", "How long the server took to start.", self.startup_time)
        yield self._gauge("process_start_time_seconds", "When this server started, seconds since 1970.", self._started)

    def _process_metrics(self) -> Iterator[Metric]:
        for name, field, documentation in (
            (
                "results_lag",
                "lag_total",
                "How often a process could not pass its results on at once, because the next one had fallen behind.",
            ),
            ("malformed_messages", "malformed_total", "Messages that a process dropped for not fitting the schema."),
            ("process_failed_requests", "num_failed_total", "Outputs that a process could not go on with."),
        ):
            values = {_labels(key): getattr(beat, field) for key, beat in self.heartbeats.items()}
            if field == "malformed_total":
                values[_MAIN] = self.malformed_messages
            yield self._counter(name, documentation, values, "process", "rank")
        # Of this process as of the others, so that nothing has to look at processes from outside.
        beats = self.heartbeats.items()
        seconds = {_MAIN: time.process_time(), **{_labels(key): beat.cpu_seconds for key, beat in beats}}
        memory = {_MAIN: resident_bytes(), **{_labels(key): beat.resident_bytes for key, beat in beats}}
        yield self._counter("process_cpu_seconds", "Processor time used.", seconds, "process", "rank")
        yield self._gauge("process_resident_memory_bytes", "Memory in RAM.", memory, "process", "rank")

    def _http_metrics(self) -> Iterator[Metric]:
        yield self._gauge("http_requests_active", "HTTP requests being answered.", self.http_requests_active)
        yield self._counter("http_requests", "HTTP requests by route.", self.http_requests, "endpoint", "method")
        labels = ("endpoint", "method", "status_code")
        yield self._counter("http_responses", "HTTP responses by route and status.", self.http_responses, *labels)

    def _histogram(
        self, name: str, documentation: str, values: dict[tuple[str, ...], Histogram], *labels: str
    ) -> Metric:
        family = HistogramMetricFamily(self._prefix + name, documentation, labels=[*self._labels, *labels])
        for key, histogram in values.items():
            family.add_metric([*self._labels.values(), *key], *histogram.cumulative())
        return family

    def _counter(self, *facts: Any) -> Metric:
        return self._family(CounterMetricFamily, *facts)

    def _gauge(self, *facts: Any) -> Metric:
        return self._family(GaugeMetricFamily, *facts)

    def _family(
        self,
        kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
        name: str,
        documentation: str,
        values: float | Mapping[tuple[Any, ...], float],
        *labels: str,
    ) -> Metric:
        """Return a metric with one value, or with values by those of further labels."""
        family = kind(self._prefix + name, documentation, labels=[*self._labels, *labels])
        for key, value in values.items() if isinstance(values, Mapping) else [((), values)]:
            family.add_metric([*self._labels.values(), *map(str, key)], value)
        return family
