"""Structural tags: output in which the parts between tags follow schemas, and the rest is free text.

Two forms, both JSON objects. The older one::

    {"structures": [{"begin": "<f=a>", "schema": {...}, "end": "</f>"}], "triggers": ["<f="]}

The newer one is ``{"type": "structural_tag", "format": F}``, where ``F`` has a ``type`` and

============================ =========================================================================================
``const_string``             ``value``
``json_schema``              ``json_schema``
``regex``                    ``pattern``
``grammar``                  ``grammar`` (EBNF)
``any_text``                 nothing: any text, up to what must follow
``sequence``, ``or``         ``elements``
``tag``                      ``begin``, ``content``, ``end``
``triggered_tags``           ``triggers``, ``tags``; ``at_least_one``: it begins with a tag; ``stop_after_first``
``tags_with_separator``      ``tags``, ``separator``; ``at_least_one``, ``stop_after_first``
============================ =========================================================================================

Free text ends at the first occurrence of what may end it. The strings of special tokens in constants stand for these
tokens; free text has no special tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bough.constrained.ebnf import EbnfError, to_lark

MAX_TAGS = 1024
"""Most tags and other parts in all."""

_KEYS: dict[str, tuple[str, ...]] = {
    "const_string": ("value",),
    "json_schema": ("json_schema",),
    "regex": ("pattern",),
    "grammar": ("grammar",),
    "any_text": (),
    "sequence": ("elements",),
    "or": ("elements",),
    "tag": ("begin", "content", "end"),
    "triggered_tags": ("triggers", "tags"),
    "tags_with_separator": ("tags", "separator"),
}
_FLAGS = ("at_least_one", "stop_after_first")
_LAZY_TEXT = "FREE_TEXT"


class TagError(ValueError):
    """What is wrong with a structural tag."""


@dataclass(frozen=True)
class _Constant:
    text: str


@dataclass(frozen=True)
class _Exact:
    """Something whose end is clear from itself, as Lark."""

    lark: str


@dataclass(frozen=True)
class _Open:
    """Something that goes on until what follows: a function from that, ``None`` for the end, to Lark for both."""

    write: Callable[[str | None], str]


_Item = _Constant | _Exact | _Open


class StructuralTagWriter:
    """Writes one structural tag as Lark.

    Args:
        json_rule: Lark for a value that follows a schema.
        regex_rule: Lark for a text that matches a pattern.
        special_tokens: strings of special tokens and their ids.
    """

    def __init__(
        self,
        json_rule: Callable[[Any], str],
        regex_rule: Callable[[str], str],
        special_tokens: Mapping[str, int],
    ) -> None:
        self._json_rule = json_rule
        self._regex_rule = regex_rule
        self._special = dict(special_tokens)
        longest_first = sorted(self._special, key=len, reverse=True)
        self._splitter = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None
        self._lines = [f"{_LAZY_TEXT}: /(?s:.*)/"]
        self._count = 0

    def write(self, tag: dict[str, Any]) -> str:
        """The whole grammar, from ``start``.

        Raises:
            TagError: the tag is wrong or not supported.
        """
        if "format" in tag or tag.get("type") == "structural_tag":
            _check_keys(tag, "the structural tag", ("format",), ("type",))
            form = tag["format"]
        else:
            form = _from_older_form(tag)
        body = self._sequence(self._items(form, "format"))
        return "\n".join([f"start: {body}", *self._lines]) + "\n"

    # --- parts ---

    def _items(self, form: Any, where: str) -> list[_Item]:
        """What a format consists of, in order."""
        self._count += 1
        if self._count > MAX_TAGS:
            raise TagError(f"there are more than {MAX_TAGS} parts")
        if not isinstance(form, dict):
            raise TagError(f"{where} must be an object")
        kind = form.get("type")
        if not isinstance(kind, str) or kind not in _KEYS:
            raise TagError(f"{where}.type must be one of {', '.join(_KEYS)}")
        flags = _FLAGS if kind in ("triggered_tags", "tags_with_separator") else ()
        _check_keys(form, where, _KEYS[kind], ("type", *flags))
        for flag in flags:
            if not isinstance(form.get(flag, False), bool):
                raise TagError(f"{where}.{flag} must be true or false")
        make: Callable[[dict[str, Any], str], list[_Item]] = getattr(self, f"_{kind}_items")
        return make(form, where)

    def _const_string_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        return [_Constant(_string(form, "value", where))]

    def _json_schema_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        schema = form["json_schema"]
        if not isinstance(schema, (dict, bool)):
            raise TagError(f"{where}.json_schema must be a schema")
        return [self._named(self._json_rule(schema))]

    def _regex_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        return [self._named(self._regex_rule(_string(form, "pattern", where)))]

    def _grammar_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        name = self._new_name("grammar")
        try:
            self._lines.append(to_lark(_string(form, "grammar", where), start=name, prefix=f"{name}_"))
        except EbnfError as error:
            raise TagError(f"{where}.grammar: {error}") from None
        return [_Exact(name)]

    def _any_text_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        return [_Open(self._text_until)]

    def _sequence_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        return [
            item
            for i, element in enumerate(_list(form, "elements", where))
            for item in self._items(element, f"{where}.elements[{i}]")
        ]

    def _or_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        options = [
            self._items(element, f"{where}.elements[{i}]") for i, element in enumerate(_list(form, "elements", where))
        ]
        if any(isinstance(items[-1], _Open) for items in options if items):
            return [_Open(lambda end: self._either([self._sequence(items, end) for items in options]))]
        return [_Exact(self._either([self._sequence(items) for items in options]))]

    def _tag_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        begin, end = _string(form, "begin", where), _string(form, "end", where)
        return [_Constant(begin), *self._items(form["content"], f"{where}.content"), _Constant(end)]

    def _triggered_tags_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        triggers = _list(form, "triggers", where)
        if not all(isinstance(trigger, str) and trigger for trigger in triggers):
            raise TagError(f"{where}.triggers must be strings that are not empty")
        after: dict[str, list[str]] = {trigger: [] for trigger in triggers}
        whole: list[str] = []
        for items in self._tags(form, where):
            first = items[0]
            assert isinstance(first, _Constant)
            trigger = max((each for each in triggers if first.text.startswith(each)), key=len, default=None)
            if trigger is None:
                raise TagError(f"{where}.tags: no trigger is the beginning of {first.text!r}")
            after[trigger].append(self._sequence([_Constant(first.text[len(trigger) :]), *items[1:]]))
            whole.append(self._sequence(items))
        tags = self._rule_of(
            self._either(
                [f"{self._text_until(trigger)} {self._either(rests)}" for trigger, rests in after.items() if rests]
            )
        )
        first_tag = self._either(whole)
        must, once = form.get("at_least_one", False), form.get("stop_after_first", False)
        if must and once:
            return [_Exact(first_tag)]
        if once:
            return [_Open(lambda end: f"({tags} {self._literal(end or '')} | {self._text_until(end)})")]
        return [_Open(lambda end: f"{first_tag if must else ''} {tags}* {self._text_until(end)}")]

    def _tags_with_separator_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        separator = self._literal(_string(form, "separator", where))
        tag = self._rule_of(self._either([self._sequence(items) for items in self._tags(form, where)]))
        tags = tag if form.get("stop_after_first", False) else f"{tag} ({separator} {tag})*"
        return [_Exact(f"({tags})" if form.get("at_least_one", False) else f"({tags})?")]

    def _tags(self, form: dict[str, Any], where: str) -> list[list[_Item]]:
        result = []
        for i, tag in enumerate(_list(form, "tags", where)):
            name = f"{where}.tags[{i}]"
            if not isinstance(tag, dict) or tag.get("type", "tag") != "tag":
                raise TagError(f"{name} must be a tag")
            result.append(self._items({**tag, "type": "tag"}, name))
        return result

    # --- Lark ---

    def _sequence(self, items: list[_Item], end: str | None = None) -> str:
        """Lark for items one after the other; ``end`` is what comes after them if the last one is open."""
        parts: list[str] = []
        i = 0
        while i < len(items):
            item = items[i]
            i += 1
            if isinstance(item, _Constant):
                parts.append(self._literal(item.text))
            elif isinstance(item, _Exact):
                parts.append(item.lark)
            else:
                stop, is_last = "", True
                while i < len(items):
                    following = items[i]
                    if isinstance(following, _Constant):
                        stop += following.text
                        i += 1
                    else:
                        is_last = False
                        break
                if not stop and not is_last:
                    raise TagError("free text must be followed by a constant string, a tag, or the end")
                parts.append(item.write(stop + (end or "") if is_last and end else stop or None))
                if is_last:
                    return " ".join(parts)
        return " ".join(filter(None, [*parts, self._literal(end or "")])) or '""'

    def _text_until(self, end: str | None) -> str:
        """Lark for free text and the constant that ends it."""
        pieces = self._pieces(end or "")
        if not pieces:
            return _LAZY_TEXT
        first, *rest = pieces
        if first.startswith("<["):
            # A special token is no text, so the text before it ends by itself.
            return " ".join([_LAZY_TEXT, *pieces])
        name = self._new_name("until")
        self._lines.append(f"{name}[lazy]: {_LAZY_TEXT} {first}")
        return " ".join([name, *rest])

    def _literal(self, text: str) -> str:
        return " ".join(self._pieces(text))

    def _pieces(self, text: str) -> list[str]:
        parts = self._splitter.split(text) if self._splitter is not None else [text]
        return [
            f"<[{self._special[part]}]>" if part in self._special else json.dumps(part, ensure_ascii=False)
            for part in parts
            if part
        ]

    def _named(self, lark: str) -> _Exact:
        return _Exact(self._rule_of(lark))

    def _rule_of(self, lark: str) -> str:
        name = self._new_name("part")
        self._lines.append(f"{name}: {lark}")
        return name

    def _either(self, options: list[str]) -> str:
        unique = list(dict.fromkeys(option.strip() or '""' for option in options))
        return f"({' | '.join(unique)})"

    def _new_name(self, kind: str) -> str:
        return f"{kind}_{len(self._lines)}"


def _from_older_form(tag: dict[str, Any]) -> dict[str, Any]:
    _check_keys(tag, "the structural tag", ("structures", "triggers"), ("type",))
    tags = []
    for i, structure in enumerate(_list(tag, "structures", "the structural tag")):
        where = f"structures[{i}]"
        if not isinstance(structure, dict):
            raise TagError(f"{where} must be an object")
        _check_keys(structure, where, ("begin", "end"), ("schema",))
        content = {"type": "json_schema", "json_schema": structure.get("schema", {})}
        tags.append({"begin": structure["begin"], "content": content, "end": structure["end"]})
    return {"type": "triggered_tags", "triggers": tag["triggers"], "tags": tags}


def _check_keys(value: dict[str, Any], where: str, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    missing = [key for key in required if key not in value]
    unknown = [key for key in value if key not in required and key not in optional]
    if missing:
        raise TagError(f"{where} needs {', '.join(missing)}")
    if unknown:
        raise TagError(f"{where} has an unknown field {unknown[0]!r}")


def _string(value: dict[str, Any], key: str, where: str) -> str:
    text = value[key]
    if not isinstance(text, str):
        raise TagError(f"{where}.{key} must be a string")
    return text


def _list(value: dict[str, Any], key: str, where: str) -> list[Any]:
    items = value[key]
    if not isinstance(items, list) or not items:
        raise TagError(f"{where}.{key} must be a list that is not empty")
    return items
