from __future__ import annotations

import pytest

from bough.constrained.llguidance_backend import LLGuidanceBackend
from tests.constrained.following import bundled_backend


@pytest.fixture(scope="package")
def backend() -> LLGuidanceBackend:
    return bundled_backend()
