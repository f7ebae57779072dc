"""Tools of ``/v1/responses``: which of them the model is offered, and under which names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

from bough.entrypoints.chat.job import NO_TOOLS, ToolUse
from bough.entrypoints.chat.tools import MAX_TOOLS, make_tool_use
from bough.entrypoints.http.openai.tools import chosen
from bough.entrypoints.http.responses.protocol import ResponsesRequest
from bough.entrypoints.http.unknown_fields import Unknown, known_members
from bough.errors import BadRequest
from bough.parsers.base import MAX_NAME_CHARS, ToolSpec

_LEFT_OUT = (
    *("web_search", "file_search", "code_interpreter", "image_generation", "mcp", "computer", "tool_search"),
    *("custom", "local_shell", "shell", "apply_patch", "programmatic_tool_calling"),
)
"""Beginnings of types of tools that the server would run, or whose calls are no JSON: clients send them along."""

_TOOL_MEMBERS = frozenset(
    {
        *("type", "name", "description", "parameters", "strict"),
        *("defer_loading", "cache_control", "allowed_callers", "output_schema", "async"),
    }
)
"""Those of the second line change nothing: tools are always shown, only the model calls them, and their results are
text."""

_NAMESPACE_MEMBERS = frozenset({"type", "name", "description", "tools", "defer_loading", "cache_control"})


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools of one request.

    Attributes:
        use: the functions that the model is offered, and how they are to be used.
        in_force: the tools of the request without those that are left out, for the answer.
        choice: ``tool_choice`` likewise.
        offered: what functions of namespaces are called towards the model, by namespace and name.
    """

    use: ToolUse = NO_TOOLS
    in_force: Sequence[Mapping[str, Any]] = ()
    choice: str | Mapping[str, Any] | None = None
    offered: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def name_of(self, call: Mapping[str, Any]) -> str:
        """The name towards the model of the function that an item calls."""
        name: str = call["name"]
        namespace = call.get("namespace")
        return name if namespace is None else self.offered.get((namespace, name)) or joined(namespace, name)

    def call_names(self) -> dict[str, dict[str, str]]:
        """Members that name the function of an item ``function_call``, by its name towards the model, where that is
        not its name.
        """
        return {offered: {"namespace": key[0], "name": key[1]} for key, offered in self.offered.items()}


def joined(namespace: str, name: str) -> str:
    """A function's name with its namespace in front, as ``mcp__files__read``, which is how programs that know no
    namespaces call tools of MCP servers."""
    return f"{namespace.rstrip('_')}__{name.lstrip('_')}"


def offered_tools(body: ResponsesRequest, unknown: Unknown | None, left_out: Unknown) -> OfferedTools:
    """From ``tools`` and ``tool_choice``. The functions of namespaces are offered one by one. Tools that are no
    functions are left out.

    Args:
        left_out: collects types of tools that are left out.

    Raises:
        BadRequest: naming what does not fit together.
    """
    reader = _Reader(unknown, left_out)
    in_force = [kept for index, tool in enumerate(body.tools or ()) if (kept := reader.read(tool, f"tools[{index}]"))]
    specs, offered = reader.specs()
    choice = _choice_in_force(body.tool_choice)
    named = _with_offered_names(choice, offered, {spec.name for spec in specs.values()})
    use = make_tool_use(specs, chosen(named, unknown), parallel=body.parallel_tool_calls)
    return OfferedTools(use, in_force, choice, offered)


class _Reader:
    """Reads tools one by one.

    Attributes:
        functions: what was read, by namespace (``None`` without one) and name: its place, and what it is.
    """

    def __init__(self, unknown: Unknown | None, left_out: Unknown) -> None:
        self.functions: dict[tuple[str | None, str], tuple[str, ToolSpec]] = {}
        self._unknown = unknown
        self._left_out = left_out

    def read(self, tool: Mapping[str, Any], where: str) -> Mapping[str, Any] | None:
        """Return the part of a tool that is offered; ``None`` if none of it is.

        Raises:
            BadRequest: naming what does not have the right form.
        """
        if tool.get("type") != "namespace":
            return self._read_function(None, tool, where)
        known = known_members(tool, _NAMESPACE_MEMBERS, where, self._unknown)
        name, inside = ToolSpec.from_function(known, where).name, known.get("tools")
        if not isinstance(inside, list) or not all(isinstance(each, dict) for each in inside):
            raise BadRequest(f"{where}.tools must be a list of tools", param=f"{where}.tools", code="invalid_value")
        if len(inside) > MAX_TOOLS:
            raise _too_many()
        kept = [self._read_function(name, each, f"{where}.tools[{index}]") for index, each in enumerate(inside)]
        offered = [each for each in kept if each is not None]
        return {**tool, "tools": offered} if offered else None

    def _read_function(self, namespace: str | None, tool: Mapping[str, Any], where: str) -> Mapping[str, Any] | None:
        kind = tool.get("type")
        if _is_left_out(kind):
            self._left_out[f"tools.{kind}"] = None
            return None
        if kind != "function":
            raise BadRequest(
                f"{where}: tools of type {str(kind)[:40]!r} are not supported; describe a function and run it yourself",
                param=f"{where}.type",
                code="unsupported_parameter",
            )
        known = known_members(tool, _TOOL_MEMBERS, where, self._unknown)
        spec = ToolSpec.from_function(known, where)
        key, param = (namespace, spec.name), f"{where}.name"
        if key in self.functions:
            raise BadRequest(f"{param}: {spec.name!r} is the name of an earlier tool", param=param)
        if namespace is not None and len(joined(namespace, spec.name)) > MAX_NAME_CHARS:
            raise BadRequest(f"{param} and its namespace have more than {MAX_NAME_CHARS} characters", param=param)
        if len(self.functions) >= MAX_TOOLS:
            raise _too_many()
        self.functions[key] = (where, spec)
        return tool

    def specs(self) -> tuple[dict[str, ToolSpec], dict[tuple[str, str], str]]:
        """The functions by their places, under names that are different, and those names of functions in namespaces,
        by namespace and name.
        """
        taken = {name for namespace, name in self.functions if namespace is None}
        specs: dict[str, ToolSpec] = {}
        offered: dict[tuple[str, str], str] = {}
        for (namespace, name), (where, spec) in self.functions.items():
            specs[where] = spec
            if namespace is not None:
                wanted = joined(namespace, name)
                choices = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
                unique = next(each for each in choices if each not in taken)
                taken.add(unique)
                offered[namespace, name] = unique
                specs[where] = replace(spec, name=unique)
        return specs, offered


def _too_many() -> BadRequest:
    return BadRequest(f"tools: at most {MAX_TOOLS} functions, those in namespaces included", param="tools")


def _is_left_out(kind: Any) -> bool:
    return isinstance(kind, str) and any(kind == each or kind.startswith(f"{each}_") for each in _LEFT_OUT)


def _choice_in_force(choice: str | Mapping[str, Any] | None) -> str | Mapping[str, Any] | None:
    """``tool_choice`` without tools that are left out, among those that are allowed."""
    if not isinstance(choice, Mapping) or choice.get("type") != "allowed_tools":
        return choice
    listed = choice.get("tools")
    if not isinstance(listed, list):
        return choice
    kept = [each for each in listed if not (isinstance(each, dict) and _is_left_out(each.get("type")))]
    if not kept and listed and choice.get("mode", "auto") == "auto":
        return "none"
    return {**choice, "tools": kept}


def _with_offered_names(
    choice: str | Mapping[str, Any] | None, offered: Mapping[tuple[str, str], str], names: set[str]
) -> str | Mapping[str, Any] | None:
    """``tool_choice`` with the names that functions of namespaces have towards the model.

    Raises:
        BadRequest: if a name is that of several functions.
    """
    if not isinstance(choice, Mapping):
        return choice
    listed = choice.get("tools")
    if choice.get("type") == "allowed_tools" and isinstance(listed, list):
        return {**choice, "tools": [meant for each in listed for meant in _meant(each, offered, names)]}
    meant = _meant(choice, offered, names)
    return meant[0] if len(meant) == 1 else choice


def _meant(tool: Any, offered: Mapping[tuple[str, str], str], names: set[str]) -> list[Any]:
    """Return the functions that an entry of ``tool_choice`` means, by their names towards the model."""
    name, namespace = (tool.get("name"), tool.get("namespace")) if isinstance(tool, Mapping) else (None, None)
    if not isinstance(name, str) or (namespace is None and name in names):
        return [tool]
    if isinstance(namespace, str):
        found = [offered.get((namespace, name)) or joined(namespace, name)]
    elif tool.get("type") == "namespace":
        found = [each for key, each in offered.items() if key[0] == name]
    else:
        found = [each for key, each in offered.items() if key[1] == name]
        if len(found) > 1:
            message = f"tool_choice: several namespaces have a function {name[:64]!r}; give its namespace, too"
            raise BadRequest(message, param="tool_choice")
    return [{"type": "function", "name": each} for each in found] or [tool]
