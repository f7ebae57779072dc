"""Formats that give each argument a pair of tags: GLM 4.5 and Qwen3-Coder.

Strings stand there as they are, other values as JSON; the schema says which is which. The JSON text of the arguments
is made while they come in, strings piece by piece.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from bough.parsers.base import Content, ToolSpec
from bough.parsers.literals import NotALiteral, parse_literal, to_json
from bough.parsers.stream import NotACall, Steps
from bough.parsers.structural import any_text, const, either, json_schema, optional, regex, separated, sequence, tag
from bough.parsers.tool_format import MAX_HEAD_CHARS, Calls, Format, ToolFormat

_NESTED = ("anyOf", "oneOf", "allOf")
_SWITCHES = {"true": True, "false": False, "null": None, "none": None}
_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}


class TaggedFormat(ToolFormat):
    """Calls with a tag for each argument.

    Attributes:
        value_end: closes the tag of a value.
        own_lines: whether a value has lines to itself.
    """

    value_end: str
    own_lines: bool

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        """See :meth:`ToolFormat.read`."""
        name = yield from self.read_name(calls, trigger)
        calls.start(name)
        schema = calls.tools[name].parameters
        prefix = "{"
        while True:
            yield from calls.stream.skip_space()
            calls.stream.commit()
            # What does not belong there is content, and the call goes on.
            marker = yield from calls.stream.flow(Content, self.inner_markers, trim=True)
            if marker is None:
                calls.arguments("{" if prefix == "{" else "")
                return
            if marker != self.inner_markers[0]:
                break
            key = yield from self.read_key(calls)
            key_text = f"{prefix}{json.dumps(key, ensure_ascii=False)}: "
            yield from self._read_value(calls, key_text, property_schema(schema, key))
            prefix = ", "
        calls.arguments("{}" if prefix == "{" else "}")
        yield from self.read_end(calls, marker)

    @property
    @abstractmethod
    def inner_markers(self) -> tuple[str, ...]:
        """What begins an argument, then everything that ends a call."""

    @abstractmethod
    def read_name(self, calls: Calls, trigger: str) -> Steps[str]:
        """Read the name, up to the first argument."""

    @abstractmethod
    def read_key(self, calls: Calls) -> Steps[str]:
        """Read the name of an argument, up to its value."""

    @abstractmethod
    def read_end(self, calls: Calls, marker: str) -> Steps[None]:
        """Read what else there is behind ``marker``, which ended the arguments."""

    def _read_value(self, calls: Calls, key: str, schema: Any) -> Steps[None]:
        stream = calls.stream
        if self.own_lines:
            yield from stream.take("\n")
        if kinds_of(schema) == {"string"}:
            calls.arguments(f'{key}"')
            complete = yield from stream.flow_until(
                lambda piece: calls.arguments(json.dumps(piece, ensure_ascii=False)[1:-1]),
                self.value_end,
                drop_newline=self.own_lines,
            )
            if complete:
                calls.arguments('"')
            return
        try:
            text = yield from stream.until(self.value_end)
        except NotACall:
            calls.arguments(key + (yield from stream.rest()))
            return
        if self.own_lines:
            text = text.removesuffix("\n")
        calls.arguments(key + typed_json(text, schema))


class QwenCoderFormat(TaggedFormat):
    """``<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>``: Qwen3-Coder."""

    triggers = ("<tool_call>", "<function=")
    inner_markers = ("<parameter=", "</function>", "</tool_call>")
    value_end = "</parameter>"
    own_lines = True

    def __init__(self, name: str) -> None:
        self.name = name

    def read_name(self, calls: Calls, trigger: str) -> Steps[str]:
        """See :meth:`TaggedFormat.read_name`."""
        if trigger == "<tool_call>":
            yield from calls.stream.skip_space()
            yield from calls.stream.expect("<function=")
        return (yield from calls.stream.until(">", MAX_HEAD_CHARS)).strip()

    def read_key(self, calls: Calls) -> Steps[str]:
        """See :meth:`TaggedFormat.read_key`."""
        return (yield from calls.stream.until(">", MAX_HEAD_CHARS)).strip()

    def read_end(self, calls: Calls, marker: str) -> Steps[None]:
        """See :meth:`TaggedFormat.read_end`."""
        stream = calls.stream
        if marker == "</function>":
            yield from stream.skip_space()
            if (yield from stream.take("</tool_call>")):
                stream.commit()
            else:
                stream.turn_back()

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        """See :meth:`ToolFormat.constraint`."""
        each = []
        for tool in tools:
            arguments = _tags(tool.parameters, "<parameter={}>\n", "\n</parameter>\n")
            each.append(tag(f"<tool_call>\n<function={tool.name}>\n", arguments, "</function>\n</tool_call>"))
        return separated(each, "\n", parallel=parallel)


class GlmFormat(TaggedFormat):
    """``<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>``: GLM 4.5 and later.

    Args:
        name: as ``--tool-call-parser`` knows it.
        newlines: whether the model is constrained to have the tags on lines of their own (4.5, 4.6).
    """

    triggers = ("<tool_call>",)
    inner_markers = ("<arg_key>", "</tool_call>")
    value_end = "</arg_value>"
    own_lines = False

    def __init__(self, name: str, *, newlines: bool = True) -> None:
        self.name = name
        self._line = "\n" if newlines else ""

    def read_name(self, calls: Calls, trigger: str) -> Steps[str]:
        """See :meth:`TaggedFormat.read_name`."""
        name = (yield from calls.stream.until("<", MAX_HEAD_CHARS)).strip()
        calls.stream.pos -= 1
        return name

    def read_key(self, calls: Calls) -> Steps[str]:
        """See :meth:`TaggedFormat.read_key`."""
        key = (yield from calls.stream.until("</arg_key>", MAX_HEAD_CHARS)).strip()
        yield from calls.stream.skip_space()
        yield from calls.stream.expect("<arg_value>")
        return key

    def read_end(self, calls: Calls, marker: str) -> Steps[None]:
        """See :meth:`TaggedFormat.read_end`."""
        return
        yield

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        """See :meth:`ToolFormat.constraint`."""
        line = self._line
        each = []
        for tool in tools:
            begin = f"<arg_key>{{}}</arg_key>{line}<arg_value>"
            arguments = _tags(tool.parameters, begin, f"</arg_value>{line}")
            each.append(tag(f"<tool_call>{tool.name}{line}", arguments, "</tool_call>"))
        return separated(each, line, parallel=parallel)


# --- values and their types -------------------------------------------------------------------------------------------


def property_schema(schema: dict[str, Any], name: str) -> Any:
    """The schema of one argument, which can stand alone: with the definitions that it may refer to."""
    own = (schema.get("properties") or {}).get(name, schema.get("additionalProperties", True))
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {**own, **shared} if isinstance(own, dict) and shared else own


def kinds_of(schema: Any) -> set[str]:
    """The JSON types that a schema speaks of; an empty set if it does not say."""
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return {each for each in kind if isinstance(each, str)}
    values = schema.get("enum")
    if values is None and "const" in schema:
        values = [schema["const"]]
    if isinstance(values, list) and values:
        return {_KINDS[type(value)][0] for value in values if type(value) in _KINDS}
    kinds: set[str] = set()
    for key in _NESTED:
        alternatives = schema.get(key)
        for each in alternatives if isinstance(alternatives, list) else ():
            # only flat alternatives: a hostile schema may nest them without end
            kind = each.get("type") if isinstance(each, dict) else None
            if not isinstance(kind, str):
                return set()
            kinds.add(kind)
    return kinds


def typed_json(text: str, schema: Any) -> str:
    """The JSON text of a value that is written without quotes if it is a string.

    It is read as JSON, failing that as a Python literal, as far as the result is of a type that the schema speaks of;
    and as a string otherwise.
    """
    kinds = kinds_of(schema)
    stripped = text.strip()
    candidates = []
    try:
        candidates.append((stripped, json.loads(stripped, parse_constant=_refuse)))
    except (ValueError, RecursionError):
        if stripped.lower() in _SWITCHES:
            value = _SWITCHES[stripped.lower()]
            candidates.append((json.dumps(value), value))
        elif kinds and kinds != {"string"}:
            try:
                value = parse_literal(stripped)
                candidates.append((to_json(value), value))
            except NotALiteral:
                pass
    for shown, value in candidates:
        whole_number = isinstance(value, float) and value.is_integer() and "integer" in kinds
        if not kinds or whole_number or kinds.intersection(_KINDS[type(value)]):
            return shown
    return json.dumps(text, ensure_ascii=False)


def _refuse(name: str) -> None:
    raise ValueError(name)


def _tags(schema: dict[str, Any], begin: str, end: str) -> Format:
    """Every argument in the order of the schema, between ``begin``, which holds its name, and ``end``."""
    required = schema.get("required") or ()
    parts = []
    for name in schema.get("properties") or {}:
        own = property_schema(schema, name)
        part = tag(begin.format(name), _value(own), end)
        parts.append(part if name in required else optional(part))
    return sequence(*parts) if parts else const("")


def _value(schema: Any) -> Format:
    if kinds_of(schema) != {"string"}:
        return json_schema(schema)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
        return either(*(const(value) for value in values))
    pattern = schema.get("pattern")
    return regex(pattern) if isinstance(pattern, str) and pattern[:1] == "^" and pattern[-1:] == "$" else any_text()
