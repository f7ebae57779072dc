"""Answers that are complete when they are sent."""

from __future__ import annotations

import asyncio
from typing import Any

from bough.entrypoints.http.asgi import SLICE_BYTES, Response


def test_long_ones_go_in_pieces() -> None:
    for size in [0, 10, SLICE_BYTES, SLICE_BYTES + 1, 3 * SLICE_BYTES, 3 * SLICE_BYTES + 5]:
        sent: list[dict[str, Any]] = []
        body = bytes(index % 251 for index in range(size))

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(Response(body).send(send))
        start, *pieces = sent
        assert (b"content-length", b"%d" % size) in start["headers"]
        assert b"".join(piece["body"] for piece in pieces) == body
        assert all(len(piece["body"]) <= SLICE_BYTES for piece in pieces)
        assert [piece["more_body"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]
