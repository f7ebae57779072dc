"""Output that follows a schema or a grammar: from the many fields that ask for it to one constraint.

OpenAI has ``response_format``; SGLang ``json_schema``, ``regex``, ``ebnf`` and ``structural_tag``; vLLM ``guided_…``
and ``structured_outputs``. A request may use one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.constraints import ANY_OBJECT, Constraint
from bough.entrypoints.http.unknown_fields import known_members
from bough.errors import BadRequest
from bough.json_words import kind_of
from bough.sampling.sampling_params import MAX_CHOICES, MAX_GRAMMAR_BYTES, GrammarKind, leniently

JsonSchema = Annotated[dict[str, Any], Meta(description="A JSON schema.")]
GrammarText = Annotated[str, Meta(min_length=1, max_length=MAX_GRAMMAR_BYTES)]
Choices = Annotated[list[str], Meta(min_length=1, max_length=MAX_CHOICES)]
Strict = Annotated[
    bool | None,
    Meta(description="Refuse a schema that cannot be enforced completely; else it is enforced as far as possible."),
]


class NamedSchema(msgspec.Struct):
    """A schema with a name."""

    schema: Annotated[JsonSchema | bool, Meta(description="The JSON schema.")]
    name: Annotated[str | None, Meta(description="Its name.")] = None
    description: Annotated[str | None, Meta(description="What it is for.")] = None
    strict: Strict = None


class ResponseFormat(msgspec.Struct):
    """Form of the output."""

    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: Annotated[NamedSchema | None, Meta(description="For the type `json_schema`.")] = None
    structures: Annotated[Any, Meta(description="For the type `structural_tag`, its older form: a list.")] = None
    triggers: Annotated[Any, Meta(description="For the type `structural_tag`, its older form: a list of texts.")] = None
    format: Annotated[Any, Meta(description="For the type `structural_tag`, its newer form: an object.")] = None


class StructuredOutputs(msgspec.Struct):
    """vLLM's object for output that follows something: one of these."""

    json: Annotated[JsonSchema | GrammarText | None, Meta(description="A JSON schema, as an object or as text.")] = None
    json_object: Annotated[bool | None, Meta(description="Any JSON object.")] = None
    regex: Annotated[GrammarText | None, Meta(description="A regular expression.")] = None
    choice: Annotated[Choices | None, Meta(description="Texts, one of which the output is.")] = None
    grammar: Annotated[GrammarText | None, Meta(description="A grammar in EBNF.")] = None
    structural_tag: Annotated[
        dict[str, Any] | GrammarText | None, Meta(description="A structural tag, as an object or as JSON text.")
    ] = None


STRUCTURED_FIELDS: dict[str, Any] = {
    "response_format": ResponseFormat | None,
    "structured_outputs": StructuredOutputs | None,
    **dict.fromkeys(("json_schema", "guided_json"), JsonSchema | GrammarText | bool | None),
    **dict.fromkeys(("regex", "guided_regex", "ebnf", "guided_grammar"), GrammarText | None),
    "structural_tag": dict[str, Any] | GrammarText | None,
    **dict.fromkeys(("choice", "guided_choice"), Choices | None),
}
"""Types of the fields of requests that ask for structured output. They describe; the code here takes apart."""


_PLAIN_FIELDS: dict[str, GrammarKind] = {
    "json_schema": "json_schema",
    "regex": "regex",
    "ebnf": "ebnf",
    "structural_tag": "structural_tag",
    "choice": "choice",
    "guided_json": "json_schema",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "ebnf",
}
"""Field of a request to the kind of constraint that it holds."""

_STRUCTURED_OUTPUTS: dict[str, GrammarKind] = {
    "json": "json_schema",
    "regex": "regex",
    "choice": "choice",
    "grammar": "ebnf",
    "structural_tag": "structural_tag",
}

_CONSTRAINTS = frozenset({*_PLAIN_FIELDS, "response_format", "structured_outputs"})

_DESCRIBED: tuple[tuple[str, Any, str], ...] = (
    ("name", str, "string"),
    ("description", str, "string"),
    ("strict", bool, "boolean"),
    ("schema", (dict, bool), "JSON schema"),
)


def find_constraint(body: Any, given: Set[str], unknown: dict[str, None] | None) -> Constraint | None:
    """The constraint that a request asks for.

    Args:
        body: has the fields of :class:`~bough.entrypoints.http.openai.protocol.SharedFields`.

    Raises:
        BadRequest: naming a field that does not have the right form, or one too many.
    """
    if _CONSTRAINTS.isdisjoint(given):
        return None
    found = [*_plain(body), *_of_response_format(body.response_format, unknown), *_of_structured_outputs(body)]
    if len(found) > 1:
        raise BadRequest(
            f"{found[1].field} cannot be combined with {found[0].field}: an output can follow one of them",
            param=found[1].field,
            code="invalid_grammar",
        )
    return found[0] if found else None


def _plain(body: Any) -> Iterator[Constraint]:
    for name, kind in _PLAIN_FIELDS.items():
        value = getattr(body, name)
        if value is not None and value not in ("", []):
            yield Constraint(kind, value, name)


_FORMAT = ("type", "json_schema")
_FLAT_FORMAT = (*_FORMAT, "schema", "name", "description", "strict")
"""As at llama.cpp and Together, where the schema stands by itself."""


def _of_response_format(given: Mapping[str, Any] | None, unknown: dict[str, None] | None) -> Iterator[Constraint]:
    if given is None:
        return
    kind = given.get("type")
    if kind != "structural_tag":  # whose members are the compiler's to judge
        known = _FLAT_FORMAT if given.get("schema") is not None else _FORMAT
        known_members(given, known, "response_format", unknown, check_typos=True)
    if kind in ("json_object", "json_schema") and given.get("schema") is not None:
        if given.get("json_schema") is not None:
            raise BadRequest("give either response_format.json_schema or schema", param="response_format.schema")
        yield Constraint("json_schema", described_schema(given, "response_format"), "response_format.schema")
        return
    if kind in ("text", "json_object") and given.get("json_schema") is not None:
        _schema_of(given, unknown)  # without effect there, but what is no schema is a mistake
    if kind == "text":
        return
    if kind == "json_object":
        yield Constraint("json_schema", ANY_OBJECT, "response_format")
    elif kind == "json_schema":
        yield Constraint("json_schema", *_schema_of(given, unknown))
    elif kind == "structural_tag":
        yield Constraint("structural_tag", dict(given), "response_format")
    else:
        raise BadRequest(
            f"response_format.type must be text, json_object, json_schema or structural_tag, got {str(kind)[:40]!r}",
            param="response_format.type",
        )


def _schema_of(given: Mapping[str, Any], unknown: dict[str, None] | None) -> tuple[Any, str]:
    """The schema of a ``json_schema`` format and the path to it."""
    described = given.get("json_schema")
    if described is not None and not isinstance(described, dict):
        raise BadRequest(
            f"response_format.json_schema must be an object, got {kind_of(described)}",
            param="response_format.json_schema",
        )
    if described is None:
        raise BadRequest(
            "response_format.json_schema is required for the type json_schema",
            param="response_format.json_schema",
            code="missing_required_parameter",
        )
    known_members(
        described,
        ("name", "description", "strict", "schema"),
        "response_format.json_schema",
        unknown,
        check_typos=True,
    )
    path = "response_format.json_schema.schema"
    schema = described_schema(described, "response_format.json_schema")
    if schema is None:
        raise BadRequest(f"{path} is required", param=path, code="missing_required_parameter")
    return schema, path


def described_schema(described: Mapping[str, Any], where: str) -> Any:
    """The schema of an object that has it as ``schema``, with its ``name``, ``description`` and ``strict``, if any.

    Without ``strict`` it is enforced as far as possible; with it, it is refused if something cannot be enforced.

    Raises:
        BadRequest: if one of these has the wrong type.
    """
    for name, kinds, wanted in _DESCRIBED:
        value = described.get(name)
        if value is not None and not isinstance(value, kinds):
            raise BadRequest(f"{where}.{name} must be a {wanted}", param=f"{where}.{name}")
    schema = described.get("schema")
    return schema if schema is None or described.get("strict") else leniently(schema)


def _of_structured_outputs(body: Any) -> Iterator[Constraint]:
    given: Mapping[str, Any] | None = body.structured_outputs
    for name, value in (given or {}).items():
        path = f"structured_outputs.{name}"
        if value is None or value is False or value in ("", []):
            continue
        if name in _STRUCTURED_OUTPUTS:
            yield Constraint(_STRUCTURED_OUTPUTS[name], value, path)
        elif name == "json_object" and value is True:
            yield Constraint("json_schema", ANY_OBJECT, path)
        else:
            raise BadRequest(f"{path} is not supported", param=path, code="unsupported_parameter")
