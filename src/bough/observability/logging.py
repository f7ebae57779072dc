"""Log lines of Bough's own processes.

Only processes that belong to Bough call :func:`configure_logging`. In a host's process (the in-process ``Engine``) the
host decides what happens to the records of the ``bough`` logger.
"""

from __future__ import annotations

import logging
import sys

LOGGER_NAME = "bough"

_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
_FOREIGN_LOGGERS = ("uvicorn", "asyncio")
"""Loggers of libraries whose warnings concern whoever runs the server."""


def configure_logging(level: str, *, label: str = "") -> None:
    """Send records of ``level`` and above to stderr, as ``[time label] message``.

    Args:
        level: ``debug`` to ``critical``.
        label: names the process where several of a kind write to one terminal (``TP1``).
    """
    stamp = "[%(asctime)s" + (f" {label}] " if label else "] ")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(stamp + "%(message)s", _TIME_FORMAT))
    number = logging.getLevelName(level.upper())
    _attach(LOGGER_NAME, handler, number)
    for name in _FOREIGN_LOGGERS:
        _attach(name, handler, max(number, logging.WARNING))


class _Formatter(logging.Formatter):
    """Names the level where it is one that a reader must not miss."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        if record.levelno >= logging.WARNING:
            record.message = f"{record.levelname}: {record.message}"
        return super().formatMessage(record)


def _attach(name: str, handler: logging.Handler, level: int) -> None:
    logger = logging.getLogger(name)
    logger.handlers = [handler]
    logger.setLevel(level)
    logger.propagate = False
