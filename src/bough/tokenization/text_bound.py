"""How much text one token can stand for, at most."""

from __future__ import annotations

import math

from tokenizers import Tokenizer as Backend

from bough.tokenization.pieces import BYTE_ALPHABET
from bough.tokenization.tokenizer_steps import Step, steps_of

NFC_SHRINKAGE = 4
"""NFC never makes a text shorter than a quarter of its UTF-8 bytes. The extremes of Unicode 15 are KELVIN SIGN
(3 bytes to 1) and PROSGEGRAMMENI with DIAERESIS and OXIA (7 bytes to 2)."""


def max_bytes_per_token(backend: Backend) -> int | None:
    """Most bytes of UTF-8 input that end up in one token, or ``None`` if some step may lose or swallow text.

    Only steps that are known not to are accepted. A normaliser, for instance, may remove control characters, a
    pre-tokenizer may drop white space, and a model without byte tokens may turn a whole word into one unknown token.
    """
    normalizer, pre_tokenizer = steps_of(backend.normalizer), steps_of(backend.pre_tokenizer)
    shrinkages = [_shrinkage(step) for step in normalizer]
    added = backend.get_added_tokens_decoder().values()
    if None in shrinkages or any(token.lstrip or token.rstrip for token in added):
        return None
    is_byte_level = any(step["type"] == "ByteLevel" for step in (*normalizer, *pre_tokenizer))
    if not all(map(_keeps_text, pre_tokenizer)) or not _knows_every_byte(backend, is_byte_level):
        return None
    vocab = backend.get_vocab(with_added_tokens=True)
    # A byte-level entry has a character for each of its bytes; counting these characters' bytes errs on the safe side,
    # and so does counting three bytes for the character that stands for a space. But not by much where it matters:
    # the longest entries are runs of spaces or ASCII.
    lengths = [len(token) if is_byte_level else len(token.encode()) for token in vocab]
    lengths += [len(token.content.encode()) for token in added]
    return max(lengths, default=1) * math.prod(each or 1 for each in shrinkages)


def _shrinkage(step: Step) -> int | None:
    """Factor by which a normaliser can make a text shorter, in UTF-8 bytes; ``None`` if there is no bound."""
    match step["type"]:
        case "NFC":
            return NFC_SHRINKAGE
        case "Prepend" | "ByteLevel":
            return 1
        case "Replace":
            pattern = step["pattern"].get("String")
            return 1 if pattern is not None and len(step["content"].encode()) >= len(pattern.encode()) else None
    return None


def _keeps_text(step: Step) -> bool:
    """True if every byte of the text gets past a pre-tokenizer."""
    match step["type"]:
        case "ByteLevel" | "Metaspace" | "Digits":
            return True
        case "Split" | "Punctuation":
            return bool(step["behavior"] != "Removed")
    return False


def _knows_every_byte(backend: Backend, is_byte_level: bool) -> bool:
    """True if the model has a token for every byte, so that nothing is unknown to it or left out."""
    model = backend.model
    if is_byte_level:
        is_bpe = type(model).__name__ == "BPE"
        return is_bpe and all(model.token_to_id(char) is not None for char in BYTE_ALPHABET)
    if not getattr(model, "byte_fallback", False):
        return False
    return all(model.token_to_id(f"<0x{byte:02X}>") is not None for byte in range(256))
