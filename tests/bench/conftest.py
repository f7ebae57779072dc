from __future__ import annotations

import pytest

from tests.bench.fake_server import fake_server


@pytest.fixture
def server():
    with fake_server() as running:
        yield running
