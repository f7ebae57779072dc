"""Log lines of Bough's own processes, as text or as JSON.

Only processes that belong to Bough call :func:`configure_logging`. In a host's process (the in-process ``Engine``) the
host decides what happens to the records of the ``bough`` logger.

A record whose argument is a mapping has fields: text shows those that its message names, JSON all of them, beside the
``event`` that the record is given as ``extra``.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from bough.config.server_args import LogFormat
from bough.observability.request_context import CURRENT

LOGGER_NAME = "bough"

_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
_FOREIGN_LOGGERS = ("uvicorn", "asyncio", "opentelemetry")
"""Loggers of libraries with warnings for the server's operator."""


def configure_logging(level: str, *, label: str = "", log_format: LogFormat = "text") -> None:
    """Send records of ``level`` and above to stderr, as ``[time label] message`` or as one JSON object a line.

    The ``label`` names the process where several of a kind write to one terminal (``TP1``).
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter(label) if log_format == "json" else _TextFormatter(label))
    number = logging.getLevelName(level.upper())
    _attach(LOGGER_NAME, handler, number)
    for name in _FOREIGN_LOGGERS:
        _attach(name, handler, max(number, logging.WARNING))


def escape(text: str) -> str:
    """``text`` on one line and without what a terminal obeys, so that no client can write a line of its own."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _TextFormatter(logging.Formatter):
    """Names the level where it is one that a reader must not miss, and then the request that is being answered."""

    def __init__(self, label: str) -> None:
        super().__init__("[%(asctime)s" + (f" {label}] " if label else "] ") + "%(message)s", _TIME_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = escape(record.message)
        if record.levelno >= logging.WARNING:
            context = CURRENT.get()
            request = f" (x-request-id {context.request_id})" if context is not None else ""
            record.message = f"{record.levelname}: {record.message}{request}"
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        # Indented: no line of it can be taken for a record.
        return "\n".join("  " + escape(line) for line in super().formatException(ei).splitlines())


class _JsonFormatter(logging.Formatter):
    def __init__(self, label: str) -> None:
        super().__init__()
        self._label = label

    def format(self, record: logging.LogRecord) -> str:
        shown: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if self._label:
            shown["process"] = self._label
        shown["message"] = record.getMessage()
        event = getattr(record, "event", None)
        if event is not None:
            shown["event"] = event
        if isinstance(record.args, Mapping):
            shown.update({key: value for key, value in record.args.items() if key not in shown})
        context = CURRENT.get()
        if context is not None:
            shown.setdefault("request_id", context.request_id)
        if record.exc_info:
            shown["exception"] = self.formatException(record.exc_info)
        return json.dumps(shown, default=str)


def _attach(name: str, handler: logging.Handler, level: int) -> None:
    logger = logging.getLogger(name)
    logger.handlers = [handler]
    logger.setLevel(level)
    logger.propagate = False
