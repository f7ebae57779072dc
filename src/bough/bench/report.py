"""Writing results to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bough.config.user_paths import path_kind, rewrite, user_path
from bough.errors import ConfigError, StartupError


def result_path(text: str | None) -> Path | None:
    """Where results are to be written; tried at once, because a benchmark takes its time.

    Makes the directory.

    Raises:
        ConfigError: if there can be no such file.
        StartupError: if it cannot be written.
    """
    if text is None:
        return None
    path = user_path(text)
    kind = path_kind(path, "output_file")
    if kind == "directory":
        raise ConfigError(f"{path} is a directory", param="output_file")
    if kind == "disk":
        raise ConfigError(f"{path} is a disk", param="output_file")
    if kind != "other":
        rewrite(path, None)
    return path


def write_json(path: Path, result: Any) -> None:
    """Write ``result`` to ``path``, making its directory. What was there stays until all of it is written.

    Raises:
        StartupError: if the file cannot be written.
    """
    content = json.dumps(result, indent=2) + "\n"
    if path_kind(path, "output_file") != "other":
        rewrite(path, lambda file: file.write(content.encode()))
        return
    try:
        path.write_text(content, encoding="utf-8")  # a pipe or a terminal
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None
