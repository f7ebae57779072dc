"""BERT's tokenizer: from a bare ``vocab.txt``, for checkpoints that have no ``tokenizer.json``; and its rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bough.config.checkpoint import has_file, read_json
from bough.errors import CheckpointError

BERT_CLASSES = ("BertTokenizer", "BertTokenizerFast")
_SPECIAL = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}


def load_wordpiece(directory: Path) -> Backend | None:
    """Load the WordPiece tokenizer (Wu et al. 2016) of a ``vocab.txt`` with BERT's rules; ``None``: another kind.

    Raises:
        CheckpointError: if the vocabulary is not UTF-8 text.
    """
    path = directory / "vocab.txt"
    if not has_file(path):
        return None
    config_file = directory / "tokenizer_config.json"
    config = read_json(config_file) if has_file(config_file) else {}
    if not isinstance(config, dict) or config.get("tokenizer_class", BERT_CLASSES[0]) not in BERT_CLASSES:
        return None
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"cannot read {path}: {error}", param="tokenizer_path") from None
    vocab = {line.rstrip("\r"): index for index, line in enumerate(lines) if line or index + 1 < len(lines)}
    special = {name: token_content(config.get(name)) or token for name, token in _SPECIAL.items()}
    if not {special["unk_token"], special["cls_token"], special["sep_token"]} <= vocab.keys():
        return None
    backend = Backend(models.WordPiece(vocab, unk_token=special["unk_token"]))
    backend.normalizer = bert_normalizer(config)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens([token for token in special.values() if token in vocab])
    first, last = special["cls_token"], special["sep_token"]
    backend.post_processor = processors.BertProcessing((last, vocab[last]), (first, vocab[first]))
    return backend


def bert_normalizer(config: Mapping[str, Any]) -> normalizers.BertNormalizer:
    """What BERT's tokenizer does to a text first, as its ``tokenizer_config.json`` says."""
    return normalizers.BertNormalizer(
        handle_chinese_chars=config.get("tokenize_chinese_chars") is not False,
        strip_accents=config.get("strip_accents") if isinstance(config.get("strip_accents"), bool) else None,
        lowercase=config.get("do_lower_case") is not False,
    )


def token_content(token: Any) -> str | None:
    """Return the text of a token, given as it is or as the ``content`` of an object; ``None`` if it is neither."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None
