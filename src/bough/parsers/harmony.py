"""OpenAI's harmony format, which gpt-oss writes: messages, each on a channel and perhaps to a function.

An answer is ``<|channel|>analysis<|message|>thoughts<|end|><|start|>assistant<|channel|>final<|message|>text``; a call
is a message on the channel ``commentary`` with ``to=functions.NAME``. What the model says on that channel to nobody is
meant for the reader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bough.parsers.base import Content, Reasoning, ToolSpec
from bough.parsers.stream import NotACall, Steps
from bough.parsers.structural import Format, calls_of, json_schema, tag
from bough.parsers.tool_format import MAX_HEAD_CHARS, Calls, ToolFormat

_START, _CHANNEL, _MESSAGE, _CALL = "<|start|>", "<|channel|>", "<|message|>", "<|call|>"
FINAL_CHANNEL = f"{_CHANNEL}final"
"""What the answer itself begins with, behind all thoughts and calls."""

_ENDS = ("<|end|>", "<|return|>", _CALL)
_SPACES = re.compile(r"\s+")
_HEADER = re.compile(
    r"(<\|start\|>assistant)?\s*(to=(?P<to>[^\s<]+)\s*)?"
    r"(<\|channel\|>(?P<channel>analysis|commentary|final))?\s*(to=(?P<recipient>[^\s<]+)\s*)?"
    r"((<\|constrain\|>)?(json|code|text))?\s*"
)


class HarmonyFormat(ToolFormat):
    """Reads messages, of whatever channel.

    Args:
        separate_reasoning: whether what is on the channel ``analysis`` is told apart from content.
    """

    name = "gpt-oss"
    triggers = (_START, _CHANNEL)
    openers = ("to=",)
    needs_special_tokens = True
    on_channels = True

    def __init__(self, *, separate_reasoning: bool = True) -> None:
        self._separate = separate_reasoning

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        """Read one message."""
        stream = calls.stream
        head = trigger + (yield from stream.until(_MESSAGE, MAX_HEAD_CHARS))
        # With at most one space at a time, or white space could be shared out among the parts in very many ways.
        header = _HEADER.fullmatch(_SPACES.sub(" ", head))
        if header is None:
            raise NotACall
        recipient = header["recipient"] or header["to"]
        if recipient is not None:
            name = recipient.removeprefix("functions.")
            if name not in calls.tools:
                raise NotACall
            calls.start(name)
            yield from self._arguments(calls)
            return
        kind: type[Content] | type[Reasoning] = Content
        if header["channel"] == "analysis":
            if self._separate:
                kind = Reasoning
            else:
                stream.resume = stream.pos
                stream.reject()
        stream.commit()
        stream.in_call = False
        marker = yield from stream.flow(kind, (*_ENDS, _START, _CHANNEL), trim=False)
        if marker in _ENDS and (self._separate or header["channel"] != "analysis"):
            stream.commit()
        else:
            stream.turn_back()
            if marker in _ENDS:
                stream.resume = stream.pos + len(marker or "")
                stream.reject()

    @staticmethod
    def _arguments(calls: Calls) -> Steps[None]:
        stream = calls.stream
        yield from stream.skip_space()
        if (yield from stream.peek()) != "{" or not (yield from calls.json_arguments()):
            yield from calls.raw_arguments(_CALL)
            return
        yield from stream.skip_space()
        for marker in _ENDS:
            if (yield from stream.take(marker)):
                stream.commit()
                return
        stream.turn_back()

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        """See :meth:`ToolFormat.constraint`. Such a call ends the answer, so there is only one."""
        each = []
        for tool in tools:
            begin = f"{_CHANNEL}commentary to=functions.{tool.name} <|constrain|>json{_MESSAGE}"
            each.append(tag(begin, json_schema(tool.arguments_schema), ""))
        return calls_of(each, "", parallel=False)


def final_message(answer: Format) -> Format:
    """An answer on the channel that is for the reader."""
    return tag(f"{FINAL_CHANNEL}{_MESSAGE}", answer, "")
