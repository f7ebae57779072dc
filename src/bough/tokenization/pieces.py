"""What each token id contributes to running text, for the decoders whose output is a concatenation of such pieces.

Nearly every language model's tokenizer decodes in one of two ways, and both can be followed token by token with a
table instead of decoding the same tokens again and again:

* *byte-level*: a token spells bytes, and the text is those bytes read as UTF-8;
* *local*: a token spells text that depends on nothing but whether it comes first (a leading space may be dropped),
  except that tokens of the form ``<0xE4>`` spell single bytes, and a run of them is read as UTF-8.

Tables fill themselves as ids are met, so that a vocabulary of 150,000 tokens costs nothing at start-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from enum import Enum

from tokenizers import decoders

from bough.tokenization.tokenizer_steps import Step

METASPACE = "\u2581"
"""The character that stands for a space in sentencepiece vocabularies."""

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ANCHOR = "a"
"""A token to decode after, when the piece of a token in running text is wanted."""


_ONE_SPACE = {"content": " ", "start": 1, "stop": 0}
"""Of a step that strips one leading space."""


class DecoderKind(Enum):
    """How ids become text. ``OTHER`` must be asked for whole windows of ids."""

    BYTE_LEVEL = "byte_level"
    LOCAL = "local"
    OTHER = "other"


def decoder_kind(steps: Sequence[Step]) -> DecoderKind:
    """Classify a decoder by its steps."""
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return DecoderKind.BYTE_LEVEL
    if kinds in (["Metaspace"], ["WordPiece"]):
        return DecoderKind.LOCAL
    # What remains is the form that sentencepiece models are converted to; order and parameters matter.
    if kinds and kinds[0] == "Replace" and steps[0]["pattern"] == {"String": METASPACE} and steps[0]["content"] == " ":
        steps, kinds = steps[1:], kinds[1:]
        if kinds[:1] == ["ByteFallback"]:
            steps, kinds = steps[1:], kinds[1:]
        if kinds in ([], ["Fuse"]) or (kinds == ["Fuse", "Strip"] and steps[1].items() >= _ONE_SPACE.items()):
            return DecoderKind.LOCAL
    return DecoderKind.OTHER


def has_byte_fallback(steps: Sequence[Step]) -> bool:
    """True if tokens of the form ``<0xE4>`` spell bytes."""
    return any(step["type"] == "ByteFallback" for step in steps)


def byte_of(token: str) -> int | None:
    """The byte that a byte-fallback token spells; ``None`` for every other token."""
    match = _BYTE_TOKEN.fullmatch(token)
    return int(match[1], 16) if match else None


class BytePieces(dict[int, "str | bytes"]):
    """Token id to what it adds to byte-level text: ``str`` if its bytes are whole characters, else ``bytes``.

    Ids that add nothing (skipped special tokens, ids that the tokenizer does not know) map to ``""``.
    """

    def __init__(self, id_to_token: Callable[[int], str | None], skipped: Container[int]) -> None:
        super().__init__()
        self._id_to_token = id_to_token
        self._skipped = skipped

    def __missing__(self, token_id: int) -> str | bytes:
        token = None if token_id in self._skipped else self._id_to_token(token_id)
        if token is None:
            return ""
        spelled = byte_level_bytes(token)
        piece: str | bytes
        try:
            piece = spelled.decode()
        except UnicodeDecodeError:
            piece = spelled
        self[token_id] = piece
        return piece


class LocalPieces(dict[int, "str | int | None"]):
    """Token id to what it adds to running text: a ``str``, or an ``int`` for one byte of a run of bytes.

    Ids that do not reach the decoder at all (skipped special tokens, unknown ids) map to ``None``.
    """

    def __init__(
        self,
        id_to_token: Callable[[int], str | None],
        skipped: Container[int],
        decoder: decoders.Decoder,
        steps: Sequence[Step],
    ) -> None:
        super().__init__()
        self._id_to_token = id_to_token
        self._skipped = skipped
        self._decode = decoder.decode
        self._byte_fallback = has_byte_fallback(steps)
        self.strips_first_space = any(step["type"] == "Strip" for step in steps)
        """True if the whole text loses one leading space, whichever token it comes from."""
        self.first_differs = any(step["type"] in ("Metaspace", "Strip", "WordPiece") for step in steps)

    def __missing__(self, token_id: int) -> str | int | None:
        token = None if token_id in self._skipped else self._id_to_token(token_id)
        if token is None:
            return None
        byte = byte_of(token) if self._byte_fallback else None
        piece = self._decode([_ANCHOR, token])[len(_ANCHOR) :] if byte is None else byte
        self[token_id] = piece
        return piece

    def first(self, token_id: int) -> str:
        """What a token spells as the first one of a text. It must be one that is spelled as a ``str``."""
        token = self._id_to_token(token_id)
        return "" if token is None else self._decode([token])


def byte_level_bytes(token: str) -> bytes:
    """The bytes that a byte-level token stands for.

    A token with a character outside the byte alphabet (an added token with a space, for instance) stands for itself.
    """
    try:
        return bytes([_BYTE_OF_CHAR[char] for char in token])
    except KeyError:
        return token.encode()


def _byte_alphabet() -> dict[str, int]:
    """Character to byte, as GPT-2 defined it: printable Latin-1 stands for itself, other bytes follow from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTE_OF_CHAR = _byte_alphabet()
BYTE_ALPHABET = tuple(_BYTE_OF_CHAR)
"""The 256 characters that byte-level vocabularies write bytes with."""
