from __future__ import annotations

from collections.abc import Iterator

import pytest

from bough.kernels.library import Isa, best_isa, set_isa
from tests.native import MISSING

_WITHOUT_LIBRARY = ("test_library.py", "test_build.py")
"""These tell what happens without it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING:
        for item in items:
            parts = item.path.parts
            if "kernels" in parts and "triton" not in parts and item.path.name not in _WITHOUT_LIBRARY:
                item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture(params=list(Isa), ids=lambda isa: isa.name.lower())
def isa(request: pytest.FixtureRequest) -> Iterator[Isa]:
    """Each instruction set that this machine has, in use for the test."""
    if not set_isa(request.param):
        pytest.skip(f"this machine lacks {request.param.name}")
    yield request.param
    set_isa(best_isa())
