"""Puts the parts of a dialect together into the parser of one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bough.parsers.base import Content, ParsedEvent, ToolSpec
from bough.parsers.reasoning import ReasoningFormat
from bough.parsers.stream import NotACall, Steps, Stream
from bough.parsers.tool_format import Calls, ToolFormat

SLICE_CHARS = 4096
"""Most characters that are read at a time."""


class StreamParser:
    """Feeds a reader of a :class:`Stream`.

    Args:
        reader: reads all of the stream it is given.
    """

    __slots__ = ("_reading", "_stream")

    def __init__(self, reader: Callable[[Stream], Steps[None]]) -> None:
        self._stream = Stream()
        self._reading = reader(self._stream)
        next(self._reading)

    def feed(self, text: str) -> list[ParsedEvent]:
        """See :class:`~bough.parsers.base.OutputParser`."""
        stream = self._stream
        if not text:
            return []
        if stream.idle is not None and stream.watched.search(text) is None and not text[-1].isspace():
            # Nearly every delta goes this way, so it does not wake the reader.
            return [stream.idle(text)]
        if len(text) <= SLICE_CHARS and len(text) <= stream.room:
            stream.text += text
            return self._read_on()
        events = []
        start = 0
        while start < len(text):
            # Never more than may be held: where a reader gives up must not depend on how the text was cut.
            end = start + min(SLICE_CHARS, stream.room)
            stream.text += text[start:end]
            events += self._read_on()
            start = end
        return events

    def finish(self, *, cut: bool = False) -> Iterator[list[ParsedEvent]]:
        """See :class:`~bough.parsers.base.OutputParser`."""
        self._stream.ended, self._stream.cut = True, cut
        yield self._read_on()
        while self._stream.tired:
            yield self._read_on()

    def _read_on(self) -> list[ParsedEvent]:
        stream = self._stream
        stream.steps = 0
        next(self._reading, None)
        events, stream.events = stream.events, []
        return events


def read_answer(
    stream: Stream,
    *,
    reasoning: ReasoningFormat | None,
    inside_reasoning: bool,
    separate_reasoning: bool,
    format_: ToolFormat | None,
    tools: Sequence[ToolSpec],
    forced: bool = False,
) -> Steps[None]:
    """Read thoughts, then content and calls in any order.

    Where the answer is cut off, the beginning of a call is no content, if a marker of calls or a function's name tells
    that it is one; with ``forced`` nor is that of a marker.

    Args:
        stream: the answer.
        reasoning: how thoughts are marked, if there may be any.
        inside_reasoning: whether the answer begins inside them.
        separate_reasoning: whether they are told apart from content.
        format_: how calls are written; ``None`` to look for none.
        tools: what may be called.
        forced: whether the answer has to consist of calls.
    """
    stream.in_call = forced
    if reasoning is not None:
        yield from reasoning.read(stream, inside=inside_reasoning, separate=separate_reasoning)
    if format_ is None:
        yield from stream.flow(Content, (), trim=False)
        return
    calls = Calls(stream, {tool.name: tool for tool in tools}, format_)
    opener = None
    if format_.openers:
        yield from stream.skip_space()
        opener = yield from _one_of(stream, format_.openers)
        if opener is None:
            stream.turn_back()
        stream.resume = stream.pos
    while True:
        marker = opener or (yield from stream.flow(Content, format_.triggers, trim=True))
        opener = None
        if marker is None:
            return
        stream.in_call, stream.ran_out, calls.named = True, False, forced or marker in format_.triggers
        is_call = True
        try:
            yield from format_.read(calls, marker)
        except NotACall:
            is_call = False
        stream.in_call = forced
        if stream.cut and stream.ran_out and (is_call or calls.named):
            stream.drop_rest()
        elif is_call:
            yield from stream.skip_space()
            stream.commit()
        else:
            stream.reject()


def _one_of(stream: Stream, literals: Sequence[str]) -> Steps[str | None]:
    for literal in literals:
        if (yield from stream.take(literal)):
            return literal
    return None
