"""New weights between the check that they fit and the moment they are written. No torch here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Change:
    """New weights that have been checked; one of the two functions is to be called, once.

    Attributes:
        write: puts them in place of the old ones and returns the number of pieces of memory that it has filled, 0 if
            another scheduler fills them. A :class:`BoughError` means that the old weights are there still, unless it is
            :class:`EngineDead`.
        drop: forgets them.
    """

    write: Callable[[], int]
    drop: Callable[[], None] = _nothing
