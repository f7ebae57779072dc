"""BERT's tokenizer, from tokenizer.json and from a bare vocab.txt: texts, pairs, and what is cut."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.errors import BadRequest
from bough.tokenization.loading import load_tokenizer
from bough.tokenization.tokenizer import Tokenizer
from tests.minilm import minilm_path
from tests.thoroughness import examples

TEXTS = ["Hello, World!", "naïve café", "快速 fox", "", "[CLS] inside [SEP]", "x" * 150, "un##able\u00a0tabs\t\nlines"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer(minilm_path())


@pytest.fixture(scope="module")
def reference() -> transformers.PreTrainedTokenizerBase:
    return transformers.AutoTokenizer.from_pretrained(minilm_path())


def test_vocabulary_alone_gives_the_same_ids(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(minilm_path() / name, tmp_path)
    alone = load_tokenizer(tmp_path)
    assert alone.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)
    pairs = [(text, TEXTS[0]) for text in TEXTS]
    params = ["text"] * len(pairs)
    limits = [None] * len(pairs)
    assert alone.encode_segments(pairs, limits, params) == tokenizer.encode_segments(pairs, limits, params)
    assert alone.special_ids >= {101, 102}


def test_pairs_as_the_reference_has_them(tokenizer: Tokenizer, reference: transformers.PreTrainedTokenizerBase) -> None:
    # The reference takes an empty second text for none at all.
    pairs = [(first, second) for first in TEXTS for second in TEXTS if second]
    encoded = tokenizer.encode_segments(pairs, [None] * len(pairs), ["text"] * len(pairs))
    for (first, second), (ids, types) in zip(pairs, encoded, strict=True):
        expected = reference(first, second)
        assert ids.tolist() == expected["input_ids"]
        assert types is not None
        assert list(types) == expected["token_type_ids"]


@given(
    first=st.lists(st.sampled_from(["oak", "tree", "unbelievable", "42"]), min_size=1, max_size=30).map(" ".join),
    second=st.none() | st.lists(st.sampled_from(["bark", "leafless", "!"]), min_size=1, max_size=30).map(" ".join),
    limit=st.integers(3, 80),
)
@settings(max_examples=examples(150))
def test_only_the_end_of_the_last_text_is_cut(
    tokenizer: Tokenizer,
    reference: transformers.PreTrainedTokenizerBase,
    first: str,
    second: str | None,
    limit: int,
) -> None:
    whole = reference(first, second)["input_ids"]
    kept = 3 + len(reference(first, add_special_tokens=False)["input_ids"]) if second is not None else 2
    if limit <= kept:
        with pytest.raises(BadRequest, match="leave no room") as caught:
            tokenizer.encode_segments([(first, second)], [limit], ["text[0]"])
        assert caught.value.param == "text[0]"
        return
    ((ids, types),) = tokenizer.encode_segments([(first, second)], [limit], ["text[0]"])
    assert len(ids) == min(limit, len(whole))
    assert ids[-1] == whole[-1]
    assert ids.tolist()[:-1] == whole[: len(ids) - 1]
    assert (types is None) == (second is None)
