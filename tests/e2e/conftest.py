from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.e2e.server import Server, running_server


@pytest.fixture(scope="package")
def package_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The bundled model in float32, in which equal means equal."""
    directory = tmp_path_factory.mktemp("server")
    with running_server(directory, "--dtype", "float32", "--cpu-threads", "1") as server:
        yield server


@pytest.fixture
def server(package_server: Server) -> Iterator[Server]:
    """The shared server; whatever a test did, it must leave nothing behind."""
    yield package_server
    package_server.assert_idle_and_whole()


@pytest.fixture
def openai_client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
