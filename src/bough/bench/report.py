"""Writing results to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bough.errors import StartupError


def write_json(path: Path, result: Any) -> None:
    """Write ``result`` to ``path``, making its directory.

    Raises:
        StartupError: if the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None
