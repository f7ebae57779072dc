"""Structural tags: output in which the parts between tags follow schemas, and the rest is free text.

Two forms, both JSON objects, of which the ``type`` may be left out. The older one::

    {"type": "structural_tag", "structures": [{"begin": "<f=a>", "schema": {...}, "end": "</f>"}], "triggers": ["<f="]}

The newer one is ``{"type": "structural_tag", "format": F}``, where ``F`` has a ``type`` and

============================ =========================================================================================
``const_string``             ``value``
``json_schema``              ``json_schema``
``bare_string``              ``json_schema`` of a string, which stands there without quotes (``bare_strings.py``)
``regex``                    ``pattern``
``grammar``                  ``grammar`` (EBNF)
``any_text``                 nothing: any text, up to what must follow
``sequence``, ``or``         ``elements``
``subsequence``              ``elements``; ``required``: a boolean for each; ``separator`` between those that come
``tag``                      ``begin``, ``content``, ``end``
``triggered_tags``           ``triggers``, ``tags``; ``at_least_one``: it begins with a tag; ``stop_after_first``
``tags_with_separator``      ``tags``, ``separator``; ``at_least_one``, ``stop_after_first``, ``at_most``: so many tags
============================ =========================================================================================

Free text, and text that follows a pattern or a grammar, ends at the first occurrence of what may end it, as far as that
is a constant. The strings of special tokens in constants stand for these tokens; free text has no special tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from bough.constrained.bare_strings import patterns_of
from bough.constrained.ebnf import EbnfError, to_lark
from bough.constrained.lark_text import lark_string
from bough.sampling.sampling_params import GrammarSpec

MAX_PARTS = 8192
"""Most tags and other parts in all."""

_KEYS: dict[str, tuple[str, ...]] = {
    "const_string": ("value",),
    "json_schema": ("json_schema",),
    "bare_string": ("json_schema",),
    "regex": ("pattern",),
    "grammar": ("grammar",),
    "any_text": (),
    "sequence": ("elements",),
    "or": ("elements",),
    "subsequence": ("elements", "required", "separator"),
    "tag": ("begin", "content", "end"),
    "triggered_tags": ("triggers", "tags"),
    "tags_with_separator": ("tags", "separator"),
}
_FLAGS = ("at_least_one", "stop_after_first")
_LAZY_TEXT = "FREE_TEXT"
_MAX_SHOWN_CHARS = 80
"""Of a tag's beginning, in errors."""


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
    """Something that goes on until what follows.

    Attributes:
        write: makes Lark of it and the constant that follows, ``None`` if none does.
        is_free: whether nothing else could tell where it ends, so that a constant has to follow, or the end.
    """

    write: Callable[[str | None], str]
    is_free: bool = False


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
        self._schemas: dict[str, str] = {}
        """Rules for schemas, each of which is written once."""
        self._free = _Open(self._text_until, is_free=True)
        self._count = 0

    def write(self, tag: dict[str, Any]) -> str:
        """The whole grammar, from ``start``.

        Raises:
            TagError: the tag is wrong or not supported.
        """
        body = self._sequence(self._items(format_of(tag), "format"))
        return "\n".join([f"start: {body}", *self._lines]) + "\n"

    # --- parts ---

    def _items(self, form: Any, where: str) -> list[_Item]:
        """What a format consists of, in order."""
        self._count += 1
        if self._count > MAX_PARTS:
            raise TagError(f"there are more than {MAX_PARTS} parts")
        if not isinstance(form, dict):
            raise TagError(f"{where} must be an object")
        kind = form.get("type")
        if not isinstance(kind, str) or kind not in _KEYS:
            raise TagError(f"{where}.type must be one of {', '.join(_KEYS)}")
        flags = _FLAGS if kind in ("triggered_tags", "tags_with_separator") else ()
        bounds = ("at_most",) if kind == "tags_with_separator" else ()
        _check_keys(form, where, _KEYS[kind], ("type", *flags, *bounds))
        for flag in flags:
            if not isinstance(form.get(flag, False), bool):
                raise TagError(f"{where}.{flag} must be true or false")
        make: Callable[[dict[str, Any], str], list[_Item]] = getattr(self, f"_{kind}_items")
        return make(form, where)

    def _const_string_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        return _constant(_string(form, "value", where))

    def _json_schema_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        schema = form["json_schema"]
        if not isinstance(schema, (dict, bool)):
            raise TagError(f"{where}.json_schema must be a schema")
        text = json.dumps(schema)
        if text not in self._schemas:
            self._schemas[text] = self._rule_of(self._json_rule(schema))
        return [_Exact(self._schemas[text])]

    def _bare_string_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        schema = form["json_schema"]
        if not isinstance(schema, dict):
            raise TagError(f"{where}.json_schema must be the schema of a string")
        patterns = patterns_of(schema)
        if not patterns:
            return [self._free]
        return [self._pattern(f"({' & '.join(map(self._regex_rule, patterns))})")]

    def _regex_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        return [self._pattern(self._regex_rule(_string(form, "pattern", where)))]

    def _pattern(self, terminal: str) -> _Open:
        return _Open(lambda end: self._text_until(end, terminal))

    def _grammar_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        grammar = _string(form, "grammar", where)

        def write(end: str | None) -> str:
            name = self._new_name("grammar")
            text, pieces = self._split_end(end)
            try:
                self._lines.append(to_lark(grammar, start=name, prefix=f"{name}_", end=text))
            except EbnfError as error:
                raise TagError(f"{where}.grammar: {error}") from None
            return " ".join([name, *pieces])

        return [_Open(write)]

    def _any_text_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        return [self._free]

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
        last = [items[-1] for items in options if items]
        open_ = [item for item in last if isinstance(item, _Open)]
        if not open_:
            return [_Exact(self._either([self._sequence(items) for items in options]))]
        return [
            _Open(
                lambda end: self._either([self._sequence(items, end) for items in options]),
                is_free=any(item.is_free for item in open_),
            )
        ]

    def _subsequence_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        elements = _list(form, "elements", where)
        required = form["required"]
        if (
            not isinstance(required, list)
            or len(required) != len(elements)
            or not all(isinstance(each, bool) for each in required)
        ):
            raise TagError(f"{where}.required must be a list of booleans, one for each element")
        separator = self._literal(_string(form, "separator", where))
        rules = [
            self._rule_of(self._closed(self._items(element, f"{where}.elements[{i}]"), f"{where}.elements[{i}]"))
            for i, element in enumerate(elements)
        ]
        last_first = required.index(True) if True in required else len(required)
        firsts: list[str] = [] if True in required else ['""']
        rest = ""  # what may come behind an element
        for i in range(len(rules) - 1, -1, -1):
            if i <= last_first:
                firsts.append(f"{rules[i]} {rest}")
            if i > 0 or not separator:
                rest = self._rule_of(f"({separator} {rules[i]}){'' if required[i] else '?'} {rest}")
        return [_Exact(self._either(firsts) if separator else rest)]

    def _tag_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        begin, end = _string(form, "begin", where), _string(form, "end", where)
        return [*_constant(begin), *self._items(form["content"], f"{where}.content"), *_constant(end)]

    def _triggered_tags_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        given = _list(form, "triggers", where)
        if not all(isinstance(trigger, str) and trigger for trigger in given):
            raise TagError(f"{where}.triggers must be strings that are not empty")
        # The first that comes ends the free text, so a longer one that begins with it never would.
        triggers = [each for each in given if not any(each != other and each.startswith(other) for other in given)]
        after: dict[str, list[str]] = {trigger: [] for trigger in triggers}
        for name, tag, items in self._tags(form, where):
            begin = tag["begin"]
            trigger = next((each for each in triggers if begin.startswith(each)), None)
            if trigger is None:
                raise TagError(f"{name}: no trigger is the beginning of {begin!r}")
            rest = begin[len(trigger) :]
            if self._special_in(trigger) + self._special_in(rest) != self._special_in(begin):
                raise TagError(f"{name}: the trigger {trigger!r} ends inside of a special token")
            after[trigger].append(self._rule_of(self._closed([*_constant(rest), *items[1:]], name)))
        choices = {trigger: self._rule_of(self._either(rests)) for trigger, rests in after.items() if rests}
        must, once = form.get("at_least_one", False), form.get("stop_after_first", False)
        first_tag = self._either([f"{self._literal(trigger)} {rests}" for trigger, rests in choices.items()])
        if must and once:
            return [_Exact(first_tag)]
        tags = self._rule_of(
            self._either([f"{self._text_until(trigger)} {rests}" for trigger, rests in choices.items()])
        )
        if once:
            return [_Open(lambda end: f"({tags} {self._literal(end or '')} | {self._text_until(end)})", is_free=True)]
        return [_Open(lambda end: f"{first_tag if must else ''} {tags}* {self._text_until(end)}", is_free=True)]

    def _tags_with_separator_items(self, form: dict[str, Any], where: str) -> list[_Item]:
        separator = _string(form, "separator", where)
        must, most = form.get("at_least_one", False), form.get("at_most")
        if most is not None and (type(most) is not int or most < 1):
            raise TagError(f"{where}.at_most must be an integer, at least 1")
        once = form.get("stop_after_first", False) or most == 1
        further = "*" if most is None else f"{{0,{most - 1}}}"
        tags = self._tags(form, where)
        if not any(items and isinstance(items[-1], _Open) for _, _, items in tags):
            tag = self._rule_of(self._either([self._sequence(items) for _, _, items in tags]))
            several = tag if once else f"{tag} ({self._literal(separator)} {tag}){further}"
            return [_Exact(f"({several})" if must else f"({several})?")]
        for name, _, items in tags:
            self._check_closed(items, name)

        @cache  # it asks for its own inner part twice: so 2^depth without
        def write(end: str | None) -> str:
            # What ends a tag that has no end of its own: the separator, or behind the last one what follows them all.
            last = self._rule_of(self._either([self._sequence(items, end) for _, _, items in tags]))
            if not once:
                other = self._either([self._sequence(items, separator or None) for _, _, items in tags])
                last = f"{self._rule_of(other)}{further} {last}"
            return self._either([last] if must else [last, self._literal(end or "")])

        return [_Open(write)]

    def _tags(self, form: dict[str, Any], where: str) -> list[tuple[str, dict[str, Any], list[_Item]]]:
        """Where each tag is, the tag, and what it consists of."""
        result = []
        for i, tag in enumerate(_list(form, "tags", where)):
            name = f"{where}.tags[{i}]"
            if not isinstance(tag, dict) or tag.get("type", "tag") != "tag":
                raise TagError(f"{name} must be a tag")
            result.append((name, tag, self._items({**tag, "type": "tag"}, name)))
        return result

    # --- Lark ---

    def _closed(self, items: list[_Item], where: str) -> str:
        """Lark for items that something else than a constant may follow."""
        self._check_closed(items, where)
        return self._sequence(items)

    @staticmethod
    def _check_closed(items: list[_Item], where: str) -> None:
        if items and isinstance(items[-1], _Open) and items[-1].is_free:
            raise TagError(f"{where} ends in free text, and needs an end that is not empty")

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
                if item.is_free and not stop and not is_last:
                    raise TagError("free text must be followed by a constant string, a tag, or the end")
                parts.append(item.write(stop + (end or "") if is_last and end else stop or None))
                if is_last:
                    return " ".join(parts)
        return " ".join(filter(None, [*parts, self._literal(end or "")])) or '""'

    def _text_until(self, end: str | None, terminal: str = _LAZY_TEXT) -> str:
        """Lark for text that matches a terminal, free text if not given, and the constant that ends it."""
        text, pieces = self._split_end(end)
        name = self._new_name("until")
        self._lines.append(f"{name}[lazy]: {terminal} {self._piece(text)}" if text else f"{name}: {terminal}")
        return " ".join([name, *pieces])

    def _split_end(self, end: str | None) -> tuple[str, list[str]]:
        """What of a constant can be part of a terminal in front of it, and Lark for the rest.

        Special tokens cannot. They are no text either, so that text before one ends by itself.
        """
        parts = self._parts(end or "")
        num_text = 1 if parts and parts[0] not in self._special else 0
        return "".join(parts[:num_text]), [self._piece(part) for part in parts[num_text:]]

    def _literal(self, text: str) -> str:
        return " ".join(map(self._piece, self._parts(text)))

    def _parts(self, text: str) -> list[str]:
        """Special tokens, and text between them."""
        return [part for part in (self._splitter.split(text) if self._splitter is not None else [text]) if part]

    def _special_in(self, text: str) -> list[str]:
        return [part for part in self._parts(text) if part in self._special]

    def _piece(self, part: str) -> str:
        return f"<[{self._special[part]}]>" if part in self._special else lark_string(part)

    def _rule_of(self, lark: str) -> str:
        name = self._new_name("part")
        self._lines.append(f"{name}: {lark}")
        return name

    def _either(self, options: list[str]) -> str:
        unique = list(dict.fromkeys(option.strip() or '""' for option in options))
        return f"({' | '.join(unique)})"

    def _new_name(self, kind: str) -> str:
        return f"{kind}_{len(self._lines)}"


def parts_of(text: str) -> Iterator[tuple[str, GrammarSpec]]:
    """The schemas and patterns in a structural tag, given as JSON text, and before each in which tags it is, if any."""

    def within(value: Any, place: str) -> Iterator[tuple[str, GrammarSpec]]:
        if isinstance(value, list):
            for each in value:
                yield from within(each, place)
        if not isinstance(value, dict):
            return
        if isinstance(value.get("begin"), str):
            begin = value["begin"]
            shown = begin if len(begin) <= _MAX_SHOWN_CHARS else begin[:_MAX_SHOWN_CHARS] + "…"
            place += f"in the tag that begins with {shown!r}: " if begin else ""
        for key, inner in value.items():
            if key in ("json_schema", "schema"):
                yield place, GrammarSpec("json_schema", json.dumps(inner))
            elif key == "pattern" and isinstance(inner, str):
                yield place, GrammarSpec("regex", inner)
            else:
                yield from within(inner, place)

    return within(json.loads(text), "")


def _constant(text: str) -> list[_Item]:
    return [_Constant(text)] if text else []


def format_of(tag: dict[str, Any]) -> Any:
    """The format of a structural tag of either form.

    Raises:
        TagError: it is of neither form.
    """
    if "structures" not in tag and "triggers" not in tag:
        _check_keys(tag, "the structural tag", ("format",), ("type",))
        return tag["format"]
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
