"""Traces: a span for a request, one for each of its outputs and its stages, in the client's trace; none when off."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from bough.config.server_args import ServerArgs
from bough.errors import ConfigError
from bough.observability.otel import OtelTracer
from bough.observability.tracing import create_tracer
from tests.entrypoints.http.server import RunningServer, running_server

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
COMPLETION = {"prompt": "Hi", "max_tokens": 3, "temperature": 0.5}
STAGES = ["tokenize", "queue", "prefill", "decode", "detokenize"]


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, exporter: InMemorySpanExporter) -> Iterator[RunningServer]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with running_server(tmp_path_factory.mktemp("model"), tracer=OtelTracer(provider)) as running:
        yield running


@pytest.fixture
def http(traced: RunningServer, exporter: InMemorySpanExporter) -> Iterator[httpx.Client]:
    exporter.clear()
    with httpx.Client(base_url=traced.url, timeout=20) as client:
        yield client
    traced.assert_idle()


def spans(exporter: InMemorySpanExporter, count: int) -> dict[str, list[ReadableSpan]]:
    deadline = time.monotonic() + 5
    while len(exporter.get_finished_spans()) < count and time.monotonic() < deadline:
        time.sleep(0.005)  # a span ends after the client has its answer
    named: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        named.setdefault(span.name, []).append(span)
    assert sum(map(len, named.values())) == count
    return named


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("n", [1, 2])
def test_every_output_has_its_stages(http: httpx.Client, exporter: InMemorySpanExporter, stream: bool, n: int) -> None:
    assert http.post("/v1/completions", json={**COMPLETION, "stream": stream, "n": n}).status_code == 200
    named = spans(exporter, 1 + n * (1 + len(STAGES)))
    (request,) = named["POST /v1/completions"]
    assert request.parent is None
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert len(named["generate"]) == n
    for output in named["generate"]:
        assert output.parent is not None
        assert output.parent.span_id == request.context.span_id
        assert output.attributes is not None
        assert output.attributes["gen_ai.usage.output_tokens"] == 3
        assert output.attributes["gen_ai.request.temperature"] == 0.5
        assert output.attributes["bough.outcome"] == "finished"
        own = [s for s in exporter.get_finished_spans() if s.parent and s.parent.span_id == output.context.span_id]
        assert [span.name for span in own] == STAGES
        times = [time for span in own for time in (span.start_time, span.end_time)]
        assert times == sorted(times), "one after the other"
        assert output.start_time is not None
        assert abs(output.start_time / 1e9 - time.time()) < 60


def test_the_clients_trace_goes_on_and_is_told(http: httpx.Client, exporter: InMemorySpanExporter) -> None:
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b"}
    told = http.post("/v1/completions", json=COMPLETION, headers=headers).headers["traceresponse"]
    (request,) = spans(exporter, 2 + len(STAGES))["POST /v1/completions"]
    assert f"{request.context.trace_id:032x}" == TRACE
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == PARENT
    assert request.context.trace_state.get("a") == "b"
    assert told == f"00-{TRACE}-{request.context.span_id:016x}-01"


@pytest.mark.parametrize("given", ["", "nonsense", "00-0-0-0", f"00-{'0' * 32}-{PARENT}-01", "\xff" * 55, "00-" * 4000])
def test_a_context_that_is_none_begins_a_new_trace(
    http: httpx.Client, exporter: InMemorySpanExporter, given: str
) -> None:
    answer = http.post("/v1/completions", json=COMPLETION, headers={b"traceparent": given.encode("latin-1")})
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]", answer.headers["traceresponse"])
    assert TRACE not in answer.headers["traceresponse"]
    spans(exporter, 2 + len(STAGES))


def test_refusals_are_traced_and_probes_are_not(http: httpx.Client, exporter: InMemorySpanExporter) -> None:
    assert http.post("/v1/completions", json={"nonsense": 1}).status_code == 400
    assert "traceresponse" not in http.get("/health").headers
    http.get("/metrics")
    (request,) = spans(exporter, 1)["POST /v1/completions"]
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 400


def test_a_client_that_wants_no_trace_gets_none(http: httpx.Client, exporter: InMemorySpanExporter) -> None:
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
    told = http.post("/v1/completions", json=COMPLETION, headers=headers).headers["traceresponse"]
    assert told.endswith("-00")
    time.sleep(0.05)
    assert exporter.get_finished_spans() == ()


def test_what_is_not_sampled_has_no_parts() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    span = OtelTracer(provider).begin("x", [], {})
    span.output(time.monotonic(), {"queue": (1.0, 2.0)}, {})
    span.end(200)
    assert exporter.get_finished_spans() == ()


class Collector(BaseHTTPRequestHandler):
    """Takes whatever comes."""

    bodies: list[bytes]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def test_spans_reach_a_collector_at_the_latest_when_the_server_ends() -> None:
    Collector.bodies = []
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1/traces"
        tracer = create_tracer(ServerArgs(otlp_traces_endpoint=url, otlp_service_name="my-service"))
        assert tracer is not None
        tracer.begin("a request", [], {}).end(200)
        tracer.close()
        server.shutdown()
    (body,) = Collector.bodies
    assert b"a request" in body
    assert b"my-service" in body


def test_a_collector_that_does_not_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.observability.otel.CLOSE_SECONDS", 0.05)
    provider = TracerProvider()
    tracer, answers = OtelTracer(provider), threading.Event()
    shut_down: list[bool] = []
    monkeypatch.setattr(provider, "shutdown", lambda: shut_down.append(answers.wait(20)))
    tracer.close()
    assert not shut_down, "it was not waited for"
    answers.set()


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://x", "http://"])
def test_an_endpoint_is_an_http_url(url: str) -> None:
    with pytest.raises(ConfigError, match="must begin with http"):
        ServerArgs(otlp_traces_endpoint=url)


def test_nothing_of_it_is_imported_when_it_is_off() -> None:
    script = (
        "import sys, bough.entrypoints.server_run, bough.entrypoints.http.app, bough.managers.tokenizer_manager\n"
        "from bough.config.server_args import ServerArgs\n"
        "from bough.observability.tracing import create_tracer\n"
        "assert create_tracer(ServerArgs()) is None\n"
        "SLOW = ('opentelemetry.sdk', 'opentelemetry.exporter')\n"
        "print([name for name in sys.modules if name.startswith((*SLOW, 'torch'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_missing_package_is_named() -> None:
    script = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "from bough.config.server_args import ServerArgs\n"
        "from bough.errors import ConfigError\n"
        "from bough.observability.tracing import create_tracer\n"
        "try:\n    create_tracer(ServerArgs(otlp_traces_endpoint='http://x/'))\n"
        "except ConfigError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http" in done.stdout
