"""OpenAI's harmony format, which gpt-oss writes: messages, each on a channel and perhaps to a function.

An answer is ``<|channel|>analysis<|message|>thoughts<|end|><|start|>assistant<|channel|>final<|message|>text``; a call
is a message on the channel ``commentary`` with ``to=functions.NAME``. What the model says on that channel to nobody is
meant for the reader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bough.parsers.base import Content, Reasoning, ToolSpec
from bough.parsers.stream import NotACall, Steps, Stream
from bough.parsers.structural import Format, calls_of, json_schema, tag
from bough.parsers.tool_format import MAX_HEAD_CHARS, Calls, ToolFormat

_START, _CHANNEL, _MESSAGE, _CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
_CALL = "<|call|>"
FINAL_CHANNEL = f"{_CHANNEL}final"
"""What the answer itself begins with, behind all thoughts and calls."""

_ENDS = ("<|end|>", "<|return|>", _CALL)
_PART = "[^<]{0,300}"
_HEADER = re.compile(rf"(<\|start\|>)?{_PART}(<\|channel\|>\s*(?P<channel>[a-z]*){_PART})?(<\|constrain\|>{_PART})?")
_RECIPIENT = re.compile(r"(?:^|[\s>])to=([^\s<]+)")
_HEADER_WORDS = ("assistant", "analysis", "commentary", "final")


class HarmonyFormat(ToolFormat):
    """Reads messages, of whatever channel; with ``separate_reasoning``, what is on ``analysis`` is no content."""

    name = "gpt-oss"
    triggers = (_START, _CHANNEL)
    openers = ("to=",)
    controls = (_START, _CHANNEL, _MESSAGE, _CONSTRAIN, *_ENDS)
    needs_special_tokens = True
    on_channels = True

    def __init__(self, *, separate_reasoning: bool = True) -> None:
        self._separate = separate_reasoning

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        """Read one message."""
        stream = calls.stream
        try:
            header = _HEADER.fullmatch(trigger + (yield from stream.until(_MESSAGE, MAX_HEAD_CHARS)))
            if header is None:
                raise NotACall
        except NotACall:
            yield from self._words_of_header(stream, trigger)
            return
        recipient = _RECIPIENT.search(header[0])
        if recipient is not None and (name := recipient[1].removeprefix("functions.")) in calls.tools:
            calls.start(name)
            yield from self._arguments(calls)
            return
        shown = header["channel"] == "analysis" and not self._separate
        if shown:
            stream.resume = stream.pos
            stream.reject()
        kind = Reasoning if header["channel"] == "analysis" and self._separate else Content
        stream.commit()
        stream.in_call = False
        while True:
            marker = yield from stream.flow(kind, self.controls, trim=False)
            if marker not in (_MESSAGE, _CONSTRAIN):
                break
            stream.reject(kind=kind, without=marker)
        if marker not in _ENDS:
            stream.turn_back()
        elif shown:
            stream.reject()
        else:
            stream.commit()

    @staticmethod
    def _words_of_header(stream: Stream, trigger: str) -> Steps[None]:
        """Read the words that certainly belong to an unfinished header.

        Raises:
            NotACall: if ``trigger`` may be part of ordinary text.
        """
        if trigger not in (_START, _CHANNEL):
            raise NotACall
        stream.pos = stream.resume
        for word in _HEADER_WORDS:
            if (yield from stream.take(word)):
                break
        stream.commit()

    @staticmethod
    def _arguments(calls: Calls) -> Steps[None]:
        stream = calls.stream
        yield from stream.skip_space()
        if (yield from stream.peek()) != "{" or not (yield from calls.json_arguments()):
            ends = (*_ENDS, _START, _CHANNEL)
            yield from stream.flow_until(calls.arguments, None, openers=ends, idle=calls.passed_on)
        yield from stream.take_if_next(*_ENDS)

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
