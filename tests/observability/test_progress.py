"""A progress bar is for those who want to read what happens."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from bough.observability.progress import Elsewhere, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("level", "is_shown"), [(logging.INFO, True), (logging.ERROR, False)])
def test_bar_follows_the_log_level(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, level: int, is_shown: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    caplog.set_level(level, "bough")
    with Progress("Loading", 100) as progress:
        progress.advance(50)
    assert progress.is_shown == is_shown
    assert bool(terminal.getvalue()) == is_shown


def test_a_process_without_standard_error_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("Loading", 100, elsewhere="lines") as progress:
        progress.advance(50)
    assert progress.done == 50
    assert not progress.is_shown


def test_where_there_is_no_terminal_lines_say_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bough.observability.progress._LOG_INTERVAL", 0.0)
    with Progress("Answering", 9, done=4, elsewhere="lines") as progress:
        progress.advance(2, failed=1)
    assert progress.is_shown
    assert capsys.readouterr().err == "Answering: 6/9, 1 failed\n"


def test_where_nobody_wants_lines_there_are_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("bough.observability.progress._LOG_INTERVAL", 0.0)
    caplog.set_level(logging.INFO, "bough")
    with Progress("Measuring", 9, elsewhere="nothing") as progress:
        progress.advance(2)
    assert not progress.is_shown
    assert capsys.readouterr().err == ""
    assert caplog.records == []


@pytest.mark.parametrize("elsewhere", ["lines", "log"])
def test_a_bar_of_requests_counts_them_from_its_first_sight(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, elsewhere: Elsewhere
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    caplog.set_level(logging.INFO, "bough")
    with Progress("Answering", 10, done=3, unit="requests", elsewhere=elsewhere) as progress:
        assert terminal.getvalue().endswith("  30 %  3/10")
        progress.advance(2, failed=1)
    assert terminal.getvalue().endswith("  50 %  5/10, 1 failed\n")


def test_a_bar_of_bytes_has_no_digits_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("Copying", 4, unit="bytes", elsewhere="lines") as progress:
        progress.advance(2)
    assert terminal.getvalue().endswith("  50 %\n")


@pytest.mark.parametrize("columns", [20, 40, 60, 200])
def test_a_bar_fits_into_its_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, columns: int
) -> None:
    caplog.set_level(logging.INFO, "bough")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    with Progress("Loading", 5) as progress:
        progress.advance(3)
    longest = max(map(len, terminal.getvalue().strip("\n").split("\r")))
    assert longest < columns
    assert columns < 200 or longest > 40
