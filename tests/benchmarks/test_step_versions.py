"""The comparison of two versions of a decode step, in real processes."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from benchmarks.step_versions import ROOT, compare

from bough.kernels.library import LIBRARY_FILE

ARGUMENTS = argparse.Namespace(shape="tiny", context=20, steps=2, turns=2, threads=1)


@pytest.mark.slow
@pytest.mark.skipif(not LIBRARY_FILE.is_file(), reason="needs the native kernels")
def test_two_versions_of_a_step_are_compared() -> None:
    line = compare((ROOT, ROOT), ARGUMENTS, "int8", 2)
    assert line["same_tokens"]
    assert float(str(line["ratio"])) > 0
    assert (line["precision"], line["running"], line["context"]) == ("int8", 2, 20)


def test_a_version_that_does_not_start_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "src" / "bough"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('this version is broken')")
    with pytest.raises(SystemExit, match="ended early"):
        compare((tmp_path, ROOT), ARGUMENTS, "bf16", 1)
    assert "this version is broken" in capfd.readouterr().err
