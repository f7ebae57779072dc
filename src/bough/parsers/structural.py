"""Parts of structural tags: what a constrained answer has to look like, as JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MAX_CALLS = 16
"""Most tool calls of an answer that has to consist of them: a model that is never allowed to say anything else may find
no end."""

Format = dict[str, Any]
"""``{"type": "tag", …}`` and the like: see :mod:`bough.constrained.structural_tag`."""


def const(text: str) -> Format:
    """Exactly this text."""
    return {"type": "const_string", "value": text}


def json_schema(schema: Any) -> Format:
    """JSON that fits a schema."""
    return {"type": "json_schema", "json_schema": schema}


def bare_string(schema: Any) -> Format:
    """A string without quotes that fits a schema, up to the end of the tag that it stands in."""
    return {"type": "bare_string", "json_schema": schema}


def regex(pattern: str) -> Format:
    """Text that a regular expression matches as a whole."""
    return {"type": "regex", "pattern": pattern}


def any_text() -> Format:
    """Any text, up to the end of the tag that it stands in."""
    return {"type": "any_text"}


def tag(begin: str, content: Format, end: str) -> Format:
    """Something between two texts."""
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def sequence(*elements: Format) -> Format:
    """One after the other."""
    return elements[0] if len(elements) == 1 else {"type": "sequence", "elements": list(elements)}


def either(*elements: Format) -> Format:
    """One of them."""
    return elements[0] if len(elements) == 1 else {"type": "or", "elements": list(elements)}


def subsequence(elements: Sequence[Format], required: Sequence[bool], separator: str) -> Format:
    """One after the other, with ``separator`` between them; those that are not required may be left out."""
    if not elements:
        return const("")
    return {
        "type": "subsequence",
        "elements": list(elements),
        "required": list(required),
        "separator": separator,
    }


def any_number(each: Format, separator: str) -> Format:
    """A tag any number of times, also never, with ``separator`` between."""
    return {"type": "tags_with_separator", "tags": [each], "separator": separator}


def calls_of(tags: Sequence[Format], separator: str, *, parallel: bool) -> Format:
    """One of the tags, or with ``parallel`` up to :data:`MAX_CALLS` of them, with ``separator`` between them."""
    return {
        "type": "tags_with_separator",
        "tags": list(tags),
        "separator": separator,
        "at_least_one": True,
        "at_most": MAX_CALLS if parallel else 1,
    }


def filled(form: Format, value: str) -> str | None:
    """The text that has this form, with ``value`` where JSON of a schema stands; ``None`` if it leaves a choice."""
    kind = form["type"]
    if kind == "json_schema":
        return value
    if kind == "const_string":
        return str(form["value"])
    if kind == "tags_with_separator":
        return filled(form["tags"][0], value) if len(form["tags"]) == 1 else None
    if kind == "tag":
        inner = filled(form["content"], value)
        return None if inner is None else f"{form['begin']}{inner}{form['end']}"
    if kind != "sequence":
        return None
    parts = [filled(element, value) for element in form["elements"]]
    return None if None in parts else "".join(map(str, parts))
