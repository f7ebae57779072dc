"""Paths as clients write them: with slashes too many, or under another prefix than here."""

from __future__ import annotations

import difflib
from collections.abc import Collection

_SIMILARITY = 0.85
"""Likeness to a route at which a path is taken for a misspelling of it (difflib's ratio)."""

_MAX_CHARS = 256
"""Length of a path up to which it is compared: the time that takes grows with it."""


def tidy_path(path: str) -> str:
    """A path without doubled slashes and without one at its end."""
    return "/" + "/".join(filter(None, path.split("/")))


def right_path(path: str, known: Collection[str]) -> str | None:
    """The route that a client has probably meant by a path that is none; ``None`` if it resembles none.

    A client's base URL often has a prefix too many (``/v1/v1/chat/completions``, ``/api/v1/models``) or lacks one
    (``/chat/completions``).

    Args:
        path: without superfluous slashes.
        known: paths of all routes; of those that fit equally well, the first is returned.
    """
    if len(path) > _MAX_CHARS:
        return None
    if longer := [each for each in known if each != "/" and path.endswith(each)]:
        return max(longer, key=len)
    if path != "/" and (shorter := [each for each in known if each.endswith(path)]):
        return min(shorter, key=len)
    return next(iter(difflib.get_close_matches(path, known, 1, _SIMILARITY)), None)
