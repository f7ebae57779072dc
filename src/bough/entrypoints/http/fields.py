"""Request bodies, declared once.

A body is a :class:`msgspec.Struct` whose annotations carry range and meaning of every field that works, plus tables of
the fields that are accepted without effect and of those that are refused because they do not work yet. Parsing,
errors, the OpenAPI description and ``docs/endpoints.md`` are made from these.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec
from msgspec import inspect

from bough import ceilings
from bough.entrypoints.http.json_body import JSON_ERRORS, LARGE_BODY_BYTES, RawValue, decode_token_ids, split_object
from bough.entrypoints.http.unknown_fields import MAX_NAMES_COLLECTED, Unknown, typo_of, unknown_field
from bough.errors import BadRequest
from bough.json_words import fault_in_json, problem_with, problem_with_name, split_place, wrong_choice, wrong_field
from bough.other_engines import Unsupported

MAX_OUTPUTS_PER_REQUEST = ceilings.OUTPUTS_PER_REQUEST
"""Most outputs (prompts times ``n``) of one HTTP request, in every dialect."""

MAX_ELEMENTS = 65_536
"""Most elements (commas and opening brackets) of one field, but for lists of token ids: what can be decoded in one go
without keeping other clients waiting."""

_TRUNCATION = "truncate_prompt_tokens"
"""The field that has long prompts cut."""

INEFFECTIVE_TYPES: dict[str, Any] = {
    **dict.fromkeys(
        (
            *("user", "safety_identifier", "user_profile_id", "workspace_id", "session_id", "conversation_id", "model"),
            *("service_tier", "prompt_cache_key", "prompt_cache_retention", "guided_decoding_backend", "inference_geo"),
            *("system", "template", "name", "speed"),
        ),
        str,
    ),
    **dict.fromkeys(
        (
            *("store", "no_logs", "verbose", "stream", "parallel_tool_calls", "is_cross_encoder_request"),
            *("cache_prompt", "torch_empty_cache", "keep_pause", "recapture_cuda_graph"),
        ),
        bool,
    ),
    **dict.fromkeys(
        (
            *("metadata", "prompt_cache_options", "prediction", "cache_control", "diagnostics", "options"),
            *("external_trace_header", "client_metadata"),
        ),
        dict[str, Any],
    ),
    **dict.fromkeys(("max_tokens", "temperature", "received_time", "token_step"), float),
    "access_programs": dict[str, Any] | list[str],
    "betas": list[str],
    "context_management": dict[str, Any] | list[dict[str, Any]],
    "custom_labels": dict[str, Any] | list[dict[str, Any]],
    "keep_alive": str | float,
    "routing_key": str | list[str],
    "sampling_params": dict[str, Any] | list[dict[str, Any]],
}
"""What fields that change nothing hold, by their names, which mean the same everywhere."""

_STEP = re.compile(r"\.[^.\[]+|\[[^\]]*\]")
_NOT_WHOLE = re.compile(r"Expected `(?:[^`]*\W)?int(?:\W[^`]*)?`, got `float`(?: - at `\$(?P<place>.*)`)?")
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_MEMBER = re.compile(r"Object (?P<fault>contains unknown|missing required) field `(?P<name>[^`]*)")
_UNDECODED = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[msgspec.Raw])

Body = TypeVar("Body", bound=msgspec.Struct)

Tidy = Callable[[Any, Unknown | None], Any]
"""From a decoded value to one in the form that the model asks for. The second argument is where names of unknown
members are collected, which are dropped; ``None`` to keep them, so that they are refused."""


@dataclass(frozen=True)
class Translation:
    """A field of another server that asks for what fields here ask for.

    Attributes:
        field: the one that it mostly means.
        convert: from its value to fields here with their values; none where it asks for nothing.
        unless: another field beside which it is ignored, as beside those that it means.
    """

    field: str
    convert: Callable[[Any], Mapping[str, Any]]
    unless: str = ""


@dataclass(frozen=True)
class BodySpec(Generic[Body]):
    """All that may stand in the body of one endpoint.

    Attributes:
        model: the fields that work, with types, ranges, defaults and descriptions.
        aliases: other names of such fields.
        translated: names that other servers have for fields of ``model``; unknown to those who want strict fields.
        no_effect: fields that are accepted and change nothing, with their meaning.
        refused: fields that are not supported, by name.
        token_ids: those fields of ``model`` that may hold token ids, which are decoded in slices when there are many.
        schemas: JSON schemas of fields whose annotation does not say it all.
        max_elements: how many elements a field may have in a large body, where not :data:`MAX_ELEMENTS`.
        excludes: fields of ``no_effect`` that cannot stand beside another field, with the name of that.
        is_strict: refuse unknown fields whatever the server's option, as what acts on a server does.
        may_be_empty: take an empty body for an empty object.
        tidy: second chances: what to do to the value of a field that does not have the right form as it stands.
    """

    model: type[Body]
    aliases: Mapping[str, str] = field(default_factory=dict)
    translated: Mapping[str, Translation] = field(default_factory=dict)
    no_effect: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, Unsupported] = field(default_factory=dict)
    token_ids: frozenset[str] = frozenset()
    schemas: Mapping[str, Any] = field(default_factory=dict)
    max_elements: Mapping[str, int] = field(default_factory=dict)
    tidy: Mapping[str, Tidy] = field(default_factory=dict)
    excludes: Mapping[str, str] = field(default_factory=dict)
    is_strict: bool = False
    may_be_empty: bool = False
    _decoders: dict[str, msgspec.json.Decoder[Any]] = field(init=False, repr=False, compare=False)
    _ineffective: dict[str, msgspec.json.Decoder[Any]] = field(init=False, repr=False, compare=False)
    _required: tuple[str, ...] = field(init=False, repr=False, compare=False)
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Every field name that is known, in whatever role."""
    _known: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        hints = get_type_hints(self.model, include_extras=True)
        fields = msgspec.structs.fields(self.model)
        object.__setattr__(self, "_decoders", {each.name: msgspec.json.Decoder(hints[each.name]) for each in fields})
        ineffective = {name: msgspec.json.Decoder(INEFFECTIVE_TYPES[name]) for name in self.no_effect}
        object.__setattr__(self, "_ineffective", ineffective)
        object.__setattr__(self, "_required", tuple(each.name for each in fields if each.required))
        names = (*self._decoders, *self.aliases, *self.translated, *self.no_effect, *self.refused)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_known", frozenset(names))

    async def parse(
        self, body: bytes | Mapping[str, RawValue], *, unknown: Unknown | None, max_tokens: int
    ) -> tuple[Body, Set[str]]:
        """Decode a body. ``null`` for any field is the same as its absence.

        Args:
            body: JSON, or the members of such an object, split with regard to :meth:`element_limit`.
            unknown: collects unknown fields, but for typos, which are ignored; ``None`` to refuse them.
            max_tokens: longest prompt that can be served; it bounds none that is to be cut.

        Returns:
            The body, and the names of the fields that were given, which may have their default values.

        Raises:
            BadRequest: naming the field at fault.
        """
        values: dict[str, Any] = {}
        translated: dict[str, RawValue] = {}
        if self.is_strict:
            unknown = None
        if not body and self.may_be_empty:
            body = {}
        members = await split_object(body, self.element_limit) if isinstance(body, bytes) else body
        if _TRUNCATION in self._decoders and bytes(members.get(_TRUNCATION, b"null")) != b"null":
            max_tokens = sys.maxsize
        for name, raw in members.items():
            target = self.aliases.get(name, name)
            decoder = self._decoders.get(target)
            is_null = len(raw) == 4 and bytes(raw) == b"null"
            if decoder is None:
                if name not in self._known or (name in self.translated and unknown is None):
                    self._pass_over(name, unknown, is_null=is_null)
                elif is_null:
                    continue
                elif name in self.translated:
                    translated[name] = raw
                else:
                    self._read_ineffective(name, raw, members)
            elif not is_null:
                if target in values:
                    raise BadRequest(f"give either {target} or {name}, not both", param=name)
                values[target] = await self._decode(decoder, target, name, raw, max_tokens, unknown)
        if translated and unknown is not None:
            self._translate(translated, values, unknown)
        for name in self._required:
            if name not in values:
                raise BadRequest(f"{name} is required", param=name, code="missing_required_parameter")
        return self.model(**values), values.keys()

    async def _decode(
        self,
        decoder: msgspec.json.Decoder[Any],
        target: str,
        name: str,
        raw: RawValue,
        max_tokens: int,
        unknown: Unknown | None,
    ) -> Any:
        if target in self.token_ids and len(raw) >= LARGE_BODY_BYTES and _holds_numbers(bytes(memoryview(raw)[:256])):
            return await decode_token_ids(raw, name, max_tokens, MAX_OUTPUTS_PER_REQUEST)
        try:
            return decoder.decode(raw)
        except JSON_ERRORS as error:
            tidy = self.tidy.get(target)
            has_floats = _NOT_WHOLE.match(str(error)) is not None and target not in self.token_ids
            if (tidy is None and not has_floats) or not isinstance(error, msgspec.ValidationError):
                raise _wrong_value(name, raw, error, decoder.type) from None
        try:
            value = msgspec.json.decode(raw)
            return _converted(value if tidy is None else tidy(value, unknown), decoder.type)
        except BadRequest:
            raise
        except JSON_ERRORS as error:
            raise _wrong_value(name, raw, error, decoder.type) from None

    def _translate(self, given: Mapping[str, RawValue], values: dict[str, Any], unknown: Unknown) -> None:
        """Add to ``values`` what fields of other servers ask for; what is said in our words goes before it."""
        found: dict[str, tuple[Any, str]] = {}
        for name, raw in given.items():
            translation = self.translated[name]
            try:
                asked = translation.convert(_ANYTHING.decode(raw))
            except JSON_ERRORS as error:
                raise _wrong_value(name, raw, error) from None
            for target, value in asked.items():
                if target in values or translation.unless in values:
                    if values.get(target) != value:
                        unknown[name] = None
                    continue
                before, rival = found.get(target, (value, name))
                merged, reverse = value, before
                if isinstance(value, dict) and isinstance(before, dict):
                    merged, reverse = {**before, **value}, {**value, **before}
                if merged != reverse:
                    raise BadRequest(f"{rival} and {name} differ; give one of them", param=name)
                found[target] = merged, name
        for target, (value, name) in found.items():
            tidy = self.tidy.get(target)
            try:
                tidied = value if tidy is None else tidy(value, unknown)
                values[target] = _converted(tidied, self._decoders[target].type)
            except msgspec.ValidationError as error:
                raise wrong_field(name, error, value, was_wrapped=isinstance(value, dict)) from None

    def element_limit(self, name: str, beginning: bytes) -> int | None:
        """How many elements a field of a large body may have; ``None`` if it is not decoded, or in slices."""
        target = self.aliases.get(name, name)
        if not self.knows(name) or (target in self.token_ids and _holds_numbers(beginning)):
            return None
        return self.max_elements.get(target, MAX_ELEMENTS)

    def knows(self, name: str) -> bool:
        """Whether there is a field of this name, in whatever role."""
        return name in self._known

    def _unknown(self, name: str, meant: str | None = None) -> BadRequest:
        return unknown_field(name if len(name) <= 64 else f"{name[:61]}...", name, self.names, meant)

    def _pass_over(self, name: str, unknown: Unknown | None, *, is_null: bool) -> None:
        """Note a field that is not known; refuse it if it looks like a typo, or there is nothing to note it in."""
        if unknown is None:
            ours = self.translated.get(name)
            raise self._unknown(name, None if ours is None else ours.field)
        if is_null or len(unknown) >= MAX_NAMES_COLLECTED:
            return
        meant = typo_of(name, self.names)
        if meant is not None:
            raise self._unknown(name, meant)
        unknown[name] = None

    def _read_ineffective(self, name: str, raw: RawValue, members: Mapping[str, RawValue]) -> None:
        decoder = self._ineffective.get(name, _ANYTHING)
        try:
            value = decoder.decode(raw)
        except JSON_ERRORS as error:
            raise _wrong_value(name, raw, error, decoder.type) from None
        self._refuse(name, value)
        rival = self.excludes.get(name)
        if rival is not None and bytes(members.get(rival, b"null")) != b"null":
            raise BadRequest(f"give either {rival} or {name}, not both", param=name)

    def check_ineffective(self, name: str, value: Any) -> None:
        """Look at a value of a field of :attr:`no_effect` or :attr:`refused`, given in Python, not null.

        Raises:
            BadRequest: naming the field, if the value asks for something, or is of a wrong type.
        """
        try:
            self._refuse(name, msgspec.convert(value, self._ineffective.get(name, _ANYTHING).type))
        except msgspec.ValidationError as error:
            raise wrong_field(name, error, value) from None

    def _refuse(self, name: str, value: Any) -> None:
        refused = self.refused.get(name)
        if refused is not None and not refused.accepts(value):
            raise refused.error(name)


def _converted(value: Any, kind: Any) -> Any:
    """A decoded value as what it is declared to be. ``2.0`` is a whole number, as JSON schema has it.

    Only where an integer is declared: what is not declared stays as it was sent.
    """
    while True:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            fault = _NOT_WHOLE.match(str(error))
            if fault is None:
                raise
            whole = _with_integers(value, _STEP.findall(fault["place"] or ""))
            if whole is value:
                raise
            value = whole


def _with_integers(value: Any, steps: Sequence[str]) -> Any:
    """A decoded value with integers for the whole numbers at a place like ``.a[0]``, and at the same one in every
    element of its lists, so that they need not be named one by one; the same value if there are none."""
    if not steps:
        return int(value) if isinstance(value, float) and value.is_integer() else value
    step, rest = steps[0], steps[1:]
    if isinstance(value, list) and step.startswith("["):
        items = [_with_integers(each, rest) for each in value]
        return value if all(map(is_, items, value)) else items
    if isinstance(value, dict):
        names = value.keys() if step.startswith("[") else value.keys() & {step[1:]}
        members = {name: _with_integers(value[name], rest) for name in names}
        return value if all(each is value[name] for name, each in members.items()) else {**value, **members}
    return value


def _holds_numbers(beginning: bytes) -> bool:
    """Whether a JSON value begins like a list of numbers, or a list of lists."""
    stripped = beginning.replace(b" ", b"").replace(b"\n", b"").replace(b"\r", b"").replace(b"\t", b"")
    return stripped[:1] == b"[" and stripped[1:2] in b"[-0123456789"


def _place_of_fault(raw: RawValue, depth: int = 3) -> str:
    """Where in an undeclared value there is something that cannot be decoded, like ``.name[2]``; empty if nowhere."""
    try:
        members = _UNDECODED.decode(raw)
    except JSON_ERRORS:
        return ""
    named = members.items() if isinstance(members, dict) else enumerate(members)
    for key, member in named:
        try:
            msgspec.json.decode(member)
        except JSON_ERRORS:
            place = f"[{key}]" if isinstance(key, int) else f".{key[:64]}"
            return place + (_place_of_fault(member, depth - 1) if depth > 1 else "")
    return ""


def _faulty_member(raw: RawValue, kind: Any) -> str:
    """The first member of an object that is not what ``kind`` says, like ``.name``; empty if there is none."""
    try:
        members = _ANYTHING.decode(raw)
    except JSON_ERRORS:
        return ""
    for name, member in members.items() if isinstance(members, dict) else ():
        try:
            msgspec.convert({name: member}, kind, strict=True, str_keys=True)
        except msgspec.ValidationError:
            return f".{name[:64]}"
    return ""


def _choices(kind: Any, place: str) -> list[str]:
    """What may stand at a place like ``[0].role`` of a value, if that is one of some constants."""
    values: dict[str, None] = {}
    for each in _kinds_at(kind, place):
        if isinstance(each, inspect.LiteralType):
            values.update(dict.fromkeys(map(str, each.values)))
        elif isinstance(each, inspect.BoolType):
            values.update({"true": None, "false": None})
    return list(values)


def _members(kind: Any, place: str) -> list[str]:
    """Names of what an object at a place of a value may have in it."""
    objects = (each for each in _kinds_at(kind, place) if isinstance(each, inspect.StructType))
    return [member.encode_name for each in objects for member in each.fields]


# Of the declared kinds, which are few: looking at all that messages may be takes a millisecond.
_type_info = functools.cache(inspect.type_info)


def _kinds_at(kind: Any, place: str) -> Iterator[inspect.Type]:
    """What may stand at a place like ``[0].role`` of a value, one plain type after another."""
    kinds = [_type_info(kind)]
    for step in _STEP.findall(place):
        kinds = [inside for each in kinds for inside in _inside(each, step)]
    while kinds:
        each = kinds.pop(0)
        if isinstance(each, inspect.Metadata):
            kinds.insert(0, each.type)
        elif isinstance(each, inspect.UnionType):
            kinds[:0] = each.types
        else:
            yield each


def _inside(kind: inspect.Type, step: str) -> list[inspect.Type]:
    """Types of a member of a value."""
    if isinstance(kind, inspect.Metadata):
        return _inside(kind.type, step)
    if isinstance(kind, inspect.UnionType):
        return [inside for each in kind.types for inside in _inside(each, step)]
    if isinstance(kind, inspect.StructType):
        if step[1:] == kind.tag_field:
            return [inspect.LiteralType((kind.tag,))]
        return [each.type for each in kind.fields if each.encode_name == step[1:]]
    if isinstance(kind, (inspect.ListType, inspect.VarTupleType)):
        return [kind.item_type]
    return [kind.value_type] if isinstance(kind, inspect.DictType) else []


def _value_at(raw: RawValue, place: str) -> Any:
    """What stands at a place like ``[0].role`` of a value; ``UNSET`` if that is not seen, or the value is large."""
    if len(raw) >= LARGE_BODY_BYTES:
        return msgspec.UNSET
    try:
        value = _ANYTHING.decode(raw)
        for step in _STEP.findall(place):
            value = value[int(step[1:-1])] if isinstance(value, list) else value[step[1:]]
    except (*JSON_ERRORS, LookupError, TypeError):
        return msgspec.UNSET
    return value


def _wrong_value(name: str, raw: RawValue, error: Exception, kind: Any = Any) -> BadRequest:
    if isinstance(error, msgspec.ValidationError):
        return _wrong_kind(name, raw, str(error), kind)
    if isinstance(error, RecursionError):
        problem = "nested too deeply"
    elif isinstance(error, UnicodeDecodeError):
        problem = "not valid UTF-8"
    elif str(error) == "Input data was truncated":  # the value is complete, so this is about an escape in a string
        problem = "not valid JSON: half of a surrogate pair, or an incomplete escape"
    else:
        problem = f"not valid JSON: {fault_in_json(error)}"
    return BadRequest(f"{name}: {problem}", param=name, code="invalid_value")


def _wrong_kind(name: str, raw: RawValue, text: str, kind: Any) -> BadRequest:
    """The error for a value that is JSON, but not what ``kind`` says, as msgspec's ``text`` has it."""
    problem, place, is_key = split_place(text)
    if is_key:
        param = name + (place or _faulty_member(raw, kind))
        return BadRequest(problem_with_name(param, problem), param=param, code="invalid_value")
    exact = place
    # it does not tell which member of an object is at fault
    member = _faulty_member(raw, kind) if place.startswith("[...]") else ""
    if member:
        exact = member + place.removeprefix("[...]")
    elif "[...]" in place:
        exact = _place_of_fault(raw) or place
    param = name + exact
    if (named := _MEMBER.match(problem)) is not None:
        param = f"{param}.{named['name'][:64]}"
        if named["fault"] == "contains unknown":
            return unknown_field(param, named["name"], _members(kind, place))
        return BadRequest(f"{param} is required", param=param, code="invalid_value")
    given = _value_at(raw, exact)
    choices = _choices(kind, place) if problem.startswith(("Invalid enum value", "Invalid value")) else []
    message = wrong_choice(param, choices, given) if choices else problem_with(param, problem, given)
    return BadRequest(message, param=param, code="invalid_value")
