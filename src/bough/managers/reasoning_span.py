"""How many tokens of a native answer are thoughts, which its text does not tell apart."""

from __future__ import annotations

from collections.abc import Sequence

from bough.parsers.reasoning import ReasoningFormat
from bough.tokenization.tokenizer import TokenIds, Tokenizer

_PROMPT_END = 32
"""Tokens of a prompt's end that show whether it has opened the thoughts."""

_MAX_LEAD = 4
"""Tokens, of white space for instance, that may come before the marker of an answer's thoughts."""


class ReasoningMarkers:
    """The markers of a model's thoughts, as token ids.

    Args:
        format_: how the model marks its thoughts.
        tokenizer: the model's.
    """

    def __init__(self, format_: ReasoningFormat, tokenizer: Tokenizer) -> None:
        self._format = format_
        self._tokenizer = tokenizer
        self.start = self._ids(format_.start)
        self.ends = [self._ids(end) for end in (format_.end, *format_.ended_by)]

    def begin(self, prompt: TokenIds) -> ReasoningSpan:
        """Something that counts the thoughts of one answer to ``prompt``."""
        end = self._tokenizer.decode(prompt[-_PROMPT_END:].tolist(), skip_special_tokens=False)
        return ReasoningSpan(self, inside=self._format.begins_inside(end))

    def _ids(self, marker: str) -> list[int]:
        return self._tokenizer.encode(marker, add_special_tokens=False).tolist()


class ReasoningSpan:
    """Counts the tokens of one output's thoughts, without their markers.

    Args:
        markers: of the model.
        inside: whether the output begins inside the thoughts.
    """

    __slots__ = ("_begin", "_is_over", "_markers", "_seen", "total")

    def __init__(self, markers: ReasoningMarkers, *, inside: bool) -> None:
        self._markers = markers
        self._seen: list[int] = []
        self._begin: int | None = 0 if inside else None
        self._is_over = False
        self.total = 0
        """Tokens so far. Until the thoughts are over, a part of the marker behind them may be among these."""

    def add(self, token_ids: Sequence[int]) -> None:
        """Take in what is new."""
        if self._is_over:
            return
        searched = len(self._seen)
        self._seen += token_ids
        start, ends = self._markers.start, self._markers.ends
        if searched <= _MAX_LEAD + len(start):
            # Markers may be repeated by an answer whose prompt has opened the thoughts already.
            at = _find(self._seen[: _MAX_LEAD + len(start)], start, 0)
            if at is not None:
                self._begin = at + len(start)
            elif self._begin is None and len(self._seen) >= _MAX_LEAD + len(start):
                self._end()
                return
        if self._begin is None:
            return
        longest = max(map(len, ends))
        found = [_find(self._seen, end, max(self._begin, searched - longest + 1)) for end in ends]
        places = [place for place in found if place is not None]
        self.total = min(places, default=len(self._seen)) - self._begin
        if places:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        self._seen.clear()


def _find(ids: list[int], pattern: list[int], at: int) -> int | None:
    """Where ``pattern`` begins in ``ids``, from ``at`` on."""
    while True:
        try:
            at = ids.index(pattern[0], at)
        except ValueError:
            return None
        if ids[at : at + len(pattern)] == pattern:
            return at
        at += 1
