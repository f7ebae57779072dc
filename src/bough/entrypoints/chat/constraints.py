"""What an answer has to follow: a request's own constraint, its tools, and the thoughts that come before."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.entrypoints.chat.job import ToolChoice, ToolUse
from bough.errors import BadRequest
from bough.parsers.dialect import Dialect
from bough.sampling.sampling_params import GRAMMAR_KINDS, GrammarSpec, SamplingParams


def constrained(params: SamplingParams, tools: ToolUse, dialect: Dialect, *, thinking: bool) -> SamplingParams:
    """Sampling parameters whose constraint allows for thoughts and tool calls.

    Args:
        params: as the request has them.
        tools: what may or must be called.
        dialect: how the model writes.
        thinking: whether the answer begins inside the thoughts.

    Raises:
        BadRequest: if required calls leave no room for the request's constraint, or the latter cannot be combined.
    """
    grammar = params.grammar
    if tools.choice is ToolChoice.REQUIRED:
        if grammar is not None:
            raise BadRequest(
                "tool_choice: an answer that has to be a tool call cannot follow a schema or grammar as well",
                param="tool_choice",
            )
        tag = dialect.constraint(tools.tools, name=tools.name, parallel=tools.parallel, thinking=thinking or None)
        return msgspec.structs.replace(params, structural_tag=tag)
    if grammar is None or (dialect.reasoning_format is None and not tools.callable):
        return params
    tag = dialect.structured(
        _as_format(grammar),
        with_calls=tools.tools if tools.callable else (),
        parallel=tools.parallel,
        thinking=thinking,
    )
    cleared: dict[str, Any] = dict.fromkeys(GRAMMAR_KINDS)
    return msgspec.structs.replace(params, **{**cleared, "structural_tag": tag})


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
