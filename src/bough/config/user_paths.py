"""Paths as users write them."""

from __future__ import annotations

import os
from pathlib import Path


def user_path(text: str) -> Path:
    """A path whose ``~`` or ``~user`` stands for a home directory.

    Where there is no such user it stands for itself, as in a shell; ``Path.expanduser`` raises ``RuntimeError``.
    """
    return Path(os.path.expanduser(text))
