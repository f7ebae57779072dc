"""What the kinds of records are made of whose fields are extracted as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from words import Words, article, capitalised


@dataclass(frozen=True)
class Slot:
    """One thing that a kind of record says.

    Attributes:
        keys: under which it may be asked for; none where the text says it beside what is asked for.
        draw: draws a value.
        shown: how a text writes the value, where not as it is.
    """

    keys: tuple[str, ...]
    draw: Callable[[Words], Any]
    shown: Callable[[Words, Any], str] | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of record: its slots and the sentences that tell of some of them.

    ``{a_x}`` takes an article, ``{x?these|those}`` tells with these or those words whether ``x`` is so, and ``{-x}``
    marks that the text speaks of ``x`` without saying it.
    """

    slots: dict[str, Slot]
    frames: tuple[str, ...]
    test_frames: tuple[str, ...]
    later_frames: tuple[str, ...] = ()
    """Of training, behind the others."""
    exact: bool = False
    """Whether the frames are as they are: their small words tell values apart."""


def tells(frame: str, name: str) -> bool:
    """Whether a frame tells of a slot."""
    return f"{{{name}}}" in frame or f"{{a_{name}}}" in frame or f"{{{name}?" in frame


def leaves_open(frame: str, name: str) -> bool:
    """Whether a frame speaks of a slot without saying it."""
    return f"{{-{name}}}" in frame


def written(words: Words, slots: Mapping[str, Slot], frame: str, values: Mapping[str, Any]) -> str:
    """A frame with values; of words for what is so, or not so, one is chosen, with ``~`` between several."""

    def chosen(match: re.Match[str]) -> str:
        ways: str = match[2] if values[match[1]] else match[3]
        return words.rng.choice(ways.split("~"))

    frame = re.sub(r"\{-\w+\}", "", frame)
    frame = re.sub(r"\{(\w+)\?([^|{}]*)\|([^|{}]*)\}", chosen, frame)
    texts = {name: str(value) for name, value in values.items()}
    for name, slot in slots.items():
        if slot.shown:
            text = slot.shown(words, values[name])
            texts[name] = capitalised(text) if re.search(rf"(^|[.!?] )\{{{name}\}}", frame) else text
    return frame.format(**texts, **{f"a_{name}": article(value) for name, value in texts.items()})
