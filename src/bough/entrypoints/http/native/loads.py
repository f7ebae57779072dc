"""``/v1/loads``: how busy every scheduler is, for routers that choose among servers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bough import __version__
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.native.control import METRICS_TYPE
from bough.entrypoints.http.route import NATIVE, TEXT, Count, Handlers, QueryParameter, Route
from bough.errors import BadRequest
from bough.observability.stats import SchedulerStats

SECTIONS = ("core", "memory", "disagg", "queues")
"""What ``include`` may name, besides ``all`` and the sections of what this server does not do."""

EMPTY_SECTIONS = ("spec", "lora")
"""Sections about speculative decoding and adapters: known names, and nothing to report."""

_NO_DISAGGREGATION: dict[str, Any] = {
    "mode": "null",
    **dict.fromkeys(
        (
            *("prefill_bootstrap_queue_reqs", "prefill_inflight_queue_reqs", "decode_prealloc_queue_reqs"),
            *("decode_transfer_queue_reqs", "decode_retracted_queue_reqs"),
        ),
        0,
    ),
    "kv_transfer_speed_gb_s": 0.0,
    "kv_transfer_latency_ms": 0.0,
}
"""What routers expect of a server that does prefill and decode itself."""

_NAMES = "|".join((*SECTIONS, *EMPTY_SECTIONS, "all"))

FORMATS = ("json", "prometheus")
PREFIX = "bough_"
TIMEOUT = 5.0
"""Seconds that a scheduler may take to say how it is; it answers between two steps."""

_QUERY = (
    QueryParameter("dp_rank", {"type": "integer", "minimum": 0}, "Only this scheduler."),
    QueryParameter(
        "include",
        {"type": "string", "default": "all", "pattern": f"^({_NAMES})(,({_NAMES}))*$"},
        f"Sections, with commas between: {', '.join(f'`{name}`' for name in SECTIONS)}; or `all`.",
    ),
    QueryParameter("format", {"enum": list(FORMATS), "default": "json"}, "JSON, or gauges for Prometheus."),
)

_GB = 1e9
_SHORT_NAMES = {"disaggregation": "disagg"}
"""How gauges call a section."""


class LoadsAnswer(msgspec.Struct):
    """Load of the schedulers."""

    timestamp: Annotated[str, Meta(description="Time of the answer.", examples=["2026-11-21T19:27:08.037429+00:00"])]
    version: Annotated[str, Meta(description="The server's version.", examples=["0.1.0"])]
    accelerator: Annotated[str | None, Meta(description="Kind of device that computes.", examples=["cpu"])]
    num_accelerators: Annotated[Count, Meta(description="Devices that compute.", examples=[1])]
    loads: Annotated[list[dict[str, Any]], Meta(description="State of each scheduler.")]


class LoadsHandler(Handlers):
    """Answers ``/v1/loads``."""

    @Route("GET /v1/loads", NATIVE, answer=LoadsAnswer, query=_QUERY, also=(TEXT,))
    async def loads(self, call: Call) -> Response:
        """Load of the schedulers, for routers."""
        query = call.query
        sections = _sections(query.get("include", "all"))
        chosen = _rank(query["dp_rank"]) if "dp_rank" in query else None
        kind = query.get("format", "json")
        if kind not in FORMATS:
            raise BadRequest(f"format must be one of {', '.join(FORMATS)}", param="format")
        states = await self._manager.get_internal_state(TIMEOUT)
        if chosen is not None and chosen >= len(states):
            raise BadRequest(f"dp_rank must be in [0, {len(states)}), got {chosen}", param="dp_rank")
        loads = [_load(rank, state, sections) for rank, state in enumerate(states) if chosen is None or rank == chosen]
        if kind == "prometheus":
            return Response(generate_latest(_Gauges(loads)), content_type=METRICS_TYPE)
        answer = LoadsAnswer(
            timestamp=datetime.now(timezone.utc).isoformat(),
            version=__version__,
            accelerator=self._manager.scheduler_info.get("device"),
            num_accelerators=len(states),
            loads=loads,
        )
        return Response(msgspec.json.encode(answer))


def _sections(text: str) -> set[str]:
    names = {name.strip() for name in text.split(",")}
    known = (*SECTIONS, *EMPTY_SECTIONS, "all")
    unknown = sorted(names.difference(known))
    if unknown:
        raise BadRequest(f"include must name some of {', '.join(known)}; got {unknown[0][:64]!r}", param="include")
    return set(SECTIONS) if "all" in names else names.intersection(SECTIONS)


def _rank(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadRequest("dp_rank must be an integer, at least 0", param="dp_rank")
    return int(text)


def _load(rank: int, state: dict[str, Any], sections: set[str]) -> dict[str, Any]:
    """What is known of one scheduler, from its internal state."""
    load: dict[str, Any] = {"timestamp": time.time(), "dp_rank": rank}
    stats = SchedulerStats.of_state(state)
    running, slots = stats.num_running_reqs, state.get("effective_max_running_requests_per_dp", 0)
    if "core" in sections:
        total = stats.num_used_tokens + stats.num_waiting_tokens
        moments = state.get("decode_moments")
        load |= {
            **stats.shown("load"),
            "num_waiting_uncached_tokens": state.get("num_waiting_uncached_tokens", 0),
            "num_total_tokens": total,
            "num_active_tokens": total,
            "num_prealloc_ready_tokens": 0,
            "max_running_requests": slots,
            "token_usage": stats.token_usage,
            "cache_hit_rate": stats.cache_hit_rate,
            "utilization": running / slots if slots else 0.0,
            "total_prefill_busy_us": round(stats.prefill_seconds_total * 1e6),
            "decode_moments": moments if moments and moments[0] else None,
        }
    if "memory" in sections:
        memory = state.get("memory_usage", {})
        load["memory"] = {
            "weight_gb": memory.get("weight", 0) / _GB,
            "kv_cache_gb": memory.get("kvcache", 0) / _GB,
            "graph_gb": 0.0,
            "token_capacity": memory.get("token_capacity", stats.max_total_num_tokens),
        }
    if "queues" in sections:
        load["queues"] = {
            "waiting": stats.num_queue_reqs - stats.num_compiling_reqs,
            "grammar": stats.num_compiling_reqs,
            "paused": running if stats.paused else 0,
            "retracted": stats.num_retracted_reqs,
            "prealloc_ready": 0,
        }
    if "disagg" in sections:
        load["disaggregation"] = _NO_DISAGGREGATION
    return load


class _Gauges(Collector):
    def __init__(self, loads: list[dict[str, Any]]) -> None:
        self._loads = loads

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for load in self._loads:
            flat = {name: value for name, value in load.items() if isinstance(value, (int, float))}
            for section, values in load.items():
                if isinstance(values, dict):
                    prefix = _SHORT_NAMES.get(section, section)
                    flat |= {f"{prefix}_{name}": each for name, each in values.items() if not isinstance(each, str)}
            for name, value in flat.items():
                if name in ("dp_rank", "timestamp"):
                    continue
                family = families.setdefault(
                    name, GaugeMetricFamily(PREFIX + name, f"{name} of /v1/loads.", labels=["dp_rank"])
                )
                family.add_metric([str(load["dp_rank"])], value)
        yield from families.values()
