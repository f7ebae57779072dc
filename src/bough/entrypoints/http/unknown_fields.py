"""Fields of requests that are not known: ignored and named, or refused where they look like a typo of a known one."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from bough.config.options import did_you_mean
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
        known: names that there are in its place.
        meant: which of them it is a typo of, if that is certain.
    """
    hint = did_you_mean(name[:MAX_NAME_CHARS], known) if meant is None else f"; did you mean {meant!r}?"
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
    word, letters, characters = _outline(name)
    for each in known:
        other, others, _ = _outline(each)
        if word == other or (min(len(name), len(each)) >= 5 and letters == others):
            return each
    for edits in (1, 2):
        for each in known:
            shorter = min(len(name), len(each))
            most = 0 if shorter < 4 else 1 if shorter < 6 else 2
            if edits > most or abs(len(name) - len(each)) > edits:
                continue
            # An edit changes at most two of the characters that are there: most names are ruled out at a glance.
            if len(characters ^ _outline(each)[2]) <= 2 * edits and _is_near(name, each, edits):
                return each
    return None


@functools.lru_cache(4096)
def _outline(name: str) -> tuple[str, list[str], frozenset[str]]:
    """A name without case and punctuation, its letters in order, and the set of its characters."""
    word = _NOT_IN_WORDS.sub("", name.lower())
    return word, sorted(word), frozenset(name)


def _is_near(first: str, second: str, edits: int) -> bool:
    """Return whether so many characters, left out, put in, replaced or swapped with the next, make one of the other."""
    start = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if start is None:
        return abs(len(first) - len(second)) <= edits
    a, b = first[start:], second[start:]
    return edits > 0 and (
        _is_near(a[1:], b, edits - 1)
        or _is_near(a, b[1:], edits - 1)
        or _is_near(a[1:], b[1:], edits - 1)
        or (a[:2] == b[1::-1] and _is_near(a[2:], b[2:], edits - 1))
    )


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
