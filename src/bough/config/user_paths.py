"""Paths as users write them."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Literal

from bough.errors import ConfigError

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
        path: where to look.
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
