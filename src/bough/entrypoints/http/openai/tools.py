"""The fields of OpenAI's chat API that are about tools and reasoning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from bough.entrypoints.chat.job import THINKING_VARIABLES, ToolChoice, ToolUse
from bough.errors import BadRequest
from bough.parsers.base import ToolSpec, parse_tools

MAX_TOOLS = 256
"""Most tools of one request."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Reasoning(msgspec.Struct, forbid_unknown_fields=True):
    """``reasoning``: how much the model thinks before it answers."""

    effort: Effort | None = None
    enabled: bool | None = None


def tool_use(tools: Sequence[Any] | None, choice: str | Mapping[str, Any] | None, *, parallel: bool = True) -> ToolUse:
    """From ``tools``, ``tool_choice`` and ``parallel_tool_calls``.

    Raises:
        BadRequest: naming what does not fit together.
    """
    return make_tool_use(parse_tools(tools or ()), *parse_choice(choice), parallel=parallel)


def make_tool_use(tools: tuple[ToolSpec, ...], choice: ToolChoice, name: str | None, *, parallel: bool) -> ToolUse:
    """Tools and how they are to be used, after a look at whether that is possible.

    Raises:
        BadRequest: if there is no tool to use.
    """
    if not tools:
        if choice is ToolChoice.REQUIRED:
            raise BadRequest("tool_choice needs tools", param="tool_choice")
        return ToolUse()
    if name is not None and all(name != each.name for each in tools):
        raise BadRequest(f"tool_choice: there is no tool with the name {name[:64]!r}", param="tool_choice")
    return ToolUse(tools, choice, name, parallel)


def parse_choice(choice: str | Mapping[str, Any] | None) -> tuple[ToolChoice, str | None]:
    """Whether tools are to be called, and the name of the only one that may be.

    Raises:
        BadRequest: if ``choice`` does not have the right form.
    """
    if choice is None:
        return ToolChoice.AUTO, None
    if isinstance(choice, str):
        try:
            return ToolChoice(choice), None
        except ValueError:
            raise BadRequest(
                f"tool_choice must be none, auto, required or an object that names a function, got {choice[:40]!r}",
                param="tool_choice",
            ) from None
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else choice.get("name")
    if choice.get("type", "function") != "function" or not isinstance(name, str):
        raise BadRequest(
            'tool_choice must have the form {"type": "function", "function": {"name": …}}', param="tool_choice"
        )
    return ToolChoice.REQUIRED, name


def template_variables(
    given: Mapping[str, Any] | None,
    effort: str | float | None,
    reasoning: Reasoning | None,
    thinking: Any,
) -> dict[str, Any]:
    """Variables of the chat template: what was given, and what follows from how much the model shall think.

    Raises:
        BadRequest: if two fields say different things.
    """
    variables = dict(given or {})
    if reasoning is not None:
        if effort is not None and reasoning.effort is not None and reasoning.effort != effort:
            raise BadRequest("reasoning_effort and reasoning.effort differ; give one of them", param="reasoning")
        effort = reasoning.effort if effort is None else effort
    wanted: bool | None = None
    if effort is not None:
        wanted = effort not in ("none", 0, 0.0)
        variables.setdefault("reasoning_effort", effort)
    if reasoning is not None and reasoning.enabled is not None:
        wanted = reasoning.enabled
    if thinking is not None:
        wanted = _wants_thinking(thinking)
    if wanted is not None:
        for name in THINKING_VARIABLES:
            variables.setdefault(name, wanted)
    return variables


def _wants_thinking(thinking: Any) -> bool:
    if isinstance(thinking, bool):
        return thinking
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if kind in ("enabled", "adaptive", "disabled"):
        return bool(kind != "disabled")
    raise BadRequest(
        'thinking must be true, false or {"type": "enabled"} or "adaptive" or "disabled"', param="thinking"
    )
