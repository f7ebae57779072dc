"""Calls written as Python: ``[name(key='value', …), …]``, by Llama 4, Llama 3.2 and others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bough.parsers.base import ToolSpec
from bough.parsers.literals import NotALiteral, parse_arguments, to_json
from bough.parsers.stream import NotACall, Steps, Stream
from bough.parsers.structural import const, either, json_schema, optional, separated, sequence, tag
from bough.parsers.tool_format import Calls, Format, ToolFormat
from bough.parsers.xml_calls import property_schema

_NAME = re.compile(r"[\w.]*")
_NEXT = re.compile(r"""[()\[\]{}'"]""")
_QUOTES = ("'''", '"""', "'", '"')


class PythonicFormat(ToolFormat):
    """A list of calls as the whole answer, or between ``<|python_start|>`` and ``<|python_end|>``.

    Arguments are given by keyword and are literals; they are passed on when a call is complete.
    """

    triggers = ("<|python_start|>",)
    openers = ("[",)
    needs_special_tokens = True

    def __init__(self, name: str = "pythonic") -> None:
        self.name = name

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        """See :meth:`ToolFormat.read`."""
        stream = calls.stream
        if trigger != "[":
            yield from stream.skip_space()
            yield from stream.expect("[")
        while True:
            yield from stream.skip_space()
            yield from _read_call(calls)
            yield from stream.skip_space()
            if (yield from stream.take(",")):
                yield from stream.skip_space()
                if (yield from stream.peek()) != "]":
                    continue
            if (yield from stream.take("]")):
                stream.commit()
                yield from stream.skip_space()
                if (yield from stream.take("<|python_end|>")):
                    stream.commit()
            stream.turn_back()
            return

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        """See :meth:`ToolFormat.constraint`."""
        each = [tag(f"{tool.name}(", _arguments(tool.parameters), ")") for tool in tools]
        return sequence(const("["), separated(each, ", ", parallel=parallel), const("]"))


def _read_call(calls: Calls) -> Steps[None]:
    stream = calls.stream
    begin = stream.pos
    name = yield from _name(stream)
    if name not in calls.tools:
        raise NotACall
    yield from _skip_brackets(stream)
    try:
        fragment = to_json(parse_arguments(stream.text[begin + len(name) : stream.pos]))
    except NotALiteral:
        raise NotACall from None
    calls.start(name)
    calls.arguments(fragment)


def _name(stream: Stream) -> Steps[str]:
    begin = stream.pos
    while True:
        match = _NAME.match(stream.text, begin)
        assert match is not None
        stream.pos = match.end()
        if stream.pos < len(stream.text) or not (yield from stream.more()):
            return match.group()


def _skip_brackets(stream: Stream) -> Steps[None]:
    """Read past an opening bracket, and all up to the one that closes it.

    Raises:
        NotACall: if there is none, or none that closes it.
    """
    if (yield from stream.peek()) != "(":
        raise NotACall
    depth = 0
    while True:
        match = _NEXT.search(stream.text, stream.pos)
        if match is None:
            stream.pos = len(stream.text)
            if not (yield from stream.more()):
                raise NotACall
            continue
        stream.pos = match.start()
        if match.group() in "'\"":
            yield from _skip_string(stream)
            continue
        stream.pos += 1
        depth += 1 if match.group() in "([{" else -1
        if depth == 0:
            return


def _skip_string(stream: Stream) -> Steps[None]:
    for quote in _QUOTES:
        if (yield from stream.take(quote)):
            break
    end = re.compile(rf"(?s)\\.|{quote}")
    while True:
        match = end.search(stream.text, stream.pos)
        if match is None:
            # A backslash or a part of the closing quotes may be the last that is there.
            stream.pos = max(stream.pos, len(stream.text) - len(quote))
            if not (yield from stream.more()):
                raise NotACall
            continue
        stream.pos = match.end()
        if match.group() == quote:
            return


def _arguments(schema: dict[str, Any]) -> Format:
    """Arguments by keyword, in the order of the schema: required ones, then optional ones.

    Their values are JSON, which differs from Python in ``true``, ``false`` and ``null``; these are read as well.
    """
    properties = schema.get("properties") or {}
    required = [name for name in properties if name in (schema.get("required") or ())]
    others = [name for name in properties if name not in required]

    def argument(name: str, before: str) -> Format:
        return sequence(const(f"{before}{name}="), json_schema(property_schema(schema, name)))

    parts = [argument(name, ", " if index else "") for index, name in enumerate(required)]
    if required or not others:
        return sequence(*parts, *(optional(argument(name, ", ")) for name in others)) if properties else const("")
    starts = []
    for index, name in enumerate(others):
        starts.append(sequence(argument(name, ""), *(optional(argument(each, ", ")) for each in others[index + 1 :])))
    return either(*starts, const(""))
