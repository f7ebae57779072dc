"""Writing results to files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from bough.config.user_paths import IRREPLACEABLE, path_kind, user_path
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
        _replace(path, None)
    return path


def write_json(path: Path, result: Any) -> None:
    """Write ``result`` to ``path``, making its directory. What was there stays until all of it is written.

    Where no other file can take its place, it is overwritten. A file keeps its mode.

    Raises:
        StartupError: if the file cannot be written.
    """
    content = json.dumps(result, indent=2) + "\n"
    if path_kind(path, "output_file") != "other":
        _replace(path, content)
        return
    try:
        path.write_text(content, encoding="utf-8")  # a pipe or a terminal
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None


def _replace(path: Path, content: str | None) -> None:
    """Write a file beside ``path`` and put it in its place; without content, only try to write one."""
    target = path.resolve()
    part = target.with_name(f"{target.name[:100]}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _replace_by(part, target, content)
        except OSError as error:
            if error.errno not in IRREPLACEABLE or not target.exists():
                raise
            with target.open("a" if content is None else "w", encoding="utf-8") as file:
                file.write(content or "")
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None


def _replace_by(part: Path, target: Path, content: str | None) -> None:
    try:
        with part.open("w", encoding="utf-8") as file:
            if target.exists():  # before there is anything in it that not everybody may read
                shutil.copymode(target, part)
            file.write(content or "")
        if content is not None:
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
