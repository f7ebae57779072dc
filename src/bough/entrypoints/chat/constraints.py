"""What an answer has to follow: a request's own constraint, its tools, and the thoughts that come before."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bough.entrypoints.chat.job import ToolChoice, ToolUse
from bough.errors import BadRequest
from bough.parsers.base import ToolSpec
from bough.parsers.dialect import Dialect
from bough.parsers.structural import Format, any_text, const, either, regex, sequence, tag
from bough.parsers.tool_format import ToolFormat
from bough.sampling.sampling_params import (
    GRAMMAR_KINDS,
    MAX_GRAMMAR_BYTES,
    GrammarKind,
    GrammarSpec,
    SamplingParams,
    json_problem,
)

ANY_OBJECT = '{"type":"object"}'
"""The schema of an answer that is any JSON object."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the output has to follow.

    Attributes:
        kind: also the name of the sampling parameter.
        value: as the sampling parameter takes it.
        field: what the client called it.
    """

    kind: GrammarKind
    value: Any
    field: str


def constraint_param(constraint: Constraint | None) -> str | None:
    """What the client called a constraint, if there is one."""
    return None if constraint is None else constraint.field


def constrained(
    params: SamplingParams, field: str | None, tools: ToolUse, dialect: Dialect, *, thinking: bool
) -> tuple[SamplingParams, str | None]:
    """Sampling parameters whose constraint allows for thoughts and tool calls.

    Args:
        params: as the request has them.
        field: what the client called the constraint in them.
        tools: what may or must be called.
        dialect: how the model writes.
        thinking: whether the answer begins inside the thoughts.

    Returns:
        The parameters, and what the client called that from which their constraint is made.

    Raises:
        BadRequest: if required calls leave no room for the request's constraint, or the latter cannot be combined; if
            the schema of a tool is too large or too deep.
    """
    grammar = params.grammar
    if tools.choice is ToolChoice.REQUIRED:
        if grammar is not None:
            raise BadRequest(
                "tool_choice: an answer that has to be a tool call cannot follow a schema or grammar as well",
                param="tool_choice",
            )
        _check_schemas(tools.tools)
        tag = dialect.constraint(tools.tools, name=tools.name, parallel=tools.parallel, thinking=thinking or None)
        return msgspec.structs.replace(params, structural_tag=tag), "tools"
    if grammar is not None:
        if dialect.reasoning_format is None and not tools.callable:
            return params, field
        answer, field = _as_format(grammar), field or grammar.kind
        if tools.callable:
            _check_schemas(tools.tools)
        tag = dialect.structured(
            answer, with_calls=tools.tools if tools.callable else (), parallel=tools.parallel, thinking=thinking
        )
    elif dialect.tool_format is not None and tools.callable and any(tool.strict for tool in tools.tools):
        _check_schemas(tools.tools)
        tag, field = _with_strict_calls(dialect.tool_format, dialect, tools, thinking=thinking), "tools"
    else:
        return params, None
    cleared: dict[str, Any] = dict.fromkeys(GRAMMAR_KINDS)
    return msgspec.structs.replace(params, **{**cleared, "structural_tag": tag}), field


def _check_schemas(tools: Sequence[ToolSpec]) -> None:
    """The bounds of a schema that an answer has to follow are those of a tool's."""
    for index, tool in enumerate(tools):
        text = msgspec.json.encode(tool.parameters)
        problem = None
        if len(text) > MAX_GRAMMAR_BYTES:
            problem = f"has {len(text)} bytes, and at most {MAX_GRAMMAR_BYTES} are allowed"
        problem = problem or json_problem(text.decode(), may_be_boolean=False)
        if problem is not None:
            raise BadRequest(
                f"tools[{index}]: the schema of {tool.name!r} {problem}",
                param=f"tools[{index}]",
                code="invalid_grammar",
            )


def _with_strict_calls(format_: ToolFormat, dialect: Dialect, tools: ToolUse, *, thinking: bool) -> str:
    """Free text, in which calls, if there are any, have arguments that fit the schemas of those tools that are strict.

    Once a call has begun, its form leaves the model no choice but the name and the arguments.
    """
    loose = {"type": "object"}
    held = [tool if tool.strict else dataclasses.replace(tool, parameters=loose) for tool in tools.tools]
    if format_.on_channels:  # what is no call is on a channel of its own
        return dialect.structured(any_text(), with_calls=held, parallel=tools.parallel, thinking=thinking)
    calls = format_.constraint(held, parallel=tools.parallel)
    triggered = [tag for tag in _as_tags(calls) if tag["begin"].startswith(format_.triggers)]
    text: Format = any_text()
    if triggered:
        text = {"type": "triggered_tags", "triggers": sorted(_triggers(format_, triggered)), "tags": triggered}
    if not triggered or len(triggered) < len(_as_tags(calls)):
        # Such calls are the whole answer, and known by its first character.
        first = re.escape("".join(sorted({tag["begin"][:1] for tag in _as_tags(calls)})))
        text = either(const(""), calls, sequence(regex(f"\\s*[^\\s{first}]"), text))
    return dialect.structured(text, with_calls=(), parallel=tools.parallel, thinking=thinking)


def _as_tags(calls: Format) -> list[Format]:
    """What calls look like, as tags: each call, or with markers around all of them the whole."""
    if calls["type"] == "tags_with_separator":
        return list(calls["tags"])
    first, *middle, last = calls["elements"]
    return [tag(first["value"], sequence(*middle), last["value"])]


def _triggers(format_: ToolFormat, tags: Sequence[Format]) -> set[str]:
    """Those markers with which the tags begin."""
    return {each for each in format_.triggers if any(tag["begin"].startswith(each) for tag in tags)}


def _as_format(grammar: GrammarSpec) -> dict[str, Any]:
    """A constraint as a part of a structural tag."""
    kind, text = grammar
    if kind == "regex":
        return {"type": "regex", "pattern": text}
    if kind == "ebnf":
        return {"type": "grammar", "grammar": text}
    value = msgspec.json.decode(text)  # checked when the parameters were
    if kind == "json_schema":
        return {"type": "json_schema", "json_schema": value}
    if kind == "choice":
        return {"type": "or", "elements": [{"type": "const_string", "value": each} for each in value]}
    if not isinstance(value.get("format"), dict):
        raise BadRequest(
            "structural_tag: with tools or reasoning only the form that has `format` is possible",
            param="structural_tag",
        )
    return dict(value["format"])
