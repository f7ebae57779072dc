"""Formats that put calls between special tokens, with the arguments as JSON and the name in front of them."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence

from bough.parsers.base import ToolSpec
from bough.parsers.stream import NotACall, Steps
from bough.parsers.structural import Format, calls_of, const, json_schema, regex, sequence, tag
from bough.parsers.tool_format import MAX_HEAD_CHARS, Calls, ToolFormat


class SectionFormat(ToolFormat):
    """A run of calls, each between two markers, all of them between two more, which the model may forget.

    Attributes:
        separator: what the model was trained to write between calls.
    """

    section_begin: str
    section_end: str
    call_begin: str
    call_end: str
    separator: str = ""
    needs_special_tokens = True

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        stream = calls.stream
        if trigger == self.section_begin:
            yield from stream.skip_space()
            yield from stream.expect(self.call_begin)
        while True:
            yield from self.read_call(calls)
            yield from stream.take_if_next(self.call_end)
            yield from stream.skip_space()
            if not (yield from stream.take(self.call_begin)):
                stream.turn_back()
                yield from stream.take_if_next(self.section_end)
                return

    @abstractmethod
    def read_call(self, calls: Calls) -> Steps[None]:
        """Read what stands between the markers of a call."""

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        each = [self.call_constraint(tool) for tool in tools]
        calls = calls_of(each, self.separator, parallel=parallel)
        return sequence(const(self.section_begin), calls, const(self.section_end))

    @abstractmethod
    def call_constraint(self, tool: ToolSpec) -> Format:
        """What a call of this tool looks like, with its markers."""


class DeepSeekFormat(SectionFormat):
    """DeepSeek V3 and R1 write ``function``, the name and a fenced block of JSON; V3.1 and later the name and JSON.

    Both are read; the model is constrained to the first if ``fenced``.
    """

    section_begin = "<｜tool▁calls▁begin｜>"
    section_end = "<｜tool▁calls▁end｜>"
    call_begin = "<｜tool▁call▁begin｜>"
    call_end = "<｜tool▁call▁end｜>"
    triggers = (section_begin, call_begin)
    _SEPARATOR = "<｜tool▁sep｜>"
    controls = (*triggers, section_end, call_end, _SEPARATOR)

    def __init__(self, name: str, *, fenced: bool) -> None:
        self.name = name
        self._fenced = fenced
        self.separator = "\n" if fenced else ""

    def read_call(self, calls: Calls) -> Steps[None]:
        stream = calls.stream
        name = (yield from stream.until(self._SEPARATOR, MAX_HEAD_CHARS)).strip()
        if name == "function" and name not in calls.tools:
            name = (yield from stream.until("\n", MAX_HEAD_CHARS)).strip()
        if name not in calls.tools:
            raise NotACall
        yield from stream.skip_space()
        fenced = yield from stream.take("```")
        if fenced:
            yield from stream.take("json")
        closing = "```" if fenced else ""
        if (yield from calls.object_arguments(name, marker=self.call_end, closing=closing)) and fenced:
            yield from stream.take_if_next("```")

    def call_constraint(self, tool: ToolSpec) -> Format:
        arguments = json_schema(tool.arguments_schema)
        if self._fenced:
            begin = f"{self.call_begin}function{self._SEPARATOR}{tool.name}\n```json\n"
            return tag(begin, arguments, f"\n```{self.call_end}")
        return tag(f"{self.call_begin}{tool.name}{self._SEPARATOR}", arguments, self.call_end)


class KimiFormat(SectionFormat):
    """``functions.NAME:NUMBER`` between two markers, then JSON: Kimi K2. The first part is also the id of the call."""

    name = "kimi_k2"
    section_begin = "<|tool_calls_section_begin|>"
    section_end = "<|tool_calls_section_end|>"
    call_begin = "<|tool_call_begin|>"
    call_end = "<|tool_call_end|>"
    triggers = (section_begin, call_begin)
    _ARGUMENTS = "<|tool_call_argument_begin|>"
    controls = (*triggers, section_end, call_end, _ARGUMENTS)
    _ID = re.compile(r"(?:functions\.)?(?P<name>.+?)(?::\d+)?", re.DOTALL)

    def read_call(self, calls: Calls) -> Steps[None]:
        call_id = (yield from calls.stream.until(self._ARGUMENTS, MAX_HEAD_CHARS)).strip()
        match = self._ID.fullmatch(call_id)
        if match is None:
            raise NotACall
        yield from calls.object_arguments(match["name"], call_id, marker=self.call_end)

    def call_constraint(self, tool: ToolSpec) -> Format:
        number = regex("[0-9]{1,3}")
        content = sequence(number, const(self._ARGUMENTS), json_schema(tool.arguments_schema))
        return tag(f"{self.call_begin}functions.{tool.name}:", content, self.call_end)
