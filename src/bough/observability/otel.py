"""Spans as OpenTelemetry's SDK makes and exports them. Imported only where traces are wanted: extra ``otel``."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from bough import __version__

Attributes = Mapping[str, "str | int | float | bool"]

CLOSE_SECONDS = 2.0
"""Seconds that the end of a server may wait for spans to be exported."""

_EXPORT_TIMEOUT_S = 5.0
_PROPAGATOR = TraceContextTextMapPropagator()


class OtelSpan:
    """A span of one HTTP request, with those of its outputs below it."""

    def __init__(self, span: trace.Span, tracer: trace.Tracer) -> None:
        self._span = span
        self._tracer = tracer
        self._since_1970 = time.time_ns() - time.monotonic_ns()

    @property
    def traceparent(self) -> str:
        """Version, trace, span and flags (W3C Trace Context, section 3.2)."""
        context = self._span.get_span_context()
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def output(self, begin: float, stages: Mapping[str, tuple[float, float]], attributes: Attributes) -> None:
        """Add an output that has ended now, and its stages: each one's begin and end, in monotonic seconds."""
        if not self._span.is_recording() and not self._span.get_span_context().trace_flags.sampled:
            return
        above = trace.set_span_in_context(self._span)
        output = self._tracer.start_span(
            "generate", above, attributes=dict(attributes), start_time=self._nanoseconds(begin)
        )
        inside = trace.set_span_in_context(output)
        for name, (stage_begin, stage_end) in stages.items():
            stage = self._tracer.start_span(name, inside, start_time=self._nanoseconds(stage_begin))
            stage.end(self._nanoseconds(stage_end))
        output.end()

    def end(self, status: int) -> None:
        """The answer is complete; ``status`` is its HTTP status."""
        self._span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()

    def _nanoseconds(self, monotonic: float) -> int:
        return int(monotonic * 1e9) + self._since_1970


class OtelTracer:
    """Begins spans."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("bough", __version__)

    @classmethod
    def exporting(cls, endpoint: str, service_name: str, sample_rate: float) -> OtelTracer:
        """Return one that sends its spans from a thread of its own to a collector, whose ``endpoint`` takes OTLP over
        HTTP.

        ``sample_rate`` is the share of the traces that begin here which are recorded; a client's are if it says so.
        """
        provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(sample_rate)),
            resource=Resource.create({"service.name": service_name, "service.version": __version__}),
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_TIMEOUT_S)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return cls(provider)

    def begin(self, name: str, headers: Iterable[tuple[bytes, bytes]], attributes: Attributes) -> OtelSpan:
        """The span of an HTTP request; part of the client's trace, if the headers name one."""
        carrier = {
            key.decode("ascii"): value.decode("latin-1")
            for key, value in headers
            if key in (b"traceparent", b"tracestate")
        }
        span = self._tracer.start_span(
            name, _PROPAGATOR.extract(carrier), kind=trace.SpanKind.SERVER, attributes=dict(attributes)
        )
        return OtelSpan(span, self._tracer)

    def close(self) -> None:
        """Export what waits; a collector that does not answer delays the end only for a moment."""
        thread = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        thread.start()
        thread.join(CLOSE_SECONDS)
