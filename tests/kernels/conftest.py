from __future__ import annotations

import pytest

from tests.native import MISSING, isa

__all__ = ["isa"]

_WITHOUT_LIBRARY = ("test_library.py", "test_build.py")
"""These tell what happens without it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING:
        for item in items:
            parts = item.path.parts
            if "kernels" in parts and "triton" not in parts and item.path.name not in _WITHOUT_LIBRARY:
                item.add_marker(pytest.mark.skip(reason=MISSING))
