"""Distribution of the tests over processes.

The marker xdist_group does nothing where pytest keeps the name of a test in another attribute than the one that
pytest-xdist 3.8 writes (pytest 9.2). Units that are made from names alone do not depend on it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("tests/conformance", "tests/e2e")
"""Folders with a server in their conftest.py for all files that start none."""


@cache
def unit_of(file: str) -> str:
    """The file itself, or its folder if its tests use the server of the folder."""
    folder = file.rpartition("/")[0]
    if folder not in PACKAGES:
        return file
    text = (ROOT / file).read_text(encoding="utf-8")
    return folder if "server: Server" in text and "running_server(" not in text else file


class UnitsOfWork(LoadScopeScheduling):
    """Gives all tests of a unit to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid.partition("::")[0])
