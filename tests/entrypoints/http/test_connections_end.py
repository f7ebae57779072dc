"""Connections whose clients do nothing more are closed, whatever came before; asking for another protocol ends none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from uvicorn.server import ServerState

from bough.entrypoints.http.bodies import MIN_PROGRESS
from bough.entrypoints.http.connection import HEAD_TIMEOUT, WRITE_TIMEOUT
from bough.entrypoints.http.server import KEEP_ALIVE
from tests.fuzz.connections import Client, JumpingLoop

TURNS = 30
PAGE = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAB\r\n"


def with_client(play: Callable[[Client], Awaitable[None]]) -> None:
    """Play with a client on a clock that jumps."""

    async def begin() -> None:
        client = Client(asyncio.get_running_loop(), ServerState())
        await play(client)
        client.leave()
        await turns()

    loop = JumpingLoop()
    try:
        loop.run_until_complete(begin())
    finally:
        loop.close()


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


def test_answers_that_nobody_reads_do_not_keep_a_closed_connection() -> None:
    cases = [
        (PAGE + b"connection: close\r\n\r\n", b""),
        (PAGE + b"\r\n", b"NO HTTP\r\n\r\n"),
        (PAGE + b"\r\n", b"GET /"),
    ]
    for head, last in cases:

        async def play(client: Client) -> None:
            client.wire.client_reads = False
            client.send(head)
            await turns()
            client.send(last)
            assert client.wire.unread
            await asyncio.sleep(WRITE_TIMEOUT + HEAD_TIMEOUT + 1)
            assert client.wire.is_lost
            assert client.wire.was_cut

        with_client(play)


def test_answer_to_a_half_closed_connection_does_not_keep_it() -> None:
    async def play(client: Client) -> None:
        client.wire.client_reads = False
        client.send(PAGE + b"\r\n")
        await turns()
        client.end()
        assert not client.wire.is_lost
        await asyncio.sleep(WRITE_TIMEOUT + 1)
        assert client.wire.is_lost

    with_client(play)


def test_rest_of_a_body_keeps_no_connection_open() -> None:
    for framing in [b"content-length: 5000\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n5000\r\n"]:

        async def play(client: Client) -> None:
            client.send(PAGE + framing)
            await turns()
            assert client.check_answers() == [200]
            for _ in range(7):
                await asyncio.sleep(10)
                client.send(b"x")
            assert not client.wire.closing
            await asyncio.sleep(KEEP_ALIVE - 69)
            assert client.wire.closing

        with_client(play)


def test_much_of_a_body_gives_its_connection_time() -> None:
    async def play(client: Client) -> None:
        client.send(PAGE + b"content-length: %d\r\n\r\n" % (3 * MIN_PROGRESS))
        await turns()
        for _ in range(3):
            await asyncio.sleep(KEEP_ALIVE - 1)
            client.send(bytes(MIN_PROGRESS))
        client.send(PAGE + b"\r\n")
        await turns()
        assert client.check_answers() == [200, 200]

    with_client(play)


def test_request_that_asks_for_another_protocol_is_answered_in_this_one() -> None:
    cases = [
        b"content-length: 5\r\n\r\nhello",
        b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"content-length: 00\r\n\r\n",
        b"\r\n",
    ]
    for body in cases:
        for size in [1, 50, 1000]:
            """Java's client asks for HTTP/2 with requests in the clear, those with a body included."""
            echo = b"POST /echo HTTP/1.1\r\nhost: x\r\n" + UPGRADE + body
            data = echo + echo + PAGE + UPGRADE + b"\r\n" + PAGE + b"\r\n"

            async def play(client: Client) -> None:
                for at in range(0, len(data), size):
                    client.send(data[at : at + size])
                await turns()
                assert client.check_answers() == [200] * 4
                assert client.wire.arrived.count(b"hello") == 2 * (b"hello" in body)

            with_client(play)


def test_body_that_no_request_can_have_is_refused_with_an_upgrade_too() -> None:
    async def play(client: Client) -> None:
        client.send(b"POST /echo HTTP/1.1\r\nhost: x\r\n" + UPGRADE + b"transfer-encoding: gzip\r\n\r\nhello")
        await turns()
        assert client.check_answers() == [400]
        assert b'"invalid_http"' in client.wire.arrived
        assert client.wire.closing

    with_client(play)
