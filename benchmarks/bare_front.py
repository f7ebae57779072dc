"""The least that a server of streamed completions on Starlette does, to compare the HTTP front with.

Started by ``http_front.py --fronts bough bare``. It takes requests by a msgspec struct, passes them to the feeder over
the same channels, has a queue for each stream, and yields one event a token from a generator: no validation beyond
types, no metrics, no limits, no other routes, no way to abort. Servers that are built like this, with the frame's
``StreamingResponse`` and a queue or event for each request, cannot be faster.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from array import array
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bough.ipc.channels import TokenizerChannels
from bough.ipc.messages import BatchStrOutput, BatchTokenIDOutput, OutputDelta, TokenizedGenerateReqInput
from bough.sampling.sampling_params import SamplingParams


class CompletionRequest(msgspec.Struct):
    """What a request consists of."""

    prompt: list[int]
    max_tokens: int
    stream: bool = False


def bare_server(channels: TokenizerChannels) -> uvicorn.Server:
    """A server of ``/v1/completions``, to be run on the event loop that this is called on."""
    queues: dict[str, asyncio.Queue[OutputDelta]] = {}

    async def receive() -> None:
        while True:
            message = await channels.recv()
            if isinstance(message, (BatchTokenIDOutput, BatchStrOutput)):
                for delta in message.deltas:
                    queues[delta.rid].put_nowait(delta)

    async def deltas(body: CompletionRequest, rid: str) -> AsyncIterator[OutputDelta]:
        queue = queues[rid] = asyncio.Queue()
        params = SamplingParams(max_new_tokens=body.max_tokens)
        channels.send(TokenizedGenerateReqInput([rid], array("i", body.prompt).tobytes(), params, stream=body.stream))
        try:
            while True:
                delta = await queue.get()
                yield delta
                if delta.finish_reason is not None:
                    return
        finally:
            del queues[rid]

    async def completions(request: Request) -> Response:
        body = msgspec.json.decode(await request.body(), type=CompletionRequest)
        rid = uuid.uuid4().hex

        def answer(delta: OutputDelta) -> dict[str, Any]:
            reason = None if delta.finish_reason is None else delta.finish_reason.type
            choice = {"index": 0, "text": delta.text, "logprobs": None, "finish_reason": reason}
            return {"id": rid, "object": "text_completion", "created": 0, "model": "m", "choices": [choice]}

        async def events() -> AsyncIterator[str]:
            async for delta in deltas(body, rid):
                yield f"data: {json.dumps(answer(delta), separators=(',', ':'))}\n\n"
            yield "data: [DONE]\n\n"

        if body.stream:
            return StreamingResponse(events(), media_type="text/event-stream")
        return JSONResponse([answer(delta) async for delta in deltas(body, rid)][-1])

    app = Starlette(routes=[Route("/v1/completions", completions, methods=["POST"])])
    app.state.receiving = asyncio.create_task(receive())
    return uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
