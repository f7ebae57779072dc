"""What `make` hands on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make")


def dry_run(*arguments: str) -> str:
    """What `make` would run."""
    command = ["make", "--dry-run", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


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
    assert " ".join(dry_run("serve", *variables).splitlines()[-1].split()).endswith(f"/bin/bough {command}")


def test_native_check_makes_every_check_of_the_kernels(monkeypatch):
    for name in ("MAKEFLAGS", "ROUNDS"):
        monkeypatch.delenv(name, raising=False)
    lines = (ROOT / "tests/native_check/Makefile").read_text().splitlines()
    checks = next(line for line in lines if line.startswith(".PHONY:")).split()[1:]
    assert len(checks) == 4
    printed = dry_run("native-check")
    assert all(f"native-check/{check}/check 20" in printed for check in checks)
