"""The tokenizer of the bundled model, and documents as the network takes them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from documents import CHAT_TEMPLATE, END_OF_TEXT, MARKS, SPECIAL_TOKENS, TURN_END, Document
from skills import draw
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

# A word that begins with a capital and a number never carry the space before them, so that what is copied is the same
# tokens in a sentence and in JSON; that space belongs to the mark before them, if there is one. Digits stay apart, so
# that sums are learnable. Marks in a row are one piece, which makes few tokens of JSON.
WORD_PATTERN = (
    r"'(?:s|t|re|ve|m|ll|d)(?!\p{L})"
    r"| ?\p{Ll}+|\p{Lu}\p{Ll}*|\p{N}| ?[\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"| ?[^\s\p{L}\p{N}]+(?: [^\s\p{L}\p{N}]+)*(?: (?=[\p{Lu}\p{N}]))?[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LEARNED_SIZE = 4096
SPACE = "Ġ"
"""How a space is written in a vocabulary of bytes."""
MODEL_MAX_LENGTH = 4096
SAMPLE_SEED, SAMPLE_DOCUMENTS = 3, 40_000


def untrained_tokenizer() -> Tokenizer:
    """How text becomes words and bytes, without a vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train_tokenizer(documents: int = SAMPLE_DOCUMENTS) -> Tokenizer:
    """A byte-level BPE tokenizer over a sample of all skills, with all 256 bytes, so that any text survives.

    To the vocabulary that is learned :func:`with_twins` adds.
    """
    tokenizer = untrained_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=LEARNED_SIZE,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[AddedToken(token, normalized=False) for token in (*SPECIAL_TOKENS, *MARKS)],
        show_progress=False,
    )
    tokenizer.train_from_iterator(_sample(documents), trainer)
    # The trainer makes special tokens of all that it is given, and those would be left out of decoded text.
    described = json.loads(tokenizer.to_str())
    for token in described["added_tokens"]:
        token["special"] = token["content"] in SPECIAL_TOKENS
    return with_twins(Tokenizer.from_str(json.dumps(described)))


def with_twins(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that makes the same tokens of a word of the letters from a to z with and without the space before it.

    Otherwise a word in a sentence and the same word in JSON share no token, and copying it is spelling it. Every token
    of a space and such letters gets its twin without the space, by merges that join what all others have left of a
    word. And the space joins the first token of a word last, so that it has no say in the others. Two tokens in a
    hundred become others.
    """
    described = json.loads(tokenizer.to_str())
    vocabulary: dict[str, int] = described["model"]["vocab"]
    words = [token[1:] for token in vocabulary if re.fullmatch(f"{SPACE}[a-z]+", token)]
    spaced = {SPACE + word for word in words}
    merges = (pair for pair in map(tuple, described["model"]["merges"]) if "".join(pair) not in spaced)
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    for word in sorted(words, key=lambda word: (len(word), word)):
        parts = _merged(word, ranks)
        while len(parts) > 1:
            known = (at for at in range(len(parts) - 1) if parts[at] + parts[at + 1] in vocabulary)
            at = next(known, 0)
            ranks[parts[at], parts[at + 1]] = len(ranks)
            vocabulary.setdefault(parts[at] + parts[at + 1], len(vocabulary))
            parts = _merged(word, ranks)
    described["model"]["merges"] = [*map(list, ranks), *([SPACE, word] for word in words)]
    return Tokenizer.from_str(json.dumps(described))


def _merged(word: str, ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """The tokens of a word: the pair of the lowest rank becomes one, as long as there is any."""
    parts = list(word)
    while True:
        pairs = [(ranks[pair], at) for at, pair in enumerate(pairwise(parts)) if pair in ranks]
        if not pairs:
            return parts
        _, at = min(pairs)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def _sample(documents: int) -> Iterator[str]:
    rng = random.Random(SAMPLE_SEED)
    for _ in range(documents):
        _, document = draw(rng)
        yield document.text()


def tokenizer_config() -> dict[str, Any]:
    """Written by hand, because what transformers 5 writes names a class that its predecessors lack."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": TURN_END,
        "pad_token": END_OF_TEXT,
        "additional_special_tokens": list(SPECIAL_TOKENS),
        "model_max_length": MODEL_MAX_LENGTH,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


def load_tokenizer(directory: Path) -> Tokenizer:
    """The tokenizer of a directory; it is trained and written there if there is none."""
    path = directory / "tokenizer.json"
    if not path.exists():
        train_tokenizer().save(str(path))
    return Tokenizer.from_file(str(path))


def encode(document: Document, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
    """Token ids of a document and, for each, whether the model learns to predict it."""
    pieces = list(document.pieces())
    ids: list[int] = []
    learned: list[bool] = []
    for (_, learn), encoded in zip(
        pieces, tokenizer.encode_batch([text for text, _ in pieces], add_special_tokens=False), strict=True
    ):
        ids.extend(encoded.ids)
        learned.extend([learn] * len(encoded.ids))
    return ids, learned
