"""Control calls about the prefix cache."""

from __future__ import annotations

from dataclasses import asdict

from bough.scheduler.control import ControlHandler, Params
from bough.scheduler.requests import Requests


def cache_calls(requests: Requests) -> dict[str, ControlHandler]:
    """Return the handlers of ``flush_cache`` and ``get_cache_outline``."""
    cache = requests.kv.prefix_cache

    def flush(params: Params) -> Params:
        cache.reset()
        return {}

    def outline(params: Params) -> Params:
        return {
            "nodes": [asdict(node) for node in cache.outline(params["max_nodes"])],
            "protected_tokens": cache.protected_size,
            "evictable_tokens": cache.evictable_size,
        }

    def holds_nothing(params: Params) -> bool:
        return not requests.in_flight and requests.num_holding == 0

    return {
        "flush_cache": ControlHandler(flush, holds_nothing, needs="an idle engine"),
        "get_cache_outline": ControlHandler(outline, merge={"protected_tokens": "sum", "evictable_tokens": "sum"}),
    }
