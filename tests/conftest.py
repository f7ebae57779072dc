from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

if not Path("/dev/nvidiactl").exists():
    # Before anything imports Triton: without a GPU its kernels are interpreted.
    os.environ.setdefault("TRITON_INTERPRET", "1")

# make fuzz: as long as one has patience for.
settings.register_profile("thorough", max_examples=60, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--server-python", help="Python that has the server, if the tests' own has only its clients")
    parser.addoption("--screenshots", help="directory for pictures of the playground in both themes")
