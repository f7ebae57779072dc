"""Traces of requests in the words of OpenTelemetry, whose packages are imported only when traces are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.config.server_args import ServerArgs
from bough.errors import ConfigError

if TYPE_CHECKING:
    from bough.observability.otel import OtelTracer


def create_tracer(server_args: ServerArgs) -> OtelTracer | None:
    """Make the tracer that the options ask for; ``None`` if no traces are wanted. Raises :class:`ConfigError` if
    OpenTelemetry is not installed."""
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
