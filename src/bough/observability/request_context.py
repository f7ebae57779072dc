"""Facts about the HTTP request that is being answered, for all that is logged or recorded on its behalf."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import msgspec

from bough.errors import BoughError

if TYPE_CHECKING:
    from bough.observability.otel import OtelSpan

REQUEST_ID_HEADER = b"x-request-id"

IGNORED_FIELDS_HEADER = b"x-bough-ignored-fields"
MAX_IGNORED_SHOWN = 16
"""Most ignored fields named in the header."""

MAX_IGNORED_CHARS = 64
"""Most characters of each name."""

_NOT_IN_HEADERS = re.compile(rb"[^\x21-\x2b\x2d-\x7e]")
"""Bytes that would end the header or one of its items, or that headers do not allow."""

_USABLE_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class Holder(Protocol):
    """Counts the memory of an answer until it has been sent."""

    def hold(self, num_bytes: int) -> BoughError | None:
        """Add bytes (negative to subtract); return an error if the answer must be dropped."""
        ...


class RequestContext(msgspec.Struct):
    """One HTTP request.

    Attributes:
        request_id: from the client's ``x-request-id``, or generated here.
        span: trace span of the whole request, if it is traced.
        ignored_fields: paths of unknown fields in the body.
        on_taken: called once the request counts as waiting to be computed; from then on only the parts of its body
            that are kept count.
        answer: counts the memory of the answer; ``None`` if that is not limited.
    """

    request_id: str
    span: OtelSpan | None = None
    on_taken: Callable[[], None] | None = None
    ignored_fields: list[str] = []
    answer: Holder | None = None

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of the answer that are about it."""
        headers = [(REQUEST_ID_HEADER, self.request_id.encode("ascii"))]
        if self.span is not None:
            headers.append((b"traceresponse", self.span.traceparent.encode("ascii")))
        if self.ignored_fields:
            headers.append((IGNORED_FIELDS_HEADER, _listed(self.ignored_fields)))
        return headers


CURRENT: ContextVar[RequestContext | None] = ContextVar("bough_request", default=None)
"""The request on whose behalf the running task works; a server sets it, an ``Engine`` never does."""


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The client's id of its request, if that is at most 128 printable ASCII characters, no blanks; or a new id."""
    for name, value in headers:
        if name == REQUEST_ID_HEADER and _USABLE_ID.fullmatch(value):
            return value.decode("ascii")
    return os.urandom(16).hex()


def _listed(names: Iterable[str]) -> bytes:
    """Return names as the value of a header."""
    shown = (_NOT_IN_HEADERS.sub(b"", name[:MAX_IGNORED_CHARS].encode("utf-8", "replace")) for name in names)
    return b", ".join(islice(filter(None, dict.fromkeys(shown)), MAX_IGNORED_SHOWN))
