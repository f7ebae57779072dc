"""What the bundled model learns: each module writes documents of training and cases that training never uses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Protocol

from documents import Case, Document
from words import Stage

from skills import arithmetic, conversation, echo, everyday, extraction, lookup, persona, tooling


class SkillModule(Protocol):
    """What each module of skills has."""

    NAME: str

    def document(self, rng: random.Random, stage: Stage = Stage.LAST, /) -> Document:
        """One of training."""

    def cases(self, rng: random.Random, count: int, /) -> Iterator[Case]:
        """About ``count`` that training never uses."""


_MODULES: tuple[SkillModule, ...] = (arithmetic, conversation, echo, extraction, lookup, persona, tooling, everyday)
SKILLS = {skill.NAME: skill for skill in _MODULES}

# Parts of the tokens at the start of training, where copying is to be learned, and from then on.
FIRST = {"echo": 45, "arithmetic": 15, "extraction": 12, "lookup": 12, "conversation": 10, "tools": 3, "persona": 3}
DRILLED = {
    Stage.DRILLS: {
        "echo": 26,
        "arithmetic": 10,
        "extraction": 12,
        "lookup": 20,
        "conversation": 5,
        "tools": 25,
        "persona": 2,
    },
    Stage.TOOLS: {
        "echo": 12,
        "arithmetic": 10,
        "extraction": 12,
        "lookup": 14,
        "conversation": 5,
        "tools": 45,
        "persona": 2,
    },
}
# From there on there are tools of every day, and more wordings.
WIDE = {
    Stage.TALK: {
        "echo": 9,
        "arithmetic": 14,
        "extraction": 18,
        "lookup": 14,
        "conversation": 7,
        "tools": 22,
        "persona": 3,
        "everyday tools": 24,
    },
    Stage.FOUND: {
        "echo": 7,
        "arithmetic": 14,
        "extraction": 18,
        "lookup": 13,
        "conversation": 9,
        "tools": 20,
        "persona": 4,
        "everyday tools": 26,
    },
    Stage.NOTED: {
        "echo": 6,
        "arithmetic": 14,
        "extraction": 18,
        "lookup": 17,
        "conversation": 9,
        "tools": 16,
        "persona": 5,
        "everyday tools": 26,
    },
    Stage.LAST: {
        "echo": 4,
        "arithmetic": 12,
        "extraction": 24,
        "lookup": 18,
        "conversation": 8,
        "tools": 10,
        "persona": 7,
        "everyday tools": 28,
    },
}
LATER = {"echo": 16, "arithmetic": 12, "extraction": 20, "lookup": 16, "conversation": 7, "tools": 26, "persona": 3}
MEAN_TOKENS = {
    "echo": 105,
    "arithmetic": 90,
    "extraction": 100,
    "lookup": 140,
    "conversation": 110,
    "tools": 225,
    "persona": 95,
    "everyday tools": 220,
}


STAGES = {**DRILLED, **WIDE}


def weights(progress: float, stage: Stage) -> dict[str, float]:
    """How often each skill is drawn; ``progress`` from 0 to 1 leads from the first parts to the later ones."""
    parts: dict[str, float]
    if stage in STAGES:
        parts = {name: float(part) for name, part in STAGES[stage].items()}
    else:
        parts = {name: FIRST[name] * (1 - progress) + LATER[name] * progress for name in LATER}
    return {name: parts[name] / MEAN_TOKENS[name] for name in SKILLS if name in parts}


def draw(rng: random.Random, progress: float = 1.0, stage: Stage = Stage.LAST) -> tuple[str, Document]:
    """A document of any skill, with the name of the skill."""
    parts = weights(progress, stage)
    [name] = rng.choices(list(parts), list(parts.values()))
    return name, SKILLS[name].document(rng, stage)
