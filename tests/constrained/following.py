"""Texts and random walks through grammars, on the bundled model's tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from llguidance import LLTokenizer

from bough.config.engine_args import bundled_model_path
from bough.constrained.base import mask_words
from bough.constrained.llguidance_backend import Grammar, LLGuidanceBackend
from bough.constrained.translate import Translator
from bough.constrained.vocabulary import Vocabulary, engine_tokenizer, vocabulary_of
from bough.sampling.sampling_params import GrammarKind, GrammarSpec
from bough.tokenization.loading import load_tokenizer
from bough.tokenization.tokenizer import Tokenizer

EOS_IDS = (2, 0)


@cache
def bundled_tokenizer() -> Tokenizer:
    return load_tokenizer(bundled_model_path())


def make_tokenizer(tokenizer: Tokenizer, vocab_size: int, eos_token_ids: Sequence[int]) -> LLTokenizer:
    """The engine's tokenizer for a model."""
    vocabulary = vocabulary_of(tokenizer, vocab_size, eos_token_ids)
    return engine_tokenizer(vocabulary, tokenizer.running_text_encoder(set(vocabulary.special_ids)))


VOCAB_SIZE = bundled_tokenizer().vocab_size


@cache
def bundled_vocabulary() -> Vocabulary:
    return vocabulary_of(bundled_tokenizer(), VOCAB_SIZE, EOS_IDS)


@cache
def bundled_backend() -> LLGuidanceBackend:
    tokenizer = bundled_tokenizer()
    translator = Translator(special_tokens=tokenizer.special_token_ids)
    return LLGuidanceBackend(make_tokenizer(tokenizer, VOCAB_SIZE, EOS_IDS), translator)


def _without_marks() -> dict[str, Any]:
    """The bundled tokenizer without added tokens that are text, such as marks of thoughts."""
    described: dict[str, Any] = json.loads((Path(bundled_model_path()) / "tokenizer.json").read_text())
    vocab = described["model"]["vocab"]
    for token in described["added_tokens"]:
        if not token["special"]:
            vocab[f"\u0120unused{token['id']}"] = vocab.pop(token["content"])
    described["added_tokens"] = [token for token in described["added_tokens"] if token["special"]]
    return described


def spelling_tokenizer() -> Tokenizer:
    """The bundled tokenizer, to which marks are text like any other."""
    return Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(_without_marks())))


def with_special_tokens(special: dict[str, int], *, special_flag: bool = True, **parts: Any) -> Tokenizer:
    """That tokenizer with further added tokens, whatever their ids, and words without use between them."""
    described = {**_without_marks(), **parts}
    vocab, added = described["model"]["vocab"], described["added_tokens"]
    taken = {*vocab.values(), *(token["id"] for token in added)}
    vocab.update(special)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special_flag}
    added += [{"id": token, "content": text, **flags} for text, token in special.items()]
    unused = set(range(max(special.values()))) - taken - set(special.values())
    vocab.update((f"\u0120unused{token}", token) for token in unused)
    return Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(described)))


def spec_of(kind: GrammarKind, text: Any) -> GrammarSpec:
    return GrammarSpec(kind, text if isinstance(text, str) else json.dumps(text))


def encode(text: str) -> list[int]:
    return list(bundled_tokenizer().encode(text, add_special_tokens=False))


def allows(grammar: Grammar, text: str) -> bool:
    """Whether the text as a whole follows the grammar.

    Where the grammar leaves only one text, the mask has only the token that the text is usually written with.
    """
    matcher = grammar.matcher()
    words = np.zeros(mask_words(VOCAB_SIZE), dtype=np.int32)
    for token in encode(text):
        matcher.fill_mask(words)
        in_mask = bool(words[token // 32] >> (token % 32) & 1)
        accepted = matcher.accept(token)
        assert accepted or not in_mask, (text, token)
        if not accepted:
            return False
    return matcher.is_accepting


def random_walk(
    grammar: Grammar, rng: np.random.Generator, max_tokens: int = 400, *, eager: bool = True, closing: float = 0.4
) -> str | None:
    """Text of a random way through the grammar; ``None`` if it does not come to an end within ``max_tokens``.

    Args:
        grammar: to be followed.
        rng: chooses.
        max_tokens: bound on the length.
        eager: end as soon as that is possible.
        closing: how often a token that closes something is preferred.
    """
    matcher = grammar.matcher()
    words = np.zeros(mask_words(VOCAB_SIZE), dtype=np.int32)
    tokens: list[int] = []
    closing_ids = _closing_ids()
    while len(tokens) < max_tokens:
        matcher.fill_mask(words)
        assert matcher.error is None, matcher.error
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        allowed = np.flatnonzero(bits)
        assert allowed.size, "nothing may follow, and the output may not end"
        ends = np.isin(allowed, EOS_IDS)
        assert ends.any() == matcher.is_accepting
        if ends.any() and (eager or rng.random() < 0.3 or ends.all()):
            return bundled_tokenizer().decode(tokens)
        closers = closing_ids[bits[closing_ids] == 1]
        pool = closers if closers.size and rng.random() < closing else allowed[~ends]
        token = int(rng.choice(pool))
        assert matcher.accept(token)
        tokens.append(token)
        if matcher.is_terminated:
            return bundled_tokenizer().decode(tokens)
    return None


@cache
def _closing_ids() -> np.ndarray:
    return np.unique([encode(char)[0] for char in '"}],0'])
