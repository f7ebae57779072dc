"""Sending the requests of a benchmark and timing the answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import ssl
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import ModuleType
from typing import Any

import numpy as np

from bough.bench.backends import Backend, Sampling
from bough.bench.datasets import BenchRequest
from bough.bench.event_stream import Event, EventStream
from bough.entrypoints.http.tls import client_tls_context
from bough.errors import StartupError
from bough.observability.progress import Progress
from bough.open_files import allow_many_connections
from bough.refusals import refusal_message

_JSON_HEADERS = {"Content-Type": "application/json"}
_POLL_SECONDS = 0.2
_REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)


class Refused(StartupError):
    """The server answers, and will not answer otherwise later."""


@dataclass(slots=True)
class Answer:
    """What happened to one request. Times in seconds."""

    sent_at: float = 0.0
    latency: float = 0.0
    """From sending to the end of the answer."""
    ttft: float | None = None
    """From sending to the first token; ``None`` if none came, or all at once because nothing was streamed."""
    gaps: list[float] = field(default_factory=list)
    """Between successive tokens, as :attr:`EventStream.gaps` has them."""
    events: int = 0
    """Streamed events with tokens."""
    first_tokens: int = 1
    """Tokens of the first of them."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """How fast requests are sent."""

    request_rate: float = math.inf
    """Requests per second, at random (Poisson) moments; infinite: all at once."""
    max_concurrency: int | None = None
    """Most requests in flight; arrivals beyond it wait in the client."""
    seed: int = 42


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run."""

    answers: list[Answer]
    duration: float
    """Seconds from the first request to the end of the last answer."""
    client_cpu: float
    """CPU seconds that this process used meanwhile."""


def import_aiohttp() -> ModuleType:
    """The ``aiohttp`` module, which only this client needs.

    Raises:
        StartupError: if it is not installed.
    """
    try:
        import aiohttp
    except ImportError:
        raise StartupError(
            "bough bench serve needs aiohttp: install it beside bough, for instance with: pip install aiohttp"
        ) from None
    return aiohttp


class BenchClient:
    """A connection to one server. Made by :func:`connect`."""

    def __init__(self, session: Any, base_url: str, timeout: float | None = None) -> None:
        self._session = session
        self._timeout = timeout
        self.base_url = base_url.rstrip("/").removesuffix("/v1")

    async def get_json(self, path: str) -> Any:
        """The JSON that ``GET path`` answers with.

        Raises:
            Refused: if there is nothing of that path, or not for this key.
            StartupError: if the server does not answer with status 200 and JSON for another reason.
        """
        content = await self._fetch("GET", path)
        try:
            return json.loads(content)
        except ValueError:
            raise StartupError(f"{self.base_url}{path} answered with no JSON: {content[:200]!r}") from None

    async def wait_until_ready(self, timeout: float) -> None:
        """Return once the server lists its models, within ``timeout`` seconds.

        Raises:
            StartupError: if it does not in time, or refuses: no waiting helps against a wrong key or path.
        """
        deadline = time.perf_counter() + timeout
        told = False
        while True:
            try:
                await self._answers(max(deadline - time.perf_counter(), _POLL_SECONDS))
            except Refused:
                raise
            except StartupError as error:
                if time.perf_counter() > deadline:
                    raise StartupError(f"no server is ready after {timeout:g} s: {error}") from None
                if not told:
                    told = True
                    print(f"{error}; waiting {timeout:g} s at most (--ready-check-timeout-sec)", file=sys.stderr)
                await asyncio.sleep(_POLL_SECONDS)
            else:
                return

    async def _answers(self, timeout: float) -> None:
        try:
            await asyncio.wait_for(self._fetch("GET", "/v1/models"), timeout)
        except asyncio.TimeoutError:
            raise StartupError(f"{self.base_url}/v1/models does not answer") from None

    async def flush_cache(self, timeout: float) -> None:
        """Empty the server's prefix cache, waiting up to ``timeout`` seconds for it to be idle.

        Raises:
            StartupError: if the server refuses.
        """
        await self._fetch("POST", f"/flush_cache?timeout={timeout:g}")

    async def ask(
        self, request: BenchRequest, backend: Backend, model: str, sampling: Sampling, *, stream: bool = True
    ) -> Answer:
        """Send one request and time its answer. What goes wrong is in ``Answer.error``, never raised."""
        body = backend.body(request, model, sampling, stream=stream)
        answer = Answer(sent_at=time.perf_counter())
        try:
            await self._ask(answer, body, backend, stream=stream)
        except Exception as error:
            # What ran out of time says nothing, unless it is the system that tells of a lost connection.
            too_late = isinstance(error, asyncio.TimeoutError) and not str(error)
            answer.error = (
                f"no whole answer within {self._timeout} s" if too_late else f"{type(error).__name__}: {error}"
            )
        answer.latency = time.perf_counter() - answer.sent_at
        return answer

    async def _ask(self, answer: Answer, body: bytes, backend: Backend, *, stream: bool) -> None:
        url = self.base_url + backend.path
        async with self._session.post(url, data=body, headers=_JSON_HEADERS) as response:
            if response.status != 200:
                answer.error = f"HTTP {response.status}: {refusal_message(await response.read())}"
                return
            if not stream:
                _read_totals(answer, [await response.json()], backend)
                return
            events = EventStream(backend.has_token)
            async for chunk in response.content.iter_any():
                events.feed(chunk, time.perf_counter())
        _read_totals(answer, events.finish(), backend)
        if events.first_token_at is not None:
            answer.ttft = events.first_token_at - answer.sent_at
        answer.gaps = events.gaps
        answer.events, answer.first_tokens = events.token_events, events.first_tokens
        if not events.done and answer.error is None:
            answer.error = "the stream ended before its end mark"

    async def _fetch(self, method: str, path: str) -> bytes:
        aiohttp = import_aiohttp()
        try:
            async with self._session.request(method, self.base_url + path) as response:
                content: bytes = await response.read()
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
            # What TLS and the resolver call a number is none of the system's.
            number = None if isinstance(error, ssl.SSLError) else getattr(error, "errno", None)
            reason = os.strerror(number) if number and number > 0 else str(error) or "no answer in time"
            raise StartupError(f"{self.base_url}{path} cannot be reached: {reason}") from None
        if response.status != 200:
            failure = Refused if response.status in _REFUSALS else StartupError
            raise failure(f"{self.base_url}{path} answered with status {response.status}: {refusal_message(content)}")
        return content


@contextlib.asynccontextmanager
async def connect(
    base_url: str, api_key: str | None = None, ca_cert: str | None = None, timeout: float | None = None
) -> AsyncIterator[BenchClient]:
    """A client of the server at ``base_url`` (``http://host:port``), closed at the end of the block.

    Args:
        ca_cert: file with the certificates to trust; the system's if it is ``None``.
        timeout: seconds that any answer may take to its end; ``None``: for ever.

    Raises:
        ConfigError: if the certificates cannot be used.
        StartupError: if ``aiohttp`` is not installed.
    """
    aiohttp = import_aiohttp()
    allow_many_connections()
    connector = aiohttp.TCPConnector(limit=0, ssl=client_tls_context(base_url, ca_cert or True) or True)
    # Times are taken of what comes over the wire, which is read as it is.
    headers = {"Accept-Encoding": "identity"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=timeout),
        headers=headers,
        auto_decompress=False,
    ) as session:
        yield BenchClient(session, base_url, timeout)


async def run_load(
    client: BenchClient,
    requests: Sequence[BenchRequest],
    backend: Backend,
    model: str,
    sampling: Sampling,
    load: Load,
    *,
    stream: bool = True,
    progress: Progress | None = None,
) -> Measurement:
    """Send all requests as ``load`` says and wait for all answers, which are in the order of the requests.

    ``progress``, if there is one, counts them as they end.
    """
    slots = asyncio.Semaphore(load.max_concurrency or max(1, len(requests)))
    arrivals = _arrival_times(len(requests), load)

    async def send(request: BenchRequest) -> Answer:
        async with slots:
            answer = await client.ask(request, backend, model, sampling, stream=stream)
        if progress is not None:
            progress.advance(1, failed=answer.error is not None)
        return answer

    started, started_cpu = time.perf_counter(), time.process_time()
    tasks = []
    for request, arrival in zip(requests, arrivals, strict=True):
        # Against the clock and not from one request to the next: a late client must not lower the rate.
        if (delay := started + arrival - time.perf_counter()) > 0:
            await asyncio.sleep(delay)
        tasks.append(asyncio.create_task(send(request)))
    answers = await asyncio.gather(*tasks)
    return Measurement(answers, time.perf_counter() - started, time.process_time() - started_cpu)


def _arrival_times(count: int, load: Load) -> list[float]:
    """Seconds from the start, ascending; the first is 0."""
    if math.isinf(load.request_rate):
        return [0.0] * count
    gaps = np.random.default_rng(load.seed).exponential(1.0 / load.request_rate, size=max(0, count - 1))
    times: list[float] = np.concatenate(([0.0], np.cumsum(gaps)))[:count].tolist()
    return times


def _read_totals(answer: Answer, events: list[Event], backend: Backend) -> None:
    for event in events:
        if event.get("error") is not None:
            answer.error = f"error in the answer: {json.dumps(event['error'])[:200]}"
        finish = event.get("meta_info", {}).get("finish_reason") or {}
        if finish.get("type") == "abort":
            answer.error = f"aborted: {finish.get('message')}"
        elif any(choice.get("finish_reason") == "abort" for choice in event.get("choices", ())):
            answer.error = "aborted"
        if (usage := backend.usage(event)) is not None:
            answer.prompt_tokens = usage.prompt_tokens
            answer.cached_tokens = usage.cached_tokens
            answer.output_tokens = usage.output_tokens
