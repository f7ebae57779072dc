"""Convert a model's vocabulary for the grammar engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import msgspec
from llguidance import LLTokenizer, TokenizerWrapper

from bough.tokenization.tokenizer import Tokenizer

MAX_REMEMBERED_TEXTS = 4096
MAX_REMEMBERED_CHARACTERS = 256
"""Longest forced text that is cached with its tokens: the same few recur, and encoding takes as long as four masks."""


class Vocabulary(msgspec.Struct, array_like=True, frozen=True):
    """Bytes of each token (empty for unused ids), and tokens that are not text."""

    tokens: list[bytes]
    special_ids: list[int]
    end_ids: list[int]
    """ids that end an output"""
    eos_id: int
    """one of ``end_ids``, if there are any"""
    bos_id: int | None


def vocabulary_of(tokenizer: Tokenizer, vocab_size: int, eos_token_ids: Sequence[int]) -> Vocabulary:
    """Return the vocabulary of a model. Of its ``vocab_size`` ids those unknown to the tokenizer are never allowed."""
    ends = [token for token in eos_token_ids if 0 <= token < vocab_size]
    special = {token for token in (*tokenizer.special_ids, *ends) if token < vocab_size}
    known = min(vocab_size, tokenizer.vocab_size)
    tokens = [
        (tokenizer.id_to_token(token) or "").encode() if token in special else tokenizer.id_to_piece_bytes(token)
        for token in range(known)
    ]
    tokens += [b""] * (vocab_size - known)
    eos_id = ends[0] if ends else tokenizer.eos_token_id or 0
    return Vocabulary(tokens, sorted(special), ends, eos_id, tokenizer.bos_token_id)


def engine_tokenizer(vocabulary: Vocabulary, encode: Callable[[str], Iterable[int]]) -> LLTokenizer:
    """Create the engine's tokenizer from a vocabulary and a function that encodes text."""
    table = TokenTable(vocabulary, encode)
    return LLTokenizer(table, n_vocab=len(vocabulary.tokens), eos_token=vocabulary.end_ids or None)


def self_contained_tokenizer(vocabulary: Vocabulary) -> LLTokenizer:
    """Create the engine's tokenizer without one of the model: text is encoded by the longest matching tokens."""
    made: list[LLTokenizer] = []
    made.append(engine_tokenizer(vocabulary, lambda text: made[0].greedy_tokenize(text) if made else ()))
    return made[0]


class TokenTable(TokenizerWrapper):
    """Adapter that gives the engine the bytes of a model's tokens and a function that encodes text.

    Special tokens are not text to the engine. Other added tokens are: an output may use them or spell them out, since
    both read the same.
    """

    def __init__(self, vocabulary: Vocabulary, encode: Callable[[str], Iterable[int]]) -> None:
        self._special = set(vocabulary.special_ids)
        self._encode = encode
        self.eos_token_id = vocabulary.eos_id
        self.bos_token_id = vocabulary.bos_id
        self.special_token_ids = sorted(self._special)
        self.tokens = vocabulary.tokens
        self.is_tokenizer_wrapper = True
        self._remembered: dict[str, list[int]] = {}

    def __call__(self, text: str) -> list[int]:
        """Encode a text that a grammar forces into tokens that the engine accepts."""
        ids = self._remembered.get(text)
        if ids is None:
            ids = list(self._encode(text))
            data = text.encode()
            if not self._spells(ids, data):
                ids = self._longest_first(data)
            if len(text) <= MAX_REMEMBERED_CHARACTERS:
                if len(self._remembered) >= MAX_REMEMBERED_TEXTS:
                    self._remembered.clear()
                self._remembered[text] = ids
        return ids

    def _spells(self, ids: Sequence[int], data: bytes) -> bool:
        """True if the tokens spell exactly this text, which normalisation, for example, may have changed."""
        pieces = (self.tokens[token] for token in ids if token < len(self.tokens) and token not in self._special)
        return b"".join(pieces) == data

    def _longest_first(self, data: bytes) -> list[int]:
        """Encode a text by its longest matching tokens, up to the first byte that no token can spell."""
        ids: list[int] = []
        start = 0
        while start < len(data):
            pieces = (data[start:end] for end in range(min(len(data), start + self._longest), start, -1))
            piece = next((piece for piece in pieces if piece in self._ids), None)
            if piece is None:
                break
            ids.append(self._ids[piece])
            start += len(piece)
        return ids

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {piece: token for token, piece in enumerate(self.tokens) if piece and token not in self._special}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._ids), default=0)
