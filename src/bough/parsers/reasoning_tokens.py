"""How many tokens of an output were reasoning, and where in the output its parts begin.

Parsers see text, since markers may share tokens with what they mark. The tokens are counted by walking them along the
text, so that the numbers do not depend on how the output was cut into deltas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bough.parsers.base import Content, ParsedEvent, Reasoning
from bough.parsers.reasoning import ReasoningFormat


@dataclass(slots=True, eq=False)
class ReasoningCounter:
    """Counts the tokens of one output that contributed to reasoning; ``num_bytes`` of a token are those of its text."""

    num_bytes: Callable[[int], int]
    format_: ReasoningFormat
    begins_inside: bool = False
    is_over: bool = field(default=False, init=False)
    """True if there can be no more reasoning."""
    total: int = field(default=0, init=False)
    _was_reasoning: bool | None = field(default=None, init=False)
    """True if the last piece was reasoning; ``None`` if there was none."""
    _ids: list[int] = field(default_factory=list, init=False)
    """Tokens that were not walked yet."""
    _walked: int = field(default=0, init=False)
    """How many were."""
    _position: int = field(default=0, init=False)
    """Bytes of text before the first of the former."""
    _text: str = field(default="", init=False)
    """Text behind the last part that was found, and where in the output it begins, in bytes."""
    _offset: int = field(default=0, init=False)
    _begin: int = field(default=0, init=False)
    """The last piece of reasoning, in bytes. The tokens of its end may come later than their text."""
    _end: int = field(default=0, init=False)

    def add(self, token_ids: Sequence[int], text: str, events: Sequence[ParsedEvent]) -> list[int]:
        """Take in tokens, their text, and the parser's events.

        Returns:
            For each event how many tokens of the output come before it, markers included.
        """
        if self.is_over:
            return [self._walked] * len(events)
        self._ids += token_ids
        self._text += text
        if self._position < self._end:
            self._walk_reasoning()
        begins = []
        for event in events:
            is_reasoning = isinstance(event, Reasoning)
            if isinstance(event, (Content, Reasoning)):
                self._locate(event.text, is_reasoning=is_reasoning)
            begins.append(self._walked)
            if is_reasoning:
                self._walk_reasoning()
            elif not self.format_.on_channels:
                self.is_over = True
        if len(self._text) > _MAX_TEXT_CHARS:  # none of it was found, so it is no reasoning
            self._skip(len(self._text) - _MAX_MARKER_CHARS)
        return begins

    def _locate(self, piece: str, *, is_reasoning: bool) -> None:
        """Go to where the output has ``piece``, and remember it if it is reasoning."""
        text = self._text
        if self._was_reasoning is not is_reasoning or not text.startswith(piece):
            places = self._places(is_reasoning=is_reasoning)
            at = next((place for place in places if text.startswith(piece, place)), None)
            if at is None:
                at = text.find(piece)
                if at < 0:
                    return
            self._was_reasoning = is_reasoning
            self._skip(at)
        begin = self._offset
        self._offset += len(piece.encode())
        self._text = self._text[len(piece) :]
        if is_reasoning:
            self._begin, self._end = begin, self._offset

    def _places(self, *, is_reasoning: bool) -> Iterator[int]:
        """Where a piece may be that is not what goes on here, the likeliest place first: what is a marker must not be
        taken for it."""
        text = self._text
        at = _behind_space(text, 0)
        if self.format_.on_channels:
            message = text.find(_CHANNEL_END)
            while message >= 0:
                yield _behind_space(text, message + len(_CHANNEL_END))
                message = text.find(_CHANNEL_END, message + 1)
        else:
            has_thoughts = self._was_reasoning is not None or self.begins_inside
            while self._was_reasoning is None and text.startswith(self.format_.start, at):
                has_thoughts = True
                at = _behind_space(text, at + len(self.format_.start))
            if has_thoughts and is_reasoning:
                yield at
            behind = at
            while not is_reasoning and text.startswith(self.format_.end, behind):
                behind = _behind_space(text, behind + len(self.format_.end))
            if behind > at:
                yield behind
        yield 0
        yield at

    def _skip(self, num_chars: int) -> None:
        """Pass over text that is part of nothing, and the tokens that end in it."""
        if num_chars:
            self._offset += len(self._text[:num_chars].encode())
            self._text = self._text[num_chars:]
        walked = 0
        for token in self._ids:
            behind = self._position + self.num_bytes(token)
            if behind > self._offset:
                break
            self._position = behind
            walked += 1
        del self._ids[:walked]
        self._walked += walked

    def _walk_reasoning(self) -> None:
        """Count the tokens of which at least one byte is in the last piece."""
        walked = 0
        for token in self._ids:
            if self._position >= self._end:
                break
            before, self._position = self._position, self._position + self.num_bytes(token)
            walked += 1
            self.total += self._position > self._begin and self._position > before
        del self._ids[:walked]
        self._walked += walked


_CHANNEL_END = "<|message|>"
"""What all markers of harmony end with."""

_MAX_MARKER_CHARS = 4096
"""More than any marker is long."""
_MAX_TEXT_CHARS = 2 * _MAX_MARKER_CHARS


def _behind_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
