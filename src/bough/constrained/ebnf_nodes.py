"""What the rules of a grammar in EBNF are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

LAST_CHAR = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]
"""Characters as ranges of code points, both ends included, in order and apart from each other."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One of some characters."""

    ranges: Ranges

    @property
    def regex(self) -> str:
        """A regular expression for one of them."""
        items = (rf"\x{{{low:x}}}" + (rf"-\x{{{high:x}}}" if high != low else "") for low, high in self.ranges)
        return f"[{''.join(items)}]"


@dataclass(frozen=True, slots=True)
class Ref:
    """Another rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same ``least`` to ``most`` times; ``None``: as often as may be."""

    node: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Terminal:
    """What the lexer takes at once: a node without references to rules with recursion."""

    node: Node


Node = Union[Text, Chars, Ref, Sequence, Choice, Repeat, Terminal]  # noqa: UP007

_SURROGATES = (0xD800, 0xDFFF)
"""What is no character."""


def joined(ranges: list[tuple[int, int]]) -> Ranges:
    """Ranges in any order, which may overlap, as :data:`Ranges`."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    ranges = joined([*ranges, _SURROGATES])
    result: list[tuple[int, int]] = []
    begin = 0
    for low, high in ranges:
        if low > begin:
            result.append((begin, low - 1))
        begin = high + 1
    return (*result, (begin, LAST_CHAR)) if begin <= LAST_CHAR else tuple(result)


ANY_CHAR = complement(())


def refs_of(node: Node) -> list[Ref]:
    """All references in a node."""
    found: list[Ref] = []
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, Ref):
            found.append(each)
        elif isinstance(each, Sequence):
            pending.extend(each.parts)
        elif isinstance(each, Choice):
            pending.extend(each.options)
        elif isinstance(each, Repeat):
            pending.append(each.node)
    return found
