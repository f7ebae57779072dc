from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.gpu.busy import Interval, busy_share, busy_spans, keep
from benchmarks.gpu.report import Report


def test_overlapping_work_counts_once() -> None:
    intervals = [Interval(0, 4, "a"), Interval(6, 8, "b"), Interval(1, 2, "c"), Interval(3, 5, "d")]
    assert busy_spans(intervals) == [(0, 5), (6, 8)]
    assert busy_share(intervals) == 7 / 8
    assert busy_share([]) == 0.0


def test_a_profile_is_kept_with_its_picture(tmp_path: Path) -> None:
    keep([Interval(100.0, 600.0, "x"), Interval(700.0, 1300.0, "y")], tmp_path / "p.json", "decoding")
    kept = json.loads((tmp_path / "p.json").read_text())
    assert kept["busy_share"] == pytest.approx(11 / 12)
    assert kept["longest_gaps_us"] == [100.0]
    assert kept["start_us, duration_us, name"] == [[0.0, 500.0, 0], [600.0, 600.0, 1]]
    # The second goes on in the second row.
    assert (tmp_path / "p.svg").read_text().count('fill="#27c"') == 3


def test_what_is_not_installed_is_skipped_and_named_and_the_rest_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report(tmp_path / "r.json", torch.device("cpu"), 60.0)

    def needs_more() -> dict[str, Any]:
        import no_such_package.part  # type: ignore[import-not-found]

        return {"ok": bool(no_such_package)}

    def broken() -> dict[str, Any]:
        import bough.no_such_module  # type: ignore[import-not-found]

        return {"ok": bool(bough)}

    for name, cell in (("first", needs_more), ("second", broken), ("third", lambda: {"ok": True})):
        report.run(name, cell)
    assert report.failed == ["second"]
    assert report.summary().splitlines()[0].startswith("1 done, 1 wrong, 1 skipped")
    assert report.summary().splitlines()[1:3] == ["skipped: first", "not installed: no_such_package"]
    assert report.left_out == ["first"]
    assert "this is not all" in report.summary()
    assert [cell["name"] for cell in json.loads((tmp_path / "r.json").read_text())["cells"]] == [
        "first", "second", "third",
    ]  # fmt: skip


def test_the_status_says_what_is_known(tmp_path: Path) -> None:
    report = Report(tmp_path / "r.json", torch.device("cpu"), 60.0)
    assert report.status == 2
    assert "nothing was run" in report.summary()
    report.run("fine", lambda: {"ok": True})
    assert report.status == 0
    report.left_out.append("late")
    assert report.status == 3
    report.run("wrong", lambda: {"ok": False})
    assert report.status == 1


@pytest.mark.slow
def test_a_name_that_no_cell_has_is_no_success(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu.bench", "--device", "cpu", "--only", "no such", "--output"]
    ran = subprocess.run(
        [*command, str(tmp_path / "r.json")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": "src"},
        timeout=60,
    )
    assert ran.returncode == 2, ran.stderr
    assert "nothing was run" in ran.stdout


def test_what_needs_an_optional_package_may_be_skipped(tmp_path: Path) -> None:
    report = Report(tmp_path / "r.json", torch.device("cpu"), 60.0, optional_packages=("no_such_package",))

    def needs_more() -> dict[str, Any]:
        import no_such_package

        return {"ok": bool(no_such_package)}

    report.run("first", needs_more)
    assert "skipped" in report.cells[0]
    assert report.left_out == []


def test_nothing_begins_when_time_is_up(tmp_path: Path) -> None:
    report = Report(tmp_path / "r.json", torch.device("cpu"), -1.0)
    report.run("late", lambda: pytest.fail("it began"))
    assert "skipped" in report.cells[0]
    assert report.left_out == ["late"]


def test_kernels_are_checked_where_only_torch_and_triton_are_installed(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)
    program = f"""
import runpy, sys
sys.modules.update(dict.fromkeys(("msgspec", "re2", "llguidance", "transformers")))
sys.argv = ["check", "--device", "cpu", "--output", {str(tmp_path / "r.json")!r}, "--only", "gather float32"]
runpy.run_module("benchmarks.gpu.check", run_name="__main__")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": "src"},
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert "1 done, 0 wrong, 0 skipped" in ran.stdout


@pytest.mark.slow
def test_a_check_that_lacks_a_package_does_not_pass(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)
    program = f"""
import runpy, sys
sys.modules["msgspec"] = None
sys.argv = ["check", "--device", "cpu", "--output", {str(tmp_path / "r.json")!r}, "--only", "serving"]
runpy.run_module("benchmarks.gpu.check", run_name="__main__")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": "src"},
        timeout=60,
    )
    assert ran.returncode == 3, ran.stderr
    assert "not installed: msgspec" in ran.stdout
