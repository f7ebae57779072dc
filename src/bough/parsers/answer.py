"""Puts the parts of a dialect together into the parser of one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolSpec
from bough.parsers.reasoning import ReasoningFormat
from bough.parsers.stream import NotACall, Steps, Stream
from bough.parsers.tool_format import Calls, ToolFormat

SLICE_CHARS = 4096
"""Most characters that are read at a time."""


class StreamParser:
    """Takes one answer apart while it comes in: feeds a reader of a :class:`Stream`.

    The places at which the text is cut into deltas make no difference: the events of the same kind, joined, are the
    same. Nothing that a model writes makes a parser raise.
    """

    __slots__ = ("_reading", "_stream")

    def __init__(self, reader: Callable[[Stream], Steps[None]]) -> None:
        self._stream = Stream()
        self._reading = reader(self._stream)
        next(self._reading)

    def feed(self, text: str) -> list[ParsedEvent]:
        """Return the events that are certain after some more text."""
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
        """Yield what was held back, after the last text; in pieces, between which others may run.

        Args:
            cut: the answer has ended where the model did not mean it to. What is only the beginning of a call is left
                out then; else it is content, unless its arguments have begun.
        """
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
    controls: tuple[str, ...] = (),
) -> Steps[None]:
    """Read thoughts, then content and tool calls in any order. A call also ends the thoughts.

    In an answer that is cut off, the beginning of a call is dropped rather than passed on as content if a call marker
    or a function's name identifies it; with ``forced``, so is the beginning of a marker.

    Args:
        forced: the answer must consist of calls.
        controls: special tokens that are left out unless they are part of a call.
    """
    stream.in_call = forced
    triggers = () if format_ is None else format_.triggers
    reader = None
    if format_ is not None:
        calls = Calls(stream, {tool.name: tool for tool in tools}, format_)
        reader = _CallReader(stream, format_, calls, forced, controls)
    markers = (*triggers, *controls)
    strays: tuple[str, ...] = ()
    if reasoning is not None and (
        yield from reasoning.begin(stream, inside=inside_reasoning, separate=separate_reasoning)
    ):
        kind: type[Content] | type[Reasoning] = Reasoning if separate_reasoning else Content
        while True:
            marker = yield from stream.flow(kind, (reasoning.end, *markers), trim=separate_reasoning)
            if marker is None:
                return
            if marker == reasoning.end:
                yield from reasoning.end_of(stream, separate=separate_reasoning)
                break
            if reader is None or marker not in triggers:
                stream.reject(kind=kind, without=marker)
            elif (yield from reader.read(marker, kind)):
                strays = (reasoning.end,) if separate_reasoning else ()
                break
    opener = None
    if reader is not None and not strays:
        opener = yield from reader.opener()
    elif reader is not None:
        yield from reader.skip(strays)
    while True:
        marker = opener or (yield from stream.flow(Content, (*markers, *strays), trim=reader is not None))
        if marker is None:
            return
        if reader is None or not (marker == opener or marker in triggers):
            stream.reject(without=marker)
        elif (yield from reader.read(marker, Content)):
            yield from reader.skip(strays)
        opener = None


@dataclass(slots=True)
class _CallReader:
    """Reads the tool calls of one answer; arguments as of :func:`read_answer`."""

    stream: Stream
    format_: ToolFormat
    calls: Calls
    forced: bool
    controls: tuple[str, ...]

    def opener(self) -> Steps[str | None]:
        """Read the marker that starts a call at the beginning of the answer; ``None`` if there is none."""
        stream = self.stream
        if not self.format_.openers:
            return None
        yield from stream.skip_space()
        opener = yield from _one_of(stream, self.format_.openers)
        if opener is None:
            stream.turn_back()
        stream.resume = stream.pos
        return opener

    def read(self, marker: str, kind: type[Content] | type[Reasoning]) -> Steps[bool]:
        """Read calls after a marker. If there are none, emit the text up to the marker as ``kind`` and return false."""
        stream, calls = self.stream, self.calls
        calls.named = self.forced or marker in self.format_.triggers
        stream.in_call, stream.ran_out = True, False
        is_call = True
        try:
            yield from self.format_.read(calls, marker)
        except NotACall:
            is_call = False
        stream.in_call = self.forced
        if stream.cut and stream.ran_out and (is_call or calls.named):
            stream.drop_rest()
        elif not is_call:
            stream.reject(kind=kind, without=marker if marker in self.controls else "")
        return is_call

    def skip(self, strays: tuple[str, ...]) -> Steps[None]:
        """Skip white space after a call, and markers that mean nothing there."""
        stream = self.stream
        yield from stream.skip_space()
        while (yield from _one_of(stream, (*strays, *self.format_.closers))):
            yield from stream.skip_space()
        stream.commit()


def _one_of(stream: Stream, literals: Sequence[str]) -> Steps[str | None]:
    for literal in literals:
        if (yield from stream.take(literal)):
            return literal
    return None
