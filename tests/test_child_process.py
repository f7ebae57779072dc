"""Parts of this program that run by themselves are its own, whatever lies in the working directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bough import child_process
from bough.child_process import module_command, module_environment


@pytest.mark.parametrize("version", [(3, 10), sys.version_info])
def test_modules_in_the_working_directory_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...]
) -> None:
    monkeypatch.setattr(child_process.sys, "version_info", version)
    monkeypatch.setattr(child_process.sys, "path", [path for path in sys.path if path])
    environment = module_environment()
    if version < (3, 11):
        del environment["PYTHONSAFEPATH"]  # which these do not know
    for name in ("platform", "runpy", "tokenizers"):
        (tmp_path / f"{name}.py").write_text("print('a stranger')")
    told = subprocess.run(
        module_command("platform", "terse"), cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "stranger" not in told.stdout
    assert "Linux" in told.stdout or "macOS" in told.stdout or "Darwin" in told.stdout
