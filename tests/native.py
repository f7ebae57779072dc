"""Whether the native kernels are there, tests of which are skipped where no compiler was, and for which machines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bough.kernels.library import Isa, LibraryMissing, best_isa, load_library, set_isa

try:
    load_library()
    MISSING = ""
except LibraryMissing as error:
    MISSING = str(error)

needs_native = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(params=list(Isa), ids=lambda isa: isa.name.lower())
def isa(request: pytest.FixtureRequest) -> Iterator[Isa]:
    """Each instruction set that this machine has, in use for the test."""
    if not set_isa(request.param):
        pytest.skip(f"this machine lacks {request.param.name}")
    yield request.param
    set_isa(best_isa())


def each_isa() -> Iterator[Isa]:
    """Use each instruction set of this machine in turn, for tests whose reference is the same for all."""
    try:
        for candidate in Isa:
            if set_isa(candidate):
                yield candidate
    finally:
        set_isa(best_isa())
