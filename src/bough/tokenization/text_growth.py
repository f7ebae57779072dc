"""Bounds of how much longer the steps of a tokenizer make a text.

They are read off the steps' descriptions. A checkpoint may chain steps each of which doubles a text, so what could make
one very long is refused; where a bound is too high to be relied on, texts are measured, piece by piece, as they come.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any, NamedTuple

from tokenizers import Tokenizer as Backend

from bough.errors import BadRequest, CheckpointError

MAX_FACTOR = 16
"""Bytes of normalised text for each byte of a text. Compatibility forms (NFKC) make 11 of one at most."""

_RELIABLE_FACTOR = 8
"""Bound of a normaliser up to which texts are not measured."""

_MAX_POSSIBLE_FACTOR = 8192
"""Bound of a normaliser up to which texts can be measured in pieces of a useful length."""

_MAX_CONSTANT = 1 << 16
_SLACK_BYTES = 1 << 16
"""Bytes that a text may become in any case."""
_PIECE_BYTES = 1 << 22
"""Length of a piece of text once it is normalised, at most."""
_MAX_PIECE_CHARS = 1 << 16

_UNKNOWN_STEP = 4
_FACTORS = {
    "NFC": 3,
    "NFD": 3,
    "NFKC": 11,
    "NFKD": 11,
    "Lowercase": 2,
    "BertNormalizer": 4,
    "ByteLevel": 2,
    **dict.fromkeys(("Strip", "StripAccents", "Nmt", "Fuse", "ByteFallback", "CTC", "BPEDecoder"), 1),
    **dict.fromkeys(("Split", "Punctuation", "Digits", "Whitespace", "WhitespaceSplit", "UnicodeScripts"), 1),
    **dict.fromkeys(("BertPreTokenizer", "CharDelimiterSplit", "FixedLength"), 1),
    **dict.fromkeys(("BertProcessing", "RobertaProcessing"), 1),
}
"""By kind of step: bytes that it makes of one; of post-processors, tokens."""

_USUAL_REPLACEMENT_BYTES = 40
"""Longest replacement in SentencePiece's tables, of a character of three bytes."""


class _Growth(NamedTuple):
    """What becomes of ``n`` bytes: at most ``factor * n + constant``."""

    factor: int = 1
    constant: int = 0

    def then(self, other: _Growth) -> _Growth:
        """Both steps, this one first."""
        return _Growth(self.factor * other.factor, self.constant * other.factor + other.constant)


_LIMITS = {
    "normalizer": _Growth(_MAX_POSSIBLE_FACTOR, _MAX_CONSTANT),
    "pre_tokenizer": _Growth(MAX_FACTOR, _MAX_CONSTANT),
    "post_processor": _Growth(4, 1024),
    "decoder": _Growth(64, _MAX_CONSTANT),
}


class TextGrowth:
    """Keeps the text that a tokenizer's normaliser makes within :data:`MAX_FACTOR` times what it is given.

    Args:
        backend: of the tokenizer; it may get another normaliser later only if that does no more.
        source: the tokenizer's file or directory, for errors.

    Raises:
        CheckpointError: if one of its parts can make a text, or tokens, so much longer that this cannot be measured.
    """

    def __init__(self, backend: Backend, source: object) -> None:
        self._normalizer = backend.normalizer
        for part, limit in _LIMITS.items():
            step = getattr(backend, part)
            growth = _Growth() if step is None else _growth(json.loads(step.__getstate__()))
            if growth.factor > limit.factor or growth.constant > limit.constant:
                raise CheckpointError(
                    f"{source}: the tokenizer's {part} can make a text {growth.factor} times as long and add "
                    f"{growth.constant} more, at most {limit.factor} and {limit.constant} are possible",
                    param="tokenizer_path",
                )
            if part == "normalizer":
                self._bound = growth

    def check(self, text: str, param: str | None) -> None:
        """Refuse a text that the normaliser makes too long; no more than a piece of it is normalised at a time.

        Raises:
            BadRequest: naming ``param``.
        """
        if self._bound.factor <= _RELIABLE_FACTOR or self._normalizer is None:
            return
        size = min(max(_PIECE_BYTES // self._bound.factor // 4, 1), _MAX_PIECE_CHARS)
        allowed, made = _SLACK_BYTES, 0
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            allowed += MAX_FACTOR * len(piece.encode()) + self._bound.constant
            made += len(self._normalizer.normalize_str(piece).encode())
            if made > allowed:
                where = f"{param}: " if param else ""
                raise BadRequest(
                    f"{where}the model's normalizer makes the text more than {MAX_FACTOR} times as long", param=param
                )


def _growth(step: dict[str, Any]) -> _Growth:
    """Bound of one step, whatever part of the tokenizer it belongs to."""
    kind = step["type"]
    match kind:
        case "Sequence":
            whole = _Growth()
            for names in ("normalizers", "pretokenizers", "processors", "decoders"):
                for each in step.get(names) or ():
                    whole = whole.then(_growth(each))
            return whole
        case "Replace":
            pattern, content = step["pattern"].get("String"), len(step["content"].encode())
            if pattern:
                return _Growth(max(1, -(-content // len(pattern.encode()))))
            return _Growth(content + 1, content)  # an expression may match between any two characters
        case "Prepend":
            return _Growth(1, len(step["prepend"].encode()))
        case "Metaspace":
            mark = len(step["replacement"].encode())
            return _Growth(mark, mark)
        case "WordPiece":
            return _Growth(2, 0)
        case "Precompiled":
            longest = _longest_replacement(base64.b64decode(step["precompiled_charsmap"]))
            return _Growth(_FACTORS["NFKC"] if longest <= _USUAL_REPLACEMENT_BYTES else longest)
        case "TemplateProcessing":
            return max(_template_growth(step, step[name]) for name in ("single", "pair"))
    return _Growth(_FACTORS.get(kind, _UNKNOWN_STEP))


def _template_growth(step: dict[str, Any], pieces: list[dict[str, Any]]) -> _Growth:
    ids = {name: len(token["ids"]) for name, token in step["special_tokens"].items()}
    names = [piece["Sequence"]["id"] for piece in pieces if "Sequence" in piece]
    added = sum(ids.get(piece["SpecialToken"]["id"], 0) for piece in pieces if "SpecialToken" in piece)
    return _Growth(max((names.count(name) for name in set(names)), default=1), added)


def _longest_replacement(table: bytes) -> int:
    """Bytes of the longest text in SentencePiece's table: a trie, after its length, and texts that end with a null."""
    (size,) = struct.unpack_from("<I", table) if len(table) >= 4 else (0,)
    return max(map(len, table[4 + size :].split(b"\0")))
