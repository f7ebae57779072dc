"""What `make` hands on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
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


def make_environment(directory: Path, pip: str, uv: str = "UV=") -> subprocess.CompletedProcess[str]:
    """Run the target that sets up the environment, with a program in place of pip."""
    shutil.copy(ROOT / "Makefile", directory)
    for name in ("setup.py", "pyproject.toml", "constraints.txt"):
        (directory / name).touch()
    program = directory / "pip"
    program.write_text(f"#!/bin/sh\n{pip}\n")
    program.chmod(0o755)
    (directory / "venv/bin").mkdir(parents=True)
    (directory / "venv/bin/python").symlink_to(sys.executable)
    arguments = (f"PIP={program}", uv, "VENV=venv", "TICK=1", "venv/.bough-base")
    return subprocess.run(["make", *arguments], cwd=directory, capture_output=True, text=True, check=False, timeout=60)


def test_a_long_installation_says_how_far_it_is(tmp_path):
    done = make_environment(tmp_path, 'dd if=/dev/zero of="${TMPDIR:-.}/wheel" bs=1M count=3 status=none; sleep 1.5')
    assert done.returncode == 0, done.stderr
    ticks = re.findall(r"(\d+) s: (\d+) MB fetched and unpacked, \d+ files compiled", done.stdout)
    assert len(ticks) >= 2
    assert max(int(size) for _, size in ticks) >= 3
    assert not (tmp_path / "venv/tmp").exists()


def test_an_installation_that_fails_says_why(tmp_path):
    done = make_environment(tmp_path, "test $1 = setuptools || { echo no route to the index >&2; exit 1; }")
    assert done.returncode != 0
    assert "no route to the index" in done.stderr
    assert not (tmp_path / "venv/.bough-base").exists()


@pytest.mark.parametrize("reachable", [True, False])
def test_torch_comes_by_a_uv_of_the_environments_own_or_else_by_pip(tmp_path, reachable):
    """Its index of builds for CPUs may be out of reach."""
    script = f"#!/bin/sh\\necho $0 $@ >> log\\nexit {0 if reachable else 1}\\n"
    get_uv = f"printf '{script}' > venv/bin/uv; chmod +x venv/bin/uv"
    done = make_environment(tmp_path, f"echo pip $@ >> log; test $1 != uv || {{ {get_uv}; }}", "UV=venv/bin/uv")
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "log").read_text().splitlines()
    by_uv, by_pip = ([line for line in log if line.startswith(name) and "torch==" in line] for name in ("venv/", "pip"))
    assert len(by_uv) == 1
    assert len(by_pip) == (0 if reachable else 1)
    assert any("--editable" in line for line in log)
