"""A live view of the engine: what it does, twice a second, for whoever looks at the playground."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

import msgspec

from bough.entrypoints.http.asgi import EVENTS_TYPE, Call, EventStream, Response
from bough.errors import Overloaded
from bough.ipc.messages import ControlReply
from bough.managers.health import ServerState
from bough.managers.scheduler_control import data_of, merged
from bough.managers.tokenizer_manager import TokenizerManager
from bough.observability.history import WINDOW_S
from bough.observability.stats import SchedulerStats

INTERVAL = 0.5
"""Seconds between two events."""

MAX_WATCHERS = 16
"""Streams at once; the engine is asked once for all of them."""

MAX_NODES = 120
"""Nodes of the radix tree in an event, those used last."""

TIMEOUT = 5.0
"""Seconds that the scheduler may take to answer; it does so between two steps."""

_MAX_TEXTS = 1024


class LiveView:
    """Answers ``/playground/events``: a stream of pictures, of which a slow reader misses some.

    Nothing is asked of the scheduler while nobody looks.
    """

    def __init__(self, manager: TokenizerManager) -> None:
        self._manager = manager
        self._num_watchers = 0
        self._painter: asyncio.Task[bytes] | None = None
        self._texts: dict[tuple[int, ...], str] = {}

    async def __call__(self, call: Call) -> Response | EventStream:
        """``GET /playground/events``; ends when the server shuts down, once it has nothing left to finish."""
        if call.method == "HEAD":
            return Response(content_type=EVENTS_TYPE)
        if self._num_watchers >= MAX_WATCHERS:
            raise Overloaded(f"{MAX_WATCHERS} others watch already")
        return EventStream(self._events(), end=b"")

    async def _events(self) -> AsyncGenerator[bytes, None]:
        self._num_watchers += 1
        try:
            yield await self._paint(is_first=True)
            while self._has_more_to_show():
                if self._painter is None:
                    self._painter = asyncio.create_task(self._paint_next())
                yield await asyncio.shield(self._painter)
        finally:
            self._num_watchers -= 1

    def _has_more_to_show(self) -> bool:
        state = self._manager.health.state
        # A server that shuts down ends what still runs after its grace, so that this ends, too.
        is_up = state in (ServerState.READY, ServerState.SLEEPING)
        return is_up or (state is ServerState.DRAINING and bool(self._manager.rid_to_state))

    async def _paint_next(self) -> bytes:
        """Make the next picture, for everybody who waits for it; whoever comes later waits for another one."""
        await asyncio.sleep(INTERVAL)
        self._painter = None
        return await self._paint()

    async def _paint(self, *, is_first: bool = False) -> bytes:
        """Make a picture; the first of a stream carries what was before."""
        manager = self._manager
        control = manager.control
        state = data_of(await control.call("get_internal_state", timeout=TIMEOUT, with_loading=True))
        wanted = {"max_nodes": MAX_NODES // control.num_schedulers}
        outlines = await control.call_each("get_cache_outline", wanted, TIMEOUT, with_loading=True)
        cache = data_of(merged(outlines))
        metrics = manager.metrics
        picture = {
            "time": time.time(),
            "uptime": metrics.uptime,
            "server_state": manager.health.state.value,
            # Of tokens, not what has come here: of requests that are not streamed, they come dozens at a time.
            **SchedulerStats.of_state(state).shown("page"),
            "max_running": state["effective_max_running_requests_per_dp"],
            "protected_tokens": cache.get("protected_tokens", 0),
            "evictable_tokens": cache.get("evictable_tokens", 0),
            "requests_total": metrics.requests.num_requests,
            "window_seconds": WINDOW_S,
            "latencies": metrics.history.latencies(),
            "nodes": [node for outline in outlines for node in self._tree(outline)],
        }
        if is_first:
            picture["history"] = metrics.history.columns(picture["uptime"])
        return b"data: " + msgspec.json.encode(picture) + b"\n\n"

    def _tree(self, outline: ControlReply) -> Iterable[dict[str, Any]]:
        """Nodes of a scheduler's tree; those of a replica are below one that stands for it."""
        nodes = [self._with_text(node) for node in outline.data.get("nodes", ())]
        rank = outline.process.dp
        return nodes if rank is None else _below_replica(f"replica {rank}", nodes, outline.data)

    def _with_text(self, node: dict[str, Any]) -> dict[str, Any]:
        """A node with the beginning of its text instead of its ids."""
        shown = {name: value for name, value in node.items() if name != "head"}
        head, tokenizer = tuple(node["head"]), self._manager.tokenizer
        if tokenizer is None:
            return {**shown, "text": " ".join(map(str, head))}
        text = self._texts.get(head)
        if text is None:
            if len(self._texts) >= _MAX_TEXTS:
                self._texts.clear()
            text = self._texts[head] = tokenizer.decode(head, skip_special_tokens=False)
        return {**shown, "text": text}


def _below_replica(name: str, nodes: Sequence[dict[str, Any]], cache: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Nodes of a replica's tree, with ids of their own, behind the node that stands for the replica."""
    tops = sum(not node["parent_id"] for node in nodes)
    num_tokens = cache["protected_tokens"] + cache["evictable_tokens"]
    root = {"node_id": name, "parent_id": "", "namespace": None, "num_tokens": num_tokens, "text": name}
    yield {**root, "locks": 0, "hits": 0, "age": 0, "num_children": tops}
    for node in nodes:
        parent = f"{name} {node['parent_id']}".rstrip()
        yield {**node, "node_id": f"{name} {node['node_id']}", "parent_id": parent}
