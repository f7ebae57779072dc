from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.entrypoints.http.server import RunningServer, running_server


@pytest.fixture(scope="package")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("model")) as running:
        yield running


@pytest.fixture(scope="package")
def shared_client(shared_server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=shared_server.url, timeout=20) as http:
        yield http


@pytest.fixture
def server(shared_server: RunningServer) -> Iterator[RunningServer]:
    """A server that is idle again after the test."""
    yield shared_server
    engine = shared_server.engine
    shared_server.run(engine.gate.set)
    engine.token_delay, engine.refusal, engine.fail_after, engine.says = 0.0, None, None, None
    shared_server.assert_idle()


@pytest.fixture
def client(server: RunningServer, shared_client: httpx.Client) -> httpx.Client:
    return shared_client


@pytest.fixture(scope="package")
def shared_thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("thinker")
    with running_server(directory, context_len=4096, tool_call_parser="hermes", reasoning_parser="qwen3") as running:
        yield running


@pytest.fixture
def thinker(shared_thinker: RunningServer) -> Iterator[RunningServer]:
    """A server whose answers (``engine.says``) hold thoughts and tool calls; idle again after the test."""
    yield shared_thinker
    engine = shared_thinker.engine
    engine.token_delay, engine.refusal, engine.fail_after, engine.says = 0.0, None, None, None
    shared_thinker.assert_idle()


@pytest.fixture
def http(thinker: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=thinker.url, timeout=20) as client:
        yield client
