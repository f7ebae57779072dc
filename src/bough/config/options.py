"""Options declared once: a frozen dataclass whose fields carry all that the outside needs to know about them.

A class of options derives from :class:`OptionTable` and gives every field its :func:`option`. Help texts, the command
line, configuration files, validation and the reference page are made from those fields and nowhere else.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import operator
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Union

from bough.config.user_paths import shown_path
from bough.errors import ConfigError
from bough.other_engines import SAME_VALUES, asks_for_nothing, flag_refusal, names_here

Kind = Literal["bool", "int", "float", "str", "json"]

Rule = Callable[[Any], "str | None"]
"""Given a value of the right type, returns what is wrong with it (``"must be a power of two"``) or ``None``."""

_METADATA_KEY = "bough.option"
_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
"""What every message between processes can carry."""
_SCALE = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_HALF_PAIR = re.compile("[\ud800-\udfff]")
"""Code points that stand for invalid UTF-8 on the command line; no message can carry them."""

_BYTES = dict.fromkeys(range(0xDC80, 0xDD00), "?")
"""Translation table that replaces bytes of a path that are not UTF-8 (PEP 383)."""

_OF_PATHS = ("PATH", "FILE", "DIRECTORY", "NAME|FILE")
"""Placeholders in the help that mark the value of an option as a path."""
_SCALED_INT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([kmg]?)(?:i?b)?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Declaration:
    """What the field of an option says about it; type, choices and name come from the field's annotation."""

    help: str
    """One or two sentences, ending with a full stop."""
    group: str
    """Heading under which the option is listed."""
    unit: str = ""
    """Unit of the value ("tokens", "seconds")."""
    default_text: str = ""
    """Shown as the default instead of the value, mostly to explain ``None``."""
    metavar: str = ""
    """Placeholder of the value in usage lines; made from the type where empty."""
    minimum: float | None = None
    """Least value allowed, itself included."""
    maximum: float | None = None
    """Greatest value allowed, itself included."""
    aliases: tuple[str, ...] = ()
    """Further names of the flag and of the key in configuration files, with dashes."""
    scaled: bool = False
    """Accepts ``"32k"`` and ``"16MiB"``, in powers of 1024."""
    infinite: bool = False
    """Accepts an infinite float."""
    rule: Rule | None = None
    """A check that the other facts cannot express."""
    secret: bool = False
    """Never shows the value."""
    short: str = ""
    """Letter of the flag's short form."""
    basic: bool = False
    """Shown in ``--help``; a table without basic options is shown in full."""


_Facts = ParamSpec("_Facts")


def _declares(declaration: Callable[_Facts, _Declaration]) -> Callable[Concatenate[Any, _Facts], Any]:
    def option(default: Any, /, *args: _Facts.args, **facts: _Facts.kwargs) -> Any:
        declared = declaration(*args, **facts)
        return dataclasses.field(default=default, repr=not declared.secret, metadata={_METADATA_KEY: declared})

    return option


option = _declares(_Declaration)
"""Declares a field of an :class:`OptionTable`: its default, which is immutable, and what ``_Declaration`` has."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: what it is called, what it accepts and what it means."""

    name: str
    """Attribute and keyword, with underscores."""
    kind: Kind
    optional: bool
    """Whether ``None`` is a value."""
    repeated: bool
    """Whether a command line may give it several times; its kind is ``str`` then, its value a tuple of all."""
    choices: tuple[str, ...]
    """Allowed values; empty: not limited."""
    default: Any
    declared: _Declaration

    @property
    def flag(self) -> str:
        """The option on a command line: ``--max-running-requests``."""
        return "--" + self.key

    @property
    def key(self) -> str:
        """The option in a configuration file, as the reference page spells it: ``max-running-requests``."""
        return self.name.replace("_", "-")

    @property
    def keys(self) -> tuple[str, ...]:
        """Key and aliases, the key first."""
        return (self.key, *self.declared.aliases)

    @property
    def flags(self) -> tuple[str, ...]:
        """All spellings on the command line, short one first: ``-m``, ``--model-path``, ``--model``."""
        short = (f"-{self.declared.short}",) if self.declared.short else ()
        return (*short, *(f"--{key}" for key in self.keys))

    @property
    def metavar(self) -> str:
        """Placeholder of the value in usage lines; empty for switches."""
        if self.kind == "bool":
            return ""
        if self.choices:
            return "{" + ",".join(self.choices) + "}"
        return self.declared.metavar or {"int": "N", "float": "X", "json": "JSON"}.get(self.kind, "TEXT")

    @property
    def is_path(self) -> bool:
        """True if the value is, or may be, a path, which need not be UTF-8."""
        return self.declared.metavar in _OF_PATHS

    @property
    def default_text(self) -> str:
        """The default as a reader wants to see it."""
        if self.declared.default_text or self.default is None:
            return self.declared.default_text or "none"
        if self.kind == "bool":
            return "on" if self.default else "off"
        if self.declared.unit == "bytes":
            for size, name in ((2**20, "MiB"), (2**10, "KiB")):
                if self.default and self.default % size == 0:
                    return f"{self.default // size} {name}"
        return f"{self.default:g}" if self.kind == "float" else str(self.default)

    @property
    def measure(self) -> str:
        """The unit of the value, and in which other form it may be written; may be empty."""
        if not self.declared.scaled:
            return self.declared.unit
        return f"{self.declared.unit}, or like {'16MiB' if self.declared.unit == 'bytes' else '32k'}"

    def parse(self, text: str, *, shown: str) -> Any:
        """Value of a text, as written on a command line; ``shown`` names the option in an error.

        Raises:
            ConfigError: if the text does not stand for an allowed value.
        """
        value: Any = text
        try:
            if self.kind == "int" and not self.declared.scaled:
                value = int(text)
            elif self.kind == "float":
                value = float(text)
        except ValueError:
            raise self._wrong_type(text, shown) from None
        return self.check(value, shown=shown)

    def check(self, value: Any, *, shown: str) -> Any:
        """Check a value's type and range.

        Args:
            shown: what to call this option in an error.

        Returns:
            The value in the field's own type (paths as ``str``, ``"32k"`` as 32768, JSON text decoded).

        Raises:
            ConfigError: naming the option and what it accepts.
        """
        if value is None:
            if not self.optional:
                raise ConfigError(f"{shown} needs a value", param=self.name)
            return None
        if self.repeated:
            items = value if isinstance(value, (list, tuple)) else (value,)
            return tuple(self._check_one(item, shown) for item in items)
        return self._check_one(value, shown)

    def _check_one(self, value: Any, shown: str) -> Any:
        value = self._convert(value, shown)
        if self.choices:
            value = SAME_VALUES.get(self.key, {}).get(value, value)
            if value not in self.choices:
                meant = did_you_mean(value, self.choices)
                raise ConfigError(
                    f"{shown} must be one of {', '.join(self.choices)}, got {value!r}{meant}", param=self.name
                )
        low, high = self.declared.minimum, self.declared.maximum
        if self.kind == "int":
            low, high = _MIN_INT if low is None else low, _MAX_INT if high is None else high
        if low is not None and value < low:
            raise ConfigError(f"{shown} must be at least {self._bound(low)}, got {value}", param=self.name)
        if high is not None and value > high:
            raise ConfigError(f"{shown} must be at most {self._bound(high)}, got {value}", param=self.name)
        if self.declared.rule is not None and (complaint := self.declared.rule(value)) is not None:
            got = "" if self.declared.secret else f", got {value}"
            raise ConfigError(f"{shown} {complaint}{got}", param=self.name)
        return value

    def _bound(self, value: float) -> str:
        number = str(int(value)) if float(value).is_integer() else str(value)
        return f"{number} {self.declared.unit}" if self.declared.unit and value > 1 else number

    def _convert(self, value: Any, shown: str) -> Any:
        if self.kind == "bool":
            if isinstance(value, bool):
                return value
        elif self.kind == "int":
            if self.declared.scaled and isinstance(value, str):
                if match := _SCALED_INT.fullmatch(value.strip()):
                    return (
                        int(float(match[1]) * _SCALE[match[2].lower()])
                        if "." in match[1] or match[2]
                        else int(match[1])
                    )
            elif not isinstance(value, bool):
                try:
                    return operator.index(value)
                except TypeError:
                    pass
        elif self.kind == "float":
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                try:
                    number = float(value)
                except OverflowError:  # a whole number may have any size
                    raise self._wrong_type(value, shown) from None
                if math.isfinite(number) or (self.declared.infinite and math.isinf(number)):
                    return number
        elif self.kind == "json":
            try:
                if isinstance(value, str):
                    value = json.loads(value)
                if isinstance(value, dict):
                    return _as_in_json(value)
            except (TypeError, ValueError, RecursionError) as error:
                raise ConfigError(f"{shown} must be a JSON object: {error}", param=self.name) from None
        elif isinstance(value, (str, os.PathLike)) or (isinstance(value, bytes) and self.is_path):
            text = os.fsdecode(value) if self.is_path else os.fspath(value)
            if not (isinstance(text, str) and text):
                raise ConfigError(f"{shown} must not be empty", param=self.name)
            if _HALF_PAIR.search(text.translate(_BYTES) if self.is_path else text):
                raise self._wrong_type(value, shown)
            return text
        raise self._wrong_type(value, shown)

    def _wrong_type(self, value: Any, shown: str) -> ConfigError:
        expected = {
            "bool": "true or false",
            "int": "a whole number such as 4096 or 32k" if self.declared.scaled else "a whole number",
            "float": "a number",
            "str": "text that UTF-8 can hold" if isinstance(value, str) else "text",
            "json": "a JSON object",
        }[self.kind]
        got = type(value).__name__ if self.declared.secret else repr(value)
        return ConfigError(f"{shown} must be {expected}, got {got}", param=self.name)


Table = TypeVar("Table", bound="OptionTable")


class OptionTable:
    """Base of frozen keyword-only dataclasses all of whose fields are declared with :func:`option`.

    Construction raises :class:`ConfigError` for unknown keywords (with a suggestion), wrong types and values out of
    range; an instance that exists is valid field by field. Rules between fields belong in :meth:`check_together`.
    """

    __slots__ = ()

    def __new__(cls: type[Table], **keywords: Any) -> Table:
        """Refuse unknown keywords before the generated ``__init__`` does so with a ``TypeError``."""
        names = [each.name for each in options_of(cls)]
        for keyword in keywords:
            if keyword not in names:
                meant = options_by_key(cls).get(keyword.replace("_", "-"))
                if meant is None:
                    raise ConfigError(unknown_name("option", keyword, names), param=keyword)
                raise ConfigError(f"unknown option {keyword!r}; did you mean {meant.name!r}?", param=keyword)
        return object.__new__(cls)

    @classmethod
    def of_keywords(cls: type[Table], keywords: Mapping[str, Any]) -> Table:
        """Construct from keywords, passing over those of other engines that ask for what is so anyway (``tp_size=1``).

        Raises:
            ConfigError: as construction does.
        """
        keys = options_by_key(cls)
        names = {each.name for each in keys.values()}
        ours = {
            name: value
            for name, value in keywords.items()
            if name in names or not asks_for_nothing(name, value, keywords, keys)
        }
        return cls(**ours)

    def __post_init__(self) -> None:
        """Check every field and bring it to its own type."""
        for each in options_of(type(self)):
            value = getattr(self, each.name)
            checked = each.default if value is None and not each.optional else each.check(value, shown=each.name)
            if checked is not value:
                object.__setattr__(self, each.name, checked)
        self.check_together()

    def check_together(self) -> None:
        """Raise :class:`ConfigError` where fields that are valid alone contradict each other."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, keywords of another such object, as plain values that MessagePack can carry.

        A path that is not UTF-8 becomes bytes.
        """
        values = {each.name: getattr(self, each.name) for each in options_of(type(self))}
        for each in options_of(type(self)):
            if each.is_path and isinstance(text := values[each.name], str) and _HALF_PAIR.search(text):
                values[each.name] = os.fsencode(text)
        return values

    def to_public_dict(self) -> dict[str, Any]:
        """The same, for everybody's eyes: of secrets only whether there is one."""
        values = self.to_dict()
        for each in options_of(type(self)):
            if each.declared.secret and values[each.name] is not None:
                values[each.name] = "(set)"
            elif isinstance(values[each.name], bytes):
                values[each.name] = shown_path(values[each.name])
        return values

    def to_flags(self) -> list[str]:
        """A command line's flags that say the same, for everybody's eyes; defaults are left out."""
        flags: list[str] = []
        values = self.to_public_dict()
        for each in options_of(type(self)):
            value = values[each.name]
            if value is None or value == each.default:
                continue
            if each.kind == "bool":
                flags.append(each.flag if value else f"--no-{each.key}")
            else:
                for item in value if each.repeated else (value,):
                    flags += [each.flag, json.dumps(item) if each.kind == "json" else str(item)]
        return flags

    def without_secrets(self: Table) -> Table:
        """The same, with every secret at its default, for those that need none."""
        secrets = {each.name: each.default for each in options_of(type(self)) if each.declared.secret}
        return type(self)(**{**self.to_dict(), **secrets})


def options_of(table: type[OptionTable]) -> tuple[Option, ...]:
    """The options of a table, in the order of declaration."""
    hints = typing.get_type_hints(table)
    return tuple(_from_field(field, hints[field.name]) for field in dataclasses.fields(typing.cast(Any, table)))


def options_by_key(table: type[OptionTable]) -> dict[str, Option]:
    """Option for every key and alias, spelt with dashes."""
    return {key: each for each in options_of(table) for key in each.keys}


def groups_of(table: type[OptionTable]) -> dict[str, list[Option]]:
    """Options under their headings, both in the order of declaration."""
    groups: dict[str, list[Option]] = {}
    for each in options_of(table):
        groups.setdefault(each.declared.group, []).append(each)
    return groups


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Return the message for the name of an option that does not exist, which another engine may have."""
    return flag_refusal(name) or f"unknown {what} {name!r}{did_you_mean(name, known)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` with the name most like ``name``, or nothing where none is alike.

    Of a flag of another server it says which name comes nearest.
    """
    names = list(known)
    nearest = next((each for each in names_here(name) if each in names), None)
    if nearest is not None:
        return f"; the nearest here is {nearest!r}"
    # Most of what switches are called is the same.
    cutoff = 0.8 if name.lstrip("-").startswith(("enable", "disable")) else 0.6
    close = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


def _as_in_json(value: dict[str, Any]) -> dict[str, Any]:
    """An object as it is once it has been written as JSON and read again.

    YAML has dates, sets and cycles besides, and keys that are numbers, which JSON has as text.

    Raises:
        TypeError, ValueError, RecursionError: if it cannot be written, or a message between processes cannot carry it.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode()  # half a surrogate pair has no UTF-8
    copy: dict[str, Any] = json.loads(text, parse_int=_sendable_int)
    return copy


def _sendable_int(text: str) -> int:
    number = int(text)
    if not _MIN_INT <= number <= _MAX_INT:
        raise ValueError(f"{text} is not between {_MIN_INT} and {_MAX_INT}")
    return number


def _from_field(field: dataclasses.Field[Any], hint: Any) -> Option:
    members = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    optional = type(None) in members
    (value_type,) = (member for member in members if member is not type(None))
    choices: tuple[str, ...] = ()
    repeated = typing.get_origin(value_type) is tuple
    if repeated:
        value_type = typing.get_args(value_type)[0]
    if typing.get_origin(value_type) is Literal:
        choices, value_type = typing.get_args(value_type), str
    kinds: dict[Any, Kind] = {bool: "bool", int: "int", float: "float", str: "str", dict: "json"}
    kind = kinds[typing.get_origin(value_type) or value_type]
    if repeated and kind != "str":
        raise TypeError(f"{field.name}: only text may be given several times")
    return Option(field.name, kind, optional, repeated, choices, field.default, field.metadata[_METADATA_KEY])
