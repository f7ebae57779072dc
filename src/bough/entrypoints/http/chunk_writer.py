"""Answers that are written to a connection directly, past uvicorn's messages."""

from __future__ import annotations

from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from bough.entrypoints.http.asgi import Headers, Send
from bough.entrypoints.http.errors import CLOSE


class ChunkWriter:
    """Frames parts of an answer as chunks (RFC 9112, 7.1), as a :class:`~bough.entrypoints.http.asgi.BodyWriter`.

    Args:
        cycle: the request and its answer.

    Attributes:
        cycle: the same.
        connection: of the client.
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
        """Call ``on_left`` if the client leaves; see :meth:`BodyWriter.watch`."""
        self.on_left = on_left
        if on_left is None:
            return
        if self.cycle.disconnected:
            on_left()
        else:  # reading rests after a large body, and who does not read does not hear of leaving
            self.cycle.flow.resume_reading()

    def respond(self, send: Send, status: int, headers: Headers, body: bytes) -> bool:
        """Write a whole answer; see :meth:`BodyWriter.respond`."""
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
        """The body, if all of it has come; see :meth:`BodyWriter.take_body`."""
        cycle = self.cycle
        if cycle.more_body or cycle.disconnected or len(cycle.body) > limit:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        return body

    def ready(self) -> bool:
        """Whether chunks may be written now."""
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
        """A chunk's format; see :meth:`BodyWriter.template`."""
        edges = (start.replace(b"%", b"%%"), end.replace(b"%", b"%%"))
        return b"%%x\r\n%b%%b%b\r\n" % edges, len(start) + len(end)
