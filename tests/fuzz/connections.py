"""What clients send on connections, in any pieces, at any time: a server without sockets, whose clock jumps."""

from __future__ import annotations

import asyncio
import re
import selectors
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import replace
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.server import ServerState

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.access import Access, Gate
from bough.entrypoints.http.app import Application, _render_routing_error
from bough.entrypoints.http.asgi import Call, EventStream, Front, Response
from bough.entrypoints.http.bodies import BodyIntake
from bough.entrypoints.http.connection import MAX_PIPELINED, SLICE_BYTES, BoundedConfig, BoundedHttpProtocol
from bough.entrypoints.http.cors import CrossOrigin
from bough.entrypoints.http.errors import OpenAIErrors
from bough.entrypoints.http.openai.protocol import COMPLETIONS
from bough.entrypoints.http.route import Api, Route
from bough.entrypoints.http.server import make_server
from bough.errors import RequestFailed

LIMITS: dict[str, Any] = {"max_header_size": 1024, "max_headers": 8, "max_url_length": 256}
MAX_BODY = 200_000
READ_BYTES = 64 * 1024
"""Most that an event loop is taken to read at once."""

MAX_SENT = 2**21
"""Bytes that all clients send together; what they repeat is cut off there."""

MOST_WAITING = MAX_PIPELINED + SLICE_BYTES // len(b"GET / HTTP/1.1\r\n\r\n")
HELD = 2 * READ_BYTES + 2 * HIGH_WATER_LIMIT + (MOST_WAITING + 2) * LIMITS["max_header_size"]
"""What a connection may keep in bytes: a piece that it reads and one before that, the bodies of what is answered and of
what waits, and the heads of those."""

PATIENCE = 400.0
"""Seconds after which every connection is closed on which a client does nothing more."""

TURNS = 12
"""Of the event loop, after which what can be answered at once is answered."""


class _Selector(selectors.SelectSelector):
    """Waits for nothing: time has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits for something that nobody will do"
        self.now += max(timeout, 0)
        return []


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop on which waiting takes no time."""

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


class _Socket:
    """What of a socket is asked for."""

    def getpeername(self) -> tuple[str, int]:
        return "127.0.0.1", 1024

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 80

    def getsockopt(self, level: int, option: int) -> int:
        return 0


class Wire(asyncio.Transport):
    """A connection as a protocol of the server sees it; its client reads all, or nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_readable: Callable[[], None]) -> None:
        super().__init__({"socket": _Socket(), "peername": ("127.0.0.1", 1024), "sockname": ("127.0.0.1", 80)})
        self.loop = loop
        self.protocol: asyncio.Protocol | None = None
        self.arrived = bytearray()
        """What the client has read."""
        self.unread = bytearray()
        self.client_reads = True
        self.wants_data = True
        self.closing = False
        self.was_cut = False
        """Whether what was unread is lost."""
        self.is_lost = False
        self._is_behind = False
        self._on_readable = on_readable

    def write(self, data: Any) -> None:
        if self.closing and not self.unread:  # until then transports take more
            return
        self.unread += data
        if self.client_reads:
            self.read()
        elif len(self.unread) > HIGH_WATER_LIMIT and not self._is_behind:
            self._is_behind = True
            assert self.protocol is not None
            self.protocol.pause_writing()

    def read(self) -> None:
        """The client reads all that there is."""
        self.arrived += self.unread
        self.unread.clear()
        if self._is_behind:
            self._is_behind = False
            assert self.protocol is not None
            self.protocol.resume_writing()
        if self.closing:
            self._lose(None)

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            if not self.unread:
                self._lose(None)

    def abort(self) -> None:
        self.break_off(None)

    def break_off(self, error: Exception | None) -> None:
        """The connection is no more, from one side or the other."""
        self.was_cut = self.was_cut or bool(self.unread) or error is not None
        self.closing = True
        self.unread.clear()
        self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        if not self.is_lost:
            self.is_lost = True
            assert self.protocol is not None
            self.loop.call_soon(self.protocol.connection_lost, error)

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return len(self.unread)

    def pause_reading(self) -> None:
        self.wants_data = False

    def resume_reading(self) -> None:
        self.wants_data = True
        self.loop.call_soon(self._on_readable)


class _Protocol(BoundedHttpProtocol):
    """Lets nothing pass for a client's mistake that is one of ours."""

    def send_400_response(self, msg: str) -> None:
        error = sys.exc_info()[1]
        cause = None if error is None else error.__context__
        # Bytes that are no ASCII in a path are found out by decoding it, and so are URLs that have none.
        expected = (HttpParserError, HttpParserUpgrade, UnicodeDecodeError, AttributeError)
        is_decoding = not isinstance(cause, AttributeError) or cause.name == "decode"
        assert cause is None or (isinstance(cause, expected) and is_decoding), repr(cause)
        super().send_400_response(msg)


class Client:
    """One connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, state: ServerState) -> None:
        self.wire = Wire(loop, self._deliver)
        self.protocol = _Protocol(config=_CONFIG, server_state=state, app_state={"client": self}, _loop=loop)
        self.methods: list[str] = []
        """Of the requests that the application was given, in order."""
        self.has_left = False
        self._to_send: deque[bytes] = deque()
        self.wire.protocol = self.protocol
        self.protocol.connection_made(self.wire)

    def send(self, data: bytes) -> None:
        if not self.has_left:
            self._to_send += [data[at : at + READ_BYTES] for at in range(0, len(data), READ_BYTES)]
            self._deliver()

    def _deliver(self) -> None:
        wire = self.wire
        while self._to_send and wire.wants_data and not wire.closing:
            self.protocol.data_received(self._to_send.popleft())
            self._check_held()

    def end(self) -> None:
        """Close the side that sends; who reads no data does not hear of that."""
        if not self.has_left and not self._to_send and self.wire.wants_data and not self.wire.closing:
            self.has_left = True
            if not self.protocol.eof_received():
                self.wire.close()

    def leave(self) -> None:
        """Reset the connection."""
        self.has_left = True
        self.wire.break_off(ConnectionResetError())

    def _check_held(self) -> None:
        """Little is kept of what a client sends."""
        held = self.protocol
        assert len(held.pipeline) <= MOST_WAITING
        cycles = [cycle for cycle, _ in held.pipeline]
        if held.cycle is not None and held.cycle not in cycles:
            cycles.append(held.cycle)
        heads = [cycle.scope["headers"] for cycle in cycles]
        assert all(len(head) <= LIMITS["max_headers"] for head in heads)
        kept = sum(len(name) + len(value) for head in heads for name, value in head)
        kept += sum(len(cycle.body) + len(cycle.scope["raw_path"]) for cycle in cycles) + len(held._received)
        assert kept <= HELD, f"{kept} bytes are kept"

    def check_settled(self) -> None:
        """What came as a whole was answered, if the connection is open and its client reads."""
        wire, protocol = self.wire, self.protocol
        if wire.closing or not wire.client_reads:
            return
        assert protocol._num_shown == len(protocol._received), "all that has come was looked at"
        cycle = protocol.cycle
        if protocol.cycle is not None and not protocol.cycle.response_complete:
            first = next(each.cycle for each in protocol._unanswered if not each.cycle.response_complete)
            assert (first, cycle.more_body) == (cycle, True), "a complete request was not answered"
        else:
            waits = bool(protocol.pipeline) or bool(self._to_send) or not wire.wants_data
            assert not waits, "a client waits for nothing"
            assert len(_answers(bytes(wire.arrived), self.methods, may_be_cut=False)) == len(self.methods)

    def check_answers(self) -> list[int]:
        """What has come back is HTTP; the statuses."""
        may_be_cut = self.has_left or self.wire.closing or not self.wire.client_reads
        statuses = _answers(bytes(self.wire.arrived), self.methods, may_be_cut=may_be_cut)
        assert not {500, 503} & set(statuses), statuses
        return statuses


_HEAD = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) [A-Za-z\-' ]+\r\n((?:[a-z0-9\-]+: [\x20-\x7e\x80-\xff\t]*\r\n)*)\r\n")
_HEADER = re.compile(rb"([a-z0-9\-]+): (.*)\r\n")
_CHUNK = re.compile(rb"([0-9a-f]+)\r\n")


def _answers(data: bytes, methods: list[str], *, may_be_cut: bool) -> list[int]:
    """The statuses of answers, one behind the other.

    Args:
        data: what a client has read.
        methods: of its requests; a last answer may be about what is no request.
        may_be_cut: whether the last answer may lack its end.
    """
    statuses: list[int] = []
    at = 0
    while at < len(data):
        head = _HEAD.match(data, at)
        if head is None:
            is_cut = may_be_cut and b"\r\n\r\n" not in data[at:]
            assert is_cut, f"no answer: {data[at : at + 80]!r}"
            return statuses
        status, at = int(head[1]), head.end()
        if status < 200:
            assert not head[2], "an interim answer says nothing"
            continue
        headers = [(name, value) for name, value in _HEADER.findall(head[2])]
        lengths = [value for name, value in headers if name == b"content-length"]
        codings = [value for name, value in headers if name == b"transfer-encoding"]
        assert len(lengths) + len(codings) <= 1, headers
        method = methods[len(statuses)] if len(statuses) < len(methods) else ""
        statuses.append(status)
        if method == "HEAD" or status in (204, 304):
            continue
        assert lengths or codings, headers
        end = at + int(lengths[0]) if lengths else _end_of_chunks(data, at)
        if end is None or end > len(data):
            assert may_be_cut, "the end of an answer is missing"
            return statuses
        at = end
        assert at == len(data) or (b"connection", b"close") not in headers, "it has said that it would close"
    assert len(statuses) <= len(methods) + 1, "an answer is to a request, or to what is none"
    return statuses


def _end_of_chunks(data: bytes, at: int) -> int | None:
    """Where a body in chunks ends; ``None`` if it does not."""
    while (size := _CHUNK.match(data, at)) is not None:
        at = size.end() + int(size[1], 16)
        if at + 2 > len(data):
            return None
        assert data[at : at + 2] == b"\r\n", "a chunk ends with a newline"
        at += 2
        if int(size[1], 16) == 0:
            return at
    is_cut = len(data) - at < 10 and b"\n" not in data[at:]
    assert is_cut, f"no chunk: {data[at : at + 80]!r}"
    return None


# --- the application ------------------------------------------------------------------------------------------------

ANSWER = b'{"answer":42}'
_BIG = bytes(3 * HIGH_WATER_LIMIT)


async def _small(call: Call) -> Response:
    return Response(ANSWER)


async def _big(call: Call) -> Response:
    return Response(_BIG)


async def _echo(call: Call) -> Response:
    body = call.take_body()
    assert isinstance(body, bytes)
    assert len(body) <= MAX_BODY
    return Response(body)


async def _stream(call: Call) -> EventStream:
    return EventStream(_events(call))


async def _broken(call: Call) -> EventStream:
    return EventStream(_events(call, fails=True))


async def _events(call: Call, *, fails: bool = False) -> AsyncGenerator[bytes, None]:
    """Events as the streams of outputs write them: past the task while that is possible."""
    writer = call.writer
    assert writer is not None
    for number in range(4):
        event = b"data: %d\n\n" % number
        if number and writer.ready():
            writer.connection.write(writer.frame(event))
        else:
            yield event
        await asyncio.sleep(1)
    if fails:
        raise RequestFailed("out of luck", status_code=500)
    yield _BIG


_API = Api("fuzzed", OpenAIErrors())
_ROUTES = {
    Route("GET /", _API, access=Access.OPEN): _small,
    Route("GET /big", _API): _big,
    Route("POST /flush", _API, access=Access.CONTROL): _small,
    Route("POST /echo", _API, COMPLETIONS): _echo,
    Route("POST /stream", _API, COMPLETIONS): _stream,
    Route("POST /broken", replace(_API, needs_json=True), COMPLETIONS): _broken,
}


def _make_config() -> tuple[BoundedConfig, BodyIntake, list[BaseException]]:
    """The server's configuration, with an application that remembers what was asked and what it has failed at."""
    args = ServerArgs(model_path="none", cors_allow_origins="http://a.example", **LIMITS)
    intake, gate = BodyIntake(MAX_BODY, MAX_BODY // 2), Gate(args)
    app = Application(Front(intake, gate), CrossOrigin(args))
    for route, handler in _ROUTES.items():
        app.answer(route, handler)
    app.add_exception_handler(HTTPException, _render_routing_error)
    failures: list[BaseException] = []

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        scope["state"]["client"].methods.append(scope["method"])
        try:
            await app(scope, receive, send)
        except Exception as error:
            failures.append(error)
            raise

    config = make_server(watched, args, None).config
    assert isinstance(config, BoundedConfig)
    config.load()
    return config, intake, failures


_CONFIG, _INTAKE, _FAILURES = _make_config()

# --- the script -----------------------------------------------------------------------------------------------------

ESCAPE = 0xFF
"""The byte behind it says what happens; all others are sent."""

_MAX_CLIENTS = 4


def connections(data: bytes) -> None:
    """Whatever clients send is answered in HTTP, or they are cut off; little of it is kept; the next one is served."""
    loop = JumpingLoop()
    _FAILURES.clear()
    loop.set_exception_handler(lambda _, context: _FAILURES.append(context.get("exception") or AssertionError(context)))
    try:
        loop.run_until_complete(_play(data))
    finally:
        loop.close()
    for failure in _FAILURES:
        raise failure


async def _play(data: bytes) -> None:
    loop = asyncio.get_running_loop()
    state = ServerState()
    clients = [Client(loop, state)]
    await _Script(data, state, clients).run()
    before = -1
    while (told := sum(len(each.wire.arrived) + len(each.wire.unread) for each in clients)) != before:
        before = told
        await asyncio.sleep(10)
    for client in clients:
        client.check_settled()
        client.check_answers()
    await asyncio.sleep(PATIENCE)
    for client in clients:
        assert client.wire.is_lost, "a client that does nothing more keeps its connection"
        client.check_answers()
    last = Client(loop, state)
    last.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await _turns()
    assert last.check_answers() == [200], "the next client is served"
    assert last.wire.arrived.endswith(ANSWER)
    last.leave()
    await _turns()
    assert not [*state.tasks, *state.connections], "nothing is left"
    assert _INTAKE.pending_bytes == 0
    assert not _INTAKE._uploads


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


class _Script:
    """What several clients do."""

    def __init__(self, data: bytes, state: ServerState, clients: list[Client]) -> None:
        self._bytes: Iterator[int] = iter(data)
        self._state = state
        self._clients = clients
        self._client = clients[0]
        self._piece = bytearray()
        self._last = b""
        self._num_sent = 0

    async def run(self) -> None:
        step = next(self._bytes, 0)
        """Bytes of each piece; 0 if the script says where they are cut."""
        for byte in self._bytes:
            if byte != ESCAPE:
                self._piece.append(byte)
                if len(self._piece) == step:
                    await self._send()
                continue
            action = next(self._bytes, 0) % 12
            if action == 0:
                self._piece.append(ESCAPE)
                continue
            await self._send(turns=action != 1)
            await self._act(action)
        await self._send()

    async def _act(self, action: int) -> None:
        client = self._client
        if action == 3:
            await asyncio.sleep(1)
        elif action == 4:
            await asyncio.sleep(20)
        elif action == 5:
            client.wire.client_reads = False
        elif action == 6:
            client.wire.client_reads = True
            client.wire.read()
        elif action == 7:
            client.end()
        elif action == 8:
            client.leave()
        elif action == 9:
            if len(self._clients) < _MAX_CLIENTS:
                self._clients.append(Client(asyncio.get_running_loop(), self._state))
            self._client = self._clients[-1]
        elif action == 10:
            self._client = self._clients[self._clients.index(client) - 1]
        elif action == 11:
            for _ in range(next(self._bytes, 0)):
                self._piece += self._last
                await self._send(turns=False)
        await _turns()

    async def _send(self, *, turns: bool = True) -> None:
        if self._piece and self._num_sent < MAX_SENT:
            self._last = bytes(self._piece)
            self._num_sent += len(self._last)
            self._client.send(self._last)
            if turns:
                await _turns()
        self._piece.clear()
