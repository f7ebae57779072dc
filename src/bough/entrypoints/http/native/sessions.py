"""``/open_session`` and ``/close_session``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bough.entrypoints.http.asgi import TEXT_TYPE, Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.managers.sessions import SessionId
from bough.managers.tokenizer_manager import TokenizerManager


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


OPEN_SESSION = BodySpec(OpenSessionRequest, is_strict=True)
CLOSE_SESSION = BodySpec(CloseSessionRequest, is_strict=True)


class SessionHandlers:
    """Opens and closes sessions.

    Args:
        manager: keeps them.
    """

    def __init__(self, manager: TokenizerManager) -> None:
        self._sessions = manager.sessions

    async def open(self, call: Call) -> Response:
        """``POST /open_session``: the id of a new session, as a JSON string."""
        body = await call.parse(OPEN_SESSION)
        session_id = self._sessions.open(
            body.capacity_of_str_len, body.session_id, is_linear=body.streaming, timeout=body.timeout
        )
        return Response(msgspec.json.encode(session_id))

    async def close(self, call: Call) -> Response:
        """``POST /close_session``: forget a session and abort what runs in it."""
        body = await call.parse(CLOSE_SESSION)
        self._sessions.close(body.session_id)
        return Response(content_type=TEXT_TYPE)
