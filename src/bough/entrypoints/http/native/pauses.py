"""Pauses of generation, and ends of requests that others have sent."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import TEXT_TYPE, Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.route import NATIVE, Handlers, QueryParameter, Route, flag
from bough.errors import BadRequest
from bough.managers import tokenizer_manager
from bough.managers.io_struct import MAX_RID_CHARS
from bough.managers.scheduler_control import data_of

Rid = Annotated[str, Meta(max_length=MAX_RID_CHARS)]

_MODES: dict[str, tokenizer_manager.PauseRequest] = {"abort": "abort", "wait": "wait", "keep": "retract"}
"""vLLM's words for modes. Requests that are kept give their memory back, so that new weights may follow: what they
have computed stays in the prefix cache until then."""


class AbortRequest(msgspec.Struct, kw_only=True):
    """Body of ``/abort_request``."""

    rid: Annotated[
        Rid,
        Meta(description="Every request whose id begins like this is ended; an empty string ends nothing."),
    ] = ""
    abort_all: Annotated[bool, Meta(description="End all requests.")] = False


class AbortRequests(msgspec.Struct, kw_only=True):
    """Body of ``/abort_requests``."""

    request_ids: Annotated[
        list[Rid] | None, Meta(description="Requests with exactly these ids are ended; without any, all are.")
    ] = None


class PauseRequest(msgspec.Struct, kw_only=True):
    """Body of ``/pause_generation``."""

    mode: Annotated[
        tokenizer_manager.PauseRequest,
        Meta(
            description="What becomes of requests that are there: `abort` ends them, `retract` has them give their "
            "memory back and compute again later, `in_place` has them go on where they were, `wait` lets them finish "
            "first."
        ),
    ] = "abort"


class ContinueRequest(msgspec.Struct, kw_only=True):
    """Body of ``/continue_generation``."""


class PauseByQuery(msgspec.Struct, kw_only=True):
    """Body of ``/pause``, with its fields in the query."""


ABORT = BodySpec(AbortRequest, is_strict=True, example={"rid": "e95e21146e0e4e6ebcc69289fb7a986e"})
ABORT_SEVERAL = BodySpec(
    AbortRequests,
    is_strict=True,
    may_be_empty=True,
    example={"request_ids": ["e95e21146e0e4e6ebcc69289fb7a986e"]},
)
PAUSE = BodySpec(PauseRequest, is_strict=True, may_be_empty=True, example={"mode": "in_place"})
CONTINUE = BodySpec(
    ContinueRequest,
    is_strict=True,
    may_be_empty=True,
    no_effect={"torch_empty_cache": "Give unused device memory back: it is set aside at the start."},
)
PAUSE_BY_QUERY = BodySpec(PauseByQuery, is_strict=True, may_be_empty=True)

_PAUSE_QUERY = (
    QueryParameter(
        "mode",
        {"type": "string", "enum": list(_MODES), "default": "abort"},
        "`abort` ends the requests that are there, `wait` lets them finish first, `keep` has them go on later.",
    ),
    QueryParameter(
        "clear_cache",
        {"type": "boolean", "default": True},
        "Forget cached prefixes; without effect where requests are kept.",
    ),
)


class DoneAnswer(msgspec.Struct):
    """Confirmation that something was done."""

    message: Annotated[str, Meta(description="What was done.", examples=["generation goes on"])]
    status: Literal["ok"]


class PauseState(msgspec.Struct):
    """Outcome of ``/pause`` and ``/resume``."""

    status: Literal["paused", "resumed"]


class PausedAnswer(msgspec.Struct):
    """State of generation."""

    is_paused: Annotated[bool, Meta(description="Nothing is computed until `/resume`.", examples=[False])]


class PauseHandlers(Handlers):
    """Answers the routes that stop generation, or single requests."""

    @Route("POST /abort_request", NATIVE, ABORT, access=Access.CONTROL)
    async def abort_request(self, call: Call) -> Response:
        """End requests by id, by prefix of ids, or all.

        Unknown ids are ignored.
        """
        body = await call.parse(ABORT)
        self._manager.abort_request(body.rid, body.abort_all)
        return Response(content_type=TEXT_TYPE)

    @Route("POST /abort_requests", NATIVE, ABORT_SEVERAL, DoneAnswer, access=Access.CONTROL)
    async def abort_requests(self, call: Call) -> Response:
        """End requests by their ids, or all, by vLLM's name.

        Unknown ids are ignored.
        """
        body = await call.parse(ABORT_SEVERAL)
        for rid in body.request_ids or ():
            self._manager.outputs.abort_request(rid)
        if not body.request_ids:
            self._manager.abort_request(abort_all=True)
        return _done("requests are being ended")

    @Route("POST /pause_generation", NATIVE, PAUSE, DoneAnswer, access=Access.CONTROL)
    async def pause_generation(self, call: Call) -> Response:
        """Compute nothing for the time being; requests that come meanwhile wait."""
        body = await call.parse(PAUSE)
        await self._manager.pause_generation(body.mode)
        return _done(f"generation is paused ({body.mode})")

    @Route("POST /continue_generation", NATIVE, CONTINUE, DoneAnswer, access=Access.CONTROL)
    async def continue_generation(self, call: Call) -> Response:
        """Go on after `/pause_generation`."""
        await call.parse(CONTINUE)
        await self._manager.continue_generation()
        return _done("generation goes on")

    @Route("POST /pause", NATIVE, PAUSE_BY_QUERY, PauseState, access=Access.CONTROL, query=_PAUSE_QUERY)
    async def pause(self, call: Call) -> Response:
        """Compute nothing for the time being, by vLLM's name."""
        await call.parse(PAUSE_BY_QUERY)
        word = call.query.get("mode", "abort")
        mode = _MODES.get(word)
        if mode is None:
            raise BadRequest(f"mode must be one of {', '.join(_MODES)}, got {word[:64]!r}", param="mode")
        clears = flag(call, "clear_cache", default=True) and word != "keep"
        await self._manager.pause_generation(mode)
        if clears:
            data_of(await self._manager.flush_cache())
        return Response(msgspec.json.encode(PauseState("paused")))

    @Route("POST /resume", NATIVE, CONTINUE, PauseState, access=Access.CONTROL)
    async def resume(self, call: Call) -> Response:
        """Go on after `/pause`, by vLLM's name."""
        await call.parse(CONTINUE)
        await self._manager.continue_generation()
        return Response(msgspec.json.encode(PauseState("resumed")))

    @Route("GET /is_paused", NATIVE, answer=PausedAnswer, access=Access.CONTROL)
    async def is_paused(self, call: Call) -> Response:
        """Say whether generation is paused."""
        return Response(msgspec.json.encode(PausedAnswer(self._manager.health.paused)))


def _done(message: str) -> Response:
    return Response(msgspec.json.encode(DoneAnswer(message, "ok")))
