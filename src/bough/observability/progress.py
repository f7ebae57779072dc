"""Showing how far a long job is: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from types import TracebackType
from typing import Literal

logger = logging.getLogger(__name__)

_BAR_CELLS = 30
_BAR_INTERVAL = 0.1
_LOG_INTERVAL = 5.0

Elsewhere = Literal["log", "lines", "nothing"]
"""What is shown where there is no terminal: log lines; a line on stderr now and then; nothing. With log lines a bar is
part of the log, too: there is none unless INFO is logged."""

Unit = Literal["bytes", "requests", "batches"]
"""What is counted. A bar tells how many, but for bytes, whose digits are too many to read."""


class Progress:
    """Progress towards ``total``, in ``unit``; a context manager, so that a bar is always ended.

    ``done`` of them were done before; ``elsewhere`` is what is shown where there is no terminal.
    """

    def __init__(
        self, what: str, total: int, *, done: int = 0, unit: Unit = "bytes", elsewhere: Elsewhere = "log"
    ) -> None:
        self.what = what
        self.total = max(total, 1)
        self.done = done
        self.failed = 0
        self._unit = unit
        self._elsewhere = elsewhere
        is_wanted = elsewhere != "log" or logger.isEnabledFor(logging.INFO)
        self._on_terminal = sys.stderr is not None and sys.stderr.isatty() and is_wanted
        self._next_shown = time.monotonic() + (0.0 if self._on_terminal else _LOG_INTERVAL)

    @property
    def is_shown(self) -> bool:
        """True if it is seen anywhere."""
        is_logged = self._elsewhere == "log" and logger.isEnabledFor(logging.INFO)
        return self._on_terminal or is_logged or (self._elsewhere == "lines" and sys.stderr is not None)

    def __enter__(self) -> Progress:
        if self._on_terminal:
            self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._on_terminal:
            self._draw()
            print(file=sys.stderr)

    def advance(self, amount: int, *, failed: int = 0) -> None:
        """Count so much more as done, ``failed`` of it in vain."""
        self.done += amount
        self.failed += failed
        now = time.monotonic()
        if now < self._next_shown:
            return
        if self._on_terminal:
            self._next_shown = now + _BAR_INTERVAL
            self._draw()
        else:
            self._next_shown = now + _LOG_INTERVAL
            if self._elsewhere == "lines" and sys.stderr is not None:
                print(f"{self.what}: {self._counts()}", file=sys.stderr, flush=True)
            elif self._elsewhere == "log":
                logger.info("%s: %d %%", self.what, self._percent())

    def _counts(self) -> str:
        return f"{self.done}/{self.total}" + (f", {self.failed} failed" if self.failed else "")

    def _percent(self) -> int:
        return min(100 * self.done // self.total, 100)

    def _draw(self) -> None:
        counts = "" if self._unit == "bytes" else f"  {self._counts()}"
        # A line that wraps could not be drawn over.
        columns = shutil.get_terminal_size().columns - len(f"{self.what}  100 %{counts}") - 1
        cells = max(min(_BAR_CELLS, columns), 0)
        filled = cells * self._percent() // 100
        bar = "█" * filled + "·" * (cells - filled)
        print(f"\r{self.what} {bar} {self._percent():3d} %{counts}", end="", file=sys.stderr, flush=True)
