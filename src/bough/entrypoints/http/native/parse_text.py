"""Parsers for tool calls and reasoning, applied to text that a client sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.chat.reader import joined
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.openai.tools import FunctionTool
from bough.entrypoints.http.route import NATIVE, Count, Handlers, Route, Text
from bough.errors import BadRequest
from bough.managers.turns import Turns
from bough.parsers.answer import SLICE_CHARS
from bough.parsers.base import Content, ParsedEvent, ToolCallStart, parse_tools
from bough.parsers.dialect import (
    Dialect,
    find_reasoning_format,
    find_tool_format,
    reasoning_format_names,
    tool_format_names,
)
from bough.parsers.reasoning import REASONING_FORMATS
from bough.parsers.tool_formats import TOOL_FORMATS

T = TypeVar("T")


class ParseFunctionCallRequest(msgspec.Struct, kw_only=True):
    """Body of ``/parse_function_call``."""

    text: Annotated[str, Meta(description="What a model wrote.")]
    tools: Annotated[list[Any], Meta(description="Functions that it may call, as in chat completions.")]
    tool_call_parser: Annotated[
        str | None,
        Meta(description=f"How calls are written: {', '.join(TOOL_FORMATS)}. Default: as chat reads this model's."),
    ] = None


class SeparateReasoningRequest(msgspec.Struct, kw_only=True):
    """Body of ``/separate_reasoning``."""

    text: Annotated[str, Meta(description="What a model wrote.")]
    reasoning_parser: Annotated[str, Meta(description=f"How thoughts are marked: {', '.join(REASONING_FORMATS)}.")]
    return_blocks: Annotated[bool, Meta(description="Return the parts of the text in their order, too.")] = False


PARSE_FUNCTION_CALL = BodySpec(
    ParseFunctionCallRequest,
    schemas={"tools": list[FunctionTool]},
    example={
        "text": '<tool_call>{"name": "count_trees", "arguments": {"kind": "oak"}}</tool_call>',
        "tools": [{"type": "function", "function": {"name": "count_trees", "parameters": {"type": "object"}}}],
        "tool_call_parser": "hermes",
    },
)
SEPARATE_REASONING = BodySpec(
    SeparateReasoningRequest, example={"text": "<think>Is it one?</think>Yes.", "reasoning_parser": "qwen3"}
)


class FunctionCall(msgspec.Struct):
    """A call that was found in a text."""

    tool_index: Annotated[Count, Meta(description="Position of the tool, from 0.")]
    name: Annotated[str, Meta(description="Name of the function.", examples=["count_trees"])]
    parameters: Annotated[str, Meta(description="The arguments, as JSON text.", examples=['{"kind": "oak"}'])]


class FunctionCallsAnswer(msgspec.Struct):
    """Answer of ``/parse_function_call``."""

    normal_text: Annotated[str, Meta(description="The text without the calls.")]
    calls: Annotated[list[FunctionCall], Meta(description="The calls, in their order.")]


class TextBlock(msgspec.Struct):
    """A part of a text."""

    type: Literal["text", "reasoning"]
    text: Text


class SeparateReasoningAnswer(msgspec.Struct):
    """Answer of ``/separate_reasoning``."""

    reasoning_text: Annotated[str, Meta(description="The thoughts.", examples=["Is it one?"])]
    text: Text
    reasoning_blocks: Annotated[list[str] | UnsetType, Meta(description="The thoughts; with `return_blocks`.")] = UNSET
    text_blocks: Annotated[
        list[str] | UnsetType, Meta(description="The answer without thoughts; with `return_blocks`.")
    ] = UNSET
    blocks: Annotated[
        list[TextBlock] | UnsetType, Meta(description="Thoughts and answer in their order; with `return_blocks`.")
    ] = UNSET


class ParseTextHandlers(Handlers):
    """Answers the routes that take text apart."""

    @Route("POST /parse_function_call", NATIVE, PARSE_FUNCTION_CALL, FunctionCallsAnswer)
    async def parse_function_call(self, call: Call) -> Response:
        """Find the tool calls in a text."""
        body = await call.parse(PARSE_FUNCTION_CALL)
        tools = parse_tools(body.tools)
        format_ = self._core.tool_dialect.tool_format
        if body.tool_call_parser is None and format_ is None:
            raise BadRequest(
                "tool_call_parser is required: the server runs with --tool-call-parser none", param="tool_call_parser"
            )
        if body.tool_call_parser is not None:
            format_ = _named(find_tool_format, body.tool_call_parser, "tool_call_parser", tool_format_names())
        places = {tool.name: index for index, tool in enumerate(tools)}
        parts = joined(await _events(Dialect(format_, None), body.text, tools))
        normal = "".join(text for event, text in parts if not isinstance(event, ToolCallStart))
        calls = ((event.name, text) for event, text in parts if isinstance(event, ToolCallStart))
        found = [FunctionCall(places[name], name, text) for name, text in calls]
        return Response(msgspec.json.encode(FunctionCallsAnswer(normal, found)))

    @Route("POST /separate_reasoning", NATIVE, SEPARATE_REASONING, SeparateReasoningAnswer)
    async def separate_reasoning(self, call: Call) -> Response:
        """Tell a model's thoughts from its answer."""
        body = await call.parse(SEPARATE_REASONING)
        format_ = _named(find_reasoning_format, body.reasoning_parser, "reasoning_parser", reasoning_format_names())
        events = await _events(Dialect(None, format_), body.text, (), thinking=format_.always)
        parts = [
            {"type": "text" if isinstance(event, Content) else "reasoning", "text": text}
            for event, text in joined(events)
        ]
        by_kind = {name: [part["text"] for part in parts if part["type"] == name] for name in ("reasoning", "text")}
        answer: dict[str, Any] = {"reasoning_text": "".join(by_kind["reasoning"]), "text": "".join(by_kind["text"])}
        if body.return_blocks:
            answer |= {"reasoning_blocks": by_kind["reasoning"], "text_blocks": by_kind["text"], "blocks": parts}
        return Response(msgspec.json.encode(answer))


def _named(find: Callable[[str], T], name: str, param: str, names: tuple[str, ...]) -> T:
    """A format of ours or of another package by its name."""
    if name not in names:
        known = ", ".join(names)
        raise BadRequest(f"{param}: there is no parser {name[:64]!r}, but {known}", param=param, code="invalid_value")
    return find(name)


async def _events(dialect: Dialect, text: str, tools: Any, *, thinking: bool = False) -> list[ParsedEvent]:
    parser = dialect.parser(tools, parse_tools=bool(tools), separate_reasoning=True, thinking=thinking)
    if parser is None:
        return [Content(text)] if text else []
    turns = Turns(1)
    events = []
    for start in range(0, len(text), SLICE_CHARS):
        events += parser.feed(text[start : start + SLICE_CHARS])
        await turns.spend()
    for held in parser.finish():
        events += held
        await turns.spend()
    return events
