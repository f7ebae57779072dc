"""A vocabulary of the single bytes and of special tokens with large ids, as real models have them."""

from __future__ import annotations

import re
from functools import cache

from llguidance import LLTokenizer, TokenizerWrapper

from bough.constrained.llguidance_backend import Grammar, LLGuidanceBackend
from bough.constrained.translate import Translator

FIRST_SPECIAL = 100_000
EOS = 256


class SpecialVocabulary:
    """Texts as ids, and grammars that know these ids.

    Args:
        special: strings of special tokens.
    """

    def __init__(self, special: tuple[str, ...]) -> None:
        self.ids = {text: FIRST_SPECIAL + index for index, text in enumerate(special)}
        self.eos_token_id, self.bos_token_id = EOS, None
        self.special_token_ids = (EOS, *self.ids.values())
        singles = [*(bytes([byte]) for byte in range(256)), b"<end>"]
        self.tokens = [*singles, *[b""] * (FIRST_SPECIAL - len(singles)), *(text.encode() for text in special)]
        self._splitter = re.compile("|".join(f"({re.escape(text)})" for text in special) or r"(?!)")
        tokenizer = LLTokenizer(TokenizerWrapper(self), n_vocab=len(self.tokens), eos_token=EOS)
        self.translator = Translator(special_tokens=self.ids)
        self.backend = LLGuidanceBackend(tokenizer, self.translator)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())

    def encode(self, text: str) -> list[int]:
        """Special tokens as such, all else byte by byte."""
        ids: list[int] = []
        for part in filter(None, self._splitter.split(text)):
            ids += [self.ids[part]] if part in self.ids else part.encode()
        return ids

    def allows(self, grammar: Grammar, text: str) -> bool:
        """Whether the text as a whole follows the grammar."""
        return self.follows(grammar, self.encode(text))

    @staticmethod
    def follows(grammar: Grammar, ids: list[int]) -> bool:
        matcher = grammar.matcher()
        return all(matcher.accept(token) for token in ids) and matcher.is_accepting


vocabulary = cache(SpecialVocabulary)
