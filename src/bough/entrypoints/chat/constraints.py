"""What an answer has to follow: a request's own constraint, its tools, and the thoughts that come before."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bough.constrained.structural_tag import TagError, format_of
from bough.entrypoints.chat.job import ToolChoice, ToolUse
from bough.errors import BadRequest
from bough.parsers.argument_schemas import closed
from bough.parsers.base import ToolSpec
from bough.parsers.dialect import Dialect
from bough.parsers.reasoning import Thoughts
from bough.parsers.structural import Format, any_text, const, either, regex, sequence, tag
from bough.parsers.tool_format import ToolFormat
from bough.sampling.sampling_params import (
    GRAMMAR_KINDS,
    LENIENTLY,
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
    params: SamplingParams, field: str | None, tools: ToolUse, dialect: Dialect, *, thoughts: Thoughts
) -> tuple[SamplingParams, str | None]:
    """Sampling parameters whose constraint allows for thoughts and tool calls.

    Returns:
        The parameters, and what the client called that from which their constraint is made.

    Raises:
        BadRequest: if the request's constraint cannot be combined; if the schema of a tool is too large or too deep.
    """
    grammar, format_ = params.grammar, dialect.tool_format
    required = tools.choice is ToolChoice.REQUIRED
    if required:
        grammar = None  # an answer that is a call has no text that could follow it, as at OpenAI
    # An answer on channels has to name one first, unless it has begun.
    straight = thoughts is Thoughts.NONE or (dialect.reasoning_format is None and not dialect.on_channels)
    if grammar is not None and straight and not tools.callable:
        return params, field
    holds_strict = format_ is not None and tools.callable and any(tool.strict for tool in tools.tools)
    if grammar is None and not required and not holds_strict:
        return params, None
    callable_ = [_enforceable(tool, tools.where(index)) for index, tool in enumerate(tools.tools) if tools.callable]
    if grammar is not None:
        field = field or grammar.kind
        answer = _as_format(grammar, field)
        tag = dialect.structured(answer, with_calls=callable_, parallel=tools.parallel, thoughts=thoughts)
    elif required:
        field = "tools"
        tag = dialect.constraint(callable_, name=tools.name, parallel=tools.parallel, thoughts=thoughts)
    else:
        assert format_ is not None, "checked"
        field = "tools"
        tag = _with_strict_calls(format_, dialect, callable_, parallel=tools.parallel, thoughts=thoughts)
    cleared: dict[str, Any] = dict.fromkeys(GRAMMAR_KINDS)
    return msgspec.structs.replace(params, **{**cleared, "structural_tag": tag}), field


def _enforceable(tool: ToolSpec, where: str) -> ToolSpec:
    """A tool whose schema an answer can follow, as far as it has to.

    Raises:
        BadRequest: if the schema is larger or deeper than one that an answer follows may be.
    """
    text = msgspec.json.encode(tool.parameters)
    problem = None
    if len(text) > MAX_GRAMMAR_BYTES:
        problem = f"has {len(text)} bytes, and at most {MAX_GRAMMAR_BYTES} are allowed"
    problem = problem or json_problem(text.decode(), may_be_boolean=False)
    if problem is not None:
        raise BadRequest(f"{where}: the schema of {tool.name!r} {problem}", param=where, code="invalid_grammar")
    loosely = {} if tool.strict else LENIENTLY
    return dataclasses.replace(tool, parameters={**loosely, **closed(tool.parameters)})


def _with_strict_calls(
    format_: ToolFormat, dialect: Dialect, tools: Sequence[ToolSpec], *, parallel: bool, thoughts: Thoughts
) -> str:
    """Free text, in which calls, if there are any, have arguments that fit the schemas of those tools that are strict.

    Once a call has begun, its form leaves the model no choice but the name and the arguments.
    """
    loose = {"type": "object"}
    held = [tool if tool.strict else dataclasses.replace(tool, parameters=loose) for tool in tools]
    if format_.on_channels:  # what is no call is on a channel of its own
        return dialect.structured(any_text(), with_calls=held, parallel=parallel, thoughts=thoughts)
    calls = format_.constraint(held, parallel=parallel)
    triggered = [tag for tag in _as_tags(calls) if tag["begin"].startswith(format_.triggers)]
    triggers = _triggers(format_, triggered)
    reasoning = dialect.reasoning_format
    if reasoning is not None and thoughts is Thoughts.POSSIBLE and len(triggered) == len(_as_tags(calls)):
        # Text that may begin with thoughts, or not, would read these as text, and what they say of calls as a call.
        triggered.append(tag(reasoning.start, any_text(), reasoning.end))
        triggers.add(reasoning.start)
        thoughts = Thoughts.NONE
    text: Format = any_text()
    if triggered:
        text = {"type": "triggered_tags", "triggers": sorted(triggers), "tags": triggered}
    if not triggered or len(triggered) < len(_as_tags(calls)):
        # Such calls are the whole answer, and known by its first character.
        first = re.escape("".join(sorted({tag["begin"][:1] for tag in _as_tags(calls)})))
        text = either(const(""), calls, sequence(regex(f"\\s*[^\\s{first}]"), text))
    return dialect.structured(text, with_calls=(), parallel=parallel, thoughts=thoughts)


def _as_tags(calls: Format) -> list[Format]:
    """What calls look like, as tags: each call, or with markers around all of them the whole."""
    if calls["type"] == "tags_with_separator":
        return list(calls["tags"])
    first, *middle, last = calls["elements"]
    return [tag(first["value"], sequence(*middle), last["value"])]


def _triggers(format_: ToolFormat, tags: Sequence[Format]) -> set[str]:
    """Those markers with which the tags begin."""
    return {each for each in format_.triggers if any(tag["begin"].startswith(each) for tag in tags)}


def _as_format(grammar: GrammarSpec, field: str) -> Any:
    """A constraint, which the client calls ``field``, as a part of a structural tag."""
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
    try:
        return format_of(value)
    except TagError as error:
        raise BadRequest(f"{field}: {error}", param=field, code="invalid_grammar") from None
