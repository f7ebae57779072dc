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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, Union

import msgspec
from msgspec import Meta

from bough.constrained.bare_strings import patterns_of
from bough.constrained.ebnf import EbnfError, to_lark
from bough.constrained.lark_text import LarkRules, lark_choice
from bough.json_words import NOT_POSSIBLE, fault_of
from bough.sampling.sampling_params import GrammarSpec

MAX_PARTS = 8192
"""Most tags and other parts in all."""

_MAX_SHOWN_CHARS = 80
"""Of a tag's beginning, in errors."""

_T = TypeVar("_T")
_Listed = Annotated[list[_T], Meta(min_length=1)]


class _Form(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    pass


class _ConstString(_Form, tag="const_string"):
    value: str


class _JsonSchema(_Form, tag="json_schema"):
    json_schema: dict[str, Any] | bool


class _BareString(_Form, tag="bare_string"):
    json_schema: dict[str, Any]


class _Regex(_Form, tag="regex"):
    pattern: str


class _Grammar(_Form, tag="grammar"):
    grammar: str


class _AnyText(_Form, tag="any_text"):
    pass


class _Sequence(_Form, tag="sequence"):
    elements: _Listed[_Format]


class _Or(_Form, tag="or"):
    elements: _Listed[_Format]


class _Subsequence(_Form, tag="subsequence"):
    elements: _Listed[_Format]
    required: list[bool]
    separator: str


class _Tag(_Form, tag="tag"):
    begin: str
    content: _Format
    end: str


class _TriggeredTags(_Form, tag="triggered_tags"):
    triggers: _Listed[Annotated[str, Meta(min_length=1)]]
    tags: _Listed[_Tag]
    at_least_one: bool = False
    stop_after_first: bool = False


class _TagsWithSeparator(_Form, tag="tags_with_separator"):
    tags: _Listed[_Tag]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False
    at_most: Annotated[int, Meta(ge=1)] | None = None


_Format = Union[  # noqa: UP007
    _ConstString,
    _JsonSchema,
    _BareString,
    _Regex,
    _Grammar,
    _AnyText,
    _Sequence,
    _Or,
    _Subsequence,
    _Tag,
    _TriggeredTags,
    _TagsWithSeparator,
]


class _Structure(msgspec.Struct, forbid_unknown_fields=True):
    begin: str
    end: str
    schema: Any = msgspec.field(default_factory=dict)


class _Older(msgspec.Struct, forbid_unknown_fields=True):
    structures: _Listed[_Structure]
    triggers: Any
    type: Any = None


class _Newer(msgspec.Struct, forbid_unknown_fields=True):
    format: Any
    type: Any = None


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
    """Writes one structural tag as Lark, given what writes the rules for JSON schemas and for patterns."""

    def __init__(
        self,
        json_rule: Callable[[Any], str],
        regex_rule: Callable[[str], str],
        special_tokens: Mapping[str, int],
    ) -> None:
        self._json_rule = json_rule
        self._regex_rule = regex_rule
        self._rules = LarkRules(special_tokens)
        self._schemas: dict[str, str] = {}
        """Rules for schemas, each of which is written once."""
        self._free = _Open(self._rules.text_until, is_free=True)
        self._count = 0

    def write(self, tag: dict[str, Any]) -> str:
        """Return the whole grammar, from ``start``. Raises :class:`TagError` if the tag is wrong or not supported."""
        form: _Format = _checked(format_of(tag), _Format, "format")
        body = self._sequence(self._items(form, "format"))
        return "\n".join([f"start: {body}", *self._rules.lines]) + "\n"

    def _items(self, form: _Format, where: str) -> list[_Item]:
        """Return the items that a format consists of, in order."""
        self._count += 1
        if self._count > MAX_PARTS:
            raise TagError(f"there are more than {MAX_PARTS} parts")
        match form:
            case _ConstString():
                return _constant(form.value)
            case _JsonSchema():
                return [self._json(form.json_schema)]
            case _BareString():
                patterns = patterns_of(form.json_schema)
                return [self._pattern(f"({' & '.join(map(self._regex_rule, patterns))})") if patterns else self._free]
            case _Regex():
                return [self._pattern(self._regex_rule(form.pattern))]
            case _Grammar():
                return [_Open(lambda end: self._grammar(form.grammar, end, where))]
            case _AnyText():
                return [self._free]
            case _Sequence():
                return [item for items in self._elements(form, where) for item in items]
            case _Or():
                return [self._or(self._elements(form, where))]
            case _Subsequence():
                return [self._subsequence(form, where)]
            case _Tag():
                content = self._items(form.content, f"{where}.content")
                return [*_constant(form.begin), *content, *_constant(form.end)]
            case _TriggeredTags():
                return [self._triggered_tags(form, where)]
            case _TagsWithSeparator():
                return [self._tags_with_separator(form, where)]

    def _elements(self, form: _Sequence | _Or | _Subsequence, where: str) -> list[list[_Item]]:
        return [self._items(element, f"{where}.elements[{i}]") for i, element in enumerate(form.elements)]

    def _json(self, schema: dict[str, Any] | bool) -> _Exact:
        text = json.dumps(schema)
        if text not in self._schemas:
            self._schemas[text] = self._rules.rule(self._json_rule(schema))
        return _Exact(self._schemas[text])

    def _pattern(self, terminal: str) -> _Open:
        return _Open(lambda end: self._rules.text_until(end, terminal))

    def _grammar(self, grammar: str, end: str | None, where: str) -> str:
        name = self._rules.new_name("grammar")
        text, pieces = self._rules.split_end(end)
        try:
            self._rules.lines.append(to_lark(grammar, start=name, prefix=f"{name}_", end=text))
        except EbnfError as error:
            raise TagError(f"{where}.grammar: {error}") from None
        return " ".join([name, *pieces])

    def _or(self, options: list[list[_Item]]) -> _Item:
        open_ = [items[-1] for items in options if items and isinstance(items[-1], _Open)]
        if not open_:
            return _Exact(self._either(options))
        return _Open(lambda end: self._either(options, end), is_free=any(item.is_free for item in open_))

    def _subsequence(self, form: _Subsequence, where: str) -> _Exact:
        required = form.required
        if len(required) != len(form.elements):
            raise TagError(f"{where}.required must be a list of booleans, one for each element")
        separator = self._rules.constant(form.separator)
        rules = [self._closed(items, f"{where}.elements[{i}]") for i, items in enumerate(self._elements(form, where))]
        last_first = required.index(True) if True in required else len(required)
        firsts: list[str] = [] if True in required else ['""']
        rest = ""  # what may come behind an element
        for i in range(len(rules) - 1, -1, -1):
            if i <= last_first:
                firsts.append(f"{rules[i]} {rest}")
            if i > 0 or not separator:
                rest = self._rules.rule(f"({separator} {rules[i]}){'' if required[i] else '?'} {rest}")
        return _Exact(lark_choice(firsts) if separator else rest)

    def _triggered_tags(self, form: _TriggeredTags, where: str) -> _Item:
        rules, given = self._rules, form.triggers
        # The first that comes ends the free text, so a longer one that begins with it never would.
        triggers = [each for each in given if not any(each != other and each.startswith(other) for other in given)]
        after: dict[str, list[str]] = {trigger: [] for trigger in triggers}
        for i, tag in enumerate(form.tags):
            name = f"{where}.tags[{i}]"
            trigger = next((each for each in triggers if tag.begin.startswith(each)), None)
            if trigger is None:
                raise TagError(f"{name}: no trigger is the beginning of {tag.begin!r}")
            rest = tag.begin[len(trigger) :]
            if rules.special_in(trigger) + rules.special_in(rest) != rules.special_in(tag.begin):
                raise TagError(f"{name}: the trigger {trigger!r} ends inside of a special token")
            after[trigger].append(self._closed(self._items(_Tag(rest, tag.content, tag.end), name), name))
        choices = {trigger: rules.rule(lark_choice(rests)) for trigger, rests in after.items() if rests}
        must, once = form.at_least_one, form.stop_after_first
        first_tag = lark_choice([f"{rules.constant(trigger)} {rests}" for trigger, rests in choices.items()])
        if must and once:
            return _Exact(first_tag)
        tags = rules.rule(lark_choice([f"{rules.text_until(trigger)} {rests}" for trigger, rests in choices.items()]))
        if once:
            return _Open(lambda end: f"({tags} {rules.constant(end or '')} | {rules.text_until(end)})", is_free=True)
        return _Open(lambda end: f"{first_tag if must else ''} {tags}* {rules.text_until(end)}", is_free=True)

    def _tags_with_separator(self, form: _TagsWithSeparator, where: str) -> _Item:
        separator, must, most = form.separator, form.at_least_one, form.at_most
        once = form.stop_after_first or most == 1
        further = "*" if most is None else f"{{0,{most - 1}}}"
        tags = [self._items(tag, f"{where}.tags[{i}]") for i, tag in enumerate(form.tags)]
        if not any(items and isinstance(items[-1], _Open) for items in tags):
            tag = self._rules.rule(self._either(tags))
            several = tag if once else f"{tag} ({self._rules.constant(separator)} {tag}){further}"
            return _Exact(f"({several})" if must else f"({several})?")
        for i, items in enumerate(tags):
            _check_closed(items, f"{where}.tags[{i}]")

        @cache  # it asks for its own inner part twice: so 2^depth without
        def write(end: str | None) -> str:
            # What ends a tag that has no end of its own: the separator, or behind the last one what follows them all.
            last = self._rules.rule(self._either(tags, end))
            if not once:
                last = f"{self._rules.rule(self._either(tags, separator or None))}{further} {last}"
            return lark_choice([last] if must else [last, self._rules.constant(end or "")])

        return _Open(write)

    def _closed(self, items: list[_Item], where: str) -> str:
        """Return a rule for items that something else than a constant may follow."""
        _check_closed(items, where)
        return self._rules.rule(self._sequence(items))

    def _either(self, options: list[list[_Item]], end: str | None = None) -> str:
        return lark_choice([self._sequence(items, end) for items in options])

    def _sequence(self, items: list[_Item], end: str | None = None) -> str:
        """Return Lark for items one after the other; ``end`` is what comes after them if the last one is open."""
        parts: list[str] = []
        i = 0
        while i < len(items):
            item = items[i]
            i += 1
            if isinstance(item, _Constant):
                parts.append(self._rules.constant(item.text))
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
        return " ".join(filter(None, [*parts, self._rules.constant(end or "")])) or '""'


def _check_closed(items: list[_Item], where: str) -> None:
    if items and isinstance(items[-1], _Open) and items[-1].is_free:
        raise TagError(f"{where} ends in free text, and needs an end that is not empty")


def parts_of(text: str) -> Iterator[tuple[str, GrammarSpec]]:
    """Yield the schemas and patterns in a structural tag, given as JSON text, and before each in which tags it is."""

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
    """Return the format of a structural tag of either form. Raises :class:`TagError` at any other."""
    if "structures" not in tag and "triggers" not in tag:
        newer: _Newer = _checked(tag, _Newer, "structural_tag")
        return newer.format
    older: _Older = _checked(tag, _Older, "structural_tag")
    tags = []
    for each in older.structures:
        content = {"type": "json_schema", "json_schema": each.schema}
        tags.append({"begin": each.begin, "content": content, "end": each.end})
    return {"type": "triggered_tags", "triggers": older.triggers, "tags": tags}


def _checked(value: Any, kind: Any, where: str) -> Any:
    """Return a value as one of the types above. Raises :class:`TagError` if it is none."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        fault = fault_of(value, kind) or NOT_POSSIBLE
        raise TagError(f"{where}{fault.place}{fault.problem}") from None
