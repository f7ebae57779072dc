"""The tokenizer that a GGUF file has in its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from bough.config.gguf_config import CONTROL_TOKEN, END_TOKENS, USER_TOKEN, declared_end_ids, special_token_id
from bough.config.gguf_file import GGUFFile
from bough.errors import CheckpointError, ConfigError
from bough.tokenization.tokenizer_files import DEFAULT_TEMPLATE, TokenizerFiles, around

_UNKNOWN_TOKEN = 2
_UNUSED_TOKEN = 5

_SPACE = "▁"

_MAX_TOKEN_CHARACTERS = 1024
"""Every place at which a token may be cut is looked at, at costs of the token's length each."""

_CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
_GPT2 = rf"{_CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"
_WORDS = rf"(?i:{_CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_CASED_WORDS = (rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+", rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*")
_LINES = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True, slots=True)
class _Rules:
    """What happens to a text before byte-level BPE."""

    patterns: tuple[str, ...]
    """Cut the text, one after the other."""
    nfc: bool = False
    whole_words: bool = False
    """A word that is a token needs no merges."""
    begins_with_bos: bool = False
    """Where the file does not say."""


_TO_3_DIGITS = (rf"{_WORDS}|\p{{N}}{{1,3}}{_REST}",)
_BY_DIGIT = (rf"{_WORDS}|\p{{N}}{_REST}",)
_LLAMA3 = _Rules(_TO_3_DIGITS, whole_words=True, begins_with_bos=True)
_QWEN2 = _Rules(_BY_DIGIT, nfc=True)
_PLAIN = _Rules((_GPT2,))
_TEKKEN = _Rules(
    (rf"{'|'.join(_CASED_WORDS)}|\p{{N}}{_LINES}",),
    whole_words=True,
    begins_with_bos=True,
)

_GPT4O = _Rules(("|".join(rf"{word}(?i:{_CONTRACTIONS})?" for word in _CASED_WORDS) + rf"|\p{{N}}{{1,3}}{_LINES}",))

_NAMES = (
    (_LLAMA3, "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano"),
    (_Rules(_TO_3_DIGITS), "dbrx smaug-bpe glm4 chatglm-bpe"),
    (_QWEN2, "qwen2 deepseek-r1-qwen f2llmv2"),
    (_Rules(_BY_DIGIT), "kormo megrez stablelm2 hunyuan solar-open grok-2"),
    (_TEKKEN, "tekken"),
    (_GPT4O, "gpt-4o"),
    (_Rules((r"\p{N}", _GPT2)), "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2"),
    (
        _PLAIN,
        "gpt-2 gpt2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert exaone4 mpt olmo "
        "jais trillion granite-docling",
    ),
)
_RULES = {name: rules for rules, names in _NAMES for name in names.split()}
"""Rules by ``tokenizer.ggml.pre``. Names that llama.cpp knows and this table lacks need other patterns."""

_UNNAMED = (None, "default")
_BY_ARCHITECTURE = {"qwen2": _QWEN2, "qwen3": _QWEN2}
"""For files from before there was ``tokenizer.ggml.pre``."""

_LLAMA = "llama"
"""The architecture of models with tokenizers of many kinds."""
_LLAMA3_TOKEN = "<|begin_of_text|>"


def load_gguf_tokenizer(path: Path) -> tuple[Backend, TokenizerFiles]:
    """The tokenizer of a GGUF file, and what else its metadata says of it.

    Raises:
        ConfigError: if the file is damaged, or its kind of tokenizer is not known.
    """
    return _Builder(GGUFFile(path)).build()


class _Builder:
    def __init__(self, file: GGUFFile) -> None:
        self._file = file
        tokens = file.strings("tokenizer.ggml.tokens")
        if tokens is None:
            raise self._refused("the file has no tokenizer")
        self._tokens = list(tokens)
        longest = max(map(len, self._tokens), default=0)
        if longest > _MAX_TOKEN_CHARACTERS:
            raise self._refused(f"a token has {longest} characters, at most {_MAX_TOKEN_CHARACTERS} are possible")
        types = file.numbers("tokenizer.ggml.token_type")
        self._types: list[int] = [1] * len(self._tokens) if types is None else types.tolist()
        if len(self._types) != len(self._tokens):
            raise self._refused(f"there are {len(self._tokens)} tokens, and types of {len(self._types)}")
        # Tables are filled up to a round number of rows with tokens that no text has.
        while self._types and self._types[-1] == _UNUSED_TOKEN and self._tokens[-1].startswith("[PAD"):
            del self._types[-1], self._tokens[-1]
        ends = declared_end_ids(file)
        for index, token in enumerate(self._tokens):
            # No text shows them. A normal token that only an id says it of stays one: its name may not be its text.
            if token in END_TOKENS or (index in ends and self._types[index] == USER_TOKEN):
                self._types[index] = CONTROL_TOKEN
        self._vocab = {token: index for index, token in enumerate(self._tokens)}
        if len(self._vocab) < len(self._tokens):
            twice = next(token for index, token in enumerate(self._tokens) if self._vocab[token] != index)
            raise self._refused(f"the token {twice!r} is there twice")

    def build(self) -> tuple[Backend, TokenizerFiles]:
        file = self._file
        kind = file.text("tokenizer.ggml.model")
        if kind == "gpt2":
            backend, adds_bos = self._byte_level()
        elif kind == "llama":
            backend, adds_bos = self._sentencepiece(), True
        else:
            raise self._refused(f"tokenizer.ggml.model {kind} is not supported, only gpt2 (BPE) and llama")
        names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
        special = {f"{name}_token": self._token(f"{stored}_token_id") for name, stored in names.items()}
        added = [
            AddedToken(token, special=role != USER_TOKEN, normalized=False)
            for token, role in zip(self._tokens, self._types, strict=True)
            if role in (_UNKNOWN_TOKEN, CONTROL_TOKEN, USER_TOKEN) and token
        ]
        backend.add_tokens(added)
        explicit = file.boolean("tokenizer.ggml.add_bos_token")
        first = special["bos_token"] if (adds_bos if explicit is None else explicit) else None
        last = special["eos_token"] if file.boolean("tokenizer.ggml.add_eos_token") else None
        if first is not None or last is not None:
            backend.post_processor = around(
                *(None if each is None else (each, self._vocab[each]) for each in (first, last))
            )
        files = TokenizerFiles(
            directory=file.path,
            tokenizer_json=None,
            declared={},
            special={name: token for name, token in special.items() if token is not None},
            chat_templates=self._chat_templates(),
        )
        return backend, files

    def _byte_level(self) -> tuple[Backend, bool]:
        file = self._file
        name = file.text("tokenizer.ggml.pre")
        rules = _RULES.get(name or "")
        if name in _UNNAMED:
            rules = self._unnamed_rules()
        if rules is None:
            what = "is missing; supported are" if name is None else f"{name} is not supported, only"
            raise self._refused(f"tokenizer.ggml.pre {what} {', '.join(_RULES)}")
        stored = file.strings("tokenizer.ggml.merges")
        if stored is None:
            raise self._refused("a tokenizer of the kind gpt2 needs tokenizer.ggml.merges")
        merges = []
        for merge in stored:
            left, space, right = merge.partition(" ")
            if not (space and left in self._vocab and right in self._vocab and left + right in self._vocab):
                raise self._refused(f"the merge {merge!r} is not of two tokens into one")
            merges.append((left, right))
        backend = Backend(models.BPE(self._vocab, merges, ignore_merges=rules.whole_words))
        if rules.nfc:
            backend.normalizer = normalizers.NFC()
        cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in rules.patterns]
        encode = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.pre_tokenizer = pre_tokenizers.Sequence([*cuts, encode])
        backend.decoder = decoders.ByteLevel()
        return backend, rules.begins_with_bos

    def _unnamed_rules(self) -> _Rules | None:
        architecture = self._file.text("general.architecture") or ""
        if architecture == _LLAMA:
            return _LLAMA3 if _LLAMA3_TOKEN in self._vocab else None
        return _BY_ARCHITECTURE.get(architecture, _PLAIN)

    def _sentencepiece(self) -> Backend:
        scores = self._file.numbers("tokenizer.ggml.scores")
        if scores is None or len(scores) < len(self._tokens):
            raise self._refused("a tokenizer of the kind llama needs a score for each token")
        unknown = self._token("unknown_token_id")
        merges = self._merges(scores.tolist())
        backend = Backend(models.BPE(self._vocab, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
        spaces = normalizers.Replace(" ", _SPACE)
        steps = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
        if self._file.boolean("tokenizer.ggml.add_space_prefix") is False:
            backend.normalizer = spaces
        else:
            backend.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), spaces])
            steps.append(decoders.Strip(" ", 1, 0))
        backend.decoder = decoders.Sequence(steps)
        return backend

    def _merges(self, scores: list[float]) -> list[tuple[str, str]]:
        """What SentencePiece merges: any two neighbours that make a token, those of the highest score first."""
        vocab = self._vocab
        ranked = sorted(range(len(self._tokens)), key=scores.__getitem__, reverse=True)
        merges = []
        for token in (self._tokens[index] for index in ranked if self._types[index] in (1, USER_TOKEN)):
            halves = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
            known = [(left, right) for left, right in halves if left in vocab and right in vocab]
            merges += sorted(known, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        return merges

    def _token(self, key: str) -> str | None:
        token_id = special_token_id(self._file, key)
        return self._tokens[token_id] if token_id is not None and 0 <= token_id < len(self._tokens) else None

    def _chat_templates(self) -> dict[str, str]:
        prefix = "tokenizer.chat_template"
        templates = {DEFAULT_TEMPLATE: self._file.text(prefix)}
        for key in self._file.metadata:
            if key.startswith(f"{prefix}."):
                templates[key.removeprefix(f"{prefix}.")] = self._file.text(key)
        return {name: text for name, text in templates.items() if text is not None}

    def _refused(self, what: str) -> ConfigError:
        return CheckpointError(
            f"{self._file.path}: {what}; name a tokenizer in Hugging Face format with --tokenizer-path, or serve token "
            "ids with --skip-tokenizer-init",
            param="tokenizer_path",
        )
