"""Silence that a scheduler announces before work that keeps it from its heartbeats."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def announced_silence(announce: Callable[[float], None], seconds: float) -> Iterator[None]:
    """Announce so many seconds of silence, and its end afterwards, so that a later hang is not excused."""
    announce(seconds)
    try:
        yield
    finally:
        announce(0.0)
