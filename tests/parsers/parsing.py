"""Runs answers through parsers, whole and in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from bough.parsers.answer import StreamParser
from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolCallArguments, ToolCallStart, ToolSpec
from bough.parsers.dialect import Dialect, make_dialect
from bough.parsers.tool_formats import TOOL_FORMATS

TOOLS = (
    ToolSpec(
        "get_weather",
        "The weather in a city.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "exact": {"type": "boolean"},
                "extra": {"type": "object"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["city"],
        },
        False,
    ),
    ToolSpec("now", None, {"type": "object", "properties": {}}, False),
)

FIRST = {"city": 'São "Paulo"', "days": 3, "exact": True, "extra": {"a": None, "b": [1.5, "}"]}, "tags": ["x", "\n"]}
SECOND: dict[str, Any] = {}


def parser(
    dialect: Dialect,
    *,
    parse_tools: bool = True,
    separate_reasoning: bool = True,
    thinking: bool = False,
    forced: bool = False,
) -> StreamParser:
    made = dialect.parser(
        TOOLS, parse_tools=parse_tools, separate_reasoning=separate_reasoning, thinking=thinking, forced=forced
    )
    assert made is not None
    return made


def dialect(tools: str | None, reasoning: str | None = None) -> Dialect:
    return make_dialect(None, tool_call_parser=tools, reasoning_parser=reasoning)


def run(made: StreamParser, pieces: Iterable[str], *, cut: bool = False) -> list[ParsedEvent]:
    events = [event for piece in pieces for event in made.feed(piece)]
    return merged([*events, *finish(made, cut=cut)])


def finish(made: StreamParser, *, cut: bool = False) -> list[ParsedEvent]:
    return [event for held in made.finish(cut=cut) for event in held]


def merged(events: Iterable[ParsedEvent]) -> list[ParsedEvent]:
    """The events with neighbours of one kind joined, and without ids that are drawn by chance."""
    result: list[ParsedEvent] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, (Content, Reasoning)):
            assert event.text, "an event without text"
            if type(last) is type(event):
                result[-1] = type(event)(last.text + event.text)
                continue
        elif isinstance(event, ToolCallArguments):
            if isinstance(last, ToolCallArguments) and last.index == event.index:
                result[-1] = ToolCallArguments(event.index, last.fragment + event.fragment)
                continue
        else:
            assert event.id
            event.id.encode()
            event = ToolCallStart(event.index, "", event.name)
        result.append(event)
    return result


def calls(events: Iterable[ParsedEvent]) -> list[tuple[str, Any]]:
    """Name and decoded arguments of every call."""
    names: list[str] = []
    arguments: list[str] = []
    for event in events:
        if isinstance(event, ToolCallStart):
            assert event.index == len(names)
            names.append(event.name)
            arguments.append("")
        elif isinstance(event, ToolCallArguments):
            arguments[event.index] += event.fragment
    return [(name, json.loads(text)) for name, text in zip(names, arguments, strict=True)]


def content(events: Iterable[ParsedEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Content))


def reasoning(events: Iterable[ParsedEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Reasoning))


def payload(events: Iterable[ParsedEvent]) -> str:
    """All that a client gets to see, in order."""
    shown = []
    for event in events:
        if isinstance(event, (Content, Reasoning)):
            shown.append(event.text)
        else:
            shown.append(event.name if isinstance(event, ToolCallStart) else event.fragment)
    return "".join(shown)


def without_controls(name: str, text: str) -> str:
    """A text without the special tokens of a format, which are never shown, nor those that leaving one out makes."""
    shorter = text
    for control in TOOL_FORMATS[name].controls:
        shorter = shorter.replace(control, "")
    return shorter if shorter == text else without_controls(name, shorter)
