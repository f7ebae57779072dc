"""``/open_session`` and ``/close_session``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bough.entrypoints.http.asgi import TEXT_TYPE, Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.route import NATIVE, Handlers, Route
from bough.managers.sessions import SessionId


class OpenSessionRequest(msgspec.Struct, kw_only=True):
    """Body of ``/open_session``."""

    capacity_of_str_len: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)],
        Meta(description="Most tokens that the session may hold; 0 for as many as the server allows."),
    ]
    session_id: Annotated[SessionId | None, Meta(description="Name of the session; made up if absent.")] = None
    streaming: Annotated[
        bool,
        Meta(
            description="One conversation without branches: each request goes on from the one before, one at a time, "
            "and only `id` is said in `session_params`."
        ),
    ] = False
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="Seconds without a request after which the session is closed; `--session-timeout` if absent, "
            "which is also the most."
        ),
    ] = None


class CloseSessionRequest(msgspec.Struct, kw_only=True):
    """Body of ``/close_session``."""

    session_id: Annotated[SessionId, Meta(description="The session; nothing happens if there is none of that name.")]


OPEN_SESSION = BodySpec(OpenSessionRequest, is_strict=True, example={"capacity_of_str_len": 1000})
CLOSE_SESSION = BodySpec(CloseSessionRequest, is_strict=True, example={"session_id": "garden"})


class SessionHandlers(Handlers):
    """Opens and closes sessions."""

    @Route("GET,POST /open_session", NATIVE, OPEN_SESSION, str)
    async def open(self, call: Call) -> Response:
        """Begin a session, of which requests name only what is new."""
        body = await call.parse(OPEN_SESSION)
        session_id = self._manager.sessions.open(
            body.capacity_of_str_len, body.session_id, is_linear=body.streaming, timeout=body.timeout
        )
        return Response(msgspec.json.encode(session_id))

    @Route("GET,POST /close_session", NATIVE, CLOSE_SESSION, is_free=True)
    async def close(self, call: Call) -> Response:
        """End a session and whatever runs in it."""
        body = await call.parse(CLOSE_SESSION)
        self._manager.sessions.close(body.session_id)
        return Response(content_type=TEXT_TYPE)
