from __future__ import annotations

from collections.abc import Iterator

import pytest

from bough.kernels.library import Isa, best_isa, set_isa
from tests.native import MISSING


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING:
        for item in items:
            if "kernels" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture(params=list(Isa), ids=lambda isa: isa.name.lower())
def isa(request: pytest.FixtureRequest) -> Iterator[Isa]:
    """Each instruction set that this machine has, in use for the test."""
    if not set_isa(request.param):
        pytest.skip(f"this machine lacks {request.param.name}")
    yield request.param
    set_isa(best_isa())
