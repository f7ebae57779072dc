"""Parts of requests that are left out: the log names each once."""

from __future__ import annotations

import logging
from collections.abc import Iterable

MAX_NAMES = 512
"""Most names that are logged as long as the process runs, so that no client fills the log."""

logger = logging.getLogger(__name__)


class LeftOut:
    """Parts of one kind.

    Args:
        what: the kind, for the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._logged: set[str] = set()

    def log(self, names: Iterable[str]) -> None:
        """Log those names that are new."""
        for name in names:
            if name not in self._logged and len(self._logged) < MAX_NAMES:
                self._logged.add(name)
                logger.warning("Leaving out %s %.64r, here and in later requests", self._what, name)
