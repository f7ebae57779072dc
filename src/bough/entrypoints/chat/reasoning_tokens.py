"""How many tokens of an output were reasoning.

Parsers see text, since markers may share tokens with what they mark. The tokens are counted by walking them along the
text, so that the number does not depend on how the output was cut into deltas.
"""

from __future__ import annotations

from collections.abc import Callable

from bough.ipc.messages import OutputDelta
from bough.parsers.base import ParsedEvent, Reasoning


class ReasoningCounter:
    """Counts the tokens of one output that contributed to reasoning.

    Args:
        num_bytes: bytes that a token adds to the text of the output.
    """

    __slots__ = ("_ids", "_num_bytes", "_offset", "_position", "_run", "_text", "total")

    def __init__(self, num_bytes: Callable[[int], int]) -> None:
        self._num_bytes = num_bytes
        self._ids: list[int] = []
        """Tokens that were not walked yet."""
        self._position = 0
        """Bytes of text before the first of them."""
        self._text = ""
        """Text that was not searched yet, and where in the output it begins, in bytes."""
        self._offset = 0
        self._run: list[str] = []
        self.total = 0

    def add(self, delta: OutputDelta, events: list[ParsedEvent], *, is_last: bool) -> None:
        """Take in a delta and what the parser made of it."""
        self._ids += delta.token_ids
        self._text += delta.text or ""
        others = False
        for event in events:
            if isinstance(event, Reasoning):
                self._run.append(event.text)
            elif self._run:
                self._end_run()
                others = True
            else:
                others = True
        if is_last and self._run:
            self._end_run()
        if others and not self._run:
            self._drop()

    def _end_run(self) -> None:
        pieces = ["".join(self._run)]
        if pieces[0] not in self._text:
            pieces = self._run  # a marker that makes no event was in between
        for piece in pieces:
            self._count(piece)
        self._run = []

    def _count(self, run: str) -> None:
        at = self._text.find(run)
        if at < 0:
            return
        start = self._offset + len(self._text[:at].encode())
        end = start + len(run.encode())
        self.total += self._walk(start, end)
        self._text = self._text[at + len(run) :]
        self._offset = end

    def _walk(self, start: int, end: int) -> int:
        """Tokens of which at least one byte is in ``[start, end)``; walks no further than ``end``."""
        found = walked = 0
        for token in self._ids:
            if self._position >= end:
                break
            before, self._position = self._position, self._position + self._num_bytes(token)
            walked += 1
            found += self._position > start and self._position > before
        del self._ids[:walked]
        return found

    def _drop(self) -> None:
        """Forget what is certainly no reasoning: all but the tail, which a parser may still hold back."""
        keep = _MAX_HELD_CHARS
        if len(self._text) <= 2 * keep:
            return
        cut = self._text[:-keep]
        self._text = self._text[-keep:]
        self._offset += len(cut.encode())
        self._walk(self._offset, self._offset)


_MAX_HELD_CHARS = 4096
"""More than any marker is long."""
