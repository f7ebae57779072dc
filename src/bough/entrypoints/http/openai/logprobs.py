"""Logprobs in the two shapes that OpenAI has for them."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

import msgspec

from bough.ipc.messages import PositionLogprobs
from bough.tokenization.tokenizer import Tokenizer

IMPOSSIBLE = -9999.0
"""Stands for minus infinity, which JSON cannot say; the value that OpenAI uses."""

MAX_CACHED_TOKENS = 65_536

_encode = msgspec.json.encode


class TokenNames:
    """How single tokens are shown: their text and bytes.

    Args:
        tokenizer: the model's.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._described: dict[tuple[int, bool], bytes] = {}

    def text(self, token_id: int) -> str:
        """The token on its own; bytes that are no complete character become U+FFFD."""
        return self._tokenizer.id_to_piece_bytes(token_id).decode(errors="replace")

    def contribution(self, token_id: int, skip_special_tokens: bool) -> bytes:
        """What the token adds to the text of an output: nothing, if it is special and these are left out."""
        if skip_special_tokens and token_id in self._tokenizer.special_ids:
            return b""
        return self._tokenizer.id_to_piece_bytes(token_id)

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


def chat_logprobs(entries: Sequence[PositionLogprobs], names: TokenNames, skip_special_tokens: bool) -> bytes:
    """The inside of ``logprobs.content``: one object per token, separated by commas."""
    objects = []
    for entry in entries:
        top = b",".join(
            b'{%b,"logprob":%b}' % (names.described(token, skip_special_tokens), _number(logprob))
            for logprob, token in entry.top or ()
        )
        objects.append(
            b'{%b,"logprob":%b,"top_logprobs":[%b]}'
            % (names.described(entry.token_id, skip_special_tokens), _number(entry.logprob), top)
        )
    return b",".join(objects)


class CompletionLogprobs:
    """The ``logprobs`` object of one completion choice, four parallel lists.

    ``text_offset`` is where a token's text begins in the choice's text, in characters.
    """

    def __init__(self, names: TokenNames, skip_special_tokens: bool, *, alternatives: bool) -> None:
        self._names = names
        self._skip_special_tokens = skip_special_tokens
        self._alternatives = alternatives
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._offset = 0
        self._lists = {name: bytearray() for name in ("text_offset", "token_logprobs", "tokens", "top_logprobs")}

    def clear(self) -> None:
        """Forget the entries, but not how long the text is."""
        for encoded in self._lists.values():
            encoded.clear()

    def add(self, entries: Sequence[PositionLogprobs]) -> None:
        """Append one entry per token."""
        if not entries:
            return
        names, offsets = self._names, []
        for entry in entries:
            offsets.append(self._offset)
            self._offset += len(self._decoder.decode(names.contribution(entry.token_id, self._skip_special_tokens)))
        self._append("text_offset", offsets)
        self._append(
            "token_logprobs",
            [None if entry.logprob is None else max(entry.logprob, IMPOSSIBLE) for entry in entries],
        )
        self._append("tokens", [names.text(entry.token_id) for entry in entries])
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
        if not self._alternatives or entry.top is None:
            return None
        alternatives: dict[str, float] = {}
        for logprob, token in entry.top:
            alternatives.setdefault(self._names.text(token), max(logprob, IMPOSSIBLE))
        return alternatives


def _number(logprob: float | None) -> bytes:
    return _encode(IMPOSSIBLE if logprob is None else max(logprob, IMPOSSIBLE))
