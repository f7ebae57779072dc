"""Clients that come and go at random, in whatever stage their requests are: nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import time
from pathlib import Path

import pytest

from tests.e2e.server import Server
from tests.entrypoints.leftovers import eventually
from tests.soak.measuring import (
    NAMES,
    descriptors,
    request_of_some_kind,
    resident_bytes,
    server_without_model,
)

AT_ONCE = 64
MOST_GROWTH_BYTES = 4 * 2**20
"""Of a process in a second storm, unless that is half of what it grew by in the first: Python takes memory in pieces of
1 MiB, which few clients fill as well as many do. Of 2,000 clients no 2 KiB each are kept."""


async def come_and_go(port: int, rng: random.Random, number: int) -> None:
    """Open a connection, send some or all of a request, and leave: in order, or by resetting the connection."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return
    try:
        _, path, body = request_of_some_kind(rng, number)
        body.get("sampling_params", {}).setdefault("max_new_tokens", 900)
        if rng.random() < 0.5:
            body.setdefault("sampling_params", {})["max_new_tokens"] = 900
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        message = head.encode() + data
        writer.write(message[: rng.choice((0, len(head) // 2, len(head), len(message) - 1, *[len(message)] * 8))])
        await writer.drain()
        if rng.random() < 0.7:
            await asyncio.sleep(rng.random() ** 2 * 0.5)
        elif rng.random() < 0.5:
            await asyncio.wait_for(reader.read(1), 2)
        if rng.random() < 0.5:
            linger = struct.pack("ii", 1, 0)  # resets the connection when it is closed
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    except (ConnectionError, asyncio.TimeoutError):
        pass
    finally:
        writer.close()


async def storm(port: int, count: int, seed: int) -> None:
    numbers = iter(range(count))

    async def work(rng: random.Random) -> None:
        for number in numbers:
            await come_and_go(port, rng, seed * 1_000_000 + number)

    await asyncio.gather(*(work(random.Random(seed * 1000 + i)) for i in range(AT_ONCE)))


def is_quiet(server: Server) -> bool:
    state = server.state()
    return state["idle"] and server.metric("http_requests_active") <= 1  # the one that asks


@pytest.mark.parametrize("count", [pytest.param(60, id="short"), pytest.param(2000, marks=pytest.mark.soak, id="long")])
def test_nothing_is_left_of_clients_that_leave(tmp_path: Path, count: int) -> None:
    with server_without_model(tmp_path, "--max-queued-requests", "256") as server:
        asyncio.run(storm(server.port, 2 * count, 1))  # whatever is made once is made now, and allocators settle
        assert eventually(lambda: is_quiet(server), 30)
        time.sleep(1)
        before, memory = descriptors(server), [resident_bytes(server)]
        for seed in (2, 3):
            asyncio.run(storm(server.port, count, seed))
            assert eventually(lambda: is_quiet(server), 30), server.state()
            assert eventually(lambda: descriptors(server) == before, 15), (before, descriptors(server))
            server.assert_idle_and_whole()
            memory.append(resident_bytes(server))
        for name, start, once, twice in zip(NAMES, *memory, strict=True):
            print(f"{name} grew by {once - start} bytes, and by {twice - once} with as many clients again")
            assert twice - once < max((once - start) / 2, MOST_GROWTH_BYTES), f"{name} keeps something of every client"
        assert server.metric("num_aborted_requests_total") > 0
        assert server.metric("process_failed_requests_total") == 0
        assert "Traceback" not in server.log.read_text()
        assert server.generate(text="still there", sampling_params={"max_new_tokens": 4})["text"]
