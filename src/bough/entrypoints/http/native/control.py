"""Information about the server, and calls that change its state."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.sampling import describe_defaults
from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import TEXT_TYPE, Call, Response
from bough.entrypoints.http.route import NATIVE, Handlers, Model, Path, QueryParameter, Route, flag
from bough.errors import BadRequest
from bough.managers.server_info import model_info, server_info

METRICS_TYPE = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")

MAX_FLUSH_TIMEOUT = 3600.0
"""Longest time, in seconds, that flushing the cache may wait for running requests."""


class ModelInfo(msgspec.Struct):
    """About the model that is served."""

    model_path: Path
    served_model_name: Model
    tokenizer_path: Path
    is_generation: Annotated[bool, Meta(description="It generates text; else vectors or scores.", examples=[True])]
    weight_version: Annotated[str, Meta(description="Name of the weights.", examples=["default"])]
    load_format: Annotated[str, Meta(description="How the weights were read.", examples=["auto"])]
    model_type: Annotated[str | None, Meta(description="Family that the checkpoint's configuration names.")]
    architectures: Annotated[list[str], Meta(description="Classes that the checkpoint's configuration names.")]


class ServerInfo(msgspec.Struct):
    """Options (by their names), capacity and state of the server."""

    launch_command: Annotated[
        str, Meta(description="A command that starts such a server; of secrets only that they are set.")
    ]
    internal_states: Annotated[list[dict[str, Any]], Meta(description="State of each scheduler.")]
    version: Annotated[str, Meta(description="The server's version.", examples=["0.1.0"])]
    frontend: Annotated[str, Meta(description="Program that serves HTTP.", examples=["python"])]


class WorldSize(msgspec.Struct):
    """Processes that trainers count."""

    world_size: Annotated[int, Meta(ge=1, description="Ranks of all replicas, or of one.", examples=[1])]


_FLUSH_QUERY = (
    QueryParameter(
        "timeout",
        {"type": "number", "minimum": 0, "maximum": MAX_FLUSH_TIMEOUT, "default": 0},
        "Seconds to wait for running requests.",
    ),
)


_WORLD_QUERY = (QueryParameter("include_dp", {"type": "boolean", "default": True}, "Count the ranks of all replicas."),)


class ControlHandlers(Handlers):
    """Answers the routes that are about the server and not about text."""

    @Route("GET /model_info /get_model_info", NATIVE, answer=ModelInfo)
    async def model_info(self, call: Call) -> Response:
        """About the model that is served."""
        return Response(msgspec.json.encode({**model_info(self._manager), **self._sampling()}))

    @Route("GET /server_info /get_server_info", NATIVE, answer=ServerInfo)
    async def server_info(self, call: Call) -> Response:
        """Options, capacity and state of the server."""
        info = await server_info(self._manager)
        return Response(msgspec.json.encode({**info, **self._sampling()}))

    @Route("GET /get_world_size", NATIVE, answer=WorldSize, query=_WORLD_QUERY)
    async def world_size(self, call: Call) -> Response:
        """Number of ranks, which is how many members of a trainer's group this server is."""
        args = self._manager.server_args
        replicas = args.dp_size if flag(call, "include_dp", default=True) else 1
        return Response(msgspec.json.encode(WorldSize(args.tp_size * replicas)))

    def _sampling(self) -> dict[str, Any]:
        return {"default_sampling_params": describe_defaults(self._manager.server_args, self._manager.model_config)}

    @Route("GET /metrics", NATIVE, access=Access.OPEN)
    async def metrics(self, call: Call) -> Response:
        """Prometheus metrics."""
        return Response(self._manager.metrics.render(), content_type=METRICS_TYPE)

    @Route(
        "GET,POST /flush_cache /reset_prefix_cache",
        NATIVE,
        access=Access.CONTROL,
        query=_FLUSH_QUERY,
        text_statuses=(400,),
    )
    async def flush_cache(self, call: Call) -> Response:
        """Forget cached prefixes. Query: `timeout`, seconds to wait for running requests.

        400 while requests run.
        """
        text = call.query.get("timeout", "0")
        try:
            timeout = float(text)
        except ValueError:
            timeout = -1.0
        if not 0.0 <= timeout <= MAX_FLUSH_TIMEOUT:
            raise BadRequest(f"timeout must be a number of seconds from 0 to {MAX_FLUSH_TIMEOUT:g}", param="timeout")
        reply = await self._manager.flush_cache(timeout)
        if reply.success:
            return Response(b"Cache flushed.\n", content_type=TEXT_TYPE)
        return Response(f"Cache not flushed: {reply.message}\n".encode(), 400, TEXT_TYPE)
