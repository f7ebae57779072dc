"""Where requests are cut into segments, and what comes behind them, makes no difference; few wait behind another."""

from __future__ import annotations

import asyncio
import gc
import itertools
import re
import threading
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.asgi import Response
from bough.entrypoints.http.chunk_writer import BODY_WRITER, ChunkWriter
from bough.entrypoints.http.connection import MAX_PIPELINED, SLICE_BYTES, BoundedHttpProtocol
from bough.entrypoints.http.server import HttpServer, make_server
from tests.entrypoints.http.server import RunningServer
from tests.entrypoints.http.test_raw_connections import read_all
from tests.thoroughness import examples

LIMIT = 1024
NEAR = 8
READ_BYTES = 256_000
"""Most that an event loop reads at once."""

MOST_WAITING = MAX_PIPELINED + SLICE_BYTES // len(b"GET / HTTP/1.1\r\n\r\n")

Seen = list[tuple[str, str, list[tuple[bytes, bytes]], bytes]]


class Wire(asyncio.Transport):
    """Remembers what was written, and whether it may read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.reading = True

    def write(self, data: Any) -> None:
        if not self.closed:
            self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def connect(app: Any, *, max_header_size: int = LIMIT) -> tuple[HttpServer, BoundedHttpProtocol, Wire]:
    """A connection to an application, without an event loop's part of it."""
    server = make_server(app, ServerArgs(max_header_size=max_header_size), None)
    server.config.load()
    protocol = BoundedHttpProtocol(config=server.config, server_state=server.server_state, app_state={})
    wire = Wire()
    protocol.connection_made(wire)
    return server, protocol, wire


async def serve(pieces: list[bytes]) -> tuple[Seen, list[int]]:
    """What the application saw of the requests in ``pieces``, and the statuses of the answers."""
    seen: Seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        writer = scope["extensions"][BODY_WRITER]["writer"]
        body, more = writer.take_body(LIMIT), False
        if body is None:
            body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        seen.append((scope["method"], scope["path"], list(scope["headers"]), body))
        await Response(b"{}").send(send, writer)

    server, protocol, wire = connect(app)
    for piece in pieces:
        if not wire.closed:
            protocol.data_received(piece)
        for _ in range(3):
            await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    await asyncio.gather(*server.server_state.tasks)
    return seen, [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", wire.written)]


CUTS = st.lists(st.integers(-NEAR, NEAR) | st.integers(NEAR + 1, 10**6), max_size=2)
"""Where a request begins behind another, or anywhere."""


def cut(first: bytes, second: bytes, cuts: list[int]) -> list[bytes]:
    data = first + second
    wanted = (len(first) + place if place <= NEAR else place % len(data) for place in cuts)
    places = [0, *sorted(min(max(place, 0), len(data)) for place in wanted), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(places) if end > begin]


BODIES = st.sampled_from([b"hi", b"\r\n\r\n", b"\r\n", b"a\r\n\r\nGET /x HTTP/1.1\r\n", b"0\r\n\r\n", b"x" * 3000])


@st.composite
def requests(draw: Any) -> bytes:
    """A valid request, with whatever may come behind it."""
    headers = draw(st.sampled_from([b"", b"x: 1\r\n", b"x: 1\r\nz: 2\r\n", b"y: " + b"a" * 900 + b"\r\n"]))
    kind = draw(st.sampled_from(["none", "length", "chunked"]))
    if kind == "none":
        whole = b"GET /b HTTP/1.1\r\nhost: x\r\n" + headers + b"\r\n"
    elif kind == "length":
        body = draw(BODIES)
        whole = b"POST /b HTTP/1.1\r\nhost: x\r\n" + headers + b"content-length: %d\r\n\r\n" % len(body) + body
    else:
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in draw(st.lists(BODIES, max_size=3)))
        trailers = draw(st.sampled_from([b"", b"t: 1\r\n", b"t: 1\r\nu: 2\r\n"]))
        whole = (
            b"POST /b HTTP/1.1\r\nhost: x\r\n"
            + headers
            + b"transfer-encoding: chunked\r\n\r\n"
            + chunks
            + b"0\r\n"
            + trailers
        )
        whole += b"\r\n"
    return whole + draw(st.sampled_from([b"", b"\r\n", b"\r\n\r\n"]))


@settings(max_examples=examples(100))
@given(requests(), requests(), CUTS)
def test_pipelined_requests_are_the_same_wherever_they_are_cut(first: bytes, second: bytes, cuts: list[int]) -> None:
    alone = [asyncio.run(serve([request]))[0] for request in (first, second)]
    assert [len(seen) for seen in alone] == [1, 1]
    seen, statuses = asyncio.run(serve(cut(first, second, cuts)))
    assert seen == alone[0] + alone[1]
    assert statuses == [200, 200]


@settings(max_examples=examples(100))
@given(requests(), st.sampled_from([0, 1, 3000]), CUTS, st.booleans())
def test_the_bound_of_a_head_behind_another_request_is_exact(
    first: bytes, excess: int, cuts: list[int], has_body: bool
) -> None:
    head = b"POST /c HTTP/1.1\r\nhost: x\r\n" + (b"content-length: 3\r\n" if has_body else b"")
    head += b"x: " + b"a" * (LIMIT + excess - len(head) - 7) + b"\r\n\r\n"
    assert len(head) == LIMIT + excess
    seen, statuses = asyncio.run(serve(cut(first, head + b"abc" * has_body, cuts)))
    # Behind a request that is still being answered, the refusal is the end of the connection.
    assert [path for _, path, _, _ in seen] == (["/b", "/c"] if excess == 0 else ["/b"] * len(seen))
    assert statuses in ([[200, 200]] if excess == 0 else [[], [200], [200, 431]])


def test_what_stands_between_and_behind_chunks_is_bounded() -> None:
    for data in [b"0\r\nt: ", b"5;"]:
        head = b"POST /b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        pieces = [head, b"2\r\nhi\r\n", data, *[b"a" * 100] * 40]
        assert asyncio.run(serve(pieces)) == ([], [431])
        assert asyncio.run(serve([b"".join(pieces)])) == ([], [431])


def tiny_request(number: int, kind: str) -> bytes:
    if kind == "none":
        return b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number
    if kind == "length":
        return b"POST /%d HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc" % number
    return b"POST /%d HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" % number


async def send_many(data: bytes, read_bytes: int) -> tuple[list[str], int, int]:
    """Send ``data`` as fast as it is read, to an application that waits a little for everything.

    Returns:
        what was asked for, how many answers there were, and how many requests have waited behind another at once.
    """
    asked: list[str] = []
    most = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal most
        asked.append(scope["path"])
        while (await receive()).get("more_body"):
            pass
        scope["extensions"][BODY_WRITER]["writer"].watch(None)
        leaving = asyncio.ensure_future(receive())  # which asks to read on
        await asyncio.sleep(0)
        most = max(most, len(protocol.pipeline))
        assert not (wire.reading and len(protocol.pipeline) >= MAX_PIPELINED)
        await Response(b"{}").send(send)
        await leaving

    server, protocol, wire = connect(app, max_header_size=65536)
    begin = 0
    while begin < len(data) or server.server_state.tasks:
        if wire.reading and begin < len(data):
            protocol.data_received(data[begin : begin + read_bytes])
            begin += read_bytes
            most = max(most, len(protocol.pipeline))
            assert not (wire.reading and len(protocol.pipeline) >= MAX_PIPELINED)
        else:
            assert server.server_state.tasks, "nobody will read on"
            await asyncio.sleep(0)
    protocol.connection_lost(None)
    return asked, wire.written.count(b"HTTP/1.1 200 OK"), most


def test_many_pipelined_requests_are_answered_in_order_and_few_wait() -> None:
    for read_bytes in [23, 1000, READ_BYTES]:
        for kinds in [["none"], ["length"], ["chunked"], ["chunked", "none", "none", "length"]]:
            data = b"".join(tiny_request(number, kinds[number % len(kinds)]) for number in range(1000))
            asked, num_answers, most = asyncio.run(send_many(data, read_bytes))
            assert asked == [f"/{number}" for number in range(1000)]
            assert num_answers == 1000
            assert most <= MOST_WAITING
            if read_bytes == READ_BYTES:
                assert most >= MAX_PIPELINED


def test_requests_behind_a_body_in_chunks_are_bounded_too() -> None:
    for before in [0, 1, MAX_PIPELINED - 1, MAX_PIPELINED, MAX_PIPELINED + 1]:
        shortest = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
        data = shortest * before + tiny_request(0, "chunked") + shortest * 1000
        asked, num_answers, most = asyncio.run(send_many(data, READ_BYTES))
        assert (asked, num_answers) == (["/"] * before + ["/0"] + ["/"] * 1000, before + 1001)
        assert MAX_PIPELINED <= most <= MOST_WAITING


class CountedBytes(bytes):
    """Bytes that know how many of them were copied, and in how many parts."""

    num_copied = 0
    num_parts = 0

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        CountedBytes.num_copied += len(part)
        CountedBytes.num_parts += 1
        return part


def copies(data: bytes, before: bytes = b"") -> tuple[int, int, int]:
    """How many requests are answered if ``data`` comes at once, bytes that are copied, and the parts that they are."""
    num_answered = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal num_answered
        while (await receive()).get("more_body"):
            pass
        await Response(b"{}").send(send)
        num_answered += 1

    async def send_at_once() -> None:
        server, protocol, _ = connect(app, max_header_size=65536)
        protocol.data_received(before)
        CountedBytes.num_copied = CountedBytes.num_parts = 0
        protocol.data_received(CountedBytes(data))
        while server.server_state.tasks:
            await asyncio.sleep(0)
        protocol.connection_lost(None)

    asyncio.run(send_at_once())
    return num_answered, CountedBytes.num_copied, CountedBytes.num_parts


def test_bytes_are_copied_about_once_however_many_requests_they_are() -> None:
    data = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 2000
    num_answered, num_copied, _ = copies(data)
    assert num_answered == 2000
    assert len(data) <= num_copied <= 2 * len(data)


def test_a_body_in_chunks_full_of_empty_lines_is_taken_in_large_parts() -> None:
    for num_before, bytes_per_part in [(0, 400), (MAX_PIPELINED - 1, 6)]:
        for line in [b"\r\n", b"\r\n\r\nab", b"0\r\n\r\n", b"ab"]:
            body = line * (60_000 // len(line))
            data = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
                len(body),
                body,
            )
            num_answered, _, num_parts = copies(data, before=tiny_request(0, "none") * num_before)
            assert num_answered == num_before + 1
            assert num_parts <= len(data) / bytes_per_part


def test_bodies_that_wait_behind_a_request_are_bounded_together() -> None:
    part = b"a" * 40_000
    head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
    reads = [b"GET /first HTTP/1.1\r\nhost: x\r\n\r\n", head % len(part) + part, head % (25 * len(part)), *[part] * 25]
    lengths: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/first":
            await first_may_end.wait()
        length, more = 0, True
        while more:
            message = await receive()
            length, more = length + len(message["body"]), message["more_body"]
        lengths.append(length)
        await Response(b"{}").send(send)

    async def send_all() -> list[int]:
        server, protocol, wire = connect(app)
        waiting = []
        while reads:
            for _ in range(10):
                protocol.flow.resume_reading()  # an application may ask for it at any time
                if reads and wire.reading:
                    protocol.data_received(reads.pop(0))
                    waiting.append(sum(len(cycle.body) for cycle, _ in protocol.pipeline))
            first_may_end.set()
            await asyncio.sleep(0)
        while server.server_state.tasks:
            await asyncio.sleep(0)
        protocol.connection_lost(None)
        return waiting

    first_may_end = asyncio.Event()
    waiting = asyncio.run(send_all())
    assert waiting[:4] == [0, len(part), len(part), 2 * len(part)]
    assert max(waiting) <= HIGH_WATER_LIMIT + len(part)
    assert lengths == [0, len(part), 25 * len(part)]


def test_what_was_answered_is_forgotten() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(b"{}").send(send, scope["extensions"][BODY_WRITER]["writer"])

    async def count_writers() -> int:
        _, protocol, wire = connect(app)
        for _ in range(100):
            protocol.data_received(tiny_request(0, "none"))
            while not protocol.cycle.response_complete:
                await asyncio.sleep(0)
        protocol.connection_lost(None)
        gc.collect()
        return sum(isinstance(each, ChunkWriter) and each.connection is wire for each in gc.get_objects())

    assert asyncio.run(count_writers()) <= 2


def test_client_of_a_real_server_may_pipeline_many_requests(server: RunningServer) -> None:
    count = 6_000
    head = b"GET /health HTTP/1.1\r\nhost: x\r\nx-request-id: n%d\r\n\r\n"
    data = b"".join(head % number for number in range(count - 1))
    data += b"GET /health HTTP/1.1\r\nhost: x\r\nx-request-id: last\r\nconnection: close\r\n\r\n"
    with server.connect() as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,))
        sender.start()
        answer = read_all(connection)
        sender.join()
    ids = re.findall(rb"x-request-id: (\w+)", answer)
    assert ids == [*(b"n%d" % number for number in range(count - 1)), b"last"]
