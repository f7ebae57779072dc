"""Calls written as Python: ``[name(key='value', …), …]``, by Llama 4, Llama 3.2 and others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bough.parsers.argument_schemas import ArgumentSchemas, writable_arguments
from bough.parsers.base import MAX_NAME_CHARS, NAME_CHARACTERS, ToolSpec
from bough.parsers.literals import MAX_DEPTH, NotALiteral, to_json
from bough.parsers.stream import NotACall, Steps, Stream
from bough.parsers.structural import Format, any_number, calls_of, const, json_schema, regex, sequence, subsequence, tag
from bough.parsers.tool_format import MAX_HEAD_CHARS, Calls, ToolFormat
from bough.parsers.typed_values import typed_value

_NAME = re.compile(rf"[{NAME_CHARACTERS}]*")
_KEY = re.compile(r"[^\s<>\"'`{}\[\]()=,:;|\\]*")
_OWN_KEY = re.compile(rf"{_KEY.pattern[:-1]}{{1,{MAX_NAME_CHARS}}}")
_WORD = re.compile(r"[-+.\w]*")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_STRING_ENDS = {quote: re.compile(rf"(?s)\\.|{quote}") for quote in ("'''", '"""', "'", '"')}
_STRING_PREFIXES = ("r", "R", "u", "U")


class PythonicFormat(ToolFormat):
    """A list of calls as the whole answer, or between ``<|python_start|>`` and ``<|python_end|>``.

    Arguments are given by keyword and are literals; they are passed on when a call is complete.
    """

    triggers = ("<|python_start|>",)
    openers = ("[",)
    controls = ("<|python_start|>", "<|python_end|>")
    needs_special_tokens = True

    def __init__(self, name: str = "pythonic") -> None:
        self.name = name

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
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
                yield from stream.take_if_next("<|python_end|>")
            stream.turn_back()
            return

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        each = [tag(f"{tool.name}(", _arguments(tool), ")") for tool in tools]
        return sequence(const("["), calls_of(each, ", ", parallel=parallel), const("]"))


def _read_call(calls: Calls) -> Steps[None]:
    stream = calls.stream
    name = yield from stream.run(_NAME, MAX_NAME_CHARS)
    if name not in calls.tools:
        raise NotACall
    calls.named = True
    spans = yield from _read_arguments(stream)
    try:
        schemas = ArgumentSchemas(calls.tools[name].parameters)
        values = {}
        for key, begin, end in spans:
            values[key] = typed_value(stream.text[begin:end], schemas.kinds(key))
            yield from stream.step()
        fragment = to_json(values)
    except NotALiteral:
        raise NotACall from None
    calls.start(name)
    calls.arguments(fragment)


def _read_arguments(stream: Stream) -> Steps[list[tuple[str, int, int]]]:
    """Read ``(key=literal, …)``, and give up at the first character that cannot stand there.

    That keeps the work in proportion to the text where it seems to begin a call over and over: readings of one text
    from different places on do not live side by side for long, as a quote ends a string for one and begins one for
    another.

    Returns:
        For each argument its key, and where the text of its value begins and ends.

    Raises:
        NotACall: if it is something else.
    """
    yield from stream.expect("(")
    spans: list[tuple[str, int, int]] = []
    key, begin = "", 0
    closers = [")"]
    complete = False  # whether an element ends here, so that a comma has to come before the next one
    while True:
        if complete and len(closers) == 1:
            spans.append((key, begin, stream.pos))
        yield from stream.skip_space()
        following = yield from stream.peek()
        if following == closers[-1]:
            stream.pos += 1
            closers.pop()
            if not closers:
                return spans
            complete = True
            continue
        if complete:
            yield from stream.expect(",")
            complete = False
            continue
        if len(closers) == 1:
            key = yield from stream.run(_KEY, MAX_NAME_CHARS)
            if not key:
                raise NotACall
            yield from stream.skip_space()
            yield from stream.expect("=")
        elif closers[-1] == "}":
            yield from _skip_string(stream)
            yield from stream.skip_space()
            yield from stream.expect(":")
        yield from stream.skip_space()
        if len(closers) == 1:
            begin = stream.pos
        following = yield from stream.peek()
        if following in _BRACKETS:
            if len(closers) > MAX_DEPTH:
                raise NotACall
            stream.pos += 1
            closers.append(_BRACKETS[following])
        else:
            yield from _skip_scalar(stream)
            complete = True


def _skip_scalar(stream: Stream) -> Steps[None]:
    """Read past a string, a number or a name."""
    if (yield from stream.peek()) in ("'", '"'):
        yield from _skip_string(stream)
        return
    word = yield from stream.run(_WORD, MAX_HEAD_CHARS)
    if not word:
        raise NotACall
    if word in _STRING_PREFIXES and (yield from stream.peek()) in ("'", '"'):
        yield from _skip_string(stream)


def _skip_string(stream: Stream) -> Steps[None]:
    for quote in _STRING_ENDS:
        if (yield from stream.take(quote)):
            break
    else:
        raise NotACall
    end = _STRING_ENDS[quote]
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


def _arguments(tool: ToolSpec) -> Format:
    """Arguments by keyword, in the order of the schema.

    Values are JSON, which differs from Python in ``true``, ``false`` and ``null``; these are read as well.
    """
    arguments = writable_arguments(tool, _OWN_KEY)
    if arguments.others is not False:
        name = regex("[A-Za-z_][A-Za-z0-9_]{0,63}")
        return any_number(tag("", sequence(name, const("="), json_schema(arguments.others)), ""), ", ")
    each = [sequence(const(f"{argument.name}="), json_schema(argument.schema)) for argument in arguments.named]
    return subsequence(each, [argument.required for argument in arguments.named], ", ")
