"""Which tools may be called, and how much the model is to think: what requests say of it, in all APIs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.job import THINKING_VARIABLES, ToolChoice, ToolUse
from bough.errors import BadRequest
from bough.json_words import wrong_field
from bough.parsers.base import ToolSpec

MAX_TOOLS = 256
"""Most tools of one request."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Reasoning(msgspec.Struct, forbid_unknown_fields=True):
    """``reasoning``: how much the model thinks before it answers."""

    effort: Annotated[
        Effort | None,
        Meta(description="How much the model thinks, for its chat template; `none` asks for no thoughts."),
    ] = None
    enabled: Annotated[bool | None, Meta(description="The model thinks before it answers.")] = None
    max_tokens: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)] | None,
        Meta(description="Most tokens of the thoughts, where it is known how the model marks them; else ignored."),
    ] = None
    exclude: Annotated[bool | None, Meta(description="Whether the thoughts are left out of the answer.")] = None


def distinct(tools: Iterable[ToolSpec | None], member: str = "name") -> dict[str, ToolSpec]:
    """The tools of a request, which have different names, under their places in it.

    Args:
        tools: in order; ``None`` in place of one that is left out.
        member: where in a tool its name is.

    Raises:
        BadRequest: if two have the same name.
    """
    specs: dict[str, ToolSpec] = {}
    names: set[str] = set()
    for index, spec in enumerate(tools):
        if spec is None:
            continue
        if spec.name in names:
            param = f"tools[{index}].{member}"
            raise BadRequest(f"{param}: {spec.name!r} is the name of an earlier tool", param=param)
        names.add(spec.name)
        specs[f"tools[{index}]"] = spec
    return specs


@dataclass(frozen=True, slots=True)
class Choice:
    """``tool_choice``.

    Attributes:
        mode: whether tools are to be called.
        name: the only one that may be, and must be.
        allowed: those that may be; ``None`` for all.
    """

    mode: ToolChoice = ToolChoice.AUTO
    name: str | None = None
    allowed: tuple[str, ...] | None = None


def make_tool_use(tools: Mapping[str, ToolSpec], choice: Choice, *, parallel: bool) -> ToolUse:
    """Tools, by their places, and how they are to be used, after a look at whether that is possible.

    Raises:
        BadRequest: if there is no tool to use.
    """
    if not tools:
        if choice.mode is ToolChoice.REQUIRED or choice.allowed is not None:
            raise BadRequest("tool_choice needs tools that are functions", param="tool_choice")
        return ToolUse()
    names = {each.name for each in tools.values()}
    for name in (*(choice.allowed or ()), *([] if choice.name is None else [choice.name])):
        if name not in names:
            raise BadRequest(f"tool_choice: there is no tool with the name {name[:64]!r}", param="tool_choice")
    if choice.allowed is not None:
        tools = {place: each for place, each in tools.items() if each.name in choice.allowed}
    return ToolUse(tuple(tools.values()), choice.mode, choice.name, parallel, tuple(tools))


def template_variables(
    given: Mapping[str, Any] | None,
    effort: str | float | None,
    reasoning: Reasoning | None,
    thinking: Any,
) -> dict[str, Any]:
    """Variables of the chat template: what was given, and what follows from how much the model shall think.

    Raises:
        BadRequest: if two fields say different things, or one of ``THINKING_VARIABLES``, of which templates take
            all but false for true, is neither.
    """
    variables = dict(given or {})
    for name in THINKING_VARIABLES:
        if not isinstance(variables.get(name, True), bool):
            value = variables.pop(name)
            if value is not None:
                raise wrong_field(f"chat_template_kwargs.{name}", value, bool)
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
    if kind in ("enabled", "adaptive", "auto", "disabled"):
        return bool(kind != "disabled")
    raise BadRequest(
        'thinking must be true, false or {"type": "enabled"} or "adaptive" or "disabled"', param="thinking"
    )
