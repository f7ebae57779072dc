"""Fields of requests that are not known: ignored and named, or refused where they look like a typo of a known one."""

from __future__ import annotations

import difflib
import functools
import logging
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from bough.errors import BadRequest
from bough.observability.request_context import CURRENT

MAX_NAMES_SHOWN = 8
"""Most names of unknown fields in a line of the log."""

MAX_NAMES_LOGGED = 1024
"""Most names that a process logs in its life."""

MAX_NAMES_COLLECTED = 64
"""Most unknown names of one object that are compared with known ones, and most that one request keeps; the rest is
dropped unseen."""

MAX_NAME_CHARS = 64
"""Length up to which a name is compared and shown."""

Unknown = dict[str, None]
"""Names of what is ignored, in order."""

NAMES_OF_OTHERS = frozenset({"mode", "models", "speed", "tasks", "top_a", "top_n"})
"""Fields of other programs that look like typos of ours."""

_INDEX = re.compile(r"\[\d+\]")
_NOT_IN_WORDS = re.compile(r"[^a-z0-9]")
_logged: set[tuple[str, str]] = set()
"""Every client that repeats a field would otherwise fill the log with it."""

logger = logging.getLogger(__name__)


def unknown_field(param: str, name: str, known: Iterable[str], meant: str | None = None) -> BadRequest:
    """The error for a field that does not exist, with a suggestion.

    Args:
        param: path of the field.
        name: of the field.
        known: names that there are in its place.
        meant: which of them it is a typo of, if that is certain.
    """
    close = difflib.get_close_matches(name[:MAX_NAME_CHARS], known, n=1, cutoff=0.7) if meant is None else [meant]
    hint = f"; did you mean {close[0]}?" if close else ""
    return BadRequest(f"unknown field: {param}{hint}", param=param, code="unknown_parameter")


def typo_of(name: str, known: Iterable[str]) -> str | None:
    """The known name that is certainly meant by another one, if any.

    That is one with the same letters, in whatever order, case and with whatever between them; or one at an edit
    distance (Damerau and Levenshtein's) of at most two, of one where a name is shorter than six characters. Shorter
    than four, words differ too little to tell.
    """
    return None if len(name) > MAX_NAME_CHARS or name in NAMES_OF_OTHERS else _meant(name, tuple(known))


@functools.lru_cache(4096)  # programs send the same fields again and again
def _meant(name: str, known: tuple[str, ...]) -> str | None:
    ours = _Outline.of(name)
    nearest: tuple[int, str] | None = None
    for each in _outlines(known):
        shorter = min(len(name), len(each.name))
        if ours.word == each.word or (shorter >= 5 and ours.in_order == each.in_order):
            return each.name
        most = 0 if shorter < 4 else 1 if shorter < 6 else 2
        # Every edit changes at most two of the letters that are there: most names are ruled out at a glance.
        if most == 0 or abs(len(name) - len(each.name)) > most or (ours.letters ^ each.letters).bit_count() > 2 * most:
            continue
        distance = _edits(name, each.name, most)
        if distance <= most and (nearest is None or distance < nearest[0]):
            nearest = distance, each.name
    return None if nearest is None else nearest[1]


class _Outline(NamedTuple):
    """A name, without case and punctuation, with its letters in order, and as the set of its characters."""

    name: str
    word: str
    in_order: list[str]
    letters: int

    @classmethod
    def of(cls, name: str) -> _Outline:
        """The outline of a name."""
        word = _NOT_IN_WORDS.sub("", name.lower())
        letters = functools.reduce(lambda letters, character: letters | 1 << (ord(character) & 63), name, 0)
        return cls(name, word, sorted(word), letters)


@functools.lru_cache(64)
def _outlines(names: tuple[str, ...]) -> list[_Outline]:
    return [_Outline.of(name) for name in names]


def _edits(first: str, second: str, most: int) -> int:
    """Number of characters to be left out, put in, replaced or swapped with the next; beyond ``most``, any such number.

    Places that are further apart than ``most`` cannot match, so only a band of the usual table is computed.
    """
    too_many = most + 1
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        older, before, row = before, row, [i] + [too_many] * len(second)
        for j in range(max(1, i - most), min(len(second), i + most) + 1):
            b = second[j - 1]
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and b == first[i - 2]:
                cost = min(cost, older[j - 2] + 1)
            row[j] = cost
        if min(row) > most:
            return too_many
    return row[-1]


def note_unknown(unknown: Collection[str]) -> None:
    """Have an answer and the log name the fields of a request that are ignored."""
    if unknown:
        context = CURRENT.get()
        if context is not None:
            room = MAX_NAMES_COLLECTED - len(context.ignored_fields)
            context.ignored_fields.extend(name[:MAX_NAME_CHARS] for name in islice(unknown, max(room, 0)))
        log_unknown(unknown, "fields of requests")


def log_unknown(unknown: Iterable[str], what: str) -> None:
    """Name in the log what is ignored, each name once in the life of the process; ``what`` says what it is."""
    names = (name[:MAX_NAME_CHARS] for name in islice(unknown, MAX_NAMES_COLLECTED))
    new = [name for name in names if (what, name) not in _logged]
    if new and len(_logged) < MAX_NAMES_LOGGED:
        shown, more = new[:MAX_NAMES_SHOWN], len(new) - MAX_NAMES_SHOWN
        _logged.update((what, name) for name in shown)
        logger.warning("Ignoring %s: %s%s", what, ", ".join(map(repr, shown)), f" and {more} more" if more > 0 else "")


def drop_extras(
    value: Any, kind: type[msgspec.Struct], place: str, unknown: Unknown | None, *, check_typos: bool = False
) -> Any:
    """A decoded object without members that are null or, if ``unknown`` collects them, not fields of ``kind``.

    Args:
        value: anything; what is no object stays as it is.
        kind: what the object is meant to be.
        place: where in the body it is.
        unknown: see :data:`~bough.entrypoints.http.fields.Tidy`.
        check_typos: keep what looks like a typo, so that it is refused.
    """
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if each is not None}
    if unknown is not None:
        for name in [name for name in kept if name not in kind.__struct_fields__]:
            if len(unknown) < MAX_NAMES_COLLECTED:
                if check_typos and typo_of(name, kind.__struct_fields__) is not None:
                    continue
                unknown[f"{place}.{name}"] = None
            del kept[name]
    return kept


def known_members(
    value: Mapping[str, Any],
    names: Collection[str],
    place: str,
    unknown: Unknown | None,
    *,
    check_typos: bool = False,
) -> dict[str, Any]:
    """Those members of an object that are known and not null.

    Args:
        value: the object.
        names: of members.
        place: where in the body it is.
        unknown: collects what is dropped; ``None`` to refuse it.
        check_typos: refuse what looks like a typo even so.

    Raises:
        BadRequest: naming a member that is not known.
    """
    kept: dict[str, Any] = {}
    for name, each in value.items():
        if each is None:
            continue
        if name in names:
            kept[name] = each
        elif unknown is None:
            raise unknown_field(f"{place}.{name[:MAX_NAME_CHARS]}", name, names)
        elif len(unknown) < MAX_NAMES_COLLECTED:
            meant = typo_of(name, names) if check_typos else None
            if meant is not None:
                raise unknown_field(f"{place}.{name}", name, names, meant)
            unknown[f"{_INDEX.sub('', place)}.{name}"] = None
    return kept
