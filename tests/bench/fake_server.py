"""A server that answers at once with a known number of tokens, over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

from aiohttp import web

VOCAB_SIZE = 500
CACHED_TOKENS = 3


class FakeServer:
    """Remembers what it was asked.

    Attributes:
        requests: (path, body) of every POST, in order.
        fail_with: what to answer instead of tokens, if anything: a status, or ``"event"`` for an error event,
            ``"hang-up"`` for a stream that is cut, ``"abort"`` for an answer that is broken off.
        failure_message: what an error event says.
        model: name of the only model.
        hung_up: number of clients that left in the middle of an endless answer.
        chat_deltas: what chat completions stream, if not one word a token.
        chat_data: the data of all events of chat completions as they are sent, if not the usual ones.
        models_answer: what the list of models is, if not the usual one.
        models_status: with which status it comes.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.fail_with: int | str | None = None
        self.failure_message = "it broke"
        self.model = "fake"
        self.endless = False
        self.hung_up = 0
        self.chat_deltas: list[dict[str, str]] | None = None
        self.chat_data: list[str] | None = None
        self.models_answer: str | None = None
        self.models_status = 200
        self.info: dict[str, Any] | None = {"model_path": "/nowhere", "vocab_size": VOCAB_SIZE}
        self.url = ""

    async def models(self, request: web.Request) -> web.Response:
        if self.models_answer is not None:
            return web.Response(text=self.models_answer)
        models = {"object": "list", "data": [{"id": self.model, "object": "model"}]}
        response = web.json_response(models, status=self.models_status)
        response.enable_compression()  # for whom takes it, as proxies do
        return response

    async def server_info(self, request: web.Request) -> web.Response:
        return web.json_response(self.info, status=404 if self.info is None else 200)

    async def flush_cache(self, request: web.Request) -> web.Response:
        self.requests.append((request.path_qs, None))
        return web.Response(text="flushed")

    async def generate(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        prompt_tokens = len(body.get("input_ids", ()))
        count = body["sampling_params"]["max_new_tokens"]

        def event(index: int) -> dict[str, Any]:
            finish = {"type": "length", "length": count} if index + 1 == count else None
            meta = {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": index + 1,
                "cached_tokens": CACHED_TOKENS,
                "finish_reason": finish,
            }
            return {"text": "é" * (index + 1), "output_ids": list(range(index + 1)), "meta_info": meta}

        if not body["stream"]:
            return self._failure() or web.json_response(event(count - 1))
        return await self._stream(request, [event(index) for index in range(count)])

    async def completions(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        usage = {
            "prompt_tokens": len(body["prompt"]),
            "completion_tokens": body["max_tokens"],
            "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        }
        if not body["stream"]:
            return self._failure() or web.json_response({"choices": [{"text": "abc"}], "usage": usage})
        tokens = [{"choices": [{"text": "x", "finish_reason": None}]} for _ in range(body["max_tokens"])]
        end = [{"choices": [{"text": "", "finish_reason": "length"}]}, {"choices": [], "usage": usage}]
        return await self._stream(request, [*tokens, *end])

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        if self.chat_data is not None:
            text = "".join(f"data: {data}\n\n" for data in self.chat_data)
            return web.Response(text=text, content_type="text/event-stream")
        count = body.get("max_tokens", 4)
        usage = {"prompt_tokens": 9, "completion_tokens": count, "prompt_tokens_details": None}
        opening = {"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
        deltas = self.chat_deltas if self.chat_deltas is not None else [{"content": f"w{i} "} for i in range(count)]
        tokens = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
        end = [{"choices": [{"delta": {}, "finish_reason": "length"}]}, {"choices": [], "usage": usage}]
        return await self._stream(request, [opening, *tokens, *end])

    async def _body(self, request: web.Request) -> Any:
        body = await request.json()
        self.requests.append((request.path, body))
        return body

    def _failure(self) -> web.Response | None:
        if isinstance(self.fail_with, int):
            return web.json_response({"error": {"message": "no"}}, status=self.fail_with)
        return None

    async def _stream(self, request: web.Request, events: list[dict[str, Any]]) -> web.StreamResponse:
        if (failure := self._failure()) is not None:
            return failure
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.enable_compression()
        await response.prepare(request)
        if self.fail_with == "event":
            events = [*events[:2], {"error": {"message": self.failure_message, "code": 500}}]
        for event in events:
            text = json.dumps(event)
            if self.fail_with == "abort":
                text = text.replace('{"type": "length"', '{"type": "abort"').replace('n": "length"', 'n": "abort"')
            await response.write(f"data: {text}\n\n".encode())
        if self.fail_with == "hang-up":
            assert request.transport is not None
            request.transport.close()
            return response
        while self.endless:
            try:
                await response.write(b"data: " + json.dumps(events[1]).encode() + b"\n\n")
                await asyncio.sleep(0.002)
            except (ConnectionError, asyncio.CancelledError):
                self.hung_up += 1
                raise
        await response.write(b"data: [DONE]\n\n")
        return response


@contextlib.contextmanager
def fake_server() -> Iterator[FakeServer]:
    """A running :class:`FakeServer`; its ``url`` is set."""
    server = FakeServer()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/v1/models", server.models)
        app.router.add_get("/get_server_info", server.server_info)
        app.router.add_post("/flush_cache", server.flush_cache)
        app.router.add_post("/generate", server.generate)
        app.router.add_post("/v1/completions", server.completions)
        app.router.add_post("/v1/chat/completions", server.chat)
        runner = web.AppRunner(app, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        return runner

    runner = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield server
    finally:
        server.endless = False
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
