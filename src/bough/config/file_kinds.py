"""Recognise files that are not the checkpoint files they should be: broken links, Git LFS pointers and others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_HEAD_BYTES = 64

_OLD = "a model file from before GGUF, which nothing reads any more; convert the model again"
_PICKLED = "pickled, as PyTorch's *.bin and *.pt are, which can run code when opened and is never read"
_PAGE = "a web page; download the file itself"
_BEGINNINGS = (
    (b"version https://git-lfs.github.com/spec/", "a Git LFS pointer to the file; fetch that with `git lfs pull`"),
    (b"gguf", "a GGUF file"),
    (b"fugg", "a GGUF file in big-endian byte order; convert the model again"),
    (b"lmgg", _OLD),
    (b"fmgg", _OLD),
    (b"tjgg", _OLD),
    (b"pk\x03\x04", _PICKLED),
    (b"\x80\x02", _PICKLED),
    (b"<!doctype html", _PAGE),
    (b"<html", _PAGE),
)
"""First bytes of files, in lower case, with the kind of file that they identify."""


def but_is(path: Path) -> str:
    """Return the end of an error message that says what a wrong file really is; empty if that is unknown.

    Only the beginning of a regular file is read.
    """
    what = _kind(path)
    return "" if what is None else f": it is {what}"


def _kind(path: Path) -> str | None:
    try:
        if path.is_symlink() and not path.exists():
            return f"a link to {os.readlink(path)}, where nothing is; download the file again"
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, ValueError):
        return None
    if not head:
        return "empty; download it again"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size:
        return "a safetensors file"
    return next((what for start, what in _BEGINNINGS if head.lower().startswith(start)), None)
