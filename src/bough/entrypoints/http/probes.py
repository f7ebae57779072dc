"""Health: is the server alive, may it be sent requests, does it really work?"""

from __future__ import annotations

import asyncio
import logging
import time
from http import HTTPStatus

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import TEXT_TYPE, Call, Response
from bough.entrypoints.http.route import NATIVE, Handlers, Route
from bough.errors import BoughError, Overloaded, RequestFailed
from bough.managers.embedding_struct import probe_request
from bough.managers.io_struct import GenerateRequest, new_request_id
from bough.managers.tokenizer_manager import TokenizerManager

logger = logging.getLogger(__name__)

DEEP_PROBE_TIMEOUT = 20.0
"""Seconds that the token of a deep probe may take."""

HEALTH_RID_PREFIX = "HEALTH_CHECK_"


class Probes(Handlers):
    """Answers ``/health``, ``/ready`` and ``/health_generate``; the first two ask nobody and take microseconds."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        self._running: asyncio.Task[str | None] | None = None

    @Route("GET /health", NATIVE, access=Access.OPEN, text_statuses=(503,))
    @Route(
        "GET /ping",
        NATIVE,
        access=Access.OPEN,
        text_statuses=(503,),
        summary="The same as `/health`, by SageMaker's name.",
    )
    async def health(self, call: Call) -> Response:
        """200 while every part of the server is alive, else 503. Cheap."""
        return _verdict(self._manager.health.why_not_alive())

    @Route("GET /ready", NATIVE, access=Access.OPEN, text_statuses=(503,))
    async def ready(self, call: Call) -> Response:
        """200 while requests are welcome, else 503: starting, shutting down, sick, paused, queue full."""
        loading = "new weights are being loaded" if self._manager.control.is_loading else None
        return _verdict(self._manager.health.why_not_ready() or loading)

    @Route("GET /health_generate", NATIVE, access=Access.OPEN, text_statuses=(503,))
    async def health_generate(self, call: Call) -> Response:
        """200 if a token makes it through all processes, or has to wait (a pause, a full queue, other requests that go
        on); else 503.

        Probes that come at the same time share one attempt. While generation is paused, or new weights are loaded,
        there are no tokens, and heartbeats have to do.
        """
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._generate())
        return _verdict(await asyncio.shield(self._running))

    async def _generate(self) -> str | None:
        manager = self._manager
        closed = manager.health.why_not_open()
        if closed is not None or manager.health.paused or manager.control.is_loading:
            return closed
        started = time.monotonic()
        request = probe_request(
            HEALTH_RID_PREFIX + new_request_id(), is_generation=manager.model_config.is_generation, max_new_tokens=1
        )
        try:
            await asyncio.wait_for(self._one_token(request), DEEP_PROBE_TIMEOUT)
        except (asyncio.TimeoutError, RequestFailed) as error:
            if isinstance(error, RequestFailed) and error.status_code != HTTPStatus.GATEWAY_TIMEOUT:
                return f"no token: {error.message}"
            if manager.health.last_progress >= started:
                return None  # tokens of other requests came through meanwhile: busy, not sick
            if manager.health.was_paused_since(started):
                return None  # nor is it sick because it was told to wait
            if manager.control.is_loading or manager.control.last_loaded >= started:
                return None  # or because it gets new weights
            return f"no token within {DEEP_PROBE_TIMEOUT:g} s"
        except Overloaded:
            return None  # a refusal has come all the way from the scheduler
        except BoughError as error:
            return error.message
        return None

    async def _one_token(self, request: GenerateRequest) -> None:
        async with self._manager.generation([request], all_the_way=True) as generation:
            async for _ in generation.results():
                pass


def _verdict(broken: str | None) -> Response:
    if broken is None:
        return Response(content_type=TEXT_TYPE)
    return Response(f"{broken}\n".encode(), 503, TEXT_TYPE, ((b"retry-after", b"1"),))
