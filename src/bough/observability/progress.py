"""Showing how far a long job is: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType

logger = logging.getLogger(__name__)

_BAR_CELLS = 30
_BAR_INTERVAL = 0.1
_LOG_INTERVAL = 5.0


class Progress:
    """How much of ``total`` is done, in any unit; a context manager, so that a bar is always ended.

    Args:
        what: is done.
        total: of the units that :meth:`advance` counts.
        shown: whether a bar is shown on a terminal, and elsewhere a line on stderr now and then; ``None``: a bar, or
            log lines, where INFO is logged.
    """

    def __init__(self, what: str, total: int, *, shown: bool | None = None) -> None:
        self.what = what
        self.total = max(total, 1)
        self.done = 0
        self.failed = 0
        is_wanted = logger.isEnabledFor(logging.INFO) if shown is None else shown
        self._prints_lines = shown is True and sys.stderr is not None
        self._on_terminal = sys.stderr is not None and sys.stderr.isatty() and is_wanted
        self._next_shown = time.monotonic() + (0.0 if self._on_terminal else _LOG_INTERVAL)

    def __enter__(self) -> Progress:
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
            if self._prints_lines:
                print(f"{self.what}: {self.done}/{self.total}, {self.failed} failed", file=sys.stderr, flush=True)
                return
            logger.info("%s: %d %%", self.what, self._percent())

    def _percent(self) -> int:
        return min(100 * self.done // self.total, 100)

    def _draw(self) -> None:
        filled = _BAR_CELLS * self._percent() // 100
        bar = "█" * filled + "·" * (_BAR_CELLS - filled)
        print(f"\r{self.what} {bar} {self._percent():3d} %", end="", file=sys.stderr, flush=True)
