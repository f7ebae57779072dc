"""Answers that are written to a connection directly, past uvicorn's messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

CLOSE = (b"connection", b"close")
"""Header of an answer after which nothing comes on its connection."""

BODY_WRITER = "bough.body_writer"
"""The ASGI extension that has a :class:`ChunkWriter` for a request, as its ``writer``."""


class ChunkWriter:
    """Frames parts of an answer as chunks (RFC 9112, 7.1), to be written past ASGI's ``send``, and spares a request
    ticks of the event loop for what is known already.

    Attributes:
        connection: of the client, on which framed parts are written.
        is_open: whether chunks may be written, since the last call of :meth:`ready`; the protocol shuts it when the
            client falls behind or leaves.
        on_left: called by the protocol if the client leaves before the answer is complete.
    """

    __slots__ = ("connection", "cycle", "is_open", "on_left")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self.cycle = cycle
        self.connection = cycle.transport
        self.is_open = False
        self.on_left: Callable[[], None] | None = None

    def watch(self, on_left: Callable[[], None] | None) -> None:
        """Call ``on_left`` if the client leaves, or has left, before the answer is complete; ``None`` for nothing."""
        self.on_left = on_left
        if on_left is None:
            return
        if self.cycle.disconnected:
            on_left()
        else:  # reading rests after a large body, and who does not read does not hear of leaving
            self.cycle.flow.resume_reading()

    def respond(self, send: Send, status: int, headers: Headers, body: bytes) -> bool:
        """Write a whole answer and return ``True``, or return ``False`` if ``send`` has to be used: something stands
        between it and the connection, or the client does not keep up.
        """
        cycle = self.cycle
        if send != cycle.send or cycle.flow.write_paused or cycle.disconnected or cycle.response_started:
            return False
        if CLOSE in headers:
            return False  # uvicorn does what it says
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        parts = [STATUS_LINE[status], *(b"%b: %b\r\n" % header for header in headers)]
        parts.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
        if cycle.scope["method"] != "HEAD":
            parts.append(body)
        cycle.transport.write(b"".join(parts))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True

    def take_body(self, limit: int) -> bytes | None:
        """The body of the request, if all of it has come and it has at most ``limit`` bytes."""
        cycle = self.cycle
        if cycle.more_body or cycle.disconnected or len(cycle.body) > limit:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        return body

    def ready(self) -> bool:
        """Return whether chunks may be written now: the answer has begun, is not complete, and its client keeps up."""
        cycle = self.cycle
        # Nobody knows how an answer will be framed before it begins.
        self.is_open = cycle.chunked_encoding is True and not (
            cycle.flow.write_paused or cycle.disconnected or cycle.response_complete
        )
        return self.is_open

    def frame(self, part: bytes) -> bytes:
        """A chunk."""
        return b"%x\r\n%b\r\n" % (len(part), part)

    def template(self, start: bytes, end: bytes) -> tuple[bytes, int]:
        """A format of chunks that begin and end alike, which takes the length of a part and its middle, and the length
        of a part without that.
        """
        edges = (start.replace(b"%", b"%%"), end.replace(b"%", b"%%"))
        return b"%%x\r\n%b%%b%b\r\n" % edges, len(start) + len(end)
