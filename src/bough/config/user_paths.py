"""Paths as users write them, and files that are rewritten at once or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Literal

from bough.errors import ConfigError, StartupError

IRREPLACEABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)
"""How the system refuses to put another file in a file's place, which may be writable nevertheless: the directory is
read-only, or the file is mounted by itself."""


def user_path(text: str) -> Path:
    """A path whose ``~`` or ``~user`` stands for a home directory.

    Where there is no such user it stands for itself, as in a shell; ``Path.expanduser`` raises ``RuntimeError``.
    """
    return Path(os.path.expanduser(text))


def shown_path(path: str | bytes) -> str:
    """Return a path as text that JSON can hold: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def path_kind(path: Path, param: str) -> Literal["directory", "file", "disk", "other"] | None:
    """What is at a path; ``None`` if there is nothing.

    A disk is any block device; pipes, character devices and sockets are other.

    Args:
        param: the option that the path comes from.

    Raises:
        ConfigError: if nobody can tell: a directory above is closed to this user, a name is too long. Of these,
            ``Path.exists`` and its like raise some, and take others for absence, depending on Python's version.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last of a null byte
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}", param=param) from None
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISBLK(mode):
        return "disk"
    return "file" if stat.S_ISREG(mode) else "other"


def rewrite(path: Path, write: Callable[[IO[bytes]], object] | None, *, kept: int = 0) -> None:
    """Write a file, making its directory, so that a crash in between loses nothing of what was there.

    Where no other file can take its place, it is overwritten. A file keeps its mode.

    Args:
        path: of the file; a link stays one.
        write: writes what comes behind the kept bytes; ``None`` to find out only that a file can be written.
        kept: bytes at the beginning of the old file that stay.

    Raises:
        StartupError: if it cannot be written.
    """
    target = path.resolve()
    part = target.with_name(f"{target.name[:100]}.{os.getpid()}.part")

    def write_behind(file: IO[bytes]) -> None:
        if write is not None:
            file.seek(kept)
            write(file)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666), "wb") as file:
                if target.exists():  # before there is anything in it that not everybody may read
                    shutil.copymode(target, part)
                if kept:
                    with target.open("rb") as old:
                        shutil.copyfileobj(old, file)
                write_behind(file)
            if write is not None:
                os.replace(part, target)
        except OSError as error:
            if error.errno not in IRREPLACEABLE or not target.exists():
                raise
            with target.open("r+b") as old_file:  # the one case in which a crash can lose something
                write_behind(old_file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None
