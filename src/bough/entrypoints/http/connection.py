"""One client's connection: uvicorn's protocol, with bounds for what a client sends and for how long it may take."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bough.entrypoints.http.asgi import BODY_WRITER, Headers
from bough.entrypoints.http.bodies import MIN_PROGRESS
from bough.entrypoints.http.chunk_writer import ChunkWriter
from bough.entrypoints.http.errors import OpenAIErrors
from bough.errors import RequestFailed

HEAD_TIMEOUT = 30.0
"""Seconds that a client may take to send request line and headers, from connecting or from the first byte on; with
HTTPS, from the handshake on."""

WRITE_TIMEOUT = 60.0
"""Seconds that a client may read nothing at all while an answer, or the end of one on a connection that is being
closed, waits for it; then its connection is cut. With HTTPS the socket's own buffer is out of sight, 64 KiB as event
loops have it: who reads less than that seems to read nothing.
"""

PROBE_SECONDS = 0.1
"""How soon, and then how often, a client that sends no more is looked at, whether it still waits for its answer."""

PROBES_APART = 64
"""Looks at such a client for each of which something is written to it; sooner at first, after 1, 2, 4, 8 … of them."""

MAX_DISCARDED_BYTES = 64 * 1024 * 1024
"""What a client may go on sending after its body was refused, so that it comes to read the answer; then its
connection is cut."""

MAX_PIPELINED = 64
"""Requests of a connection that wait behind the one that is being answered; what comes behind them is read when there
is room. Who pipelines sends a few, and so many take a few milliseconds to parse and a few hundred KiB to keep."""

logger = logging.getLogger(__name__)

_END_OF_HEAD = b"\r\n\r\n"
_NO_NEWLINE = re.compile(rb"[^\r\n]")
_SHORTEST_HEAD = len(b"GET / HTTP/1.1\r\n\r\n")
_CALLBACKS = ("on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete")


@dataclass(frozen=True)
class HeadBounds:
    """How large the part of a request before its body may be.

    Attributes:
        head_bytes: request line and headers together.
        num_headers: how many headers.
        url_bytes: path and query together.
    """

    head_bytes: int
    num_headers: int
    url_bytes: int


def _size_of_head(scope: Mapping[str, Any]) -> int:
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    return len(scope["raw_path"]) + len(scope["query_string"]) + headers


def _is_news(record: logging.LogRecord) -> bool:
    return record.msg != "Invalid HTTP request received."


class BoundedConfig(uvicorn.Config):
    """uvicorn's configuration, with bounds for its protocol."""

    def __init__(self, app: Any, bounds: HeadBounds, tls: ssl.SSLContext | None, **options: Any) -> None:
        super().__init__(app, http=BoundedHttpProtocol, **options)
        # The protocol says whom it refuses, which uvicorn does not.
        logging.getLogger("uvicorn.error").addFilter(_is_news)
        self.bounds = bounds
        self._tls = tls

    @property
    def is_ssl(self) -> bool:
        """Whether connections are encrypted."""
        return self._tls is not None

    def load(self) -> None:
        """Make ready what connections need."""
        tls, self._tls = self._tls, None  # uvicorn would make a context of its own
        super().load()
        self._tls = self.ssl = tls


class BoundedFlow(FlowControl):
    """Reads on, whoever asks for that, only while there is room for what may come.

    Args:
        transport: of the connection.
        has_room: whether there is.
    """

    def __init__(self, transport: asyncio.Transport, has_room: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._has_room = has_room

    def resume_reading(self) -> None:
        """Read on, if there is room."""
        if self.read_paused and self._has_room():
            super().resume_reading()


class BoundedHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, which by itself would collect headers of any size, and wait for its client for ever."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert isinstance(self.config, BoundedConfig), "made by make_server"
        self._bounds = self.config.bounds
        self._violation: RequestFailed | None = None
        self._farewell: RequestFailed | None = None
        """Error that is still to be sent for what came behind the requests that are being answered; then the connection
        is closed."""
        self._unanswered: deque[ChunkWriter] = deque()
        """Of the request that is being answered, and of those that have come behind it."""
        self._received = b""
        """What was read last, as long as not all of it was shown to the parser."""
        self._num_shown = 0
        """Bytes of it that were."""
        self._piece_begin = 0
        """Where in it the piece begins that was shown last."""
        self._in_head = True
        self._head_begun = False
        self._head_bytes = 0
        """Shown to the parser since the head began, or since the last piece of a body."""
        self._body_left = 0
        """What is to come of a body whose length was said; 0 if it was not."""
        self._last_bytes = b""
        """The last ones that the parser was shown, one less than end a head; none if it was shown just that end."""
        self._discarded_bytes = 0
        self._body_is_foreign = False
        """Whether the parser takes the body that is to come for another protocol, to which the client would change."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._probe_timer: asyncio.TimerHandle | None = None
        self._num_looks = 0

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self.flow = BoundedFlow(transport, self._has_room)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has gone."""
        self._stop_head_timer()
        self._stop_write_timer()
        if self._probe_timer is not None:
            self._probe_timer.cancel()
        self._shut_writers()
        for writer in self._unanswered:
            cycle = writer.cycle
            if not cycle.response_complete:
                cycle.disconnected = True  # uvicorn tells only the last one
                cycle.message_event.set()
                if writer.on_left is not None:
                    writer.on_left()
        super().connection_lost(exc)
        # After a reset, uvicorn would wait for the client's next request and keep all of this for that long.
        self._unset_keepalive_if_required()

    def eof_received(self) -> bool:  # type: ignore[override]  # the event loop asks, uvicorn never says
        """The client sends no more: it has left, or has closed its side and waits for the answer.

        Returns:
            Whether the connection stays open, until the request is answered.
        """
        cycle = self.cycle
        # With HTTPS there is no half of a connection, and HTTP/1.0 knows no interim answers. Within an answer nothing
        # can be written to find out; more clients leave in the middle of one than half-close there.
        if not self._is_answering:
            self._see_off()
            return False
        if self.config.is_ssl or cycle.scope["http_version"] == "1.0" or cycle.more_body or cycle.response_started:
            return False
        if self._farewell is None:
            cycle.keep_alive = False
        if self._probe_timer is None:
            self._probe_timer = self.loop.call_later(PROBE_SECONDS, self._probe)
        return True

    def _probe(self) -> None:
        """Look whether the system of the client has refused what was written; now and then write what means nothing.

        Who has left and who has closed one side send the same, and their systems acknowledge the same, probes of
        keep-alive included: only new data is refused by the one and taken by the other.
        """
        if not self._is_answering or self.transport.is_closing():
            return
        if self.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0:
            self.transport.abort()
            return
        self._num_looks += 1
        is_due = self._num_looks & (self._num_looks - 1) == 0 or self._num_looks % PROBES_APART == 0
        begun = [each.cycle for each in self._unanswered if each.cycle.response_started]
        if is_due and all(cycle.response_complete for cycle in begun):
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # RFC 9110, 15.2: any number, at any time
        self._probe_timer = self.loop.call_later(PROBE_SECONDS, self._probe)

    def data_received(self, data: bytes) -> None:
        """Bytes have come from the client."""
        if self._farewell is not None:  # read all the same, or its leaving would not be noticed
            self._discarded_bytes += len(data)
            if self._discarded_bytes > MAX_DISCARDED_BYTES:
                self.transport.abort()
            return
        rest = self._received[self._num_shown :]
        self._received, self._num_shown = rest + data if rest else data, 0
        self._parse()
        if not self._has_room() and not self.transport.is_closing():
            self.flow.pause_reading()

    def _parse(self) -> None:
        """Show the parser what was received, as far as there is room for requests."""
        data = self._received
        while self._num_shown < len(data) and self._farewell is None and not self.transport.is_closing():
            if self._in_head and not self._head_begun:
                # Some clients send newlines behind a body; they begin no request.
                first = _NO_NEWLINE.search(data, self._num_shown)
                if first is None:
                    break
                self._num_shown = first.start()
            if len(self.pipeline) >= MAX_PIPELINED:
                return
            begin = self._piece_begin = self._num_shown
            piece = data[begin : begin + self._piece_length(data, begin)]
            if not piece:
                what = "request line and headers are" if self._in_head else "what is not data in a body in chunks is"
                message = f"{what} larger than {self._bounds.head_bytes} bytes (--max-header-size)"
                self._refuse(RequestFailed(message, status_code=431, code="headers_too_large"))
                break
            patience: asyncio.TimerHandle | None = None
            if not self._in_head and self.cycle is not None and self.cycle.response_complete:
                patience = self._discard(len(piece))
                if self._discarded_bytes > MAX_DISCARDED_BYTES:
                    if patience is not None:
                        patience.cancel()
                    self.transport.abort()
                    break
            self._head_bytes += len(piece)
            tail = self._last_bytes + piece[-4:]
            self._last_bytes = b"" if tail.endswith(_END_OF_HEAD) else tail[-3:]
            self._num_shown += len(piece)
            super().data_received(piece)
            if patience is not None:
                self._go_on_waiting(patience)
            # Mostly a head comes as one piece, and there is nothing to wait for.
            if self._in_head and self._head_begun and self._head_timer is None and not self._is_answering:
                self._start_head_timer()
        self._received, self._num_shown = b"", 0

    def _discard(self, num_bytes: int) -> asyncio.TimerHandle | None:
        """More comes of a body whose request is answered.

        Returns:
            what ends the connection if little more comes, out of reach of who takes that for the next request.
        """
        progress = self._discarded_bytes // MIN_PROGRESS
        self._discarded_bytes += num_bytes
        patience, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        if patience is None or self._discarded_bytes // MIN_PROGRESS == progress:
            return patience
        patience.cancel()
        return self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _go_on_waiting(self, patience: asyncio.TimerHandle) -> None:
        """Leave ``patience``, of :meth:`_discard`, as it is unless another request has begun."""
        if self._is_answering or (self._in_head and self._head_begun):
            patience.cancel()
        else:
            self.timeout_keep_alive_task = patience

    def _piece_length(self, data: bytes, begin: int) -> int:
        """How much from ``begin`` on the parser, which does not tell where a request ends, may be shown at once.

        Such that no head begins in the middle of a piece and goes on in the next, that none is larger than allowed, and
        that there is room for all that end in the piece.

        Returns:
            bytes, maybe more than there are; 0 if what has come is too large.
        """
        if self._body_left:
            return self._body_left
        room = max(self._bounds.head_bytes - self._head_bytes, 0)
        if not self._in_head:  # the end of a body in chunks may be in it, and as many requests behind that
            room = min(room, (MAX_PIPELINED - len(self.pipeline)) * _SHORTEST_HEAD)
        # The empty line may have begun in the piece before.
        seam = (self._last_bytes + data[begin : begin + min(room, 3)]).find(_END_OF_HEAD)
        if seam >= 0:
            return seam + len(_END_OF_HEAD) - len(self._last_bytes)
        # A body in chunks ends with an empty line, too, if not with the first one.
        find = data.find if self._in_head else data.rfind
        end = find(_END_OF_HEAD, begin, begin + room)
        return room if end < 0 else end + len(_END_OF_HEAD) - begin

    def _has_room(self) -> bool:
        """Whether what waits behind the request that is being answered leaves room for more.

        If it does not, that request is complete, and reading goes on when it is answered; nobody hears before of a
        client that leaves.
        """
        if len(self.pipeline) >= MAX_PIPELINED:
            return False
        waiting = sum(len(cycle.body) + _size_of_head(cycle.scope) for cycle, _ in self.pipeline)
        return waiting <= HIGH_WATER_LIMIT

    def on_response_complete(self) -> None:
        """A request was answered; the next one begins, and leaves its place to another."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._see_off()
        elif self._farewell is not None and not self._is_answering:
            self._refuse(self._farewell)
        self._parse()

    def on_message_begin(self) -> None:
        """The first byte of a request has come."""
        super().on_message_begin()
        self._head_begun = True

    def on_url(self, url: bytes) -> None:
        """A part of the URL has come."""
        super().on_url(url)
        limit = self._bounds.url_bytes
        if len(self.url) > limit:
            raise self._violates(f"the URL is longer than {limit} bytes (--max-url-length)", 400, "url_too_long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header is complete."""
        limit = self._bounds.num_headers
        if len(self.headers) >= limit:
            raise self._violates(f"there are more than {limit} headers (--max-headers)", 431, "too_many_headers")
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def _violates(self, message: str, status: int, code: str) -> HttpParserError:
        """What makes the parser stop, after which :meth:`send_400_response` is called."""
        self._violation = RequestFailed(message, status_code=status, code=code)
        return HttpParserError(message)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or is beyond a bound; called where the parser has raised."""
        message = f"this is not valid HTTP/1.1: {sys.exc_info()[1]}"
        error = self._violation or RequestFailed(message, status_code=400, code="invalid_http")
        host, port = self.client or ("a client", 0)
        logger.warning("Refused what %s port %d sent: %s", host, port, error.message)
        self._refuse(error)

    def on_headers_complete(self) -> None:
        """The head of a request is complete."""
        self._body_left = self._announced_length()
        self._in_head = False
        self._head_bytes = 0
        self._body_is_foreign = self.parser.should_upgrade() and bool(self._framing())
        self._stop_head_timer()
        super().on_headers_complete()
        writer = ChunkWriter(self.cycle)
        self.cycle.scope["extensions"] = {BODY_WRITER: {"writer": writer}}
        while self._unanswered and self._unanswered[0].cycle.response_complete:  # they are answered in order
            self._unanswered.popleft()
        self._unanswered.append(writer)

    def _framing(self) -> Headers:
        """The headers that say what body comes; none if none does."""
        return [
            (name, value)
            for name, value in self.headers
            if name == b"transfer-encoding" or (name == b"content-length" and int(value))
        ]

    def _unsupported_upgrade_warning(self) -> None:
        """A client would rather speak another protocol, which it is up to the server to ignore (RFC 9110, 7.8).

        Called where the parser has left off behind the head that says so, in the middle of a piece perhaps.
        """
        upgrade = sys.exc_info()[1]
        assert isinstance(upgrade, HttpParserUpgrade), "called where it is caught"
        self._num_shown, self._last_bytes = self._piece_begin + upgrade.args[0], b""
        if not self._body_is_foreign:
            return
        self._body_is_foreign = False
        try:
            self.parser = self._parser_of_body()
        except HttpParserError as error:
            self.send_400_response(str(error))

    def _parser_of_body(self) -> HttpRequestParser:
        """One that has seen a head which is followed by the same body, and calls back from there on.

        Raises:
            HttpParserError: if no body can follow such a head.
        """
        is_there = False

        def later(callback: Callable[..., None]) -> Callable[..., None]:
            def call(*args: bytes) -> None:
                if is_there:
                    callback(*args)

            return call

        parser = HttpRequestParser(SimpleNamespace(**{name: later(getattr(self, name)) for name in _CALLBACKS}))
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
        framing = b"".join(b"%b: %b\r\n" % header for header in self._framing())
        parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
        is_there = True
        return parser

    def _announced_length(self) -> int:
        """Bytes of the body that comes behind a head; 0 if there is none, or its end is marked otherwise.

        Raises:
            HttpParserError: if another server could take the body to end elsewhere, or the request to be for another
                host (RFC 9112, 3.2 and 6.1), which the parser lets pass.
        """
        length = num_hosts = 0
        encoding: bytes | None = None
        for name, value in self.headers:
            if name == b"host":
                num_hosts += 1
            elif name == b"content-length":
                length = int(value)  # the parser has checked it
            elif name == b"transfer-encoding":
                encoding = value.lower() if encoding is None else b""
        if num_hosts != 1 and (num_hosts or self.parser.get_http_version() != "1.0"):
            raise self._violates(f"there must be one Host header, not {num_hosts}", 400, "invalid_http")
        if encoding is None:
            return length
        if encoding != b"chunked" or self.parser.get_http_version() == "1.0":
            raise self._violates("the Transfer-Encoding must be chunked and nothing else", 400, "invalid_http")
        return 0

    def on_body(self, body: bytes) -> None:
        """A piece of a body has come."""
        super().on_body(body)
        if self._unanswered and self._unanswered[-1].on_left is not None:
            # Who waits for the client to leave does not read this; who stops reading does not hear of leaving.
            self.cycle.body.clear()
            self.flow.resume_reading()
        self._head_bytes = 0
        self._body_left = max(self._body_left - len(body), 0)

    def on_message_complete(self) -> None:
        """A request is complete; what follows belongs to the next."""
        if self._body_is_foreign:
            return
        super().on_message_complete()
        self._in_head = True
        self._head_begun = False
        self._head_bytes = self._body_left = 0
        self._discarded_bytes = 0

    def pause_writing(self) -> None:
        """The client does not read as fast as is written."""
        super().pause_writing()
        self._shut_writers()
        self._stop_write_timer()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """The client has read enough to go on."""
        self._stop_write_timer()
        super().resume_writing()
        if self.transport.is_closing():
            self._see_off()

    def timeout_keep_alive_handler(self) -> None:
        """The connection is idle; if its client has not even read the last answer, there is no waiting for that."""
        if self.transport.get_write_buffer_size() > 0:
            self.transport.abort()
        super().timeout_keep_alive_handler()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _shut_writers(self) -> None:
        for writer in self._unanswered:
            writer.is_open = False

    def _see_off(self) -> None:
        """The connection ends with what waits for its client, who has to read it."""
        if self._write_timer is None and self.transport.get_write_buffer_size() > 0:
            self._start_write_timer()

    def _start_write_timer(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(WRITE_TIMEOUT, self._check_reader, unread)

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _check_reader(self, unread: int) -> None:
        """Cut the connection, on which nothing is written at present, if still as much waits for the client."""
        if self.transport.get_write_buffer_size() < unread:
            self._start_write_timer()
        else:
            self._write_timer = None
            self.transport.abort()

    def _refuse(self, error: RequestFailed) -> None:
        """Say what is wrong, unless that would stand in the middle of the same request's answer; then close the
        connection. Requests that have come before are answered first.
        """
        cycle = self.cycle
        awaits_body = self._is_answering and cycle.more_body and not cycle.response_started
        if awaits_body:
            cycle.disconnected = True  # it must not answer as well
            if self.pipeline:
                self.pipeline.popleft()
                self._unanswered.pop()
                self.cycle = cycle = self._unanswered[-1].cycle
                awaits_body = False
        if self._is_answering and not cycle.more_body:
            self._farewell = error
            self._stop_head_timer()
            self._received, self._num_shown = b"", 0
            return
        if awaits_body or not self._is_answering:
            body = OpenAIErrors().body(error)
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                % (error.status_code, HTTPStatus(error.status_code).phrase.encode(), len(body), body)
            )
        self.transport.close()
        self._see_off()

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT, self._head_is_late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self._in_head and not self.transport.is_closing():
            self.transport.close()
            self._see_off()
