"""Traces of requests in the words of OpenTelemetry, whose packages are imported only when traces are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

Attributes = Mapping[str, "str | int | float | bool"]


class Span(Protocol):
    """Work that has begun, is part of a trace, and may have parts."""

    @property
    def traceparent(self) -> str:
        """The span by the name that W3C's Trace Context gives it."""
        ...

    def output(self, begin: float, stages: Mapping[str, tuple[float, float]], attributes: Attributes) -> None:
        """Add an output that has ended now, and its stages: each one's begin and end, monotonic seconds."""
        ...

    def end(self, status: int, attributes: Attributes) -> None:
        """The work is done; ``status`` is that of the HTTP answer."""
        ...


class Tracer(Protocol):
    """Begins spans."""

    def begin(self, name: str, headers: Iterable[tuple[bytes, bytes]], attributes: Attributes) -> Span:
        """The span of an HTTP request; part of the client's trace, if the headers name one."""
        ...

    def close(self) -> None:
        """Export what waits, for a bounded time."""
        ...
