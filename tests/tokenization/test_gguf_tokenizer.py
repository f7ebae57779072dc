from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import pytest
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend
from transformers.convert_slow_tokenizer import generate_merges

from bough.errors import ConfigError
from bough.tokenization.loading import load_tokenizer
from bough.tokenization.tokenizer import Tokenizer
from tests.models.gguf_files import CONTROL, NORMAL, USER, add_entry, merges_of, vocabulary
from tests.tokenization.small_tokenizers import SENTENCES, sentencepiece_bpe

PATTERNS = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt-4o": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
}
"""As the tokenizer.json of these families have them."""

ODD_TEXTS = [
    *SENTENCES[:7],
    "",
    " ",
    "\n",
    "\t \n\r\n  x",
    "  two  spaces   three ",
    "a\u0301 A\u030a e\u0301 — decomposed, and K (the kelvin sign)",
    "ﬁne ½ ²³ Ⅷ ١٢٣ ๑๒๓ 1234567",
    "\u200b\u200d\ufeff\u00a0\u3000|",
    "<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n",
    "<s>[INST] x </s><tool call><unk>ñandú",
    "I'M WE'LL they'Ve'd 'tis",
    "\x00\x01\x7f�",
    "🇩🇪👩‍👩‍👧‍👦👍🏽",
    "a" * 300 + "!" * 70,
    "x=1;y=2//comment/*…*/\n\n\n\nif(x){return}",
]


def write_vocabulary(path: Path, backend: Backend, kind: str, entries: dict[str, Any], padding: int = 0) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in {**vocabulary(backend, kind, padding), **entries}.items():
        add_entry(writer, f"tokenizer.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def byte_level(name: str) -> Backend:
    backend = Backend(models.BPE(ignore_merges=name in ("llama-bpe", "tekken")))
    if name == "qwen2":
        backend.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PATTERNS[name]), "isolated")
    encode = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, encode])
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        SENTENCES, trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    )
    specials = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    backend.add_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    backend.add_tokens([AddedToken("<tool call>", normalized=False), AddedToken("ñandú", normalized=False)])
    return backend


def load(path: Path) -> Tokenizer:
    return load_tokenizer(path)


@pytest.mark.parametrize("name", PATTERNS)
def test_byte_level_ids_equal_those_of_the_tokenizer_it_came_from(tmp_path: Path, name: str) -> None:
    original = byte_level(name)
    entries = {
        "ggml.pre": name,
        "ggml.merges": merges_of(original),
        "ggml.bos_token_id": original.token_to_id("<s>"),
        "ggml.eos_token_id": original.token_to_id("<|im_end|>"),
        "ggml.add_bos_token": False,
    }
    ours = load(write_vocabulary(tmp_path / "v.gguf", original, "gpt2", entries, padding=5))
    assert ours.vocab_size == original.get_vocab_size()
    for text in ODD_TEXTS:
        ids = original.encode(text).ids
        assert list(ours.encode(text)) == ids, text
        for skip in (True, False):
            assert ours.decode(ids, skip_special_tokens=skip) == original.decode(ids, skip_special_tokens=skip)
    assert ours.special_ids == {original.token_to_id(t) for t in ("<s>", "</s>", "<|im_start|>", "<|im_end|>")}
    assert ours.eos_token_id == original.token_to_id("<|im_end|>")
    assert ours.max_token_bytes is not None


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece_ids_equal_those_of_the_tokenizer_it_came_from(tmp_path: Path, prefix: bool) -> None:
    trained = sentencepiece_bpe()
    vocab = trained.get_vocab(with_added_tokens=False)
    tokens = sorted(vocab, key=vocab.__getitem__)
    scores = {token: -float(index) for index, token in enumerate(tokens)}
    plain = {token: index for token, index in vocab.items() if not token.startswith("<")}
    merges = generate_merges(plain, scores)
    original = Backend(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    original.normalizer = trained.normalizer if prefix else normalizers.Replace(" ", "▁")
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    original.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)
    original.add_special_tokens(["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"])
    original.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", original.token_to_id("<s>"))]
    )
    entries = {
        "ggml.scores": [scores[token] for token in tokens],
        "ggml.bos_token_id": original.token_to_id("<s>"),
        "ggml.eos_token_id": original.token_to_id("</s>"),
        "ggml.unknown_token_id": original.token_to_id("<unk>"),
        "ggml.add_space_prefix": prefix,
    }
    ours = load(write_vocabulary(tmp_path / "v.gguf", original, "llama", entries))
    for text in ODD_TEXTS:
        ids = original.encode(text).ids
        assert list(ours.encode(text)) == ids, text
        assert ours.decode(ids) == original.decode(ids, skip_special_tokens=True)
    assert ours.bos_prefix.tolist() == [original.token_to_id("<s>")]
    assert ours.byte_fallback_ids


@pytest.mark.parametrize("named", [{}, {"bos_token_id": 4, "eos_token_id": 3}, {"bos_token_id": 999}])
def test_sentencepiece_files_need_not_name_their_special_ids(tmp_path: Path, named: dict[str, int]) -> None:
    tokens = ["<unk>", "<s>", "</s>", "<end>", "<begin>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a"]
    entries = {
        "ggml.model": "llama",
        "ggml.tokens": tokens,
        "ggml.token_type": [2, *[CONTROL] * 4, *[6] * 256, *[NORMAL] * 3],
        "ggml.scores": [0.0] * len(tokens),
        **{f"ggml.{name}": value for name, value in named.items()},
    }
    writer = gguf.GGUFWriter(tmp_path / "v.gguf", "llama")
    for key, value in entries.items():
        add_entry(writer, f"tokenizer.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    ours = load(tmp_path / "v.gguf")
    bos, eos = ({999: 1}.get(named.get("bos_token_id", 1), named.get("bos_token_id", 1)), named.get("eos_token_id", 2))
    assert (ours.bos_token_id, ours.eos_token_id) == (bos, eos)
    assert list(ours.encode("a")) == [bos, tokens.index("▁a")]
    assert ours.special.unk == "<unk>"
    assert ours.decode([bos, tokens.index("▁a"), eos]) == "a"


ALIASES = {
    "llama-bpe": "falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano llama3 llama-v3",
    "gpt-2": "gigachat mellum a.x-4.0 exaone4 mpt olmo jais trillion granite-docling phi-2 modern-bert",
    "qwen2": "deepseek-r1-qwen f2llmv2",
    "smollm": "starcoder refact command-r codeshell exaone minerva-7b mellum2",
}


@pytest.mark.parametrize(("name", "alias"), [(name, alias) for name in ALIASES for alias in ALIASES[name].split()])
def test_names_of_the_same_rules_give_the_same_ids(tmp_path: Path, name: str, alias: str) -> None:
    original = byte_level(name if name in PATTERNS else "gpt-2")
    entries = {"ggml.merges": merges_of(original), "ggml.bos_token_id": original.token_to_id("<s>")}
    one, other = (
        load(write_vocabulary(tmp_path / f"{pre}.gguf", original, "gpt2", {**entries, "ggml.pre": pre}))
        for pre in (name, alias)
    )
    for text in ODD_TEXTS:
        assert one.encode(text) == other.encode(text), text


@pytest.mark.parametrize(
    "alias",
    [
        *("stablelm2", "megrez", "kormo", "hunyuan", "solar-open", "grok-2"),
        *("dbrx", "smaug-bpe", "glm4", "chatglm-bpe"),
    ],
)
def test_names_that_share_a_pattern_need_no_bos_and_no_normal_form(tmp_path: Path, alias: str) -> None:
    name = "llama-bpe" if alias in ("dbrx", "smaug-bpe", "glm4", "chatglm-bpe") else "qwen2"
    original = byte_level(name)
    described = json.loads(original.to_str())
    described["normalizer"] = None
    described["model"]["ignore_merges"] = False
    original = Backend.from_str(json.dumps(described))
    entries = {"ggml.pre": alias, "ggml.merges": merges_of(original), "ggml.bos_token_id": original.token_to_id("<s>")}
    ours = load(write_vocabulary(tmp_path / "v.gguf", original, "gpt2", entries))
    for text in ODD_TEXTS:
        assert list(ours.encode(text)) == original.encode(text).ids, text


def test_files_of_the_qwen_family_need_not_name_their_rules(tmp_path: Path) -> None:
    original = byte_level("qwen2")
    path = tmp_path / "v.gguf"
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([original.id_to_token(i) for i in range(original.get_vocab_size(False))])
    writer.add_token_merges(merges_of(original))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert list(load(path).encode("I'M 1234 é")) == original.encode("I'M 1234 é").ids


@pytest.mark.parametrize("named", [{}, {"ggml.pre": "default"}])
def test_llama_3_is_known_by_the_beginning_of_its_texts(tmp_path: Path, named: dict[str, str]) -> None:
    original = byte_level("llama-bpe")
    original.add_special_tokens(["<|begin_of_text|>"])
    bos = original.token_to_id("<|begin_of_text|>")
    entries = {**named, "ggml.merges": merges_of(original), "ggml.bos_token_id": bos}
    ours = load(write_vocabulary(tmp_path / "v.gguf", original, "gpt2", entries))
    for text in ODD_TEXTS:
        assert list(ours.encode(text)) == [bos, *original.encode(text).ids], text


@pytest.mark.parametrize("role", [NORMAL, USER, CONTROL])
def test_tokens_that_end_a_turn_are_special_whatever_the_file_calls_them(tmp_path: Path, role: int) -> None:
    original = byte_level("gpt-2")
    end, tool = original.token_to_id("<|im_end|>"), original.token_to_id("<tool call>")
    types = vocabulary(original, "gpt2")["ggml.token_type"]
    types[end] = role
    entries = {"ggml.pre": "gpt-2", "ggml.merges": merges_of(original), "ggml.token_type": types}
    ours = load(write_vocabulary(tmp_path / "v.gguf", original, "gpt2", entries))
    assert list(ours.encode("a<|im_end|>")) == [*original.encode("a").ids, end]
    assert ours.decode([end]) == ""
    assert end in ours.special_ids
    assert tool not in ours.special_ids
    assert end not in ours.running_text_encoder()("a<|im_end|>")
    entries["ggml.eos_token_ids"] = [tool]
    assert {end, tool} <= load(write_vocabulary(tmp_path / "v.gguf", original, "gpt2", entries)).special_ids


@pytest.mark.parametrize(("bos", "eos"), [(True, True), (False, False), (None, None)])
def test_the_file_says_what_stands_around_a_text(tmp_path: Path, bos: bool | None, eos: bool | None) -> None:
    original = byte_level("llama-bpe")
    ends = [original.token_to_id("<s>"), original.token_to_id("</s>")]
    entries: dict[str, Any] = {"ggml.pre": "llama-bpe", "ggml.merges": merges_of(original)}
    entries |= {"ggml.bos_token_id": ends[0], "ggml.eos_token_id": ends[1]}
    entries |= {} if bos is None else {"ggml.add_bos_token": bos, "ggml.add_eos_token": eos}
    ours = load(write_vocabulary(tmp_path / "v.gguf", original, "gpt2", entries))
    text = original.encode("text").ids
    assert list(ours.encode("text")) == [*ends[: bos is not False], *text, *(ends[1:] if eos else [])]
    assert list(ours.encode("text", add_special_tokens=False)) == text


def test_chat_templates_are_read(tmp_path: Path) -> None:
    original = byte_level("gpt-2")
    entries = {
        "ggml.pre": "gpt-2",
        "ggml.merges": merges_of(original),
        "chat_template": "{{ bos_token }}",
        "chat_template.tool_use": "tools",
    }
    ours = load(write_vocabulary(tmp_path / "v.gguf", original, "gpt2", entries))
    assert ours.chat_templates == {"default": "{{ bos_token }}", "tool_use": "tools"}


@pytest.mark.parametrize(
    ("kind", "entries", "message"),
    [
        ("gpt2", {"ggml.pre": "who-knows"}, "tokenizer.ggml.pre who-knows is not supported, only llama-bpe"),
        ("bert", {}, "tokenizer.ggml.model bert is not supported"),
        ("gpt2", {}, "tokenizer.ggml.pre is missing; supported are llama-bpe, .*--tokenizer-path"),
        ("gpt2", {"ggml.pre": "default"}, "tokenizer.ggml.pre default is not supported, only llama-bpe"),
        ("gpt2", {"ggml.pre": "gpt-2"}, "needs tokenizer.ggml.merges"),
        ("gpt2", {"ggml.pre": "gpt-2", "ggml.merges": ["a b c"]}, "the merge 'a b c' is not of two tokens into one"),
        ("llama", {}, "needs a score for each token"),
        ("llama", {"ggml.scores": [0.5]}, "needs a score for each token"),
        ("llama", {"ggml.tokens": ["a", "b" * 1025]}, "a token has 1025 characters, at most 1024 are possible"),
        ("llama", {"ggml.scores": "x"}, "tokenizer.ggml.scores must be an array of numbers"),
    ],
)
def test_what_makes_no_tokenizer_is_refused(tmp_path: Path, kind: str, entries: dict[str, Any], message: str) -> None:
    path = write_vocabulary(tmp_path / "v.gguf", byte_level("gpt-2"), kind, entries)
    with pytest.raises(ConfigError, match=message):
        load(path)
