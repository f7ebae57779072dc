"""Whether the native kernels are there: tests of them are skipped where no compiler was."""

from __future__ import annotations

import pytest

from bough.kernels.library import LibraryMissing, load_library

try:
    load_library()
    MISSING = ""
except LibraryMissing as error:
    MISSING = str(error)

needs_native = pytest.mark.skipif(bool(MISSING), reason=MISSING)
