"""Where requests are cut into segments, and what comes behind them, makes no difference."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.asgi import BODY_WRITER, Response
from bough.entrypoints.http.server import BoundedHttpProtocol, make_server

LIMIT = 1024
NEAR = 8

Seen = list[tuple[str, str, list[tuple[bytes, bytes]], bytes]]


class Wire(asyncio.Transport):
    """Remembers what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

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
        pass

    resume_reading = pause_reading


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

    server = make_server(app, ServerArgs(max_header_size=LIMIT), None)
    server.config.load()
    protocol = BoundedHttpProtocol(config=server.config, server_state=server.server_state, app_state={})
    wire = Wire()
    protocol.connection_made(wire)
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
    headers = draw(st.sampled_from([b"", b"x: 1\r\n", b"x: 1\r\nhost: x\r\n", b"y: " + b"a" * 900 + b"\r\n"]))
    kind = draw(st.sampled_from(["none", "length", "chunked"]))
    if kind == "none":
        whole = b"GET /b HTTP/1.1\r\n" + headers + b"\r\n"
    elif kind == "length":
        body = draw(BODIES)
        whole = b"POST /b HTTP/1.1\r\n" + headers + b"content-length: %d\r\n\r\n" % len(body) + body
    else:
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in draw(st.lists(BODIES, max_size=3)))
        trailers = draw(st.sampled_from([b"", b"t: 1\r\n", b"t: 1\r\nu: 2\r\n"]))
        whole = b"POST /b HTTP/1.1\r\n" + headers + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailers
        whole += b"\r\n"
    return whole + draw(st.sampled_from([b"", b"\r\n", b"\r\n\r\n"]))


@settings(max_examples=100, deadline=None)
@given(requests(), requests(), CUTS)
def test_pipelined_requests_are_the_same_wherever_they_are_cut(first: bytes, second: bytes, cuts: list[int]) -> None:
    alone = [asyncio.run(serve([request]))[0] for request in (first, second)]
    assert [len(seen) for seen in alone] == [1, 1]
    seen, statuses = asyncio.run(serve(cut(first, second, cuts)))
    assert seen == alone[0] + alone[1]
    assert statuses == [200, 200]


@settings(max_examples=100, deadline=None)
@given(requests(), st.sampled_from([0, 1, 3000]), CUTS, st.booleans())
def test_the_bound_of_a_head_behind_another_request_is_exact(
    first: bytes, excess: int, cuts: list[int], has_body: bool
) -> None:
    head = b"POST /c HTTP/1.1\r\n" + (b"content-length: 3\r\n" if has_body else b"")
    head += b"x: " + b"a" * (LIMIT + excess - len(head) - 7) + b"\r\n\r\n"
    assert len(head) == LIMIT + excess
    seen, statuses = asyncio.run(serve(cut(first, head + b"abc" * has_body, cuts)))
    # Behind a request that is still being answered, the refusal is the end of the connection.
    assert [path for _, path, _, _ in seen] == (["/b", "/c"] if excess == 0 else ["/b"] * len(seen))
    assert statuses in ([[200, 200]] if excess == 0 else [[], [200], [200, 431]])


@pytest.mark.parametrize("data", [b"0\r\nt: ", b"5;"])
def test_what_stands_between_and_behind_chunks_is_bounded(data: bytes) -> None:
    head = b"POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
    pieces = [head, b"2\r\nhi\r\n", data, *[b"a" * 100] * 40]
    assert asyncio.run(serve(pieces)) == ([], [431])
    assert asyncio.run(serve([b"".join(pieces)])) == ([], [431])
