from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from bough.tokenization.incremental_decoder import MAX_HELD_IDS, PROMPT_TAIL_TOKENS, incremental_decoder
from bough.tokenization.pieces import DecoderKind
from bough.tokenization.tokenizer import Tokenizer
from tests.thoroughness import examples
from tests.tokenization import small_tokenizers as small

KINDS = {
    "byte_level": (small.byte_level_bpe, DecoderKind.BYTE_LEVEL),
    "sentencepiece": (small.sentencepiece_bpe, DecoderKind.LOCAL),
    "sentencepiece_without_strip": (lambda: small.sentencepiece_bpe(strip=False), DecoderKind.LOCAL),
    "metaspace": (small.metaspace_unigram, DecoderKind.LOCAL),
    "wordpiece": (small.wordpiece, DecoderKind.LOCAL),
    "suffix": (small.suffix_bpe, DecoderKind.OTHER),
    "other": (small.fallback_then_metaspace, DecoderKind.OTHER),
}
TOKENIZERS = {name: Tokenizer(make()) for name, (make, _) in KINDS.items()}

each_kind = pytest.mark.parametrize("name", KINDS)


def windowed(make: Callable[[], Backend]) -> Tokenizer:
    """The same tokenizer, decoded as if nothing were known about its decoder."""
    tokenizer = Tokenizer(make())
    tokenizer.decoder_kind = DecoderKind.OTHER
    return tokenizer


WINDOWED = {name: windowed(make) for name, (make, _) in KINDS.items()}


def stream(tokenizer: Tokenizer, prompt: list[int], ids: list[int], skip: bool, cuts: list[int]) -> str:
    """Decode in pieces, checking on the way what must hold after each of them."""
    decoder = incremental_decoder(tokenizer, prompt[-PROMPT_TAIL_TOKENS:], skip)
    parts = []
    pending = 0
    start = 0
    while start < len(ids):
        size = cuts[len(parts) % len(cuts)]
        chunk = ids[start : start + size]
        text, now_pending = decoder.push(chunk)
        assert 0 <= now_pending <= pending + len(chunk)
        pending = now_pending
        parts.append(text)
        start += size
    parts.append(decoder.flush())
    assert decoder.push(()) == ("", 0)
    assert decoder.flush() == ""
    return "".join(parts)


def whole(tokenizer: Tokenizer, prompt: list[int], ids: list[int], skip: bool) -> str:
    before = tokenizer.decode(prompt, skip_special_tokens=skip)
    after = tokenizer.decode([*prompt, *ids], skip_special_tokens=skip)
    assert after.startswith(before)
    return after[len(before) :]


cut_sizes = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@each_kind
def test_decoders_are_recognised(name: str) -> None:
    assert TOKENIZERS[name].decoder_kind is KINDS[name][1]


@each_kind
@given(text=st.text(max_size=60), skip=st.booleans(), cuts=cut_sizes)
def test_text_comes_back_as_from_the_whole_decode(name: str, text: str, skip: bool, cuts: list[int]) -> None:
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text).tolist()
    assert stream(tokenizer, [], ids, skip, cuts) == whole(tokenizer, [], ids, skip)


@each_kind
@settings(max_examples=examples(300))
@given(data=st.data(), skip=st.booleans(), cuts=cut_sizes)
def test_random_ids_decode_as_a_whole_decode_does(name: str, data: st.DataObject, skip: bool, cuts: list[int]) -> None:
    tokenizer = TOKENIZERS[name]
    ids = data.draw(token_ids(tokenizer))
    assert stream(tokenizer, [], ids, skip, cuts) == whole(tokenizer, [], ids, skip)


def token_ids(tokenizer: Tokenizer) -> st.SearchStrategy[list[int]]:
    """Any ids, unknown ones among them, with many byte tokens where there are any."""
    any_id = st.integers(0, tokenizer.vocab_size + 1)
    if tokenizer.byte_fallback_ids:
        some_bytes = [tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in (0x20, 0x41, *"é中😀".encode(), 0xFF)]
        any_id = st.one_of(any_id, st.sampled_from(some_bytes), st.sampled_from(some_bytes))
    return st.lists(any_id, max_size=30)


@each_kind
@settings(max_examples=examples(200))
@given(data=st.data(), skip=st.booleans(), cuts=cut_sizes)
def test_output_is_decoded_in_the_context_of_the_prompt(
    name: str, data: st.DataObject, skip: bool, cuts: list[int]
) -> None:
    tokenizer = TOKENIZERS[name]
    prompt = tokenizer.encode(
        data.draw(st.sampled_from(["Hello", "the quick", "naïve. ", "<|im_start|>user\n"]))
    ).tolist()
    ids = data.draw(token_ids(tokenizer))
    if tokenizer.byte_fallback_ids and ids and ids[0] in tokenizer.byte_fallback_ids:
        ids.insert(0, tokenizer.token_to_id("e"))  # or the prompt's last byte tokens would be part of the output's run
    if name == "suffix":
        prompt = []  # the end of its prompt changes with what follows
    assert stream(tokenizer, prompt, ids, skip, cuts) == whole(tokenizer, prompt, ids, skip)


@pytest.mark.parametrize("name", ["byte_level", "sentencepiece", "metaspace", "wordpiece"])
@given(text=st.text(max_size=60), skip=st.booleans())
def test_the_general_method_agrees_with_the_tables(name: str, text: str, skip: bool) -> None:
    ids = TOKENIZERS[name].encode(text).tolist()
    assert stream(WINDOWED[name], [], ids, skip, [1]) == stream(TOKENIZERS[name], [], ids, skip, [1])


def test_no_replacement_character_appears_while_a_character_is_unfinished() -> None:
    for name in ["byte_level", "sentencepiece"]:
        tokenizer = TOKENIZERS[name]
        text = "x😀é中👩‍👩‍👧‍👦!"
        decoder = incremental_decoder(tokenizer)
        seen = ""
        for token_id in tokenizer.encode(text, add_special_tokens=False).tolist():
            new, _ = decoder.push([token_id])
            seen += new
            assert "\ufffd" not in new
            assert text.startswith(seen)
        assert seen + decoder.flush() == text


def bytes_as_ids(tokenizer: Tokenizer, data: bytes) -> list[int]:
    from bough.tokenization.pieces import BYTE_ALPHABET, byte_level_bytes

    alphabet = {byte_level_bytes(char)[0]: char for char in BYTE_ALPHABET}
    return [tokenizer.token_to_id(alphabet[byte]) for byte in data]


def fallback_ids(tokenizer: Tokenizer, data: bytes) -> list[int]:
    return [tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in data]


SPELL = {"byte_level": bytes_as_ids, "sentencepiece": fallback_ids}
each_byte_kind = pytest.mark.parametrize("name", SPELL)


@each_byte_kind
def test_ids_of_an_unfinished_character_are_pending(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = SPELL[name](tokenizer, "😀".encode())
    letter = tokenizer.token_to_id("e")
    decoder = incremental_decoder(tokenizer, [letter])
    assert decoder.push([letter, *ids[:2]]) == ("e", 2)
    assert decoder.push([ids[2]]) == ("", 3)
    text, pending = decoder.push([ids[3]])
    more, pending_then = decoder.push([letter])
    assert (text + more, pending_then) == ("😀e", 0)
    assert pending in (0, 4)


@each_byte_kind
@pytest.mark.parametrize("split", [1, 2, 3])
def test_a_character_that_the_prompt_begins_belongs_to_the_output_that_ends_it(name: str, split: int) -> None:
    tokenizer = TOKENIZERS[name]
    ids = SPELL[name](tokenizer, "😀".encode())
    letter = tokenizer.token_to_id("e")
    assert stream(tokenizer, [letter, *ids[:split]], [*ids[split:], letter], True, [1]) == "😀e"


@each_byte_kind
def test_a_character_that_the_prompt_leaves_unfinished_is_not_output(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    letter = tokenizer.token_to_id("e")
    prompt = SPELL[name](tokenizer, "e中".encode()[:3])
    assert stream(tokenizer, prompt, [letter], True, [1]) == "e"
    assert stream(tokenizer, prompt, SPELL[name](tokenizer, "é".encode()), True, [1]) == "é"
    assert stream(tokenizer, prompt, [], True, [1]) == ""
    assert stream(tokenizer, prompt, SPELL[name](tokenizer, b"\xff"), True, [1]) == "\ufffd"


@each_byte_kind
def test_unfinished_bytes_at_the_end_become_replacement_characters(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = SPELL[name](tokenizer, "e😀".encode()[:4])
    decoder = incremental_decoder(tokenizer)
    text, _ = decoder.push(ids)
    assert text + decoder.flush() == tokenizer.decode(ids)
    assert "\ufffd" in tokenizer.decode(ids)


def test_pending_ids_are_bounded_whatever_the_ids() -> None:
    for name in ("byte_level", "sentencepiece", "other"):
        tokenizer = TOKENIZERS[name]
        for byte in (0x41, 0x80, 0xE4, 0xFF):
            decoder = incremental_decoder(tokenizer)
            [token_id] = (bytes_as_ids if name == "byte_level" else fallback_ids)(tokenizer, bytes([byte]))
            most = max(decoder.push([token_id])[1] for _ in range(10 * MAX_HELD_IDS))
            assert most <= MAX_HELD_IDS + 3


def test_tokens_without_text_behind_an_unfinished_character_are_not_held_without_end() -> None:
    for name in ("byte_level", "sentencepiece", "other"):
        tokenizer = TOKENIZERS[name]
        ids = (bytes_as_ids if name == "byte_level" else fallback_ids)(tokenizer, "é".encode())
        decoder = incremental_decoder(tokenizer)
        end = tokenizer.token_to_id("<|im_end|>")
        assert max(decoder.push([token_id])[1] for token_id in [ids[0], *[end] * 1000]) <= MAX_HELD_IDS
        assert decoder.push([ids[1]])[0] + decoder.flush() == "é"


def test_a_long_run_of_byte_tokens_is_let_out_character_by_character() -> None:
    for name in ["sentencepiece", "other"]:
        for text in ["ขอบคุณ" * 20, "é" * 200, "😀x" * 50]:
            tokenizer = TOKENIZERS[name]
            ids = fallback_ids(tokenizer, text.encode())
            decoder = incremental_decoder(tokenizer)
            parts = [decoder.push([token_id])[0] for token_id in ids]
            assert any(parts)
            assert "".join(parts) + decoder.flush() == text == tokenizer.decode(ids)


def test_skipped_special_tokens_do_not_end_the_context() -> None:
    for name in ("sentencepiece", "other", "metaspace"):
        tokenizer = TOKENIZERS[name]
        end = tokenizer.token_to_id("<|im_end|>")
        word = tokenizer.encode("Hello fox", add_special_tokens=False).tolist()
        ids = [*word, *[end] * 12, *word]
        assert stream(tokenizer, [], ids, True, [1]) == tokenizer.decode(ids)


def test_negative_ids_are_an_error_not_a_crash() -> None:
    for tokenizer in TOKENIZERS.values():
        with pytest.raises(OverflowError):
            incremental_decoder(tokenizer).push([-1])
