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
    """Progress in bytes; a context manager, so that a bar is always ended. Silent where INFO is not logged."""

    def __init__(self, what: str, total_bytes: int) -> None:
        self.what = what
        self.total_bytes = max(total_bytes, 1)
        self.done_bytes = 0
        self._on_terminal = sys.stderr.isatty() and logger.isEnabledFor(logging.INFO)
        self._next_shown = time.monotonic() + (0.0 if self._on_terminal else _LOG_INTERVAL)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._on_terminal:
            self._draw()
            print(file=sys.stderr)

    def advance(self, num_bytes: int) -> None:
        """Count ``num_bytes`` more as done."""
        self.done_bytes += num_bytes
        now = time.monotonic()
        if now < self._next_shown:
            return
        if self._on_terminal:
            self._next_shown = now + _BAR_INTERVAL
            self._draw()
        else:
            self._next_shown = now + _LOG_INTERVAL
            logger.info("%s: %d %%", self.what, self._percent())

    def _percent(self) -> int:
        return min(100 * self.done_bytes // self.total_bytes, 100)

    def _draw(self) -> None:
        filled = _BAR_CELLS * self._percent() // 100
        bar = "█" * filled + "·" * (_BAR_CELLS - filled)
        print(f"\r{self.what} {bar} {self._percent():3d} %", end="", file=sys.stderr, flush=True)
