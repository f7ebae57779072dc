"""What the kinds of records are made of whose fields are extracted as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from words import Words


@dataclass(frozen=True)
class Slot:
    """One thing that a kind of record says: keys under which it may be asked for, and how to draw a value."""

    keys: tuple[str, ...]
    draw: Callable[[Words], Any]


@dataclass(frozen=True)
class Kind:
    """A kind of record: its slots and the sentences that tell of some of them; ``{a:…}`` takes an article."""

    slots: dict[str, Slot]
    frames: tuple[str, ...]
    test_frames: tuple[str, ...]
    later_frames: tuple[str, ...] = ()
    """Of training, behind the others."""
    exact: bool = False
    """Whether the frames are as they are: their small words tell values apart."""
