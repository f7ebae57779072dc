"""Logprobs in the two shapes that OpenAI has for them, and others after it."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Sequence
from functools import cached_property

import msgspec

from bough.entrypoints.http.pacing import SLICE_POSITIONS
from bough.ipc.messages import PositionLogprobs
from bough.tokenization.tokenizer import Tokenizer

IMPOSSIBLE = -9999.0
"""Stands for minus infinity, which JSON cannot say; the value that OpenAI uses."""

MAX_CACHED_TOKENS = 65_536

_encode = msgspec.json.encode


class TokenNames:
    """How single tokens are shown: their text and bytes.

    Args:
        tokenizer: the model's; ``None`` for a server without one, where no token adds to a text.
        by_number: show their numbers instead of their text, as vLLM does for clients that cannot tell tokens by that.
    """

    def __init__(self, tokenizer: Tokenizer | None, *, by_number: bool = False) -> None:
        self._tokenizer = tokenizer
        self._by_number = by_number
        self._described: dict[tuple[int, bool], bytes] = {}

    def text(self, token_id: int) -> str:
        """The token on its own; bytes that are no complete character become U+FFFD."""
        if self._by_number or self._tokenizer is None:
            return f"token_id:{token_id}"
        return self._tokenizer.id_to_piece_bytes(token_id).decode(errors="replace")

    def key(self, token_id: int) -> str:
        """The token on its own; bytes that are no complete character as OpenAI writes them: ``bytes:\\xe2\\x80``."""
        if self._by_number or self._tokenizer is None:
            return f"token_id:{token_id}"
        piece = self._tokenizer.id_to_piece_bytes(token_id)
        try:
            return piece.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)

    def contribution(self, token_id: int, skip_special_tokens: bool) -> bytes:
        """What the token adds to the text of an output: nothing, if it is special and these are left out."""
        if self._tokenizer is None or (skip_special_tokens and self.is_special(token_id)):
            return b""
        return self._tokenizer.id_to_piece_bytes(token_id)

    def is_special(self, token_id: int) -> bool:
        """Whether outputs may be asked for without this token."""
        return self._tokenizer is not None and token_id in self._tokenizer.special_ids

    def described(self, token_id: int, skip_special_tokens: bool) -> bytes:
        """``"token":…,"bytes":…`` of a chat logprob, where ``bytes`` of all tokens together make the text."""
        key = (token_id, skip_special_tokens)
        known = self._described.get(key)
        if known is None:
            if len(self._described) >= MAX_CACHED_TOKENS:
                self._described.clear()
            known = b'"token":%b,"bytes":%b' % (
                _encode(self.text(token_id)),
                _encode(list(self.contribution(token_id, skip_special_tokens))),
            )
            self._described[key] = known
        return known


def chat_logprobs(
    entries: Sequence[PositionLogprobs], names: TokenNames, skip_special_tokens: bool, num_top: int
) -> list[bytes]:
    """The members of ``logprobs.content``: one object per token, with ``num_top`` alternatives."""
    objects = []
    for entry in entries:
        top = b",".join(
            b'{%b,"logprob":%b}' % (names.described(token, skip_special_tokens), _number(logprob))
            for logprob, token in (entry.top or ())[:num_top]
        )
        objects.append(
            b'{%b,"logprob":%b,"top_logprobs":[%b]}'
            % (names.described(entry.token_id, skip_special_tokens), _number(entry.logprob), top)
        )
    return objects


async def paced_chat_logprobs(
    entries: Sequence[PositionLogprobs], names: TokenNames, skip_special_tokens: bool, num_top: int
) -> bytes:
    """The same for any number of tokens, joined, with a turn for everybody else now and then."""
    parts: list[bytes] = []
    for start in range(0, len(entries), SLICE_POSITIONS):
        parts += chat_logprobs(entries[start : start + SLICE_POSITIONS], names, skip_special_tokens, num_top)
        if start + SLICE_POSITIONS < len(entries):
            await asyncio.sleep(0)
    return b",".join(parts)


async def prompt_logprobs(entries: Sequence[PositionLogprobs], names: TokenNames, num_top: int) -> bytes:
    """The list ``prompt_logprobs``, as vLLM has it: per position an object from token id to logprob, rank and text.

    The first token has no logprob; its entry is null. The rank of a token that is not among the alternatives is not
    known and null.
    """
    parts = []
    for start in range(0, len(entries), SLICE_POSITIONS):
        described = [_ranked(entry, names, num_top) for entry in entries[start : start + SLICE_POSITIONS]]
        parts.append(_encode(described)[1:-1])
        await asyncio.sleep(0)
    return b"[%b]" % b",".join(parts)


def _ranked(entry: PositionLogprobs, names: TokenNames, num_top: int) -> dict[str, object] | None:
    if entry.logprob is None:
        return None
    described: dict[str, object] = {}
    for rank, (logprob, token) in enumerate((entry.top or ())[:num_top], start=1):
        described[str(token)] = _with_rank(logprob, rank, names.text(token))
    described.setdefault(str(entry.token_id), _with_rank(entry.logprob, None, names.text(entry.token_id)))
    return described


def _with_rank(logprob: float, rank: int | None, text: str) -> dict[str, object]:
    return {"logprob": max(logprob, IMPOSSIBLE), "rank": rank, "decoded_token": text}


class Echo:
    """The text of a prompt that goes before its outputs: encoded once for all of them, and if somebody needs it."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    @cached_property
    def encoded(self) -> bytes:
        """The text in UTF-8."""
        return self.text.encode()


class EchoedText:
    """Finds the tokens of a prompt, one after the other, in the text that is echoed for it.

    A prompt's text is the client's own: it has the special tokens that the client wrote and none that the tokenizer
    added. Where a tokenizer has changed a text, tokens count as long as their own texts are.
    """

    def __init__(self, names: TokenNames, echo: Echo) -> None:
        self._names = names
        self._text = echo.text
        self._encoded = echo.encoded
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._position = self._offset = 0

    def offset_of(self, token_id: int) -> int:
        """Where the next token begins, in characters."""
        offset = self._offset
        piece = self._names.contribution(token_id, False)
        fits = self._encoded.startswith(piece, self._position)
        if not fits and piece.startswith(b" "):  # SentencePiece puts a space before each part of a text
            piece = piece[1:]
            fits = self._encoded.startswith(piece, self._position)
        if fits:
            end = self._position + len(piece)
        elif self._names.is_special(token_id):
            return offset
        else:
            begun, _ = self._decoder.getstate()
            characters = self._text[offset : offset + len(piece.decode(errors="replace"))]
            end = max(self._position - len(begun) + len(characters.encode()), self._position)
        self._offset += len(self._decoder.decode(self._encoded[self._position : end]))
        self._position = end
        return offset


class CompletionLogprobs:
    """The ``logprobs`` object of one completion choice, four parallel lists.

    ``text_offset`` is where a token's text begins in the choice's text, in characters.

    Args:
        skip_special_tokens: the output's text lacks special tokens.
        echo: text that goes before the output, to whose tokens :meth:`add_prompt` belongs.
    """

    def __init__(self, names: TokenNames, skip_special_tokens: bool, num_top: int, echo: Echo) -> None:
        self._names = names
        self._skip_special_tokens = skip_special_tokens
        self._num_top = num_top
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._offset = len(echo.text)
        self._prompt = EchoedText(names, echo)
        self._lists = {name: bytearray() for name in ("text_offset", "token_logprobs", "tokens", "top_logprobs")}

    def clear(self) -> None:
        """Forget the entries, but not how long the text is."""
        for encoded in self._lists.values():
            encoded.clear()

    def add_prompt(self, entries: Sequence[PositionLogprobs]) -> None:
        """Append one entry per token of the echoed prompt."""
        self._add(entries, [self._prompt.offset_of(entry.token_id) for entry in entries])

    def add(self, entries: Sequence[PositionLogprobs]) -> None:
        """Append one entry per token of the output."""
        offsets = []
        for entry in entries:
            offsets.append(self._offset)
            contribution = self._names.contribution(entry.token_id, self._skip_special_tokens)
            self._offset += len(self._decoder.decode(contribution))
        self._add(entries, offsets)

    def _add(self, entries: Sequence[PositionLogprobs], offsets: Sequence[int]) -> None:
        if not entries:
            return
        names = self._names
        self._append("text_offset", offsets)
        self._append(
            "token_logprobs",
            [None if entry.logprob is None else max(entry.logprob, IMPOSSIBLE) for entry in entries],
        )
        self._append("tokens", [names.key(entry.token_id) for entry in entries])
        self._append("top_logprobs", [self._alternatives_of(entry) for entry in entries])

    def to_json(self) -> bytes:
        """The object."""
        return b"{%b}" % b",".join(b'"%b":[%b]' % (name.encode(), bytes(each)) for name, each in self._lists.items())

    def _append(self, name: str, values: Sequence[object]) -> None:
        encoded = self._lists[name]
        if encoded:
            encoded += b","
        encoded += _encode(values)[1:-1]

    def _alternatives_of(self, entry: PositionLogprobs) -> dict[str, float] | None:
        if not self._num_top or entry.top is None:
            return None
        alternatives: dict[str, float] = {}
        for logprob, token in entry.top[: self._num_top]:
            alternatives.setdefault(self._names.key(token), max(logprob, IMPOSSIBLE))
        return alternatives


def _number(logprob: float | None) -> bytes:
    return _encode(IMPOSSIBLE if logprob is None else max(logprob, IMPOSSIBLE))
