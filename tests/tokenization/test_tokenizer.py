from __future__ import annotations

import json
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from bough.errors import BadRequest, ConfigError
from bough.tokenization import transformers_tokenizer
from bough.tokenization.incremental_decoder import incremental_decoder
from bough.tokenization.loading import load_tokenizer
from bough.tokenization.pieces import DecoderKind
from bough.tokenization.text_bound import NFC_SHRINKAGE, max_bytes_per_token
from bough.tokenization.tokenizer import Tokenizer
from bough.tokenization.transformers_tokenizer import TransformersTokenizer, convert
from tests.tokenization import small_tokenizers as small

MAKERS = {
    "byte_level": small.byte_level_bpe,
    "sentencepiece": small.sentencepiece_bpe,
    "metaspace": small.metaspace_unigram,
    "wordpiece": small.wordpiece,
    "suffix": small.suffix_bpe,
    "other": small.fallback_then_metaspace,
}
TEXT = "The quick brown fox. 快速 Größe 😀"


def copy_of(backend: Backend) -> Backend:
    """Loading changes a backend, and the trained ones are shared."""
    return Backend.from_str(backend.to_str())


def write_checkpoint(directory: Path, backend: Backend, **files: Any) -> Path:
    backend.save(str(directory / "tokenizer.json"))
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return directory


CONFIG = {
    "bos_token": "<s>",
    "eos_token": {"__type": "AddedToken", "content": "<|im_end|>", "special": True},
    "pad_token": None,
    "additional_special_tokens": ["<|im_start|>"],
    "chat_template": "{{ messages }}",
    "tokenizer_class": "PreTrainedTokenizerFast",
}


def test_special_tokens_are_those_of_the_configuration(tmp_path: Path) -> None:
    map_ = {"eos_token": "</s>", "pad_token": "</s>", "unk_token": {"content": "<none>"}}
    path = write_checkpoint(tmp_path, small.byte_level_bpe(), tokenizer_config=CONFIG, special_tokens_map=map_)
    tokenizer = load_tokenizer(path)
    assert (tokenizer.special.bos, tokenizer.special.eos) == ("<s>", "<|im_end|>")
    assert tokenizer.bos_token_id == tokenizer.token_to_id("<s>")
    assert tokenizer.eos_token_id == tokenizer.token_to_id("<|im_end|>")
    assert tokenizer.special.template_variables()["additional_special_tokens"] == ["<|im_start|>"]
    assert tokenizer.token_to_id("<none>") is None
    assert tokenizer.vocab_size == small.byte_level_bpe().get_vocab_size()


def test_ids_and_text_are_those_of_transformers(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    for name in ("byte_level", "sentencepiece", "metaspace"):
        directory = tmp_path / name
        directory.mkdir()
        vocab_size = MAKERS[name]().get_vocab_size()
        word = MAKERS[name]().id_to_token(min(300, vocab_size - 1))
        declared = {
            "0": {"content": "<s>", "special": True},
            "5": {"content": word, "special": False, "normalized": False},
        }
        declared[str(vocab_size)] = {"content": "<new>", "special": True, "normalized": False}
        # Of this class, what ``add_bos_token`` says does not count beside a tokenizer.json: its post-processor does.
        config = {**CONFIG, "added_tokens_decoder": declared, "add_bos_token": name == "byte_level"}
        write_checkpoint(directory, MAKERS[name](), tokenizer_config=config)
        ours, theirs = load_tokenizer(directory), AutoTokenizer.from_pretrained(str(directory))
        for text in (TEXT, f"<|im_start|>{TEXT}<|im_end|>\n<new> <s>", "", " ", "</s>"):
            for special in (True, False):
                ids = theirs.encode(text, add_special_tokens=special)
                assert ours.encode(text, special).tolist() == ids
                for skip in (True, False):
                    assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
        assert ours.special_ids >= {i for i in theirs.all_special_ids if i is not None}
        assert ours.bos_token_id == theirs.bos_token_id
        assert ours.eos_token_id == theirs.eos_token_id


def test_declared_tokens_never_get_other_ids_than_declared(tmp_path: Path) -> None:
    declared = {"9999": {"content": "<far away>", "special": True}}
    config = {**CONFIG, "added_tokens_decoder": declared, "pad_token": "<unknown to the model>"}
    tokenizer = load_tokenizer(write_checkpoint(tmp_path, small.byte_level_bpe(), tokenizer_config=config))
    assert tokenizer.token_to_id("<far away>") is None
    assert tokenizer.vocab_size == small.byte_level_bpe().get_vocab_size()


def test_special_tokens_of_the_configuration_are_skipped(tmp_path: Path) -> None:
    word = small.byte_level_bpe().id_to_token(350)
    config = {**CONFIG, "eos_token": word}
    tokenizer = load_tokenizer(write_checkpoint(tmp_path, small.byte_level_bpe(), tokenizer_config=config))
    assert tokenizer.eos_token_id == 350
    assert tokenizer.decode([350, 350]) == ""
    assert tokenizer.id_to_piece_bytes(350) != b""


def test_padding_and_truncation_of_the_file_are_ignored(tmp_path: Path) -> None:
    backend = copy_of(small.byte_level_bpe())
    backend.enable_truncation(3)
    backend.enable_padding(length=10)
    tokenizer = load_tokenizer(write_checkpoint(tmp_path, backend))
    assert tokenizer.encode(TEXT).tolist() == small.byte_level_bpe().encode(TEXT).ids


def test_a_pipeline_may_make_text_lower_case_first(tmp_path: Path) -> None:
    backend = copy_of(small.byte_level_bpe())
    plain = Tokenizer(copy_of(backend))
    path = write_checkpoint(tmp_path, backend, sentence_bert_config={"do_lower_case": True})
    lower = load_tokenizer(path)
    assert lower.encode("The Größe") == plain.encode("the größe") != plain.encode("The Größe")
    [(pair, _)] = lower.encode_segments([("The", "Größe")], [None], ["text"])
    assert pair == plain.encode_segments([("the", "größe")], [None], ["text"])[0][0]
    (tmp_path / "sentence_bert_config.json").write_text('{"do_lower_case": false}')
    assert load_tokenizer(path).encode("The") == plain.encode("The")
    (tmp_path / "sentence_bert_config.json").write_text('{"do_lower_case": "yes"}')
    with pytest.raises(ConfigError, match=r"sentence_bert_config.json: do_lower_case must be true or false"):
        load_tokenizer(path)


@pytest.mark.parametrize("of_file", [True, False])
@pytest.mark.parametrize("name", ["BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("settings", [{"do_lower_case": True}, {"do_lower_case": False}, {"strip_accents": False}, {}])
def test_of_berts_rules_the_configuration_knows_better(
    tmp_path: Path, of_file: bool, name: str, settings: dict[str, bool]
) -> None:
    from transformers import AutoTokenizer

    words = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "the", "The", "cafe", "café", "Cafe", "Café"]
    backend = Backend(models.WordPiece({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=of_file)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    path = write_checkpoint(tmp_path, backend, tokenizer_config={"tokenizer_class": name, **settings})
    expected = AutoTokenizer.from_pretrained(path).encode("The Café the café", add_special_tokens=False)
    assert load_tokenizer(path).encode("The Café the café", add_special_tokens=False).tolist() == expected


def test_a_tokenizer_in_python_does_not_make_text_lower_case_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers_tokenizer, "_convert", lambda files: {"python_only": True})
    (tmp_path / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    with pytest.raises(ConfigError, match="do_lower_case of its pipeline is not supported"):
        byt5(tmp_path)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": True}, "<s> text </s>"),
        ({"tokenizer_class": "LlamaTokenizer", "add_eos_token": True}, "<s> text </s>"),
        ({"tokenizer_class": "GemmaTokenizerFast", "add_bos_token": True, "add_eos_token": False}, "<s> text"),
        ({"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": False}, "text"),
        ({"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": True, "bos_token": None}, "text"),
        ({"tokenizer_class": "LlamaTokenizerFast"}, "text </s>"),
        ({"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True, "add_eos_token": False}, "text </s>"),
    ],
)
def test_flags_of_the_older_transformers_say_what_surrounds_a_text(
    tmp_path: Path, settings: dict[str, Any], expected: str
) -> None:
    """The file says that EOS ends a text and nothing begins it."""
    backend = copy_of(small.byte_level_bpe())
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", backend.token_to_id("</s>"))]
    )
    strings = {"bos_token": "<s>", "eos_token": "</s>", **settings}
    tokenizer = load_tokenizer(write_checkpoint(tmp_path, backend, tokenizer_config=strings))
    text = [*tokenizer.encode("text", add_special_tokens=False)]
    parts = {"<s>": [backend.token_to_id("<s>")], "text": text, "</s>": [backend.token_to_id("</s>")]}
    assert [*tokenizer.encode("text")] == [each for part in expected.split() for each in parts[part]]


def test_chat_templates_are_found_in_every_place(tmp_path: Path) -> None:
    def templates(config: Any, **files: str) -> dict[str, str]:
        directory = tmp_path / str(len(list(tmp_path.iterdir())))
        (directory / "additional_chat_templates").mkdir(parents=True)
        for name, text in files.items():
            path = directory / name.replace("__", "/").replace("_dot_", ".")
            path.write_text(text, encoding="utf-8")
        write_checkpoint(directory, small.byte_level_bpe(), tokenizer_config=config)
        return load_tokenizer(directory).chat_templates

    named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    assert templates({}) == {}
    assert templates({"chat_template": "c"}) == {"default": "c"}
    assert templates({"chat_template": named}) == {"default": "d", "tool_use": "t"}
    assert templates({"chat_template": {"default": "d", "rag": "r"}}) == {"default": "d", "rag": "r"}
    assert templates({"chat_template": "c"}, chat_template_dot_jinja="j") == {"default": "j"}
    assert templates({}, chat_template_dot_json='{"chat_template": "k"}') == {"default": "k"}
    assert templates({}, chat_template_dot_jinja="j", additional_chat_templates__tool_use_dot_jinja="t") == {
        "default": "j",
        "tool_use": "t",
    }


def declared(entries: str) -> dict[str, str]:
    return {"tokenizer_config": f'{{"added_tokens_decoder": {entries}}}'}


ENTRY = r"config.json: added_tokens_decoder\['5'\] must be an object with a content, a string"
TEMPLATES = "config.json: chat_template must list objects with a name and a template, both strings, got "


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"tokenizer": "{"}, "tokenizer.json"),
        ({"tokenizer": "[]"}, "tokenizer.json"),
        ({"tokenizer": "{}", "tokenizer_config": "{"}, "tokenizer_config.json is not valid JSON"),
        ({"tokenizer": "{}", "tokenizer_config": "[]"}, "does not hold a JSON object"),
        ({"added_tokens": '{"<x>": "abc"}'}, r"added_tokens.json: '<x>' must be a token id, got 'abc'"),
        ({"added_tokens": '{"<x>": null}'}, r"added_tokens.json: '<x>' must be a token id, got None"),
        ({"added_tokens": '{"<x>": true}'}, r"added_tokens.json: '<x>' must be a token id, got True"),
        (
            declared('{"x": {"content": "<x>"}}'),
            r"config.json: added_tokens_decoder\['x'\] must be a token id, got 'x'",
        ),
        (declared('{"5": {"special": true}}'), rf"{ENTRY}, got \{{'special': True"),
        (declared('{"5": "<x>"}'), f"{ENTRY}, got '<x>'"),
        (declared('{"5": null}'), f"{ENTRY}, got None"),
        (declared(f'{{"{"9" * 5000}": {{"content": "<x>"}}}}'), "must be a token id, got '999"),
        ({"tokenizer_config": '{"chat_template": [{"template": "x"}]}'}, TEMPLATES),
        ({"tokenizer_config": '{"chat_template": [{"name": "default", "template": 5}]}'}, TEMPLATES),
        ({"tokenizer_config": '{"chat_template": ["x"]}'}, TEMPLATES),
        (
            {"tokenizer_config": '{"tokenizer_class": ["A"]}'},
            r"config.json: tokenizer_class must be a string, got \['A'",
        ),
        ({"tokenizer_config": '{"eos_token": {"content": ["a"]}}'}, "config.json: eos_token must be a string, or an"),
        ({"special_tokens_map": '{"eos_token": {"content": 5}}'}, "map.json: eos_token must be a string, or an object"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    for name, text in files.items():
        (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(ConfigError, match=reason):
        load_tokenizer(tmp_path)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        load_tokenizer(tmp_path / "nowhere")


def test_without_a_tokenizer_json_transformers_converts_elsewhere(tmp_path: Path) -> None:
    vocab = small.wordpiece().get_vocab()
    (tmp_path / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.__getitem__)), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    text = "the quick brown fox"
    code = (
        "import sys; from bough.tokenization.loading import load_tokenizer; "
        f"print(load_tokenizer({str(tmp_path)!r}).encode({text!r}, False).tolist(), "
        "[m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"{small.wordpiece().encode(text, add_special_tokens=False).ids} []"


def byt5(directory: Path) -> Tokenizer:
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "ByT5Tokenizer", "eos_token": "</s>", "pad_token": "<pad>"})
    )
    return load_tokenizer(directory)


def test_a_tokenizer_in_python_works_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What the converter says of it; asking takes seconds.
    monkeypatch.setattr(transformers_tokenizer, "_convert", lambda files: {"python_only": True})
    tokenizer = byt5(tmp_path)
    assert isinstance(tokenizer, TransformersTokenizer)
    text = "Größe 快速 😀!"
    ids = tokenizer.encode(text, add_special_tokens=False).tolist()
    assert len(ids) == len(text.encode())
    assert tokenizer.eos_token_id in tokenizer.special_ids
    assert tokenizer.max_token_bytes is None
    decoder = incremental_decoder(tokenizer)
    assert "".join(decoder.push([i])[0] for i in ids) + decoder.flush() == text
    assert tokenizer.id_to_token(10**6) is None
    assert tokenizer.id_to_piece_bytes(ids[0]) == b"G"
    assert not tokenizer.special_ids & {*tokenizer.running_text_encoder()("a</s>b")}


def test_the_converter_tells_python_tokenizers_from_others(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "ByT5Tokenizer"}))
    assert convert(str(tmp_path)) == {"python_only": True}


def test_without_transformers_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers_tokenizer, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install transformers"):
        byt5(tmp_path)


def test_what_nobody_can_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "NoSuchTokenizer"}))
    with pytest.raises(ConfigError, match="transformers cannot read") as error:
        load_tokenizer(tmp_path)
    assert "\n" not in str(error.value)


def test_half_a_surrogate_pair_is_a_bad_request() -> None:
    for text in ["\ud800", "ok \udfff", "😀\ud83d"]:
        tokenizer = Tokenizer(small.byte_level_bpe())
        with pytest.raises(BadRequest, match=f"at character {len(text) - 1}") as error:
            tokenizer.encode_batch(["fine", text], param="prompt")
        assert error.value.param == "prompt"


def test_encoding_releases_the_gil() -> None:
    tokenizer = Tokenizer(small.byte_level_bpe())
    done = threading.Event()
    worker = threading.Thread(target=lambda: (tokenizer.encode(TEXT * 20_000), done.set()))
    worker.start()
    turns = 0
    while not done.wait(0.001):
        turns += 1
    worker.join()
    assert turns > 3


def test_a_batch_is_encoded_like_its_texts() -> None:
    for make in MAKERS.values():
        tokenizer = Tokenizer(make())
        texts = [TEXT, "", "one", "two\n" * 100]
        assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
        assert tokenizer.encode_batch([]) == []
        assert tokenizer.encode(TEXT).typecode == "i"


@given(text=st.text(max_size=50))
def test_bytes_of_the_pieces_are_the_text(text: str) -> None:
    tokenizer = Tokenizer(small.byte_level_bpe())
    ids = tokenizer.encode(text).tolist()
    assert b"".join(map(tokenizer.id_to_piece_bytes, ids)) == text.encode()
    sentencepiece = Tokenizer(small.sentencepiece_bpe())
    ids = sentencepiece.encode(text, add_special_tokens=False).tolist()
    assert (
        b"".join(map(sentencepiece.id_to_piece_bytes, ids)) == (f" {text}" if text else "").replace("▁", " ").encode()
    )


def test_pieces_of_every_kind_are_those_of_running_text() -> None:
    def pieces(name: str, text: str) -> list[bytes]:
        tokenizer = Tokenizer(MAKERS[name]())
        return [tokenizer.id_to_piece_bytes(i) for i in tokenizer.encode(text, add_special_tokens=False).tolist()]

    assert b"".join(pieces("metaspace", "the quick")) == b" the quick"
    assert b"".join(pieces("wordpiece", "the quick")) == b" the quick"
    assert b"".join(pieces("other", "the quick")) == b" the quick"
    assert pieces("byte_level", "<tool call>") == [b"<tool call>"]
    assert pieces("byte_level", "<|im_end|>") == [b"<|im_end|>"]
    for make in MAKERS.values():
        assert Tokenizer(make()).id_to_piece_bytes(10**6) == b""


def test_running_text_has_nothing_in_front() -> None:
    for name in ["byte_level", "sentencepiece", "metaspace"]:
        tokenizer = Tokenizer(MAKERS[name]())
        for text in ("quick", " brown fox"):
            assert b"".join(map(tokenizer.id_to_piece_bytes, tokenizer.running_text_encoder()(text))) == text.encode()


def test_strings_of_special_tokens_are_running_text() -> None:
    for name in ["byte_level", "sentencepiece"]:
        tokenizer = Tokenizer(MAKERS[name]())
        ids = tokenizer.running_text_encoder()("a<|im_end|>")
        assert not tokenizer.special_ids & {*ids}
        assert b"".join(map(tokenizer.id_to_piece_bytes, ids)) == b"a<|im_end|>"


def test_other_added_tokens_are_recognised_in_running_text_unless_they_are_to_be_special() -> None:
    tokenizer = Tokenizer(small.byte_level_bpe())
    added = tokenizer.encode("<tool call>", add_special_tokens=False).tolist()
    assert tokenizer.running_text_encoder()("<tool call>") == added
    assert len(tokenizer.running_text_encoder(added)("<tool call>")) > 1


@given(text=st.text(max_size=80))
def test_no_text_has_fewer_tokens_than_its_length_allows(text: str) -> None:
    for backend in (small.byte_level_bpe(), small.sentencepiece_bpe(), nfc_byte_level()):
        tokenizer = Tokenizer(backend)
        bound = tokenizer.max_token_bytes
        assert bound is not None
        assert len(text.encode()) <= bound * len(tokenizer.encode(text, add_special_tokens=False))


def nfc_byte_level() -> Backend:
    backend = copy_of(small.byte_level_bpe())
    backend.normalizer = normalizers.NFC()
    return backend


def test_the_bound_is_that_of_the_longest_token() -> None:
    assert max_bytes_per_token(small.byte_level_bpe()) == max(
        len(Tokenizer(small.byte_level_bpe()).id_to_piece_bytes(i))
        for i in range(small.byte_level_bpe().get_vocab_size())
    )


def changed(**parts: Any) -> Backend:
    backend = copy_of(small.byte_level_bpe())
    for name, part in parts.items():
        setattr(backend, name, part)
    return backend


def with_greedy_added_token() -> Backend:
    from tokenizers import AddedToken

    backend = changed()
    backend.add_tokens([AddedToken("<trim>", rstrip=True)])
    return backend


@pytest.mark.parametrize(
    "backend",
    [
        small.wordpiece(),
        small.metaspace_unigram(),
        small.suffix_bpe(),
        changed(normalizer=normalizers.Strip()),
        changed(normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Replace("  ", " ")])),
        changed(normalizer=normalizers.NFKC()),
        changed(pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel()])),
        changed(pre_tokenizer=pre_tokenizers.Split(" ", "removed")),
        changed(pre_tokenizer=None),
        with_greedy_added_token(),
        Backend(models.BPE({"a": 0}, [])),
    ],
    ids=lambda backend: type(backend.model).__name__,
)
def test_there_is_no_bound_where_text_may_vanish(backend: Backend) -> None:
    assert max_bytes_per_token(backend) is None


def test_nfc_shrinks_no_more_than_stated() -> None:
    every = map(chr, [*range(0xD800), *range(0xE000, 0x110000)])
    decomposing = [char for char in every if unicodedata.decomposition(char)] + list(map(chr, range(0xAC00, 0xD7A4)))
    # What composes to one character may itself have been written with characters that only decompose.
    longest: dict[str, int] = {}
    for char in decomposing:
        simple = unicodedata.normalize("NFD", char)
        if len(simple) == 1:
            longest[simple] = max(longest.get(simple, 0), len(char.encode()))
    worst = max(size / len(char.encode()) for char, size in longest.items())
    for char in decomposing:
        if unicodedata.normalize("NFC", char) == char:
            parts = unicodedata.normalize("NFD", char)
            written = sum(longest.get(part, len(part.encode())) for part in parts)
            worst = max(worst, written / len(char.encode()))
    assert 3 < worst <= NFC_SHRINKAGE


def test_unknown_decoders_are_not_taken_for_known_ones() -> None:
    for decoder in (
        None,
        decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)]),
        decoders.Sequence([decoders.Replace("_", " "), decoders.Fuse()]),
        decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 2, 0)]),
        decoders.CTC(),
    ):
        backend = copy_of(small.byte_level_bpe())
        backend.decoder = decoder
        assert Tokenizer(backend).decoder_kind is DecoderKind.OTHER


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, bough.tokenization.tokenizer, bough.tokenization.chat_template, bough.tokenization.stop_matcher, "
        "bough.managers.detokenizer_manager; print([m for m in ('torch', 'transformers', 'numpy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def with_normalized_tokens(make: Callable[[], Backend], flag: bool, *steps: normalizers.Normalizer) -> Tokenizer:
    described = json.loads(make().to_str())
    for token in described["added_tokens"]:
        token["normalized"] = flag
    backend = Backend.from_str(json.dumps(described))
    own = [] if backend.normalizer is None else [backend.normalizer]
    backend.normalizer = normalizers.Sequence([*own, *steps])
    backend.add_tokens([AddedToken("Two Words", normalized=flag), AddedToken("ﬁn", normalized=flag)])
    backend.add_special_tokens([AddedToken("<End Of Text>", normalized=flag)])
    return Tokenizer(backend)


STEPS = {
    "as it is": (),
    "llama": (normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")),
    "lowercase": (normalizers.Lowercase(),),
    "nfkc": (normalizers.NFKC(), normalizers.Replace(Regex(r"[<>]"), "")),
}


def test_texts_of_added_tokens_are_not_normalised() -> None:
    for steps in STEPS:
        for name in MAKERS:
            normalised, plain = (with_normalized_tokens(MAKERS[name], flag, *STEPS[steps]) for flag in (True, False))
            every_id = range(plain.vocab_size + 1)
            assert normalised.special_token_ids == plain.special_token_ids
            assert [normalised.id_to_token(each) for each in every_id] == [plain.id_to_token(each) for each in every_id]
            assert list(map(normalised.id_to_piece_bytes, every_id)) == list(map(plain.id_to_piece_bytes, every_id))
            added = sorted(
                {plain.token_to_id(text) for text in ("Two Words", "ﬁn", "<End Of Text>")} | plain.special_ids
            )
            ids = [each for pair in zip(added, range(300, 300 + len(added)), strict=True) for each in pair]
            for skip in (True, False):
                text = plain.decode(ids, skip_special_tokens=skip)
                assert normalised.decode(ids, skip_special_tokens=skip) == text
                assert ("<End Of Text>" in text.replace("▁", " ")) != skip
                decoder = incremental_decoder(normalised, (), skip)
                assert "".join(decoder.push([each])[0] for each in ids) + decoder.flush() == text
