"""Statistics of schedulers: the one table from which heartbeats, metrics, loads, the playground and docs are made.

To add a number, declare it here and count it where it arises (``requests.stats.NAME += 1``), or, for one that is read
rather than counted, name its source in ``scheduler/reports.py``.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from bough.merging import Merge, merge


class Stat(msgspec.Struct, frozen=True):
    """Meaning of a number, and where it is shown besides internal state, which has all of them by their names."""

    kind: Literal["counter", "gauge"]
    help: str
    """Meaning, with the unit unless the name has it."""
    metric: str = ""
    """Name in ``/metrics``, behind the prefix; empty: its own."""
    load: str = ""
    """Name in the core section of ``/v1/loads``; empty: not shown."""
    page: str = ""
    """Name in the playground's events and their history; empty: not shown."""
    merge: Merge = "sum"
    """Rule that makes one number of those of several schedulers."""


_ROWS: list[Stat] = []
"""In the order of the fields below."""


def _stat(kind: Literal["counter", "gauge"], help_: str, *, zero: Any = 0, **shown: Any) -> Any:
    """Declare a number; returns what it is at the beginning."""
    _ROWS.append(Stat(kind, help_, **shown))
    return zero


_gauge, _counter = partial(_stat, "gauge"), partial(_stat, "counter")


class _Table(msgspec.Struct):
    num_running_reqs: int = _gauge("Outputs that are being computed.", load="num_running_reqs", page="running")
    num_queue_reqs: int = _gauge("Outputs that wait to be computed.", load="num_waiting_reqs", page="waiting")
    num_retracted_reqs: int = _gauge("Outputs among those that wait which had begun and had to give up their memory.")
    num_waiting_tokens: int = _gauge("Tokens of the outputs that wait, prompts and what they had generated.")
    num_compiling_reqs: int = _gauge(
        "Outputs whose grammar is being compiled, before they wait to be computed.", metric="num_grammar_queue_reqs"
    )
    num_used_tokens: int = _gauge(
        "Places of the KV cache held by running requests.", load="num_used_tokens", page="used_tokens"
    )
    evictable_tokens: int = _gauge(
        "Places of the KV cache with prefixes that no request uses now.", metric="kv_evictable_tokens"
    )
    max_total_num_tokens: int = _gauge("Places in the KV cache.", load="max_total_num_tokens", page="capacity")
    gen_throughput: float = _gauge(
        "Tokens per second from decoding, over the last logging interval; 0 when idle.", zero=0.0, load="gen_throughput"
    )
    paused: bool = _gauge(
        "1 while generation is paused by request (/pause_generation), otherwise 0.", zero=False, merge="max"
    )
    new_token_ratio: float = _gauge(
        "Share of their remaining output that running requests are expected to use.", zero=0.0, merge="max"
    )
    requests_received_total: int = _counter("Requests received, those refused included; several outputs may be one.")
    prefill_tokens_total: int = _counter(
        "Prompt tokens computed, not reused; after an interruption, output computed again too.",
        metric="prefill_computed_tokens",
        load="total_prefill_uncached_tokens",
        page="prefilled_total",
    )
    cached_tokens_total: int = _counter(
        "Prompt tokens that were found in the prefix cache when their request started.",
        metric="prefill_reused_tokens",
        page="cached_total",
    )
    prefill_seconds_total: float = _counter(
        "Duration of the steps that computed prompt tokens, whatever else they computed.", zero=0.0
    )
    decode_tokens_total: int = _counter("Tokens generated, those of aborted requests included.", page="generated_total")
    forced_tokens_total: int = _counter("Tokens generated without sampling, because a grammar left no choice.")
    evicted_tokens_total: int = _counter("Tokens that the prefix cache has forgotten because their places were needed.")
    num_retracted_total: int = _counter(
        "How often a running request had to give up its memory and wait again.",
        metric="num_retracted_requests",
        page="retracted_total",
    )
    failed_steps_total: int = _counter(
        "Steps that failed. Only the request that is to blame ends with an error.", metric="scheduler_failed_steps"
    )
    kv_accounting_repairs_total: int = _counter(
        "How often the KV cache was rebuilt because its accounts did not add up."
    )
    num_aborted_total: int = _counter(
        "Outputs that the scheduler was told to end, health probes and the server's own included.",
        metric="scheduler_aborted_requests",
    )
    num_queue_timeouts_total: int = _counter(
        "Outputs refused because they had waited too long (--queue-timeout).", metric="queue_timeouts"
    )
    num_timeouts_total: int = _counter("Outputs ended because their time was over.", metric="request_timeouts")
    steps_total: int = _counter("Steps computed.", metric="scheduler_steps")
    step_seconds_total: float = _counter(
        "Duration of all steps on the device.", zero=0.0, metric="forward_execution_seconds"
    )
    kernel_runs_total: int = _counter("Runs of native kernels that several threads share.")
    kernel_joins_total: int = _counter(
        "Threads beside the first that took part in these runs, together: fewer than there are, where they lack a core."
    )
    kernel_recomputed_total: int = _counter(
        "Pieces of work that another thread computed again because the one at work had lost its core."
    )
    expert_imbalance: float = _gauge(
        "Tokens of the busiest expert to the mean of its layer's, of the layer where that is most; 0 without experts. "
        "Internal state (/server_info) has the tokens of each expert.",
        zero=0.0,
        merge="max",
    )


_FINGERPRINT = zlib.crc32(" ".join(_Table.__struct_fields__).encode())
"""Sent before the numbers, which travel without names: a process with another table is not understood."""

STATS = dict(zip(_Table.__struct_fields__, _ROWS, strict=True))
"""The table, by field of :class:`SchedulerStats`."""

DERIVED = ("kv_used_tokens", "kv_available_tokens", "token_usage", "cache_hit_rate")
"""Gauges that follow from others: properties of :class:`SchedulerStats`, with their meanings."""


class SchedulerStats(_Table, array_like=True, gc=False, tag=_FINGERPRINT):
    """Load and counters of one scheduler, or of several together; counters only grow."""

    @classmethod
    def merged(cls, of_each: Sequence[SchedulerStats]) -> SchedulerStats:
        """Return the statistics of several schedulers as if they were one; zeros for none."""
        return cls.of_state(
            {
                name: merge(stat.merge, [getattr(each, name) for each in of_each])
                for name, stat in STATS.items()
                if of_each
            }
        )

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> SchedulerStats:
        """Return the statistics in a scheduler's internal state; zeros for what is not there."""
        return cls(**{name: state[name] for name in STATS if name in state})

    def shown(self, where: Literal["load", "page"]) -> dict[str, float]:
        """Return the numbers that are shown in one place, by their names there."""
        names = {name: getattr(stat, where) for name, stat in STATS.items()}
        return {shown: getattr(self, name) for name, shown in names.items() if shown}

    @property
    def kv_used_tokens(self) -> int:
        """The same as num_used_tokens."""
        return self.num_used_tokens

    @property
    def kv_available_tokens(self) -> int:
        """Places of the KV cache that hold nothing."""
        return max(self.max_total_num_tokens - self.num_used_tokens - self.evictable_tokens, 0)

    @property
    def token_usage(self) -> float:
        """Share of the KV cache held by running requests."""
        return self.num_used_tokens / self.max_total_num_tokens if self.max_total_num_tokens else 0.0

    @property
    def cache_hit_rate(self) -> float:
        """Share of prompt tokens that were reused, since the start; over time, divide the increases of
        cached_tokens_total and prompt_tokens_total."""
        num_tokens = self.cached_tokens_total + self.prefill_tokens_total
        return self.cached_tokens_total / num_tokens if num_tokens else 0.0
