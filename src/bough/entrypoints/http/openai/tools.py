"""``tools`` and ``tool_choice`` as chat completions have them, which Ollama has taken over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.job import ToolChoice, ToolUse
from bough.entrypoints.chat.tools import MAX_TOOLS, Choice, distinct, make_tool_use
from bough.entrypoints.http.openai.structured import JsonSchema
from bough.entrypoints.http.unknown_fields import known_members
from bough.errors import BadRequest
from bough.parsers.base import MAX_NAME_CHARS, ToolSpec

ToolName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARS, description="Its name.")]
Purpose = Annotated[
    str | None, Meta(description="What it is for, for the model, if the chat template has a place for it.")
]
Parameters = Annotated[JsonSchema | None, Meta(description="Schema of the arguments, of the type `object`.")]
StrictCall = Annotated[bool | None, Meta(description="A call that the model chooses to make follows the schema.")]


class FunctionDescription(msgspec.Struct):
    """A function that the model may call."""

    name: ToolName
    description: Purpose = None
    parameters: Parameters = None
    strict: StrictCall = None


class FunctionTool(msgspec.Struct):
    """A tool, in OpenAI's words."""

    function: FunctionDescription
    type: Annotated[Literal["function"], Meta(description="May be left out.")] = "function"


class FunctionName(msgspec.Struct):
    """A function by its name."""

    name: ToolName


class NamedFunction(msgspec.Struct):
    """The function that is to be called."""

    type: Literal["function"]
    function: FunctionName


TOOL_FIELDS: dict[str, Any] = {
    "tools": Annotated[list[FunctionTool], Meta(max_length=MAX_TOOLS)] | None,
    "tool_choice": Literal["none", "auto", "required"] | NamedFunction | None,
}
"""Types of the fields of requests that are about tools. They describe; the code here takes apart."""


_TOOL_MEMBERS = frozenset({"type", "function", "cache_control"})
_FUNCTION_MEMBERS = frozenset({"name", "description", "parameters", "strict"})
_FLAT_MEMBERS = frozenset({"type", "name", "description", "strict", "cache_control"})
_FUNCTION_NOTES = frozenset({"return", "requires_confirmation", "external_execution", "approval_type"})
"""What the makers of tools note for themselves: transformers' description of results, and Agno's rules for calls."""
_MODES = {"": ToolChoice.AUTO, "any": ToolChoice.REQUIRED, **{each.value: each for each in ToolChoice}}
"""By what Mistral's and Anthropic's clients say as well, who also put it into an object."""

_CHOICE_MEMBERS = frozenset({"type", "function", "name", "allowed_tools", "mode", "tools"})


def tool_use(
    tools: Sequence[Any] | None,
    choice: str | Mapping[str, Any] | None,
    unknown: dict[str, None] | None,
    *,
    parallel: bool = True,
) -> ToolUse:
    """From ``tools``, ``tool_choice`` and ``parallel_tool_calls``.

    Raises:
        BadRequest: naming what does not fit together.
    """
    specs = [_tool(tool, f"tools[{index}]", unknown) for index, tool in enumerate(tools or ())]
    return make_tool_use(distinct(specs, "function.name"), chosen(choice, unknown), parallel=parallel)


def chosen(choice: str | Mapping[str, Any] | None, unknown: dict[str, None] | None) -> Choice:
    """``tool_choice``, as chat completions and responses have it.

    Raises:
        BadRequest: if it does not have the right form.
    """
    kind = choice.get("type", "function") if isinstance(choice, Mapping) else choice or ""
    if isinstance(kind, str) and kind in _MODES:
        return Choice(_MODES[kind])
    if not isinstance(choice, Mapping):
        raise BadRequest(
            f"tool_choice must be none, auto, required or an object that names a function, got {kind[:40]!r}",
            param="tool_choice",
        )
    known_members(choice, _CHOICE_MEMBERS, "tool_choice", unknown, check_typos=True)
    if kind == "allowed_tools":
        return _allowed(choice.get("allowed_tools", choice))
    name = _function_name(choice)
    if kind not in ("function", "tool") or name is None:
        raise BadRequest(
            'tool_choice must name a function, as {"type": "function", "function": {"name": …}} does (in a response '
            '{"type": "function", "name": …}), or be {"type": "allowed_tools", …}',
            param="tool_choice",
        )
    return Choice(ToolChoice.REQUIRED, name)


def _allowed(given: Any) -> Choice:
    mode = given.get("mode", "auto") if isinstance(given, dict) else None
    tools = given.get("tools") if isinstance(given, dict) else None
    names = [_function_name(each) for each in tools] if isinstance(tools, list) else []
    known = tuple(name for name in names if name is not None)
    if mode not in ("auto", "required") or not names or len(known) < len(names):
        raise BadRequest(
            "tool_choice: allowed_tools needs the mode auto or required, and a list of tools by name",
            param="tool_choice",
        )
    return Choice(ToolChoice(mode), None, known)


def _function_name(value: Any) -> str | None:
    """The name in ``{"function": {"name": …}}`` or ``{"name": …}``."""
    if not isinstance(value, dict):
        return None
    function = value.get("function", value)
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def _tool(tool: Any, where: str, unknown: dict[str, None] | None) -> ToolSpec:
    if isinstance(tool, dict) and "function" not in tool and "name" in tool:
        return _flat_tool(tool, where, unknown)
    if isinstance(tool, dict):
        function = tool.get("function")
        if isinstance(function, dict):
            known_members(function, _FUNCTION_MEMBERS | _FUNCTION_NOTES, f"{where}.function", unknown, check_typos=True)
        if tool.get("type", "function") == "function":
            known_members(tool, _TOOL_MEMBERS, where, unknown, check_typos=True)
    return ToolSpec.from_openai(tool, where)


def _flat_tool(tool: dict[str, Any], where: str, unknown: dict[str, None] | None) -> ToolSpec:
    """Read a function without an object around it, as Responses and Anthropic's Messages have it.

    Cursor and other editors send both forms to chat completions.
    """
    schema, kinds = "parameters", ["function"]
    if "input_schema" in tool:
        schema, kinds = "input_schema", ["function", "custom"]
    if tool.get("type", "function") not in kinds:
        return ToolSpec.from_openai(tool, where)  # refuses it
    known_members(tool, _FLAT_MEMBERS | {schema}, where, unknown, check_typos=True)
    return ToolSpec.from_function(tool, where, schema=schema)
