"""Information about the server, and calls that change its state."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.sampling import describe_defaults
from bough.entrypoints.http.asgi import TEXT_TYPE, Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.errors import BadRequest
from bough.ipc.messages import PauseMode
from bough.managers.io_struct import MAX_RID_CHARS
from bough.managers.server_info import model_info, server_info
from bough.managers.tokenizer_manager import TokenizerManager

METRICS_TYPE = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")

MAX_FLUSH_TIMEOUT = 3600.0
"""Longest time, in seconds, that flushing the cache may wait for running requests."""


class AbortRequest(msgspec.Struct, kw_only=True):
    """Body of ``/abort_request``."""

    rid: Annotated[
        Annotated[str, Meta(max_length=MAX_RID_CHARS)],
        Meta(description="Every request whose id begins like this is ended; an empty string ends nothing."),
    ] = ""
    abort_all: Annotated[bool, Meta(description="End all requests.")] = False


class PauseRequest(msgspec.Struct, kw_only=True):
    """Body of ``/pause_generation``."""

    mode: Annotated[
        PauseMode,
        Meta(
            description="What becomes of requests that are there: `abort` ends them, `retract` has them give their "
            "memory back and compute again later, `in_place` has them go on where they were."
        ),
    ] = "abort"


class ContinueRequest(msgspec.Struct, kw_only=True):
    """Body of ``/continue_generation``."""


ABORT = BodySpec(AbortRequest, is_strict=True)
PAUSE = BodySpec(PauseRequest, is_strict=True, may_be_empty=True)
CONTINUE = BodySpec(
    ContinueRequest,
    is_strict=True,
    may_be_empty=True,
    no_effect={"torch_empty_cache": "Give unused device memory back: it is set aside at the start."},
)


class ControlHandlers:
    """Answers the routes that are about the server and not about text.

    Args:
        manager: does the work.
    """

    def __init__(self, manager: TokenizerManager) -> None:
        self._manager = manager

    async def root(self, call: Call) -> Response:
        """``GET /``: says that somebody is there."""
        return Response(msgspec.json.encode("Bough is running"))

    async def model_info(self, call: Call) -> Response:
        """``GET /model_info``: what is being served."""
        return Response(msgspec.json.encode({**model_info(self._manager), **self._sampling()}))

    async def server_info(self, call: Call) -> Response:
        """``GET /server_info``: options, capacity and state."""
        info = await server_info(self._manager)
        return Response(msgspec.json.encode({**info, **self._sampling()}))

    def _sampling(self) -> dict[str, Any]:
        return {"default_sampling_params": describe_defaults(self._manager.server_args, self._manager.model_config)}

    async def metrics(self, call: Call) -> Response:
        """``GET /metrics``: Prometheus text."""
        return Response(self._manager.metrics.render(), content_type=METRICS_TYPE)

    async def flush_cache(self, call: Call) -> Response:
        """``GET`` or ``POST /flush_cache``: forget all cached prefixes; 400 while requests run.

        The query parameter ``timeout`` (seconds, default 0) says how long to wait for them to finish.
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

    async def abort_request(self, call: Call) -> Response:
        """``POST /abort_request``: end requests; unknown ids are nobody's error."""
        body = await call.parse(ABORT)
        self._manager.abort_request(body.rid, body.abort_all)
        return Response(content_type=TEXT_TYPE)

    async def pause(self, call: Call) -> Response:
        """``POST /pause_generation``: compute nothing for the time being."""
        body = await call.parse(PAUSE)
        await self._manager.pause_generation(body.mode)
        return _done(f"generation is paused ({body.mode})")

    async def go_on(self, call: Call) -> Response:
        """``POST /continue_generation``: compute again."""
        await call.parse(CONTINUE)
        await self._manager.continue_generation()
        return _done("generation goes on")


def _done(message: str) -> Response:
    return Response(msgspec.json.encode({"message": message, "status": "ok"}))
