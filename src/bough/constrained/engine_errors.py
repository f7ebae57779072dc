"""Errors of the grammar engine in words that say what to change."""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_PROBLEM_CHARS = 300

_NOTATION = re.compile(r"^(?:at )?\d+\(\d+\): |^failed to compile JSON schema: |^(?i:parser error): ")

_AMBIGUOUS = (
    "it has become too ambiguous: there are too many ways to read one text; let alternatives begin differently, and do "
    "not nest repetitions"
)
_TOO_MUCH_WORK = (
    "its patterns take too much work for one token; make bounded repetitions such as {1,1000} shorter, and "
    "alternatives fewer"
)
_TOO_MANY_STATES = (
    "its patterns come to too many states; make bounded repetitions shorter, and let alternatives differ sooner"
)
TOO_LARGE = "it is too large once it is written out; make bounded repetitions shorter, and its parts fewer"

OF_THE_WHOLE = (_AMBIGUOUS, _TOO_MUCH_WORK, _TOO_MANY_STATES, TOO_LARGE)
"""What a grammar can be of which each part is fine."""

_MEANINGS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        r"oneOf constraints are not supported.*",
        "the alternatives of oneOf are not known to exclude each other; use anyOf",
    ),
    (
        r"min/maxProperties only supported .*",
        "cannot enforce minProperties or maxProperties where optional properties are listed; leave that out",
    ),
    (r"Unsatisfiable schema: (.*)", lambda found: f"no value follows it: {found[1]}"),
    (
        r"circular references with sibling keys .*",
        "a $ref that leads back to itself cannot have other keywords beside it",
    ),
    (
        r"lookarounds not supported yet; (?:Word|Start|End)\w*.*|look-around, .*",
        r"invalid pattern: look-around is not supported: (?=…), (?<!…), \b, and ^ or $ within",
    ),
    (r"NoExtension.*", "nothing can be written that follows it: its parts exclude each other"),
    (r"Too many items .*|ParserTooComplex.*", _AMBIGUOUS),
    (r"initial lexer configuration .*|grammar size .*|DNF too large.*|[Ss]chema .*(?:too large|exceeded)", TOO_LARGE),
    (r"(?:LexerTooComplex: )?(?:lexer error: )?too many states.*", _TOO_MANY_STATES),
    (r"fuel exhausted .*|(?:lexer error: )?too many expressions constructed.*|LexerTooComplex.*", _TOO_MUCH_WORK),
)
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), meaning) for pattern, meaning in _MEANINGS)


def readable(problem: str) -> str:
    """What matters of an error of llguidance, which goes on with an excerpt of its own notation."""
    lines = [line.strip() for line in problem.strip().splitlines()] or ["unknown error"]
    line = lines[0]
    while (shorter := _NOTATION.sub("", line)) != line:
        line = shorter
    if line.startswith(("invalid regex", "regex parse error")):
        # The pattern, shown as it was, and at the end of several lines what is wrong with it.
        detail = next((each for each in lines if each.startswith("error: ")), None)
        line = f"invalid pattern: {detail[len('error: ') :] if detail else line.partition('(in regex): ')[2] or line}"
    for pattern, meaning in _PATTERNS:
        found = pattern.fullmatch(line.removeprefix("invalid pattern: "))
        if found is not None:
            line = meaning if isinstance(meaning, str) else meaning(found)
            break
    return line if len(line) <= MAX_PROBLEM_CHARS else f"{line[: MAX_PROBLEM_CHARS - 3]}..."
