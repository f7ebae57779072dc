"""Prometheus metrics of a server, with the names that dashboards of this field use, prefixed ``bough:``.

The request path only adds to plain Python numbers, all from one thread; exposition objects are made when somebody
scrapes.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from bough.ipc.messages import Heartbeat

PREFIX = "bough:"

LATENCY_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
"""Seconds, for the time to the first token and for queueing."""
E2E_BUCKETS = (*LATENCY_BUCKETS, 600, 1200, 1800, 2400)
ITL_BUCKETS = (
    *(0.001, 0.002, 0.004, 0.006, 0.008, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040, 0.060, 0.080),
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8),
)  # fmt: skip
TOKEN_BUCKETS = (1, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


class Histogram:
    """Counts of values by bucket. Observing costs a binary search and three additions."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, weight: int = 1) -> None:
        """Count ``value``, ``weight`` times."""
        self._counts[bisect_left(self._bounds, value)] += weight
        self._sum += value * weight

    @property
    def bounds(self) -> tuple[float, ...]:
        """Upper bounds of all buckets but the last."""
        return self._bounds

    @property
    def counts(self) -> list[int]:
        """Values by bucket, not cumulative."""
        return self._counts

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self._counts)

    def family(self, name: str, documentation: str, labels: dict[str, str]) -> HistogramMetricFamily:
        """What Prometheus wants to see: cumulative counts by upper bound."""
        family = HistogramMetricFamily(name, documentation, labels=list(labels))
        buckets: list[tuple[str, float]] = []
        total = 0
        for bound, count in zip((*self._bounds, math.inf), self._counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound == math.inf else str(float(bound)), total))
        family.add_metric(list(labels.values()), buckets, self._sum)
        return family


class Metrics(Collector):
    """Everything that ``/metrics`` shows.

    Requests are counted in the main process; loads come with the schedulers' heartbeats. Health probes are no
    requests. Attributes are public to the request path, which adds to them; all calls come from one thread.

    Args:
        model_name: value of the label that every metric carries.
    """

    def __init__(self, model_name: str) -> None:
        self._labels = {"model_name": model_name}
        self.heartbeats: dict[tuple[str, int], Heartbeat] = {}
        """Latest of every other process, by kind and rank."""
        self.time_to_first_token = Histogram(LATENCY_BUCKETS)
        self.inter_token_latency = Histogram(ITL_BUCKETS)
        self.e2e_request_latency = Histogram(E2E_BUCKETS)
        self.queue_time = Histogram(LATENCY_BUCKETS)
        self.prompt_tokens_per_request = Histogram(TOKEN_BUCKETS)
        self.generation_tokens_per_request = Histogram(TOKEN_BUCKETS)
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.cached_tokens = 0
        self.num_requests = 0
        self.num_aborted_requests = 0
        self.num_refused_requests = 0
        self.num_failed_requests = 0
        self.malformed_messages = 0
        """Dropped by the main process."""
        self.http_requests_active = 0
        self.http_requests: Counter[tuple[str, str]] = Counter()
        """By (endpoint, method)."""
        self.http_responses: Counter[tuple[str, str, int]] = Counter()
        """By (endpoint, method, status)."""
        self.max_total_num_tokens = 0
        self.context_len = 0
        self.startup_time = 0.0
        """Seconds; shown once it is set."""
        self._started = time.time()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    @property
    def uptime(self) -> float:
        """Seconds since this was made."""
        return time.time() - self._started

    def render(self) -> bytes:
        """The text that a scraper gets (Prometheus text format 0.0.4)."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Called by the registry when somebody scrapes."""
        yield from self._request_metrics()
        yield from self._scheduler_metrics()
        yield from self._process_metrics()
        yield from self._http_metrics()

    def _request_metrics(self) -> Iterator[Metric]:
        for name, histogram, documentation in (
            (
                "time_to_first_token_seconds",
                self.time_to_first_token,
                "From the arrival of a request to the sampling of its first token.",
            ),
            (
                "inter_token_latency_seconds",
                self.inter_token_latency,
                "Between successive tokens of one output; the mean gap, of tokens that come together.",
            ),
            ("e2e_request_latency_seconds", self.e2e_request_latency, "From the arrival of a request to its end."),
            ("queue_time_seconds", self.queue_time, "From the arrival in the scheduler to the first step."),
            ("prompt_tokens_histogram", self.prompt_tokens_per_request, "Prompt tokens per output."),
            ("generation_tokens_histogram", self.generation_tokens_per_request, "Generated tokens per output."),
        ):
            yield histogram.family(PREFIX + name, documentation, self._labels)
        for name, value, documentation in (
            ("prompt_tokens", self.prompt_tokens, "Prompt tokens of finished outputs, reused ones included."),
            ("generation_tokens", self.generation_tokens, "Generated tokens."),
            ("cached_tokens", self.cached_tokens, "Prompt tokens of finished outputs whose computation was reused."),
            (
                "num_requests",
                self.num_requests,
                "Outputs that ended: finished, aborted, refused or failed. Bodies that cannot be read are not counted.",
            ),
            (
                "num_aborted_requests",
                self.num_aborted_requests,
                "Outputs that were ended early: by request, or because the client left.",
            ),
            (
                "num_refused_requests",
                self.num_refused_requests,
                "Outputs that were never begun: their request was wrong, or there was no room for it.",
            ),
            ("num_failed_requests", self.num_failed_requests, "Outputs that could not be finished."),
        ):
            yield self._counter(name, documentation, value)
        if self.startup_time:
            yield self._gauge("startup_time_seconds", "How long the server took to start.", self.startup_time)
        yield self._gauge("process_start_time_seconds", "When this server started, seconds since 1970.", self._started)

    def _scheduler_metrics(self) -> Iterator[Metric]:
        all_stats = [beat.stats for beat in self.heartbeats.values() if beat.stats is not None]

        def total(name: str) -> float:
            return float(sum(getattr(stats, name) for stats in all_stats))

        capacity = total("max_total_num_tokens") or self.max_total_num_tokens
        used = total("num_used_tokens")
        for name, value, documentation in (
            ("num_running_reqs", total("num_running_reqs"), "Outputs that are being computed."),
            ("num_queue_reqs", total("num_queue_reqs"), "Outputs that wait to be computed."),
            ("num_used_tokens", used, "Places of the KV cache held by running requests."),
            (
                "kv_evictable_tokens",
                total("evictable_tokens"),
                "Places of the KV cache that hold prefixes nobody uses now.",
            ),
            ("max_total_num_tokens", capacity, "Places in the KV cache."),
            ("token_usage", used / capacity if capacity else 0.0, "Share of the KV cache held by running requests."),
            (
                "gen_throughput",
                total("gen_throughput"),
                "Tokens per second from decoding, over the last logging interval; 0 when idle.",
            ),
            ("context_len", self.context_len, "Longest sequence, in tokens."),
        ):
            yield self._gauge(name, documentation, value)
        for name, field, documentation in (
            (
                "prefill_computed_tokens",
                "prefill_tokens_total",
                "Prompt tokens computed, not reused; after an interruption, output computed again too.",
            ),
            (
                "prefill_seconds",
                "prefill_seconds_total",
                "Duration of the steps that computed prompt tokens, whatever else they computed.",
            ),
            ("decode_tokens", "decode_tokens_total", "Tokens sampled, those of aborted requests included."),
            (
                "num_retracted_requests",
                "num_retracted_total",
                "How often a running request had to give up its memory and wait again.",
            ),
            (
                "scheduler_failed_steps",
                "failed_steps_total",
                "Steps that failed. Only the request that is to blame ends with an error.",
            ),
            (
                "kv_accounting_repairs",
                "kv_accounting_repairs_total",
                "How often the KV cache was rebuilt because its accounts did not add up.",
            ),
            (
                "scheduler_aborted_requests",
                "num_aborted_total",
                "Outputs that the scheduler was told to end, health probes and the server's own included.",
            ),
            (
                "queue_timeouts",
                "num_queue_timeouts_total",
                "Outputs refused because they had waited too long (--queue-timeout).",
            ),
            ("request_timeouts", "num_timeouts_total", "Outputs ended because their time was over."),
            ("scheduler_steps", "steps_total", "Steps computed."),
        ):
            yield self._counter(name, documentation, total(field))

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
            family = CounterMetricFamily(PREFIX + name, documentation, labels=[*self._labels, "process", "rank"])
            for (process, rank), beat in self.heartbeats.items():
                family.add_metric([*self._labels.values(), process, str(rank)], getattr(beat, field))
            if field == "malformed_total":
                family.add_metric([*self._labels.values(), "main", "0"], self.malformed_messages)
            yield family

    def _http_metrics(self) -> Iterator[Metric]:
        yield self._gauge("http_requests_active", "HTTP requests being answered.", self.http_requests_active)
        requests = CounterMetricFamily(
            PREFIX + "http_requests", "HTTP requests by route.", labels=[*self._labels, "endpoint", "method"]
        )
        for (endpoint, method), count in self.http_requests.items():
            requests.add_metric([*self._labels.values(), endpoint, method], count)
        yield requests
        responses = CounterMetricFamily(
            PREFIX + "http_responses",
            "HTTP responses by route and status.",
            labels=[*self._labels, "endpoint", "method", "status_code"],
        )
        for (endpoint, method, status), count in self.http_responses.items():
            responses.add_metric([*self._labels.values(), endpoint, method, str(status)], count)
        yield responses

    def _counter(self, name: str, documentation: str, value: float) -> Metric:
        family = CounterMetricFamily(PREFIX + name, documentation, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family

    def _gauge(self, name: str, documentation: str, value: float) -> Metric:
        family = GaugeMetricFamily(PREFIX + name, documentation, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family
