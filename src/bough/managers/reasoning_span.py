"""How many tokens of a native answer are thoughts, which its text does not tell apart."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from bough.ipc.messages import FinishReason
from bough.parsers.dialect import Dialect
from bough.parsers.reasoning import ReasoningFormat
from bough.parsers.reasoning_tokens import ReasoningCounter
from bough.tokenization.tokenizer import TokenIds, Tokenizer

_PROMPT_END = 32
"""Tokens of a prompt's end that show whether it has opened the thoughts."""


class ReasoningMarkers:
    """Knows how the thoughts of a model are marked.

    Args:
        format_: how the model marks its thoughts.
        tokenizer: the model's.
    """

    def __init__(self, format_: ReasoningFormat, tokenizer: Tokenizer) -> None:
        self.format = format_
        self.tokenizer = tokenizer

    def begin(self, prompt: TokenIds) -> ReasoningSpan:
        """Something that counts the thoughts of one answer to ``prompt``."""
        end = self.tokenizer.decode(prompt[-_PROMPT_END:].tolist(), skip_special_tokens=False)
        return ReasoningSpan(self, inside=self.format.begins_inside(end))


class ReasoningSpan:
    """Counts the tokens of one output's thoughts, without their markers, as the routes for conversations do.

    It reads all that tokens stand for, also special ones, and not the answer's text, where markers may be missing.

    Args:
        markers: of the model.
        inside: whether the output begins inside the thoughts.
    """

    __slots__ = ("_bytes", "_counter", "_decode", "_parser")

    def __init__(self, markers: ReasoningMarkers, *, inside: bool) -> None:
        dialect = Dialect(reasoning_format=markers.format)
        parser = dialect.parser((), parse_tools=False, separate_reasoning=True, thinking=inside)
        assert parser is not None, "thoughts are told apart"
        self._parser = parser
        self._bytes = markers.tokenizer.id_to_piece_bytes
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._counter = ReasoningCounter(lambda token: len(self._bytes(token)), markers.format, begins_inside=inside)

    @property
    def total(self) -> int:
        """Tokens so far."""
        return self._counter.total

    def add(self, token_ids: Sequence[int], reason: FinishReason | None = None) -> None:
        """Take in what is new; a token that has ended the output is no thought."""
        if self._counter.is_over:
            return
        if reason is not None and token_ids and token_ids[-1] == reason.matched:
            token_ids = token_ids[:-1]
        text = self._decode(b"".join(map(self._bytes, token_ids)))
        self._counter.add(token_ids, text, self._parser.feed(text))

    def finish(self) -> None:
        """No more will come: what may have been the beginning of a marker is none."""
        for events in self._parser.finish(cut=True):
            self._counter.add((), "", events)
