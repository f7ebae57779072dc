"""Random requests made from the OpenAPI document: what comes back is what the document says, and never a failure.

`make fuzz` tries more of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks

from bough.entrypoints.http.openapi import openapi_schema
from tests.e2e.server import Server, running_server

CHECKS = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.unsupported_method,
)
THOROUGH = settings.get_current_profile_name() == "thorough"
EXAMPLES = settings().max_examples if THOROUGH else 25
PHASES = tuple(Phase) if THOROUGH else (Phase.generate,)
"""The first phase tries every field at and beyond its bounds: thousands of requests."""

DOCUMENT = openapi_schema()
schema = schemathesis.openapi.from_dict(DOCUMENT)


@pytest.fixture(scope="module")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on which no request is long."""
    bounds = ("--context-length", "64", "--max-parallel-samples", "3", "--max-outputs-per-request", "6")
    flags = ("--dtype", "float32", "--cpu-threads", "1", *bounds)
    with running_server(tmp_path_factory.mktemp("fuzzed"), *flags) as server:
        served = server.client.get("/openapi.json").json()
        assert served == json.loads(json.dumps(DOCUMENT)), "what is tried is what is served"
        yield server
        server.assert_idle_and_whole()


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as opened:
        yield opened


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=PHASES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=not THOROUGH,
)
def test_answers_are_as_documented(case: schemathesis.Case, small_server: Server, session: requests.Session) -> None:
    case.call_and_validate(base_url=small_server.url, session=session, checks=CHECKS, timeout=30)
