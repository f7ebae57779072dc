"""How a model family writes thoughts and tool calls, as one object.

A dialect is chosen by name (``--tool-call-parser``, ``--reasoning-parser``) or recognised by what the model's chat
template has in it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bough import plugins
from bough.errors import ConfigError
from bough.parsers.answer import StreamParser, read_answer
from bough.parsers.base import ToolSpec
from bough.parsers.detection import detect_reasoning_format, detect_tool_format
from bough.parsers.harmony import HarmonyFormat, final_message
from bough.parsers.json_calls import JsonArrayFormat
from bough.parsers.reasoning import REASONING_FORMATS, ReasoningFormat, Thoughts
from bough.parsers.structural import Format, any_text, const, either, sequence, tag
from bough.parsers.tool_format import ToolFormat
from bough.parsers.tool_formats import TOOL_FORMATS

AUTO = "auto"
"""Asks for what the chat template suggests, as leaving the option out does."""

NONE = "none"
"""Asks for no parser, whatever the chat template suggests."""

_JSON_ARRAY = JsonArrayFormat()

FALLBACK_TOOL_FORMAT = "hermes"
"""How tools are described to a model whose template has no place for them, and how its calls are read."""


@dataclass(frozen=True)
class Dialect:
    """How one model family writes thoughts and tool calls; a format is ``None`` if it is not known to write them.

    ``marks_are_special`` if this model's tokenizer has special tokens where others of the family have ordinary ones.
    """

    tool_format: ToolFormat | None = None
    reasoning_format: ReasoningFormat | None = None
    marks_are_special: bool = False

    def with_special_tokens(self, special: Collection[str]) -> Dialect:
        """The same of a model whose tokenizer has these special tokens."""
        marks: set[str] = set()
        if self.tool_format is not None:
            marks.update(self.tool_format.triggers, self.tool_format.openers)
        if self.reasoning_format is not None:
            marks.update((self.reasoning_format.start, self.reasoning_format.end))
        return replace(self, marks_are_special=any(mark.strip() in special for mark in marks))

    @property
    def needs_special_tokens(self) -> bool:
        """True if markers are seen only in text that is decoded with ``skip_special_tokens=False``."""
        return self.marks_are_special or any(each.needs_special_tokens for each in self._formats)

    @property
    def _formats(self) -> list[ToolFormat | ReasoningFormat]:
        return [each for each in (self.tool_format, self.reasoning_format) if each is not None]

    @property
    def triggers(self) -> tuple[str, ...]:
        """Markers of tool calls that end the thoughts; empty for channel formats."""
        return () if self.tool_format is None or self.on_channels else self.tool_format.triggers

    @property
    def on_channels(self) -> bool:
        """True if all of an answer is on channels, which it has to name first."""
        return any(each.on_channels for each in self._formats)

    def parser(
        self,
        tools: Sequence[ToolSpec],
        *,
        parse_tools: bool,
        separate_reasoning: bool,
        thinking: bool,
        forced: bool = False,
    ) -> StreamParser | None:
        """A parser for one answer.

        Args:
            tools: what may be called. Calls of anything else are content.
            separate_reasoning: whether thoughts are told apart; else they are content, with their markers.
            thinking: whether the answer begins inside the thoughts (``Thoughts.BEGUN``). If not, it has
                thoughts all the same if it begins with their marker.
            forced: whether the answer is constrained to calls (:meth:`constraint`).

        Returns:
            ``None`` if all of the answer is content.
        """
        format_, reasoning = self.tool_format or (_JSON_ARRAY if forced else None), self.reasoning_format
        controls = () if self.tool_format is None else self.tool_format.controls
        if self.on_channels:
            format_, reasoning = HarmonyFormat(separate_reasoning=separate_reasoning), None
            controls = format_.controls
            tools = tools if parse_tools else ()
        elif not (parse_tools and tools):
            format_ = None
        if format_ is None and (reasoning is None or not separate_reasoning):
            return None
        return StreamParser(
            partial(
                read_answer,
                reasoning=reasoning,
                inside_reasoning=thinking,
                separate_reasoning=separate_reasoning,
                format_=format_,
                tools=tools,
                forced=forced,
                controls=controls,
            )
        )

    def constraint(
        self, tools: Sequence[ToolSpec], *, name: str | None, parallel: bool, thoughts: Thoughts = Thoughts.POSSIBLE
    ) -> str:
        """A structural tag, as JSON, that makes the answer consist of tool calls, after thoughts if the model has them.

        ``name`` is the only function that may be called, and once; ``None`` for any.

        Raises:
            BadRequest: if the schema of a tool is too large.
        """
        callable_ = [tool for tool in tools if name is None or tool.name == name]
        format_ = self.tool_format or _JSON_ARRAY
        calls = format_.constraint(callable_, parallel=parallel and name is None)
        return _as_json(self._after_reasoning(calls, thoughts, calls))

    def structured(self, answer: Format, *, with_calls: Sequence[ToolSpec], parallel: bool, thoughts: Thoughts) -> str:
        """A structural tag, as JSON: behind the thoughts comes ``answer``, or one of the calls ``with_calls``."""
        if self.on_channels:
            answer = final_message(answer)
        calls = None
        if with_calls:
            format_ = self.tool_format or _JSON_ARRAY
            calls = format_.constraint(with_calls, parallel=parallel)
            answer = either(answer, calls)
        return _as_json(self._after_reasoning(answer, thoughts, calls))

    def _after_reasoning(self, answer: Format, thoughts: Thoughts, calls: Format | None) -> Format:
        """Return the grammar of an answer after its thoughts, which a call also ends, matching the parser."""
        reasoning = self.reasoning_format
        if reasoning is None or thoughts is Thoughts.NONE:
            return answer
        begun = thoughts is Thoughts.BEGUN
        ending = sequence(tag("", any_text(), reasoning.end), reasoning.gap)
        split = None if calls is None else _split_at_trigger(calls, self.triggers)
        if split is None:
            inside = ending if begun else either(sequence(const(reasoning.start), ending), const(""))
            return sequence(inside, answer)
        trigger, rest = split
        calling = tag("", any_text(), trigger)
        if answer is calls:
            calling = either(sequence(ending, const(trigger)), calling)
            before = calling if begun else either(sequence(const(reasoning.start), calling), const(trigger))
            return sequence(before, rest)
        inside = either(sequence(ending, answer), sequence(calling, rest))
        return inside if begun else either(sequence(const(reasoning.start), inside), answer)


def _split_at_trigger(calls: Format, triggers: tuple[str, ...]) -> tuple[str, Format] | None:
    """Split calls into their common trigger and the grammar after the first trigger; ``None`` if they share none."""
    first = calls["tags"] if "tags" in calls else calls["elements"][:1]
    key = "begin" if "tags" in calls else "value"
    trigger = next((each for each in triggers if all(form[key].startswith(each) for form in first)), None)
    if trigger is None:
        return None
    rest = [{**form, key: form[key][len(trigger) :]} for form in first]
    if "tags" in calls:
        return trigger, {**calls, "tags": rest, "separator": calls["separator"] + trigger}
    return trigger, sequence(*rest, *calls["elements"][1:])


def _as_json(form: Format) -> str:
    # Compact: the length of what is compiled is bounded.
    return json.dumps({"type": "structural_tag", "format": form}, ensure_ascii=False, separators=(",", ":"))


def make_dialect(
    chat_template: str | None, *, tool_call_parser: str | None = None, reasoning_parser: str | None = None
) -> Dialect:
    """The dialect to serve a model with.

    Args:
        chat_template: Jinja source that the model was trained with, if there is any.
        tool_call_parser: a name of :data:`~bough.parsers.tool_formats.TOOL_FORMATS`, ``auto`` or ``none``; ``None`` is
            ``auto``.
        reasoning_parser: likewise of :data:`~bough.parsers.reasoning.REASONING_FORMATS`.

    Raises:
        ConfigError: if there is no such name.
    """
    template = chat_template or ""
    if tool_call_parser in (None, AUTO):
        tool_format = detect_tool_format(template)
    else:
        tool_format = None if tool_call_parser == NONE else find_tool_format(tool_call_parser).for_template(template)
    if reasoning_parser in (None, AUTO):
        reasoning_format = detect_reasoning_format(template)
    else:
        reasoning_format = None if reasoning_parser == NONE else find_reasoning_format(reasoning_parser)
    if (
        reasoning_format is not None
        and reasoning_format.on_channels
        and tool_format is None
        and tool_call_parser != NONE
    ):
        tool_format = HarmonyFormat()  # whoever writes channels writes calls on them
    return Dialect(tool_format, reasoning_format)


def make_tool_dialect(
    chat_template: str | None, *, tool_call_parser: str | None = None, reasoning_parser: str | None = None
) -> Dialect:
    """The dialect of answers to requests that have tools; the arguments are those of :func:`make_dialect`.

    Raises:
        ConfigError: if there is no such name.
    """
    dialect = make_dialect(chat_template, tool_call_parser=tool_call_parser, reasoning_parser=reasoning_parser)
    if dialect.tool_format is not None or tool_call_parser == NONE:
        return dialect
    return make_dialect(chat_template, tool_call_parser=FALLBACK_TOOL_FORMAT, reasoning_parser=reasoning_parser)


def find_tool_format(name: str) -> ToolFormat:
    """Return the format of this name. Raises :class:`ConfigError` if there is none."""
    found: ToolFormat | type[ToolFormat]
    found = _find(name, TOOL_FORMATS, plugins.TOOL_PARSERS, ToolFormat, "tool_call_parser")
    return found() if isinstance(found, type) else found


def find_reasoning_format(name: str) -> ReasoningFormat:
    """Return the format of this name. Raises :class:`ConfigError` if there is none."""
    found: ReasoningFormat | type[ReasoningFormat]
    found = _find(name, REASONING_FORMATS, plugins.REASONING_PARSERS, ReasoningFormat, "reasoning_parser")
    return found(name) if isinstance(found, type) else found


def _find(name: str, known: Mapping[str, Any], group: str, kind: type, param: str) -> Any:
    if name in known:
        return known[name]
    declared = plugins.declared(group)
    if name in declared:
        return plugins.load(group, name, kind)
    names = ", ".join({**known, **declared})
    kind_of_parser = param.replace("_call", "-call").replace("_", " ")
    raise ConfigError(f"no {kind_of_parser} {name[:64]!r}; there are {names}", param=param)


def tool_format_names() -> tuple[str, ...]:
    """Return what ``--tool-call-parser`` takes, names of other packages last."""
    return tuple({**TOOL_FORMATS, **plugins.declared(plugins.TOOL_PARSERS)})


def reasoning_format_names() -> tuple[str, ...]:
    """Return what ``--reasoning-parser`` takes, names of other packages last."""
    return tuple({**REASONING_FORMATS, **plugins.declared(plugins.REASONING_PARSERS)})
