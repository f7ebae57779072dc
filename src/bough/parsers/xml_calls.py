"""Formats that give each argument a pair of tags: GLM 4.5 and Qwen3-Coder.

Strings stand there as they are, other values as JSON; the schema says which is which. The JSON text of the arguments
is made while they come in, strings piece by piece.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from bough.parsers.argument_schemas import (
    Arguments,
    ArgumentSchemas,
    allows_anything,
    no_value,
    not_exact,
    writable_arguments,
)
from bough.parsers.base import Content, ParsedEvent, ToolSpec
from bough.parsers.schema_kinds import kinds_of
from bough.parsers.stream import MAX_TRIMMED_CHARS, NotACall, Steps, Stream
from bough.parsers.string_schemas import string_forms
from bough.parsers.structural import (
    Format,
    any_number,
    any_text,
    bare_string,
    calls_of,
    const,
    either,
    json_schema,
    regex,
    sequence,
    subsequence,
    tag,
)
from bough.parsers.tagged_values import json_until
from bough.parsers.tool_format import MAX_HEAD_CHARS, Calls, ToolFormat
from bough.parsers.typed_values import typed_json

_encode = json.JSONEncoder(ensure_ascii=False).encode
_ANY_KEY = r"[^\s<>]{1,64}"
_OWN_KEY = re.compile(r"[^\s<>](?:[^\n<>]{0,254}[^\s<>])?")


class TaggedFormat(ToolFormat):
    """Tool calls with one tag per argument.

    Text between the tags of a call is content, and so is an argument that occurs a second time; the call goes on, and
    that content is emitted after it. If the name of an argument cannot be read, the call
    ends.

    Attributes:
        inner_markers: beginning of an argument, then every marker that ends a call.
        value_end: closing tag of a value.
        own_lines: values are on lines of their own.
        openers_of_lines: markers at the start of a line that end a JSON value whose closing tag is missing.
        tail_of_calls: end of the last call of an answer, after a text value whose tag is not closed. Before
            anything else it is part of the value, which may contain examples of calls.
    """

    inner_markers: tuple[str, ...]
    value_end: str
    own_lines: bool
    openers_of_lines: tuple[str, ...] = ()
    tail_of_calls: tuple[str, ...] = ()

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        name = yield from self.read_name(calls, trigger)
        calls.start(name)
        stream, schemas = calls.stream, ArgumentSchemas(calls.tools[name].parameters)
        keys: set[str] = set()
        between: list[str] = []
        is_complete = True

        def is_next(key: str) -> bool:
            return key in schemas.properties and key not in keys

        while True:
            yield from stream.skip_space()
            stream.commit()
            marker = yield from stream.flow(Content, self.inner_markers, trim=True, aside=between)
            if marker != self.inner_markers[0]:
                break
            try:
                key = yield from self.read_key(calls)
            except NotACall:
                stream.turn_back()
                is_complete = not stream.ran_out
                break
            if key in keys:
                stream.resume = stream.pos
                stream.reject(between)
                continue
            prefix = ", " if keys else "{"
            keys.add(key)
            key_text = f"{prefix}{_encode(key)}: "
            is_complete = yield from self._read_value(calls, key_text, schemas.of(key), schemas.kinds(key), is_next)
        if marker is None and stream.cut:
            is_complete = False
        closing = "}" if is_complete else ""
        calls.arguments(closing if keys else "{" + closing)
        if between:
            stream.events.append(Content("".join(between)))
        if marker in self.inner_markers[1:]:
            yield from self.read_end(calls, marker)

    @abstractmethod
    def read_name(self, calls: Calls, trigger: str) -> Steps[str]:
        """Read the name, up to the first argument."""

    @abstractmethod
    def read_key(self, calls: Calls) -> Steps[str]:
        """Read the name of an argument, up to its value."""

    @abstractmethod
    def read_end(self, calls: Calls, marker: str) -> Steps[None]:
        """Read what else there is behind ``marker``, which ended the arguments."""

    def tags_of(self, tool: ToolSpec, begin: str, end: str) -> Format:
        """Every argument in the order of the schema, with ``begin``, in which ``{}`` is the name, and ``end``.

        Raises what :func:`~bough.parsers.argument_schemas.writable_arguments` does.
        """
        arguments = writable_arguments(tool, _OWN_KEY)
        if arguments.others is not False:
            before, behind = begin.split("{}")
            value = self._value_of(tool, "additionalProperties", arguments.others, arguments)
            if value is None:
                return const("")
            content = sequence(regex(_ANY_KEY), self._ended(behind, value, end))
            return any_number(tag(before, content, ""), "")
        each, required = [], []
        for argument in arguments.named:
            value = self._value_of(tool, argument.name, argument.schema, arguments)
            if value is None and argument.required:
                if arguments.is_strict:
                    raise no_value(argument.name, tool)
                value = any_text()
            if value is not None:
                each.append(self._ended(begin.format(argument.name), value, end))
                required.append(argument.required)
        return subsequence(each, required, "")

    def _value_of(self, tool: ToolSpec, name: str, schema: Any, arguments: Arguments) -> Format | None:
        """What a value looks like; ``None`` if none can be written."""
        if allows_anything(schema):
            return any_text()
        if kinds_of(schema, schema) != {"string"}:
            return json_schema(schema)
        forms, is_exact = string_forms(schema, schema)
        if arguments.is_strict and not is_exact:
            raise not_exact(name, tool)
        options: list[Format] = []
        for form in forms:
            if form.values is not None:
                # The parser would take the mark of the end for just that.
                options += [const(value) for value in form.values if self.value_end not in value]
            elif form.bounds:
                options.append(bare_string(form.bounds))
            else:
                options.append(any_text())
        return either(*options) if options else None

    def _ended(self, begin: str, value: Format, end: str) -> Format:
        """A value between the texts before and behind it."""
        # Free text ends at the mark, as it does for the parser, and has the line break in front of it itself.
        return tag(begin, value, self.value_end if value["type"] == "any_text" else end)

    def _read_value(
        self, calls: Calls, key: str, schema: Any, kinds: frozenset[str], is_next: Callable[[str], bool]
    ) -> Steps[bool]:
        """Read a value and emit it for ``key``; true if its end came, also by a tag that ``is_next`` accepts."""
        stream = calls.stream
        if kinds == {"string"}:
            calls.arguments(f'{key}"')
            complete = yield from self._flow_text(
                calls,
                is_next,
                lambda piece: calls.arguments(_string_body(piece)),
                lambda piece: calls.passed_on(_string_body(piece)),
            )
            if complete:
                calls.arguments('"')
            return complete
        if allows_anything(schema) or ("string" in kinds and (yield from _begins_text(stream, kinds))):
            pieces: list[str] = []
            complete = yield from self._flow_text(calls, is_next, pieces.append)
            text = "".join(pieces)
        else:
            text, complete = yield from json_until(
                stream, self.value_end, drop_newline=self.own_lines, openers=self.openers_of_lines
            )
            text = text.removeprefix("\n") if self.own_lines else text
        calls.arguments(key + (typed_json(text, kinds) if complete else text))
        return complete

    def _flow_text(
        self,
        calls: Calls,
        is_next: Callable[[str], bool],
        emit: Callable[[str], None],
        idle: Callable[[str], ParsedEvent] | None = None,
    ) -> Steps[bool]:
        stream, opener = calls.stream, self.inner_markers[0]
        on_lines = self.own_lines and (yield from stream.take("\n"))
        stream.commit()

        def opens(_: str) -> Steps[bool]:
            try:
                if not is_next((yield from self.read_key(calls))):
                    return False
            except NotACall:
                return False
            yield from stream.skip_space()
            for marker in self.inner_markers[1:]:  # a text value that mentions calls
                if (yield from stream.take(marker)):
                    return False
            return True

        if on_lines and (yield from stream.take(opener)):
            is_end = yield from opens(opener)
            stream.turn_back()
            if is_end:
                return True
        stream.turn_back()
        return (
            yield from stream.flow_until(
                emit,
                self.value_end,
                drop_newline=self.own_lines,
                tail=self.tail_of_calls,
                openers=(f"\n{opener}",) if on_lines else (f"\n{opener}", opener),
                opens=opens,
                idle=idle,
            )
        )


def _begins_text(stream: Stream, kinds: frozenset[str]) -> Steps[bool]:
    """True if a value that may be a string does not begin like JSON of its types in which marks may stand.

    White space before it, up to :data:`MAX_TRIMMED_CHARS`, is looked past, not read.
    """
    openers = ('"', *("[" if "array" in kinds else ""), *("{" if "object" in kinds else ""))
    at, limit = stream.pos, stream.pos + MAX_TRIMMED_CHARS
    while at < limit:
        if at < len(stream.text):
            if not stream.text[at].isspace():
                break
            at += 1
        elif not (yield from stream.more()):
            break
    return stream.text[at : at + 1] not in openers


class QwenCoderFormat(TaggedFormat):
    """``<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>``: Qwen3-Coder.

    ``around`` names the outer tag.
    """

    value_end = "</parameter>"
    own_lines = True

    def __init__(self, name: str, around: str = "tool_call") -> None:
        self.name = name
        self._begin, self._end = f"<{around}>", f"</{around}>"
        self.triggers = (self._begin, "<function=")
        self.inner_markers = self.openers_of_lines = ("<parameter=", "</function>", self._end)
        self.closers = self.inner_markers[1:]
        self.tail_of_calls = ("\n</function>", self._end)

    def read_name(self, calls: Calls, trigger: str) -> Steps[str]:
        if trigger == self._begin:
            yield from calls.stream.skip_space()
            yield from calls.stream.expect("<function=")
        return (yield from calls.stream.until(">", MAX_HEAD_CHARS)).strip()

    def read_key(self, calls: Calls) -> Steps[str]:
        return (yield from calls.stream.until(">", MAX_HEAD_CHARS)).strip()

    def read_end(self, calls: Calls, marker: str) -> Steps[None]:
        if marker == "</function>":
            yield from calls.stream.take_if_next(self._end)

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        each = []
        for tool in tools:
            arguments = self.tags_of(tool, "\n<parameter={}>\n", "\n</parameter>")
            each.append(tag(f"{self._begin}\n<function={tool.name}>", arguments, f"\n</function>\n{self._end}"))
        return calls_of(each, "\n", parallel=parallel)


class GlmFormat(TaggedFormat):
    """``<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>``: GLM 4.5 and later.

    With ``newlines`` the model is constrained to have the tags on lines of their own (4.5, 4.6).
    """

    triggers = ("<tool_call>",)
    inner_markers = openers_of_lines = ("<arg_key>", "</tool_call>")
    closers = inner_markers[1:]
    value_end = "</arg_value>"
    own_lines = False

    def __init__(self, name: str, *, newlines: bool = True) -> None:
        self.name = name
        self._line = "\n" if newlines else ""

    def read_name(self, calls: Calls, trigger: str) -> Steps[str]:
        name = (yield from calls.stream.until("<", MAX_HEAD_CHARS)).strip()
        calls.stream.pos -= 1
        return name

    def read_key(self, calls: Calls) -> Steps[str]:
        key = (yield from calls.stream.until("</arg_key>", MAX_HEAD_CHARS)).strip()
        yield from calls.stream.skip_space()
        yield from calls.stream.expect("<arg_value>")
        return key

    def read_end(self, calls: Calls, marker: str) -> Steps[None]:
        return
        yield

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        line = self._line
        each = []
        for tool in tools:
            arguments = self.tags_of(tool, f"{line}<arg_key>{{}}</arg_key>{line}<arg_value>", self.value_end)
            each.append(tag(f"<tool_call>{tool.name}", arguments, f"{line}</tool_call>"))
        return calls_of(each, line, parallel=parallel)


def _string_body(text: str) -> str:
    """The text inside of a JSON string."""
    return _encode(text)[1:-1]
