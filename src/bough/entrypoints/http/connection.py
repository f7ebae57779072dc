"""One client's connection: uvicorn's protocol, with bounds for what a client sends and for how long it may take."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections import deque
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.bodies import MIN_PROGRESS
from bough.entrypoints.http.chunk_writer import BODY_WRITER, ChunkWriter, Headers
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

MAX_DISCARDED_BYTES = 64 * 1024 * 1024
"""What a client may go on sending after its body was refused, so that it comes to read the answer; then its
connection is cut."""

MAX_PIPELINED = 64
"""Requests of a connection that wait behind the one that is being answered, from which on no more are read."""

SLICE_BYTES = 1024
"""Bytes that the parser, which does not tell where a request ends, is shown at a time, but for bodies whose length is
known: as many requests as fit into them may wait besides :data:`MAX_PIPELINED`."""

logger = logging.getLogger(__name__)

_CALLBACKS = ("on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete")


class BoundedConfig(uvicorn.Config):
    """uvicorn's configuration, with the server's options, which have bounds for its protocol."""

    def __init__(self, app: Any, args: ServerArgs, tls: ssl.SSLContext | None, **options: Any) -> None:
        super().__init__(app, http=BoundedHttpProtocol, **options)
        self.args = args
        self._tls = tls

    def load(self) -> None:
        """Make ready what connections need."""
        super().load()
        self.ssl = self._tls


class BoundedFlow(FlowControl):
    """Resumes reading only while there is room for what may come.

    Args:
        pipeline: the requests that wait, of uvicorn's protocol.
    """

    def __init__(self, transport: asyncio.Transport, pipeline: deque[tuple[RequestResponseCycle, Any]]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Read on, if there is room."""
        if self.read_paused and self.has_room():
            super().resume_reading()

    def has_room(self) -> bool:
        """Return whether what waits behind the request that is being answered leaves room for more.

        If it does not, that request is complete, and reading goes on when it is answered; until then a client that
        leaves is not noticed.
        """
        if len(self._pipeline) >= MAX_PIPELINED:
            return False
        waiting = sum(len(cycle.body) + _size_of_head(cycle.scope) for cycle, _ in self._pipeline)
        return waiting <= HIGH_WATER_LIMIT


def _size_of_head(scope: Mapping[str, Any]) -> int:
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    return len(scope["raw_path"]) + len(scope["query_string"]) + headers


class _Violation(HttpParserError):
    """Ends the parser's work with the error that the client gets."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.error = RequestFailed(message, status_code=status, code=code)


class _Timer:
    """Calls back some time after it was started last, unless it is stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        """True if a call is due."""
        return self._handle is not None

    def start(self, seconds: float, callback: Callable[..., None], *args: Any) -> None:
        """Call back in so many seconds."""
        self.stop()
        self._handle = self._loop.call_later(seconds, self._call, callback, *args)

    def stop(self) -> None:
        """Call nothing."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _call(self, callback: Callable[..., None], *args: Any) -> None:
        self._handle = None
        callback(*args)


class _Reading(_Timer):
    """Cuts a connection whose client reads nothing of what waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        super().__init__(loop)
        self._transport = transport

    def watch(self) -> None:
        """Look after a while whether less waits than now."""
        self.start(WRITE_TIMEOUT, self._check, self._transport.get_write_buffer_size())

    def watch_end(self) -> None:
        """Watch a connection that ends with what waits, if anything does."""
        if not self.is_running and self._transport.get_write_buffer_size() > 0:
            self.watch()

    def _check(self, unread: int) -> None:
        if self._transport.get_write_buffer_size() < unread:
            self.watch()
        else:
            self._transport.abort()


class _Head:
    """Counts the bytes of a head for which the parser calls back, and those that it collects without calling back.

    Args:
        limit: most bytes of either.

    Attributes:
        is_open: what comes belongs to a head, and not to a body.
        has_begun: some of that has come.
        unheard: bytes that the parser was shown since it called back last.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heard = 0
        self.is_open = True
        self.has_begun = False
        self.unheard = 0

    def begin(self) -> None:
        """The first byte has come."""
        self.has_begun = True
        self._heard = self.unheard = 0

    def hear(self, num_bytes: int) -> None:
        """Count so many bytes of it.

        Raises:
            _Violation: if they are too many.
        """
        self.unheard = 0
        self._heard += num_bytes
        self.check()

    def check(self) -> None:
        """Raise :class:`_Violation` if the parser was shown too much of what is no body."""
        if self._heard + self.unheard > self._limit:
            what = "request line and headers are" if self.is_open else "what is not data in a body in chunks is"
            message = f"{what} larger than {self._limit} bytes (--max-header-size)"
            raise _Violation(message, 431, "headers_too_large")

    def end(self, *, is_open: bool) -> None:
        """The head is complete, or with ``is_open`` its request is, and the next one may begin."""
        self.is_open = is_open
        self.has_begun = False
        self._heard = self.unheard = 0


class BoundedHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, which by itself would collect headers of any size, and wait for its client for ever."""

    flow: BoundedFlow

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert isinstance(self.config, BoundedConfig), "made by make_server"
        self._args = self.config.args
        self._farewell: RequestFailed | None = None
        """Error that is still to be sent for what came behind the requests that are being answered; then the connection
        is closed."""
        self._unanswered: deque[ChunkWriter] = deque()
        """Of the request that is being answered, and of those that have come behind it."""
        self._received = b""
        """What was read last, as long as not all of it was shown to the parser."""
        self._num_shown = 0
        """Bytes of it that were."""
        self._head = _Head(self._args.max_header_size)
        self._body_left = 0
        """What is to come of a body whose length was said; 0 if it was not."""
        self._discarded_bytes = 0
        self._body_is_foreign = False
        """Whether the parser takes the body that is to come for another protocol, to which the client would change."""
        self._head_timer = _Timer(self.loop)

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self.flow = BoundedFlow(transport, self.pipeline)
        self._reading = _Reading(self.loop, transport)
        self._head_timer.start(HEAD_TIMEOUT, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has gone."""
        self._head_timer.stop()
        self._reading.stop()
        for writer in self._unanswered:
            writer.is_open = False
            cycle = writer.cycle
            if not cycle.response_complete:
                cycle.disconnected = True  # uvicorn tells only the last one
                cycle.message_event.set()
                if writer.on_left is not None:
                    writer.on_left()
        super().connection_lost(exc)
        # After a reset, uvicorn would wait for the client's next request and keep all of this for that long.
        self._unset_keepalive_if_required()

    def eof_received(self) -> None:
        """Take a client that sends no more for one that has left: most that have look the same."""
        self._reading.watch_end()

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
        if not self.flow.has_room() and not self.transport.is_closing():
            self.flow.pause_reading()

    def _parse(self) -> None:
        """Show the parser what was received, as far as there is room for requests."""
        data, head = self._received, self._head
        while self._num_shown < len(data) and self._farewell is None and not self.transport.is_closing():
            if len(self.pipeline) >= MAX_PIPELINED:
                return
            piece = data[self._num_shown : self._num_shown + (self._body_left or SLICE_BYTES)]
            self._num_shown += len(piece)
            if not head.is_open and not _is_answering(self.cycle):
                self._discard(len(piece))
            head.unheard += len(piece)
            try:
                try:
                    self.parser.feed_data(piece)
                except HttpParserUpgrade as upgrade:
                    # The parser has left off behind the head that asks for another protocol, as Java's client does. A
                    # server may ignore that (RFC 9110, 7.8).
                    self._num_shown += upgrade.args[0] - len(piece)
                    if self._body_is_foreign:
                        self._body_is_foreign = False
                        self.parser = _parser_of_body(self)
                head.check()
            except HttpParserError as error:
                self.send_400_response(str(error))
            # Mostly a head comes as one piece, and there is nothing to wait for.
            if head.is_open and head.has_begun and not self._head_timer.is_running and not _is_answering(self.cycle):
                self._head_timer.start(HEAD_TIMEOUT, self._end)
        self._received, self._num_shown = b"", 0

    def _discard(self, num_bytes: int) -> None:
        """Count more of a body whose request is answered; much of it gives the connection more time."""
        progress = self._discarded_bytes // MIN_PROGRESS
        self._discarded_bytes += num_bytes
        if self._discarded_bytes > MAX_DISCARDED_BYTES:
            self.transport.abort()
        elif self.timeout_keep_alive_task is not None and self._discarded_bytes // MIN_PROGRESS > progress:
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        """A request was answered; the next one begins, and leaves its slot to another."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._reading.watch_end()
        elif self._farewell is not None and not _is_answering(self.cycle):
            self._refuse(self._farewell)
        self._parse()

    def on_message_begin(self) -> None:
        """The first byte of a request has come."""
        super().on_message_begin()
        self._unset_keepalive_if_required()
        self._head.begin()

    def on_url(self, url: bytes) -> None:
        """A part of the URL has come."""
        super().on_url(url)
        self._head.hear(len(url))
        limit = self._args.max_url_length
        if len(self.url) > limit:
            raise _Violation(f"the URL is longer than {limit} bytes (--max-url-length)", 400, "url_too_long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header is complete."""
        limit = self._args.max_headers
        if len(self.headers) >= limit:
            raise _Violation(f"there are more than {limit} headers (--max-headers)", 431, "too_many_headers")
        self._head.hear(len(name) + len(value) + len(b": \r\n"))
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or is beyond a bound; called where the parser has raised."""
        raised = sys.exc_info()[1]
        violation = raised if isinstance(raised, _Violation) else getattr(raised, "__context__", None)
        error = RequestFailed(f"this is not valid HTTP/1.1: {raised}", status_code=400, code="invalid_http")
        if isinstance(violation, _Violation):
            error = violation.error
        host, port = self.client or ("a client", 0)
        logger.warning("Refused what %s port %d sent: %s", host, port, error.message)
        self._refuse(error)

    def on_headers_complete(self) -> None:
        """The head of a request is complete."""
        self._head.hear(len(self.parser.get_method()) + len(b"  HTTP/1.1\r\n\r\n"))
        self._unset_keepalive_if_required()
        self._body_left = _announced_length(self.headers, self.parser.get_http_version())
        self._head.end(is_open=False)
        self._body_is_foreign = self.parser.should_upgrade() and bool(_framing(self.headers))
        self._head_timer.stop()
        super().on_headers_complete()
        writer = ChunkWriter(self.cycle)
        self.cycle.scope["extensions"] = {BODY_WRITER: {"writer": writer}}
        while self._unanswered and self._unanswered[0].cycle.response_complete:  # they are answered in order
            self._unanswered.popleft()
        self._unanswered.append(writer)

    def on_body(self, body: bytes) -> None:
        """A piece of a body has come."""
        super().on_body(body)
        if self._unanswered and self._unanswered[-1].on_left is not None:
            # The handler waits for the client to leave and does not read this; without reading, leaving goes unnoticed.
            self.cycle.body.clear()
            self.flow.resume_reading()
        self._head.unheard = 0
        self._body_left = max(self._body_left - len(body), 0)

    def on_message_complete(self) -> None:
        """A request is complete; what follows belongs to the next."""
        if self._body_is_foreign:
            return
        super().on_message_complete()
        self._head.end(is_open=True)
        self._body_left = self._discarded_bytes = 0

    def pause_writing(self) -> None:
        """The client does not read as fast as is written."""
        super().pause_writing()
        for writer in self._unanswered:
            writer.is_open = False
        self._reading.watch()

    def resume_writing(self) -> None:
        """The client has read enough to go on."""
        self._reading.stop()
        super().resume_writing()
        if self.transport.is_closing():
            self._reading.watch_end()

    def timeout_keep_alive_handler(self) -> None:
        """The connection is idle; if its client has not even read the last answer, there is no waiting for that."""
        if self.transport.get_write_buffer_size() > 0:
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def _refuse(self, error: RequestFailed) -> None:
        """Say what is wrong, unless that would stand in the middle of the same request's answer; then close the
        connection. Requests that have come before are answered first.
        """
        cycle = self.cycle
        awaits_body = _is_answering(cycle) and cycle.more_body and not cycle.response_started
        if awaits_body:
            cycle.disconnected = True  # it must not answer as well
            if self.pipeline:
                self.pipeline.popleft()
                self._unanswered.pop()
                self.cycle = cycle = self._unanswered[-1].cycle
                awaits_body = False
        if _is_answering(cycle) and not cycle.more_body:
            self._farewell = error
            self._head_timer.stop()
            self._received, self._num_shown = b"", 0
            return
        if awaits_body or not _is_answering(cycle):
            body = OpenAIErrors().body(error)
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                % (error.status_code, HTTPStatus(error.status_code).phrase.encode(), len(body), body)
            )
        self._end()

    def _end(self) -> None:
        """Close the connection behind what waits for its client, which has to read it."""
        self.transport.close()
        self._reading.watch_end()


def _is_answering(cycle: RequestResponseCycle | None) -> bool:
    return cycle is not None and not cycle.response_complete


def _framing(headers: Headers) -> Headers:
    """The headers that say what body comes; none if none does."""
    return [
        (name, value)
        for name, value in headers
        if name == b"transfer-encoding" or (name == b"content-length" and int(value))
    ]


def _parser_of_body(protocol: HttpToolsProtocol) -> HttpRequestParser:
    """A parser that has seen a head which is followed by the same body, and calls back from there on.

    Raises:
        HttpParserError: if no body can follow such a head.
    """
    is_there = False

    def later(callback: Callable[..., None]) -> Callable[..., None]:
        def call(*args: bytes) -> None:
            if is_there:
                callback(*args)

        return call

    parser = HttpRequestParser(SimpleNamespace(**{name: later(getattr(protocol, name)) for name in _CALLBACKS}))
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
    framing = b"".join(b"%b: %b\r\n" % header for header in _framing(protocol.headers))
    parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
    is_there = True
    return parser


def _announced_length(headers: Headers, version: str) -> int:
    """Bytes of the body that comes behind a head; 0 if there is none, or its end is marked otherwise.

    Raises:
        _Violation: if another server could take the body to end elsewhere, or the request to be for another host
            (RFC 9112, 3.2 and 6.1), which the parser lets pass.
    """
    length = num_hosts = 0
    encoding: bytes | None = None
    for name, value in headers:
        if name == b"host":
            num_hosts += 1
        elif name == b"content-length":
            length = int(value)  # the parser has checked it
        elif name == b"transfer-encoding":
            encoding = value.lower() if encoding is None else b""
    if num_hosts != 1 and (num_hosts or version != "1.0"):
        raise _Violation(f"there must be one Host header, not {num_hosts}", 400, "invalid_http")
    if encoding is None:
        return length
    if encoding != b"chunked" or version == "1.0":
        raise _Violation("the Transfer-Encoding must be chunked and nothing else", 400, "invalid_http")
    return 0
