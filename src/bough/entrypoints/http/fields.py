"""Request bodies, declared once.

A body is a :class:`msgspec.Struct` whose annotations carry range and meaning of every field that works, plus tables of
the fields that are accepted without effect and of those that are refused because they do not work yet. Parsing,
errors, the OpenAPI description and ``docs/endpoints.md`` are made from these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, get_args, get_type_hints

import msgspec

from bough import ceilings
from bough.entrypoints.http.json_body import JSON_ERRORS, LARGE_BODY_BYTES, RawValue, decode_token_ids, split_object
from bough.entrypoints.http.unknown_fields import MAX_NAMES_COLLECTED, Unknown, typo_of, unknown_field
from bough.errors import BadRequest
from bough.json_words import NOT_POSSIBLE, TRUNCATED, alternatives, fault_in_json, fault_of, fits, meant, members_of
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
            "restore_weights_before_load",
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


@dataclass(eq=False)
class BodySpec(Generic[Body]):
    """All that may stand in the body of one endpoint.

    Attributes:
        model: the fields that work, with types, ranges, defaults and descriptions.
        aliases: other names of such fields.
        translated: names that other servers have for fields of ``model``; unknown to those who want strict fields.
        no_effect: fields that are accepted and change nothing, with their meaning.
        refused: fields that are not supported, by name.
        token_ids: those fields of ``model`` that may hold token ids, which are decoded in slices when there are many.
        schemas: JSON schemas, or types that have them, of fields whose annotation does not say it all.
        example: a body that does something, for the documentation.
        max_elements: how many elements a field may have in a large body, where not :data:`MAX_ELEMENTS`.
        excludes: fields of ``no_effect`` that cannot stand beside another field, with the name of that.
        is_strict: refuse unknown fields whatever the server's option, as what acts on a server does.
        may_be_empty: take an empty body for an empty object.
        tidy: second chances: what to do to the value of a field that does not have the right form as it stands.
        extras: fields whose objects may have members that are not known, which are ignored, and nulls; ``True`` where
            such a member is refused if it looks like a typo.
    """

    model: type[Body]
    aliases: Mapping[str, str] = field(default_factory=dict)
    translated: Mapping[str, Translation] = field(default_factory=dict)
    no_effect: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, Unsupported] = field(default_factory=dict)
    token_ids: frozenset[str] = frozenset()
    schemas: Mapping[str, Any] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)
    max_elements: Mapping[str, int] = field(default_factory=dict)
    tidy: Mapping[str, Tidy] = field(default_factory=dict)
    extras: Mapping[str, bool] = field(default_factory=dict)
    excludes: Mapping[str, str] = field(default_factory=dict)
    is_strict: bool = False
    may_be_empty: bool = False

    def __post_init__(self) -> None:
        hints = get_type_hints(self.model, include_extras=True)
        fields = msgspec.structs.fields(self.model)
        self._decoders = {each.name: msgspec.json.Decoder(hints[each.name]) for each in fields}
        self._required = tuple(each.name for each in fields if each.required)
        self.names = (*self._decoders, *self.aliases, *self.translated, *self.no_effect, *self.refused)
        """Every field name that is known, in whatever role."""
        self._known = frozenset(self.names)

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
        except JSON_ERRORS:
            return self._converted(target, name, _decoded(name, raw), unknown)

    def _converted(
        self, target: str, name: str, value: Any, unknown: Unknown | None, *, is_wrapped: bool = False
    ) -> Any:
        """Return a decoded value, which ``name`` was given, as the field ``target`` holds it, after second chances.

        With ``is_wrapped``, its object is not the client's.
        """
        kind = self._decoders[target].type
        if (tidy := self.tidy.get(target)) is not None:
            value = tidy(value, unknown)
        if target not in self.token_ids:
            value = _mended(value, kind, target, self.extras.get(target), unknown)
        return _as_declared(name, value, kind, is_wrapped=is_wrapped)

    def _translate(self, given: Mapping[str, RawValue], values: dict[str, Any], unknown: Unknown) -> None:
        """Add to ``values`` what fields of other servers ask for; what is said in our words goes before it."""
        found: dict[str, tuple[Any, str]] = {}
        for name, raw in given.items():
            translation = self.translated[name]
            for target, value in translation.convert(_decoded(name, raw)).items():
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
            values[target] = self._converted(target, name, value, unknown, is_wrapped=isinstance(value, dict))

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
        self.check_ineffective(name, _decoded(name, raw))
        rival = self.excludes.get(name)
        if rival is not None and bytes(members.get(rival, b"null")) != b"null":
            raise BadRequest(f"give either {rival} or {name}, not both", param=name)

    def check_ineffective(self, name: str, value: Any) -> None:
        """Look at a value of a field of :attr:`no_effect` or :attr:`refused`, given in Python, not null.

        Raises:
            BadRequest: naming the field, if the value asks for something, or is of a wrong type.
        """
        value = _as_declared(name, value, INEFFECTIVE_TYPES[name] if name in self.no_effect else Any)
        refused = self.refused.get(name)
        if refused is not None and not refused.accepts(value):
            raise refused.error(name)


def _decoded(name: str, raw: RawValue) -> Any:
    """Return the value of a field, whatever it is."""
    try:
        return msgspec.json.decode(raw)
    except JSON_ERRORS as error:
        param = name + _place_of_fault(raw)
        problem = fault_in_json(error)
        if problem == TRUNCATED:  # the value is complete
            problem = "half of a surrogate pair, or an incomplete escape"
        raise BadRequest(f"{param}: not valid JSON: {problem}", param=param, code="invalid_value") from None


def _as_declared(name: str, value: Any, kind: Any, *, is_wrapped: bool = False) -> Any:
    """Return the decoded value of a field as an object of its type."""
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError:
        fault = fault_of(value, kind) or NOT_POSSIBLE
    param = name if is_wrapped else name + fault.place
    if fault.known is not None:
        raise unknown_field(param, fault.place.rpartition(".")[2], fault.known)
    raise BadRequest(f"{param}{fault.problem}", param=param, code="invalid_value")


def _mended(value: Any, kind: Any, place: str, extras: bool | None, unknown: Unknown | None) -> Any:
    """Return a decoded value with integers for whole numbers that are written like ``2.0``, as JSON schema has it, and
    without what may be dropped.

    Args:
        value: anything; what is not declared stays as it was sent.
        extras: see :attr:`BodySpec.extras`; ``None`` to drop nothing.
        unknown: collects names of what is dropped besides nulls; ``None`` to keep it, so that it is refused.
    """
    if isinstance(value, float):
        names = {each.name for each in alternatives(kind)}
        return int(value) if value.is_integer() and "int" in names and names.isdisjoint(("float", "any")) else value
    if not isinstance(value, (list, dict)) or fits(value, kind) or (chosen := meant(kind, value)) is None:
        return value
    if isinstance(value, list):
        return [_mended(each, get_args(chosen.kind)[0], place, extras, unknown) for each in value]
    if not chosen.is_struct:
        return {name: _mended(each, get_args(chosen.kind)[1], place, extras, unknown) for name, each in value.items()}
    members, kept = members_of(chosen.kind), {}
    for name, each in value.items():
        if name in members:
            if each is not None or extras is None:
                kept[name] = _mended(each, members[name].type, f"{place}.{name}", extras, unknown)
        elif extras is None or unknown is None or (extras and typo_of(name, members) is not None):
            kept[name] = each
        elif each is not None and len(unknown) < MAX_NAMES_COLLECTED:
            unknown[f"{place}.{name}"] = None
    return kept


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
