"""What the engine says of one output, read as content, reasoning and tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from bough.ipc.messages import OutputDelta
from bough.managers.reasoning_span import ReasoningSpan
from bough.parsers.answer import StreamParser
from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolCallArguments, ToolCallStart
from bough.parsers.reasoning_tokens import ReasoningCounter

UNPARSED = "_unparsed"
"""Member that holds arguments of a call which are no object."""

SLICE_CHARS = 4096
"""Text parsed between two turns of the event loop: a millisecond at most."""


class ChoiceReader:
    """Reads the deltas of one output, in order.

    Args:
        parser: takes the text apart; ``None`` if all of it is content.
        counter: counts the tokens of reasoning that is told apart; ``None`` if there can be none.
        span: counts those of reasoning that stays in the content.
        include_reasoning: whether reasoning comes at all; if not, it is counted and left out.
        stream_reasoning: whether reasoning comes piece by piece.
        max_calls: tool calls beyond so many are left out; ``None`` for all.
    """

    __slots__ = (
        "_counter",
        "_held",
        "_include_reasoning",
        "_max_calls",
        "_parser",
        "_span",
        "_stream_reasoning",
        "begins",
        "num_calls",
    )

    def __init__(
        self,
        parser: StreamParser | None = None,
        counter: ReasoningCounter | None = None,
        *,
        span: ReasoningSpan | None = None,
        include_reasoning: bool = True,
        stream_reasoning: bool = True,
        max_calls: int | None = None,
    ) -> None:
        self._parser = parser
        self._counter = counter
        self._span = span
        self._include_reasoning = include_reasoning
        self._stream_reasoning = stream_reasoning
        self._max_calls = max_calls
        self._held: list[str] = []
        self.begins: list[int] = []
        """For each event that was read last how many tokens of the output come before it; empty if all is content, or
        where reasoning is not told apart or not streamed."""
        self.num_calls = 0
        """Tool calls so far."""

    @property
    def is_plain(self) -> bool:
        """Whether all text is content as it comes."""
        return self._parser is None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost if deltas are not read."""
        return self._parser is None and self._span is None

    @property
    def reasoning_tokens(self) -> int | None:
        """Tokens of reasoning so far; ``None`` if the model does not reason."""
        counter = self._counter or self._span
        return None if counter is None else counter.total

    async def read(self, delta: OutputDelta) -> list[ParsedEvent]:
        """What ``delta`` adds to the answer; the last delta brings out all that was held back."""
        parser, text = self._parser, delta.text or ""
        if self._span is not None:
            self._span.add(delta.token_ids, delta.finish_reason)
            if delta.finish_reason is not None:
                self._span.finish()
        if parser is None:
            return [Content(text)] if text else []
        events: list[ParsedEvent] = []
        for start in range(0, len(text), SLICE_CHARS):
            events += parser.feed(text[start : start + SLICE_CHARS])
            if len(text) > SLICE_CHARS:
                await asyncio.sleep(0)
        reason = delta.finish_reason
        if reason is not None:
            cut = reason.type != "stop" or isinstance(reason.matched, str)
            for number, held in enumerate(parser.finish(cut=cut)):
                if number:
                    await asyncio.sleep(0)
                events += held
        return self._told(delta, events, is_last=reason is not None)

    def read_now(self, delta: OutputDelta) -> list[ParsedEvent] | None:
        """The same, at once; ``None``, and nothing is read, for the last delta and where that could take long."""
        parser, text = self._parser, delta.text or ""
        if delta.finish_reason is not None or len(text) > SLICE_CHARS:
            return None
        if self._span is not None:
            self._span.add(delta.token_ids)
        if parser is None:
            return [Content(text)] if text else []
        return self._told(delta, parser.feed(text) if text else [], is_last=False)

    def _told(self, delta: OutputDelta, events: list[ParsedEvent], *, is_last: bool) -> list[ParsedEvent]:
        """What is told of the events of a delta."""
        if self._counter is not None:
            self.begins = self._counter.add(delta.token_ids, delta.text or "", events)
        if not self._include_reasoning:
            events = [event for event in events if not isinstance(event, Reasoning)]
            self.begins = []
        elif not self._stream_reasoning:
            events = self._hold_reasoning(events, is_last=is_last)
            self.begins = []
        return self._limit_calls(events)

    def finish_type(self, delta: OutputDelta) -> str | None:
        """Why the output ended: ``stop``, ``length``, ``abort``, or ``tool_calls`` where a stop ended in calls."""
        reason = delta.finish_reason
        if reason is None:
            return None
        return "tool_calls" if self.num_calls and reason.type == "stop" else reason.type

    def matched_stop(self, delta: OutputDelta) -> str | int | None:
        """The stop string or token that ended the output; ``None`` also if it ended in calls."""
        reason = delta.finish_reason
        return None if reason is None or (self.num_calls and reason.type == "stop") else reason.matched

    def _hold_reasoning(self, events: list[ParsedEvent], *, is_last: bool) -> list[ParsedEvent]:
        released: list[ParsedEvent] = []
        for event in events:
            if isinstance(event, Reasoning):
                self._held.append(event.text)
                continue
            if self._held:
                released.append(self._release())
            released.append(event)
        if is_last and self._held:
            released.append(self._release())
        return released

    def _release(self) -> Reasoning:
        text = "".join(self._held)
        self._held.clear()
        return Reasoning(text)

    def _limit_calls(self, events: list[ParsedEvent]) -> list[ParsedEvent]:
        kept: list[ParsedEvent] = []
        for event in events:
            if isinstance(event, (ToolCallStart, ToolCallArguments)):
                if self._max_calls is not None and event.index >= self._max_calls:
                    continue
                self.num_calls = max(self.num_calls, event.index + 1)
            kept.append(event)
        return kept


def joined(events: Iterable[ParsedEvent]) -> list[tuple[Content | Reasoning | ToolCallStart, str]]:
    """The parts of an answer in their order: the first event of each, and all of its text or of its arguments."""
    parts: list[tuple[Content | Reasoning | ToolCallStart, list[str]]] = []
    for event in events:
        if isinstance(event, ToolCallArguments):
            parts[-1][1].append(event.fragment)
        elif isinstance(event, ToolCallStart):
            parts.append((event, []))
        elif parts and type(parts[-1][0]) is type(event):
            parts[-1][1].append(event.text)
        else:
            parts.append((event, [event.text]))
    return [(event, "".join(pieces)) for event, pieces in parts]


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call, decoded; an object with :data:`UNPARSED` where an answer was cut off in them, or the
    model wrote something else."""
    try:
        value = msgspec.json.decode(text) if text else {}
    except (msgspec.MsgspecError, RecursionError, ValueError):
        value = None
    return value if isinstance(value, dict) else {UNPARSED: text}
