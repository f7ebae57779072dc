from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture
def own_tmp(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A directory for sockets that nobody else uses, with a name that leaves room for theirs."""
    tmp_path_factory.getbasetemp()  # pytest's own directory must not be made inside this one
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield directory
