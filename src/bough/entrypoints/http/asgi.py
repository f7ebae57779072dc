"""The thin layer between ASGI and the handlers: reading bodies, sending answers, noticing that a client has left.

Plain ASGI, because it may run once per streamed token: an event costs one ``send``, and nothing in between looks at it;
or none at all, see :mod:`~bough.entrypoints.http.direct`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from bough.entrypoints.http.access import Access, Gate
from bough.entrypoints.http.bodies import BodyIntake, ClientLeft, Upload
from bough.entrypoints.http.chunk_writer import BODY_WRITER, ChunkWriter, Headers, Receive, Scope, Send
from bough.entrypoints.http.errors import INTERNAL_ERROR, ErrorDialect, error_headers
from bough.entrypoints.http.fields import Body, BodySpec
from bough.entrypoints.http.json_body import RawValue
from bough.entrypoints.http.route import Route
from bough.entrypoints.http.unknown_fields import Unknown, log_unknown, note_unknown
from bough.errors import BadRequest, BoughError, RequestFailed
from bough.managers.held_answers import HeldAnswer, HeldAnswers
from bough.observability.metrics import Metrics
from bough.observability.request_context import CURRENT, RequestContext, request_id_of

if TYPE_CHECKING:
    from bough.observability.otel import OtelTracer

logger = logging.getLogger(__name__)

AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]

CLIENT_CLOSED_REQUEST = 499
"""Status under which requests are counted whose client left before the answer; it is never sent."""

DONE_EVENT = b"data: [DONE]\n\n"

JSON_TYPE = (b"content-type", b"application/json")
TEXT_TYPE = (b"content-type", b"text/plain; charset=utf-8")
HTML_TYPE = (b"content-type", b"text/html; charset=utf-8")
EVENTS_TYPE = (b"content-type", b"text/event-stream; charset=utf-8")
_STREAM_HEADERS = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]

SLICE_BYTES = 64 * 1024
"""Longer answers are sent in pieces of so many bytes."""


class Response(msgspec.Struct, frozen=True):
    """A complete answer."""

    body: bytes = b""
    status: int = 200
    content_type: tuple[bytes, bytes] = JSON_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send, writer: ChunkWriter | None = None, more_headers: Headers | tuple[()] = ()) -> None:
        """Send it all; without further ado if ``writer`` can do that."""
        headers = [self.content_type, (b"content-length", b"%d" % len(self.body)), *self.headers, *more_headers]
        body = self.body
        if len(body) <= SLICE_BYTES and writer is not None and writer.respond(send, self.status, headers, body):
            return
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        # Each piece waits until the client has read most of the one before: what nobody reads is not copied for the
        # connection, and the request is not over.
        begin = 0
        while len(body) - begin > SLICE_BYTES:
            piece = body[begin : begin + SLICE_BYTES]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            begin += SLICE_BYTES
        await send({"type": "http.response.body", "body": body[begin:], "more_body": False})


class EventStream(msgspec.Struct, frozen=True):
    """An answer in server-sent events. What fails before the first event is answered with a proper status."""

    events: AsyncGenerator[bytes, None]
    """Complete events, one or more at a time."""
    end: bytes = DONE_EVENT
    """What closes the stream, also after an error."""
    content_type: bytes = EVENTS_TYPE[1]


RANK_HEADER = b"x-data-parallel-rank"
"""Names the replica of a request, whatever its body says."""


class Call:
    """One request, as handlers see it."""

    def __init__(self, scope: Scope, receive: Receive, intake: BodyIntake) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.path_params: dict[str, Any] = scope.get("path_params", {})
        self._scope = scope
        self._receive = receive
        self._intake = intake
        self._upload: Upload | None = None
        self._headers: dict[bytes, bytes] | None = None
        self._body = b""
        """What there was no need to receive."""
        self._members: Mapping[str, RawValue] | None = None
        self.unknown: Unknown | None = {} if intake.allow_unknown else None
        """Names of fields that are ignored; ``None`` if fields that are not known are refused."""
        self.client_left = False
        self.writer: ChunkWriter | None = scope.get("extensions", {}).get(BODY_WRITER, {}).get("writer")
        """Writes parts of a streamed answer, if the server can do that."""
        self.dialect: ErrorDialect | None = None
        """How errors look, where that is not known by the path."""
        self.on_over: Callable[[], None] | None = None
        """Called when the request is over, see :meth:`Gate.begin`; by whoever takes it from here, if work goes on."""

    @property
    def query(self) -> dict[str, str]:
        """Parameters of the query string."""
        return dict(self.query_items)

    @property
    def query_items(self) -> list[tuple[str, str]]:
        """Parameters of the query string as they were written, one after the other."""
        return parse_qsl(self._scope["query_string"].decode("latin-1"), keep_blank_values=True)

    @property
    def headers(self) -> Headers:
        """All headers; names in lower case."""
        headers: Headers = self._scope["headers"]
        return headers

    def header(self, name: bytes) -> bytes | None:
        """Value of a header, the first one if there are several; ``name`` in lower case."""
        if self._headers is None:
            self._headers = dict(reversed(self.headers))
        return self._headers.get(name)

    def require_json(self) -> None:
        """Raise :class:`RequestFailed` (415) if the client says that it sends something else than JSON.

        A form or plain text, which a browser sends for any page without asking first, is refused by that. A page can
        also send a body without a type, but not without saying whose page it is, which :class:`Gate` looks at.
        """
        given = self.header(b"content-type")
        if not given or given == b"application/json":
            return
        kind = given.partition(b";")[0].strip().lower()
        if kind != b"application/json" and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
            raise RequestFailed(
                f"the Content-Type must be application/json, got {given[:80].decode('latin-1')!r}",
                status_code=415,
                code="invalid_content_type",
            )

    async def read_body(self) -> Callable[[], None] | None:
        """Receive the body; see :meth:`BodyIntake.receive`.

        Returns:
            to be called when what the body asks for counts elsewhere; ``None`` if it never counted.

        Raises:
            RequestFailed: (415) if it is compressed.
            BoughError: if it is too large, too slow, or there is no room for it.
            asyncio.CancelledError: with ``client_left`` set, if the client leaves.
        """
        encoding = self.header(b"content-encoding")
        if encoding is not None and encoding.strip().lower() not in (b"", b"identity"):
            shown = encoding[:64].decode("latin-1")
            raise RequestFailed(
                f"Content-Encoding: {shown} is not supported; send the body as it is",
                status_code=415,
                code="unsupported_content_encoding",
            )
        body = None if self.writer is None else self.writer.take_body(self._intake.small_body_size)
        if body is not None:
            self._body = body
            return None
        try:
            self._upload = await self._intake.receive(self.header(b"content-length"), self._receive)
        except ClientLeft:
            self.client_left = True
            raise asyncio.CancelledError from None
        return self._upload.taken

    @property
    def body(self) -> bytes:
        """The body, to look at."""
        return self._body if self._upload is None else self._upload.body or b""

    def take_body(self) -> bytes | Mapping[str, RawValue]:
        """The body, or its members if it was split already, for whoever parses it: it is held here no longer."""
        members, self._members = self._members, None
        body, self._body = self._body, b""
        if self._upload is not None:
            body = self._upload.take()
        return body if members is None else members

    async def parse(self, spec: BodySpec[Body], *, keep: bool = False) -> Body:
        """Decode the body, and with ``keep`` count it until the answer is complete; see :meth:`parse_given`."""
        if keep:
            self.keep()
        return (await self.parse_given(spec))[0]

    async def parse_given(self, spec: BodySpec[Body], max_tokens: int | None = None) -> tuple[Body, Set[str]]:
        """Decode the body, which is held here no longer, and return it with the names of the fields that were given.

        Args:
            max_tokens: longest prompt that can be served, if it is not that of other routes.

        Raises:
            BadRequest: naming the field at fault.
        """
        longest = self._intake.max_tokens if max_tokens is None else max_tokens
        body, given = await spec.parse(self.take_body(), unknown=self.unknown, max_tokens=longest)
        rank = self.header(RANK_HEADER)
        if rank is not None and "routed_dp_rank" in spec.names:
            if not (rank.isdigit() and len(rank) < 10):
                raise BadRequest("X-Data-Parallel-Rank must be an integer, at least 0", param="X-Data-Parallel-Rank")
            msgspec.structs.force_setattr(body, "routed_dp_rank", int(rank))
        return body, given

    def keep(self, num_bytes: int | None = None) -> None:
        """So many bytes of the body, or all of it, are needed until the answer is complete, and count until then; else
        they do until what it asks for waits, and counts itself.
        """
        if self._upload is not None:
            self._upload.kept = self._upload.size if num_bytes is None else num_bytes

    def keep_members(self, members: Mapping[str, RawValue]) -> None:
        """What the body consists of, so that :meth:`take_body` need not be split again."""
        self._members = members

    def release(self) -> None:
        """The answer is complete."""
        if self.on_over is not None:
            self.on_over()
        if self._upload is not None:
            self._upload.release()

    def watch_client(self, task: asyncio.Task[Any]) -> Callable[[], object]:
        """Cancel ``task`` when the client leaves, until what is returned is called."""

        def leave() -> None:
            self.client_left = True
            task.cancel()

        writer = self.writer
        if writer is None:
            return asyncio.create_task(self._await_leaving(leave)).cancel
        writer.watch(leave)
        return partial(writer.watch, None)

    def cut_off(self, task: asyncio.Task[Any]) -> None:
        """End the connection of a client, which ``task`` answers."""
        if self.writer is not None:
            self.writer.connection.abort()
        else:
            self.client_left = True
            task.cancel()

    async def _await_leaving(self, leave: Callable[[], None]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        leave()


Handler = Callable[[Call], Awaitable[Response | EventStream]]


@dataclass(frozen=True, eq=False)
class Front:
    """Parts of a server that all its routes share.

    Attributes:
        intake: receives bodies.
        gate: who may call.
        metrics: where requests are counted, but for those to probes.
        tracer: traces what is counted.
        answers: counts what answers take until they are read.
    """

    intake: BodyIntake
    gate: Gate
    metrics: Metrics | None = None
    tracer: OtelTracer | None = None
    answers: HeldAnswers | None = None


class Endpoint:
    """One route: an ASGI application that runs a handler, renders its errors and ends it when the client leaves."""

    def __init__(self, handler: Handler, route: Route, front: Front) -> None:
        self.is_control = route.access is Access.CONTROL
        """It acts on other clients' requests."""
        self._handler = handler
        self._route = route
        self._front = front
        self._metrics = None if route.is_probe else front.metrics
        self._takes_body = bool(route.bodies)
        self._needs_json = route.needs_json
        self._is_limited = route.is_limited

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        metrics, tracer, method, headers = self._metrics, self._front.tracer, scope["method"], scope["headers"]
        path = self._route.path
        if metrics is None:
            await self._answer(scope, receive, send, RequestContext(request_id_of(headers)))
            return
        span = None
        if tracer is not None:
            attributes = {"http.request.method": method, "http.route": path}
            span = tracer.begin(f"{method} {path}", headers, attributes)
        metrics.http_requests[path, method] += 1
        metrics.http_requests_active += 1
        status = 500
        try:
            status = await self._answer(scope, receive, send, RequestContext(request_id_of(headers), span))
        finally:
            metrics.http_requests_active -= 1
            metrics.http_responses[path, method, status] += 1
            if span is not None:
                span.end(status)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, context: RequestContext) -> int:
        """Run the handler and send what it makes; returns the status."""
        front, dialect = self._front, self._route.api.errors
        call = Call(scope, receive, front.intake)
        held = None if front.answers is None else HeldAnswer(front.answers)
        context.answer = held
        CURRENT.set(context)
        unwatch: Callable[[], object] | None = None
        try:
            try:
                key = front.gate.check(self._route.access, call.headers)
                if self._is_limited:
                    call.on_over = front.gate.begin(key)
                if scope["query_string"]:
                    self._check_query(call)
                if self._takes_body:
                    context.on_taken = await call.read_body()
                if self._needs_json:
                    call.require_json()
                task = asyncio.current_task()
                assert task is not None
                unwatch = call.watch_client(task)
                try:
                    answer = await self._handler(call)
                finally:
                    if call.unknown:
                        note_unknown(call.unknown)
                if isinstance(answer, EventStream):
                    return await self._send_events(answer, send, call.dialect or dialect, context.headers)
                if held is not None and len(answer.body) > SLICE_BYTES:
                    failure = held.read(len(answer.body), partial(call.cut_off, task))
                    if failure is not None:
                        raise failure
            except BoughError as error:
                answer = _error(error, call.dialect or dialect)
            except Exception:
                logger.exception("A request to %s failed", self._route.path)
                answer = _error(RequestFailed(INTERNAL_ERROR, code="internal_error"), call.dialect or dialect)
            await answer.send(send, call.writer, context.headers)
            return answer.status
        except asyncio.CancelledError:
            if not call.client_left:
                raise
            return CLIENT_CLOSED_REQUEST
        finally:
            call.release()
            if held is not None:
                held.release()
            if unwatch is not None:
                unwatch()

    def _check_query(self, call: Call) -> None:
        """Say which parameters of the query string nobody knows: clients add their own to what they ask, so only what
        acts on the server refuses them. What is known is said once.

        Raises:
            BadRequest: if there are any, on a route for control, or if one that is known comes again.
        """
        names, access = [name for name, _ in call.query_items], self._route.access
        known = [each.name for each in self._route.query]
        for name in (each.name for each in self._route.query if not each.repeats):
            if names.count(name) > 1:
                raise BadRequest(f"query parameter {name} is given more than once", param=name)
        unknown = [name for name in dict.fromkeys(names) if name not in known]
        if not unknown or access is Access.OPEN:
            return
        if access is Access.CONTROL:
            shown = unknown[0][:64]
            raise BadRequest(f"unknown query parameter: {shown}", param=shown, code="unknown_parameter")
        log_unknown(unknown, f"unknown query parameters of {self._route.path}")

    async def _send_events(self, stream: EventStream, send: Send, dialect: ErrorDialect, more_headers: Headers) -> int:
        events = stream.events
        try:
            first = await anext(events, b"")
            headers = [(b"content-type", stream.content_type), *_STREAM_HEADERS, *more_headers]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            message = {"type": "http.response.body", "body": first, "more_body": True}
            await send(message)
            last = stream.end
            try:
                async for event in events:
                    message["body"] = event
                    await send(message)
            except BoughError as error:
                last = dialect.event(error) + stream.end
            except Exception:
                logger.exception("A stream from %s failed", self._route.path)
                last = dialect.event(RequestFailed(INTERNAL_ERROR, code="internal_error")) + stream.end
            await send({"type": "http.response.body", "body": last, "more_body": False})
            return 200
        finally:
            await events.aclose()


def _error(error: BoughError, dialect: ErrorDialect) -> Response:
    return Response(dialect.body(error), error.status_code, headers=tuple(error_headers(error)))
