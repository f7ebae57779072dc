"""Texts that an output must not contain, as the sequences of tokens that they are written with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.errors import BadRequest
from bough.sampling.sampling_params import MAX_BAD_WORD_TOKENS, MAX_BAD_WORDS, MAX_TOKENS_PER_BAD_WORD

if TYPE_CHECKING:
    from bough.tokenization.tokenizer import Tokenizer

TokenSequences = tuple[tuple[int, ...], ...]
"""Sequences of token ids."""

MAX_BANNED_SEQUENCES = 2 * MAX_BAD_WORDS
"""Each word is banned with and without a space before it."""


def sequences_of(words: tuple[str, ...], tokenizer: Tokenizer, vocab_size: int) -> TokenSequences:
    """What ``words`` are usually written with, with and without a space before them. Releases the GIL. Raises
    :class:`BadRequest`: see :func:`check_sequences`."""
    texts = dict.fromkeys(text for word in words for text in (word, " " + word.lstrip()))
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False, param="bad_words")
    sequences = tuple(dict.fromkeys(map(tuple, encoded)))
    check_sequences(sequences, vocab_size)
    return sequences


def check_sequences(sequences: TokenSequences, vocab_size: int) -> None:
    """Check what is to be done for a request in each of its steps; raises :class:`BadRequest` if a sequence is empty or
    too long, or has an id outside the vocabulary, or there are too many."""
    lengths = [len(each) for each in sequences]
    if lengths and not (min(lengths) >= 1 and max(lengths) <= MAX_TOKENS_PER_BAD_WORD):
        raise BadRequest(
            f"bad_words must be texts of 1 to {MAX_TOKENS_PER_BAD_WORD} tokens, with and without a space before them; "
            f"one has {max(lengths) if min(lengths) else 0}",
            param="bad_words",
        )
    if sum(lengths) > MAX_BAD_WORD_TOKENS or len(lengths) > MAX_BANNED_SEQUENCES:
        raise BadRequest(
            f"bad_words must have at most {MAX_BAD_WORD_TOKENS} tokens together, with and without a space before "
            f"each, got {sum(lengths)}",
            param="bad_words",
        )
    if not all(0 <= token < vocab_size for each in sequences for token in each):
        raise BadRequest(f"bad_words must be texts of tokens in [0, {vocab_size})", param="bad_words")
