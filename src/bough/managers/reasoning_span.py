"""A model's thoughts: whether an answer begins inside of them, how many tokens they are, how they can be ended."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from functools import cached_property

import msgspec

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.ipc.messages import FinishReason, ThoughtMarkers
from bough.parsers.answer import StreamParser
from bough.parsers.dialect import Dialect, make_dialect
from bough.parsers.harmony import FINAL_CHANNEL
from bough.parsers.reasoning import ReasoningFormat
from bough.parsers.reasoning_tokens import ReasoningCounter
from bough.tokenization.chat_template import ChatTemplate
from bough.tokenization.tokenizer import TokenIds, Tokenizer

_PROMPT_END = 32
"""Tokens of a prompt's end that show whether it has opened the thoughts."""


class ReasoningMarkers:
    """Knows how the thoughts of a model are marked."""

    def __init__(self, format_: ReasoningFormat, tokenizer: Tokenizer, template: ChatTemplate | None = None) -> None:
        self.format = format_
        self.tokenizer = tokenizer
        self._template = template

    def begins_inside(self, prompt: TokenIds) -> bool:
        """True if an answer to ``prompt`` begins inside the thoughts."""
        end = self.tokenizer.decode(prompt[-_PROMPT_END:].tolist(), skip_special_tokens=False)
        return self.format.begins_inside(end)

    def begin(self, prompt: TokenIds) -> ReasoningSpan:
        """Something that counts the thoughts of one answer to ``prompt``."""
        return ReasoningSpan(self, inside=self.begins_inside(prompt))

    def bounded(self, *, begun: bool, triggers: tuple[str, ...] = (), hide_stops: bool = False) -> ThoughtMarkers:
        """Return all markers needed to find, and to limit, the thoughts in an answer, which may have ``begun`` in the
        prompt.

        ``triggers`` of tool calls end the thoughts, too. If ``hide_stops``, stop strings apply to the answer only.
        """
        marked = self._marked
        return msgspec.structs.replace(marked, begun=begun, ends=(*marked.ends, *triggers), hide_stops=hide_stops)

    @cached_property
    def _marked(self) -> ThoughtMarkers:
        format_, encode = self.format, self._encode
        if format_.on_channels:
            return ThoughtMarkers(
                format_.start,
                (format_.end,),
                encode(format_.end),
                behind=encode("<|start|>assistant"),
                recur=True,
                never=FINAL_CHANNEL,
                at_last=encode(f"{FINAL_CHANNEL}<|message|>"),
                answer="<|message|>",
            )
        before, behind = ("", "") if self._template is None else self._template.space_around(format_.end)
        return ThoughtMarkers(format_.start, (format_.end,), encode(before + format_.end), behind=encode(behind))

    def _encode(self, text: str) -> tuple[int, ...]:
        """Tokens of a text from the middle of an answer."""
        ids = tuple(self.tokenizer.encode(text, add_special_tokens=False))
        if b"".join(map(self.tokenizer.id_to_piece_bytes, ids)) == text.encode():
            return ids
        return tuple(self.tokenizer.running_text_encoder()(text))  # a tokenizer that puts a space before every text


def reasoning_markers(
    server_args: ServerArgs, config: ModelConfig, tokenizer: Tokenizer | None, template: ChatTemplate | None
) -> ReasoningMarkers | None:
    """Markers of a model's thoughts; ``None`` if it is not known to have any, or there is no tokenizer."""
    if tokenizer is None or not config.is_generation:
        return None
    sources = template.sources.values() if template is not None else ()
    format_ = make_dialect("\n".join(sources), reasoning_parser=server_args.reasoning_parser).reasoning_format
    return None if format_ is None else ReasoningMarkers(format_, tokenizer, template)


class ReasoningSpan:
    """Counts the thinking tokens of one output, without their markers, as the chat routes do.

    It reads the text of all tokens, including special ones, because the answer's own text may lack the markers.
    ``parser`` separates thoughts from the answer; ``None`` for a parser without tool calls.
    """

    __slots__ = ("_bytes", "_counter", "_decode", "_parser")

    def __init__(self, markers: ReasoningMarkers, *, inside: bool, parser: StreamParser | None = None) -> None:
        if parser is None:
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
