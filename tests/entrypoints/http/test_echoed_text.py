"""Where the tokens of an echoed prompt begin in its text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.entrypoints.http.logprobs import Echo, EchoedText, TokenNames
from bough.tokenization.tokenizer import Tokenizer
from tests.tokenization import small_tokenizers as small

TOKENIZERS = {"byte level": Tokenizer(small.byte_level_bpe()), "SentencePiece": Tokenizer(small.sentencepiece_bpe())}
TEXT = st.lists(st.sampled_from(["Hi", " there", "ä", "🌱", "\n", "  ", "<s>", "x", "▁", "é"])).map("".join)


def offsets(tokenizer: Tokenizer, text: str, ids: list[int]) -> list[int]:
    echoed = EchoedText(TokenNames(tokenizer), Echo(text))
    return [echoed.offset_of(token) for token in ids]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=TEXT)
def test_whole_tokens_are_where_the_text_has_them(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text, add_special_tokens=False).tolist()
    found = offsets(tokenizer, text, ids)
    assert found == sorted(found)
    moved = 0
    for token, offset in zip(ids, found, strict=True):
        piece = TokenNames(tokenizer).text(token)
        if "\ufffd" in piece or "▁" in text:  # SentencePiece writes the latter for a space
            continue
        moved += not text.startswith(piece, offset)
        assert text.startswith(piece.removeprefix(" "), offset)
    assert not moved or name == "SentencePiece", "only that puts spaces before parts of a text"


def test_a_special_token_that_nobody_wrote_takes_no_place() -> None:
    tokenizer = TOKENIZERS["byte level"]
    begin = min(tokenizer.special_ids)
    name = tokenizer.id_to_piece_bytes(begin).decode()
    ids = tokenizer.encode("äx", add_special_tokens=False).tolist()
    written = tokenizer.encode(f"{name}äx", add_special_tokens=False).tolist()
    assert written == [begin, *ids]
    plain = offsets(tokenizer, "äx", ids)
    assert offsets(tokenizer, "äx", written) == [0, *plain]
    assert offsets(tokenizer, f"{name}äx", written) == [0, *(len(name) + offset for offset in plain)]


def test_tokens_of_another_text_are_as_long_as_they_are() -> None:
    tokenizer = TOKENIZERS["byte level"]
    ids = tokenizer.encode("abc", add_special_tokens=False).tolist()
    lengths = [len(TokenNames(tokenizer).text(token)) for token in ids]
    assert offsets(tokenizer, "äöüß", ids) == [sum(lengths[:place]) for place in range(len(ids))]
    assert offsets(tokenizer, "", ids) == [0] * len(ids)
