"""Functions as chat templates read them: by the name that a template has for them, with members that it insists on."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

Tool = Mapping[str, Any]


class Place(Enum):
    """Place from which a template takes the descriptions of functions."""

    TOOLS = "tools"
    """The variable of this name"""
    XML_TOOLS = "xml_tools"
    """The variable of this name: SmolLM3's"""
    SYSTEM = "system"
    """The text ``tools`` of the system's message: Phi-4-mini's"""


class Member(NamedTuple):
    """Member of a description, with the default to use if it is missing."""

    owner: str
    """Owner of the member: ``function``, ``parameters`` or ``property``."""
    name: str
    empty: Any


MEMBERS = (
    Member("function", "description", ""),
    Member("parameters", "type", "object"),
    Member("parameters", "properties", {}),
    Member("parameters", "required", []),
    Member("property", "type", ""),
    Member("property", "description", ""),
)

WHOLE: Tool = {
    "type": "function",
    "function": {
        "name": "probe_name",
        "description": "a",
        "parameters": {
            "type": "object",
            "properties": {"probe_key": {"type": "string", "description": "b"}},
            "required": ["probe_key"],
        },
    },
}
"""A complete description."""


def find_place(render: Callable[[Sequence[Mapping[str, Any]], Mapping[str, Any]], str | None]) -> Place | None:
    """Try out where a template takes functions from; ``None``: it shows none.

    Args:
        render: messages and further variables, to a prompt; ``None`` if the template refuses them.
    """
    system, question = {"role": "system", "content": "a"}, {"role": "user", "content": "a"}
    described = {**system, "tools": json.dumps([WHOLE])}
    trials: tuple[tuple[Place, list[Mapping[str, Any]], dict[str, Any]], ...] = (
        (Place.TOOLS, [question], {"tools": [WHOLE]}),
        (Place.TOOLS, [system, question], {"tools": [WHOLE]}),
        (Place.XML_TOOLS, [question], {"xml_tools": [WHOLE]}),
        (Place.SYSTEM, [described, question], {}),
    )
    return next((place for place, messages, more in trials if "probe_name" in (render(messages, more) or "")), None)


def without(member: Member) -> Tool:
    """Return the complete description without one member."""
    return _changed(WHOLE, lambda owner, part: {k: v for k, v in part.items() if (owner, k) != member[:2]})


def filled(tool: Tool, members: Collection[Member]) -> Tool:
    """Return a description with empty values for those of the members that it lacks."""
    if not members:
        return tool

    def fill(owner: str, part: Mapping[str, Any]) -> Mapping[str, Any]:
        missing = {each.name: each.empty for each in members if each.owner == owner and part.get(each.name) is None}
        return {**part, **missing}

    return _changed(tool, fill)


def _changed(tool: Tool, change: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]) -> Tool:
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return tool
    function = change("function", function)
    parameters = function.get("parameters")
    if isinstance(parameters, Mapping):
        parameters = change("parameters", parameters)
        properties = parameters.get("properties")
        if isinstance(properties, Mapping):
            each = {
                key: change("property", value) if isinstance(value, Mapping) else value
                for key, value in properties.items()
            }
            parameters = {**parameters, "properties": each}
        function = {**function, "parameters": parameters}
    return {**tool, "function": function}
