"""Formats in which a call is a JSON object with the name of the function and its arguments."""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Sequence

from bough.parsers.base import ToolSpec
from bough.parsers.json_scanner import finite_json
from bough.parsers.stream import NotACall, Steps
from bough.parsers.structural import Format, calls_of, const, json_schema, sequence, tag
from bough.parsers.tool_format import MAX_HEAD_CHARS, Calls, ToolFormat, held_json, held_string, is_object, string_value

_ARGUMENT_KEYS = ("arguments", "parameters")


def read_object(calls: Calls, marker: str | None, closing: str = "}") -> Steps[None]:
    """Read an object with ``name`` and ``arguments`` (or ``parameters``) in any order.

    An object with other members is no call, but for ``"type": "function"`` and ``id``. Once the call has begun, nothing
    is wrong any more: arguments that are no JSON are passed on as they stand up to ``marker``, and reading stops where
    the object goes wrong behind them.

    Args:
        marker: what ends a call in this format, if anything does.
        closing: what stands between arguments and that marker.

    Raises:
        NotACall: if there is no such object, or it names no function that may be called.
    """
    stream = calls.stream
    yield from stream.expect("{")
    name: str | None = None
    arguments: str | None = None
    call_id: str | None = None
    started = False
    try:
        while True:
            yield from stream.skip_space()
            if name is None and (yield from stream.take("}")):
                raise NotACall
            key = yield from held_string(stream)
            yield from stream.skip_space()
            yield from stream.expect(":")
            yield from stream.skip_space()
            if key == "name" and name is None:
                name = yield from held_string(stream)
                if name not in calls.tools:
                    raise NotACall
                calls.named = True
            elif key in _ARGUMENT_KEYS and not started and arguments is None:
                if name is not None and (yield from stream.peek()) == "{":
                    calls.start(name, call_id)
                    started = True
                    if not (yield from calls.json_arguments()):
                        yield from calls.raw_arguments(marker, closing=closing if marker is not None else "")
                        return
                else:
                    arguments = _as_object((yield from held_json(stream)))
            elif key == "type":
                if (yield from held_string(stream)) != "function":
                    raise NotACall
            elif key == "id" and call_id is None:
                call_id = yield from held_string(stream)  # comes too late if the call has begun
            else:
                raise NotACall
            yield from stream.skip_space()
            if (yield from stream.take("}")):
                break
            yield from stream.expect(",")
            if started:
                stream.commit()
    except NotACall:
        if not started:
            raise
        stream.turn_back()
        return
    if not started:
        if name is None:
            raise NotACall
        calls.start(name, call_id)
        calls.arguments(arguments or "{}")
    stream.commit()


def _read_list(calls: Calls, marker: str | None = None) -> Steps[None]:
    """Read what stands behind the opening bracket of a list of such objects, which ``marker`` ends if anything does."""
    stream = calls.stream
    while True:
        yield from stream.skip_space()
        yield from read_object(calls, marker, "}]")
        yield from stream.skip_space()
        if (yield from stream.take("]")):
            stream.commit()
            return
        if not (yield from stream.take(",")):
            stream.turn_back()
            return


def _as_object(text: str) -> str:
    """Arguments that are written as null, or as a string that holds their JSON.

    Raises:
        NotACall: if they are something else.
    """
    if text.startswith("{"):
        return text
    if text == "null":
        return "{}"
    if text.startswith('"'):
        inner = string_value(text).strip()
        inner = finite_json(inner)
        if is_object(inner):
            return inner
    raise NotACall


def call_object(tool: ToolSpec, arguments_key: str = "arguments", *, begin: str = "", end: str = "") -> Format:
    """A call of this tool as an object, between two markers."""
    start = f'{begin}{{"name": {json.dumps(tool.name, ensure_ascii=False)}, "{arguments_key}": '
    return tag(start, json_schema(tool.arguments_schema), f"}}{end}")


class HermesFormat(ToolFormat):
    """``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, once per call: Hermes, Qwen 2.5 and Qwen 3."""

    triggers = ("<tool_call>",)
    closers = ("</tool_call>",)

    def __init__(self, name: str = "hermes") -> None:
        self.name = name

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        stream = calls.stream
        yield from stream.skip_space()
        yield from read_object(calls, "</tool_call>")
        yield from stream.take_if_next("</tool_call>")

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        each = [call_object(tool, begin="<tool_call>\n", end="\n</tool_call>") for tool in tools]
        return calls_of(each, "\n", parallel=parallel)


class LlamaFormat(ToolFormat):
    """``{"name": …, "parameters": {…}}`` as the whole answer, or behind ``<|python_tag|>``: Llama 3.1 to 3.3.

    Several calls are separated by semicolons or line breaks.
    """

    name = "llama3"
    triggers = controls = ("<|python_tag|>",)
    openers = ("{",)
    needs_special_tokens = True

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        stream = calls.stream
        if trigger == "{":
            stream.pos -= 1
        while True:
            yield from stream.skip_space()
            yield from read_object(calls, None)
            yield from stream.skip_space()
            if (yield from stream.take(";")):
                yield from stream.skip_space()
            if (yield from stream.take("<|python_tag|>")):
                yield from stream.skip_space()
            if (yield from stream.peek()) != "{":
                stream.turn_back()
                return

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        return calls_of([call_object(tool, "parameters") for tool in tools], "; ", parallel=parallel)


class MistralFormat(ToolFormat):
    """``[TOOL_CALLS]`` before a list of objects, or before each ``name[ARGS]{…}`` (tokenizers from v11 on).

    Both are read; the model is constrained to the first if ``lists``.
    """

    name = "mistral"
    triggers = controls = ("[TOOL_CALLS]",)
    needs_special_tokens = True

    def __init__(self, *, lists: bool = False) -> None:
        self._lists = lists

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        stream = calls.stream
        yield from stream.skip_space()
        following = yield from stream.peek()
        if following == "[":
            stream.pos += 1
            yield from _read_list(calls)
        elif following == "{":
            yield from read_object(calls, None)
        else:
            yield from self._named(calls)

    def _named(self, calls: Calls) -> Steps[None]:
        head = (yield from calls.stream.until("[ARGS]", MAX_HEAD_CHARS)).strip()
        name, _, call_id = head.partition("[CALL_ID]")
        yield from calls.object_arguments(name.strip(), call_id.strip(), marker=None)

    def for_template(self, template: str) -> ToolFormat:
        return MistralFormat(lists="[TOOL_CALLS]" in template and "[ARGS]" not in template)

    def new_id(self) -> str:
        """Nine letters or digits: the family's templates refuse other ids when the conversation goes on."""
        return "".join(secrets.choice(_ID_CHARACTERS) for _ in range(9))

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        if self._lists:
            calls = calls_of([call_object(tool) for tool in tools], ", ", parallel=parallel)
            return sequence(const("[TOOL_CALLS] ["), calls, const("]"))
        each = [tag(f"[TOOL_CALLS]{tool.name}[ARGS]", json_schema(tool.arguments_schema), "") for tool in tools]
        return calls_of(each, "", parallel=parallel)


_ID_CHARACTERS = string.ascii_letters + string.digits


class PhiFormat(ToolFormat):
    """``<|tool_call|>[{"name": …, "arguments": {…}}]<|/tool_call|>``: Phi-4-mini, also with ``functools`` in front.

    The latter, without an end, is what some templates for it ask for.
    """

    name = "phi4_mini"
    triggers = ("<|tool_call|>", "functools[")
    closers = ("<|/tool_call|>",)
    controls = ("<|tool_call|>", *closers)
    needs_special_tokens = True

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        stream, (end,) = calls.stream, self.closers
        if trigger == self.triggers[0]:
            yield from stream.skip_space()
            yield from stream.expect("[")
        yield from _read_list(calls, end)
        yield from stream.take_if_next(end)

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        calls = calls_of([call_object(tool) for tool in tools], ", ", parallel=parallel)
        return sequence(const("<|tool_call|>["), calls, const("]<|/tool_call|>"))


class JsonArrayFormat(ToolFormat):
    """``[{"name": …, "parameters": {…}}]`` as the whole answer, of models that know no format.

    They can be constrained to it.
    """

    name = "json-array"
    openers = ("[",)

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        yield from _read_list(calls)

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        calls = calls_of([call_object(tool, "parameters") for tool in tools], ", ", parallel=parallel)
        return sequence(const("["), calls, const("]"))
