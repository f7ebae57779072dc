"""What is known of the HTTP request that is being answered, for whatever is logged or recorded on its behalf."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar

import msgspec

from bough.observability.tracing import Span

REQUEST_ID_HEADER = b"x-request-id"

_USABLE_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class RequestContext(msgspec.Struct):
    """One HTTP request.

    Attributes:
        request_id: what the client has called it in ``x-request-id``, or an id made here.
        span: of the whole request, if it is traced.
        on_taken: to be called once what it asks for counts among what waits to be computed; of its body only what is
            kept counts then.
    """

    request_id: str
    span: Span | None = None
    on_taken: Callable[[], None] | None = None

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What the answer tells of it."""
        headers = [(REQUEST_ID_HEADER, self.request_id.encode("ascii"))]
        if self.span is not None:
            headers.append((b"traceresponse", self.span.traceparent.encode("ascii")))
        return headers


CURRENT: ContextVar[RequestContext | None] = ContextVar("bough_request", default=None)
"""The request on whose behalf the running task works; a server sets it, an ``Engine`` never does."""


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """What the client calls its request, if that is at most 128 printable ASCII characters, no blanks; or a new id."""
    for name, value in headers:
        if name == REQUEST_ID_HEADER and _USABLE_ID.fullmatch(value):
            return value.decode("ascii")
    return os.urandom(16).hex()
