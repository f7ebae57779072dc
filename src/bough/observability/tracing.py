"""Traces of requests in the words of OpenTelemetry, whose packages are imported only when traces are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from bough.config.server_args import ServerArgs
from bough.errors import ConfigError

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

    def end(self, status: int) -> None:
        """The answer is complete; ``status`` is its HTTP status."""
        ...


class Tracer(Protocol):
    """Begins spans."""

    def begin(self, name: str, headers: Iterable[tuple[bytes, bytes]], attributes: Attributes) -> Span:
        """The span of an HTTP request; part of the client's trace, if the headers name one."""
        ...

    def close(self) -> None:
        """Export what waits, for a bounded time."""
        ...


def create_tracer(server_args: ServerArgs) -> Tracer | None:
    """What the options ask for; ``None`` if no traces are wanted.

    Raises:
        ConfigError: if OpenTelemetry is not installed.
    """
    if server_args.otlp_traces_endpoint is None:
        return None
    try:
        from bough.observability.otel import OtelTracer
    except ImportError as error:
        raise ConfigError(
            f"--otlp-traces-endpoint needs OpenTelemetry ({error}): "
            "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
            param="otlp_traces_endpoint",
        ) from None
    return OtelTracer.exporting(
        server_args.otlp_traces_endpoint, server_args.otlp_service_name, server_args.trace_sample_rate
    )
