"""Random requests made from the OpenAPI document: what comes back is what the document says, and never a failure.

`make fuzz` tries more of them, and sequences of requests that are about the same thing.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks

from bough.entrypoints.http.openapi import openapi_schema
from bough.entrypoints.http.routes import ROUTES
from tests.e2e.server import Server, running_server
from tests.minilm import minilm_path
from tests.thoroughness import THOROUGH


def not_a_failure(context: Any, response: Any, case: schemathesis.Case) -> bool | None:
    """No failure of the server, nor the end of a time that the request itself has set."""
    if response.status_code == 504 and isinstance(case.body, dict) and case.body.get("timeout"):
        return None
    return checks.not_a_server_error(context, response, case)


CHECKS = (
    not_a_failure,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
)
COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": not THOROUGH}

SMALL = ("--dtype", "float32", "--cpu-threads", "1", "--context-length", "64", "--max-parallel-samples", "3")
SERVERS = {
    "text": (*SMALL, "--max-outputs-per-request", "6"),
    "vectors": ("--model-path", str(minilm_path()), "--cpu-threads", "1"),
    "tight": (
        *(*SMALL, "--max-outputs-per-request", "3", "--max-running-requests", "2", "--max-queued-requests", "3"),
        *("--max-body-size", "65536", "--max-stop-strings", "1", "--max-logprobs", "2", "--max-grammar-size", "512"),
        *("--max-grammar-depth", "4", "--max-stored-responses", "2"),
    ),
}
"""On none of them a request is long."""

# The first phase tries every field at and beyond its bounds: thousands of requests.
PHASES = tuple(Phase) if THOROUGH else (Phase.generate,)
EXAMPLES = 60 if THOROUGH else 6

PAUSES = ("/pause_generation", "/pause")
"""After which every other request would wait."""

SLEEPS = ("/sleep", "/release_memory_occupation", "/resume_memory_occupation", "/wake_up", "/weights_checker")
"""After some of which every other request would be refused, or the weights are others."""

JOINING = "/init_weights_update_group"
"""Which waits for a trainer."""

CLOSED = "/collective_rpc"
"""Which an operator has to open."""

OF_TRAINERS = (
    *("/update_weights_from_tensor", "/update_weights_from_distributed", "/destroy_weights_update_group"),
    "/end_weight_update",
)
"""Whose examples need the weights of a model, or a trainer, to do more than to be refused."""

# Not from a fixture: schemathesis reads an attribute of pytest's there that pytest 9 does not have.
DOCUMENT = openapi_schema()
REFUSALS = {"expected-statuses": ["400", "404", "405", "413", "415", "503"]}
CONFIG = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": REFUSALS}})
schema = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG).exclude(path=JOINING)


@schemathesis.deserializer("application/x-ndjson")
def json_lines(_context: Any, response: Any) -> Any:
    """What a line is like; all are."""
    *_, last = [json.loads(line) for line in response.content.splitlines()]
    return last


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    with contextlib.ExitStack() as stack:
        running = {}
        for kind in SERVERS if THOROUGH else ("text", "vectors"):
            directory = tmp_path_factory.mktemp(kind)
            flags = ("--profile-dir", str(directory / "profiles"))
            running[kind] = stack.enter_context(running_server(directory, *flags, *SERVERS[kind]))
            served = running[kind].client.get("/openapi.json").json()
            assert served == json.loads(json.dumps(DOCUMENT)), "what is tried is what is served"
        yield running
        for server in running.values():
            server.assert_idle_and_whole()


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as opened:
        yield opened


@schema.parametrize()
@settings(max_examples=EXAMPLES, phases=PHASES, **COMMON)
def test_answers_are_as_documented(
    case: schemathesis.Case, servers: dict[str, Server], session: requests.Session
) -> None:
    able = "vectors" if re.search("embed|encode|rerank|classify|score", case.path) else "text"
    for kind in servers if THOROUGH else [able]:
        try:
            case.call_and_validate(base_url=servers[kind].url, session=session, checks=CHECKS, timeout=60)
        finally:
            if case.path in PAUSES:
                servers[kind].post("/continue_generation")
            if case.path in SLEEPS:
                servers[kind].post("/wake_up")
                path = servers[kind].client.get("/model_info").json()["model_path"]
                servers[kind].post("/update_weights_from_disk", model_path=path)  # some may be discarded


def test_what_answers_lead_to_is_as_documented(servers: dict[str, Server]) -> None:
    for kind in ["text", "vectors"]:
        served = schemathesis.openapi.from_url(f"{servers[kind].url}/openapi.json", config=CONFIG)
        served = served.exclude(path=[*PAUSES, JOINING, *SLEEPS])
        steps: dict[str, Any] = {"max_examples": 100, "stateful_step_count": 6} if THOROUGH else {"max_examples": 3}
        served.as_state_machine().run(settings=settings(**steps, phases=(Phase.generate,), **COMMON))


def test_examples_work(servers: dict[str, Server]) -> None:
    for kind in ["text", "vectors"]:
        served = servers[kind].client.get("/v1/models").json()["data"][0]["id"]
        servers[kind].client.post("/stop_profile")  # one may go on since the tests before
        for info in ROUTES:
            if info.body is None or info.path == JOINING:
                continue
            body = dict(info.body.example)
            if "model" in body:
                body["model"] = served
            if "model_path" in body:
                body["model_path"] = servers[kind].client.get("/model_info").json()["model_path"]
            answer = servers[kind].post(info.path, **body)
            if info.path == CLOSED:
                assert answer.status_code == 404, answer.text
                continue
            if info.path in OF_TRAINERS:
                assert answer.json()["success"] is False, (info.path, answer.text)
                continue
            # Some models make text, others vectors.
            assert answer.status_code == 200 or "this model" in answer.text, (info.path, answer.text)
