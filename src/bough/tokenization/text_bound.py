"""How much text one token can stand for, at most."""

from __future__ import annotations

import json
from typing import Any

from tokenizers import Tokenizer as Backend

from bough.tokenization.pieces import BYTE_ALPHABET

NFC_SHRINKAGE = 4
"""NFC never makes a text shorter than a quarter of its UTF-8 bytes. The extremes of Unicode 15 are KELVIN SIGN
(3 bytes to 1) and PROSGEGRAMMENI with DIAERESIS and OXIA (7 bytes to 2)."""


def max_bytes_per_token(backend: Backend) -> int | None:
    """Most bytes of UTF-8 input that end up in one token, or ``None`` if some step may lose or swallow text.

    Only steps that are known not to are accepted. A normaliser, for instance, may remove control characters, a
    pre-tokenizer may drop white space, and a model without byte tokens may turn a whole word into one unknown token.
    """
    shrinkage = _normalizer_shrinkage(_config_of(backend.normalizer))
    added = backend.get_added_tokens_decoder().values()
    if shrinkage is None or any(token.lstrip or token.rstrip for token in added):
        return None
    pre_tokenizer = _config_of(backend.pre_tokenizer)
    if not _keeps_text(pre_tokenizer) or not _knows_every_byte(backend, pre_tokenizer):
        return None
    vocab = backend.get_vocab(with_added_tokens=True)
    # A byte-level entry has a character for each of its bytes; counting these characters' bytes errs on the safe side,
    # and so does counting three bytes for the character that stands for a space. But not by much where it matters:
    # the longest entries are runs of spaces or ASCII.
    if _is_byte_level(pre_tokenizer) or _is_byte_level(_config_of(backend.normalizer)):
        longest = max((len(token) for token in vocab), default=1)
        longest = max([longest, *(len(token.content.encode()) for token in added)])
    else:
        longest = max((len(token.encode()) for token in vocab), default=1)
    return longest * shrinkage


def _config_of(step: Any) -> dict[str, Any] | None:
    return None if step is None else json.loads(step.__getstate__())


def _normalizer_shrinkage(config: dict[str, Any] | None) -> int | None:
    """By what factor a normaliser can make a text shorter, in UTF-8 bytes; ``None`` if there is no bound."""
    if config is None:
        return 1
    match config["type"]:
        case "Sequence":
            product = 1
            for step in config["normalizers"]:
                factor = _normalizer_shrinkage(step)
                if factor is None:
                    return None
                product *= factor
            return product
        case "NFC":
            return NFC_SHRINKAGE
        case "Prepend" | "ByteLevel":
            return 1
        case "Replace":
            pattern = config["pattern"].get("String")
            grows = pattern is not None and len(config["content"].encode()) >= len(pattern.encode())
            return 1 if grows else None
    return None


def _keeps_text(config: dict[str, Any] | None) -> bool:
    """Whether every byte of the text reaches the model."""
    if config is None:
        return True
    match config["type"]:
        case "Sequence":
            return all(map(_keeps_text, config["pretokenizers"]))
        case "ByteLevel" | "Metaspace" | "Digits":
            return True
        case "Split" | "Punctuation":
            return bool(config["behavior"] != "Removed")
    return False


def _is_byte_level(config: dict[str, Any] | None) -> bool:
    if config is None:
        return False
    steps = config.get("pretokenizers") or config.get("normalizers") or [config]
    return any(step["type"] == "ByteLevel" for step in steps)


def _knows_every_byte(backend: Backend, pre_tokenizer: dict[str, Any] | None) -> bool:
    """Whether the model has a token for every byte, so that nothing is unknown to it or left out."""
    model = backend.model
    if _is_byte_level(pre_tokenizer) or _is_byte_level(_config_of(backend.normalizer)):
        is_bpe = type(model).__name__ == "BPE"
        return is_bpe and all(model.token_to_id(char) is not None for char in BYTE_ALPHABET)
    if not getattr(model, "byte_fallback", False):
        return False
    return all(model.token_to_id(f"<0x{byte:02X}>") is not None for byte in range(256))
