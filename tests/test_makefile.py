"""What `make` hands on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize(
    ("variables", "command"),
    [
        ([], "serve"),
        (["PORT=8000"], "serve --port 8000"),
        (["MODEL=/m", "PORT=8000", "ARGS=--dtype float32"], "serve /m --port 8000 --dtype float32"),
    ],
)
def test_the_variables_of_serve_are_flags_of_the_server(variables, command, monkeypatch):
    for name in ("MODEL", "ARGS", "MAKEFLAGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PORT", "8080")  # as in many a container, for something else
    printed = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "serve", *variables],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert " ".join(printed.splitlines()[-1].split()).endswith(f"/bin/bough {command}")
