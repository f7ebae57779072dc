"""Limit how much longer a tokenizer's normaliser and other steps can make a text.

The limits come from the steps' descriptions. A checkpoint may chain steps that each double a text, so tokenizers
that could make one very long are refused. If a bound is too high to rely on, each text is measured, piece by piece.
"""

from __future__ import annotations

import base64
import struct
from functools import reduce
from typing import Any, NamedTuple

from tokenizers import Tokenizer as Backend

from bough.errors import BadRequest, CheckpointError
from bough.tokenization.tokenizer_steps import Step, steps_of

MAX_FACTOR = 16
"""Most bytes of normalised text per byte of input. Compatibility forms (NFKC) make at most 11 of one."""

_RELIABLE_FACTOR = 8
"""Bound of a normaliser up to which texts are not measured."""

_MAX_POSSIBLE_FACTOR = 8192
"""Bound of a normaliser up to which texts can be measured in pieces of a useful length."""

_MAX_CONSTANT = 1 << 16
_SLACK_BYTES = 1 << 16
"""Bytes that a text may always grow to."""
_PIECE_BYTES = 1 << 22
"""Most bytes of a normalised piece of text."""
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
"""Bytes that each kind of step makes from one byte; for post-processors, tokens."""

_USUAL_REPLACEMENT_BYTES = 40
"""Longest replacement in SentencePiece's tables, for a character of three bytes."""


class _Growth(NamedTuple):
    """Bound on the growth of ``n`` bytes: at most ``factor * n + constant``."""

    factor: int = 1
    constant: int = 0

    def then(self, other: _Growth) -> _Growth:
        """Return the bound of both steps, this one first."""
        return _Growth(self.factor * other.factor, self.constant * other.factor + other.constant)


_LIMITS = {
    "normalizer": _Growth(_MAX_POSSIBLE_FACTOR, _MAX_CONSTANT),
    "pre_tokenizer": _Growth(MAX_FACTOR, _MAX_CONSTANT),
    "post_processor": _Growth(4, 1024),
    "decoder": _Growth(64, _MAX_CONSTANT),
}


class TextGrowth:
    """Keeps the output of a tokenizer's normaliser within :data:`MAX_FACTOR` times its input.

    Args:
        backend: the tokenizer; its normaliser may be replaced later only by one that does no more.
        source: the tokenizer's file or directory, for errors.

    Raises:
        CheckpointError: if a part can make a text, or tokens, so much longer that it cannot be measured.
    """

    def __init__(self, backend: Backend, source: object) -> None:
        self._normalizer = backend.normalizer
        for part, limit in _LIMITS.items():
            growth = reduce(_Growth.then, map(_growth, steps_of(getattr(backend, part))), _Growth())
            if growth.factor > limit.factor or growth.constant > limit.constant:
                raise CheckpointError(
                    f"{source}: the tokenizer's {part} can make a text {growth.factor} times as long and add "
                    f"{growth.constant} more, at most {limit.factor} and {limit.constant} are possible",
                    param="tokenizer_path",
                )
            if part == "normalizer":
                self._bound = growth

    def check(self, text: str, param: str | None) -> None:
        """Refuse a text that the normaliser makes too long. Only a piece of it is normalised at a time.

        Raises:
            BadRequest: the error names ``param``.
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


def _growth(step: Step) -> _Growth:
    match step["type"]:
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
    return _Growth(_FACTORS.get(step["type"], _UNKNOWN_STEP))


def _template_growth(step: Step, pieces: list[dict[str, Any]]) -> _Growth:
    ids = {name: len(token["ids"]) for name, token in step["special_tokens"].items()}
    names = [piece["Sequence"]["id"] for piece in pieces if "Sequence" in piece]
    added = sum(ids.get(piece["SpecialToken"]["id"], 0) for piece in pieces if "SpecialToken" in piece)
    return _Growth(max((names.count(name) for name in set(names)), default=1), added)


def _longest_replacement(table: bytes) -> int:
    """Return the length of the longest text in SentencePiece's table: its size, a trie, then null-terminated texts."""
    (size,) = struct.unpack_from("<I", table) if len(table) >= 4 else (0,)
    return max(map(len, table[4 + size :].split(b"\0")))
