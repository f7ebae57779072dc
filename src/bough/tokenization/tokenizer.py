"""The tokenizer of a model: text to ids, ids to text, and what is known about its special tokens."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from tokenizers import Tokenizer as Backend

from bough.errors import BadRequest
from bough.tokenization.pieces import (
    BytePieces,
    DecoderKind,
    LocalPieces,
    byte_of,
    decoder_kind,
    has_byte_fallback,
)
from bough.tokenization.running_text import running_text_backend
from bough.tokenization.text_bound import max_bytes_per_token
from bough.tokenization.text_growth import TextGrowth
from bough.tokenization.tokenizer_steps import steps_of

TokenIds: TypeAlias = "array[int]"
"""Ids of one text as ``array("i")``: 4 bytes each, and one object however many there are."""

_ANCHOR = "a"


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The strings of a tokenizer's special tokens, as its configuration names them."""

    bos: str | None = None
    eos: str | None = None
    pad: str | None = None
    unk: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict)
    """``cls_token``, ``additional_special_tokens`` and whatever else is declared, by its name there."""

    @classmethod
    def from_strings(cls, declared: Mapping[str, Any]) -> SpecialTokens:
        """From the entries of a tokenizer's configuration: ``bos_token`` … to a string."""
        named = {name: declared.get(f"{name}_token") for name in ("bos", "eos", "pad", "unk")}
        others = {name: value for name, value in declared.items() if name.removesuffix("_token") not in named}
        return cls(**named, others=others)

    def template_variables(self) -> dict[str, Any]:
        """What chat templates may refer to: ``bos_token``, ``eos_token`` …, without those that do not exist."""
        named = {"bos_token": self.bos, "eos_token": self.eos, "pad_token": self.pad, "unk_token": self.unk}
        return {**{name: token for name, token in named.items() if token is not None}, **self.others}


class Tokenizer:
    """A tokenizer of the ``tokenizers`` library, with the settings of its checkpoint.

    Safe to use from several threads. Subclasses replace the backend (see
    :class:`~bough.tokenization.transformers_tokenizer.TransformersTokenizer`).

    Args:
        backend: what ``tokenizer.json`` describes. It becomes this object's own: padding and truncation are switched
            off, since neither has a place in serving.
        chat_templates: the model's Jinja chat templates by name; the usual one is called ``default``.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        special: SpecialTokens = SpecialTokens(),
        chat_templates: Mapping[str, str] | None = None,
        growth: TextGrowth | None = None,
    ) -> None:
        backend.no_padding()
        backend.no_truncation()
        self._backend = backend
        self._growth = growth
        self.special = special
        self.chat_templates = dict(chat_templates or {})
        added = backend.get_added_tokens_decoder()
        special_strings = {token.content for token in added.values() if token.special}
        self.special_ids = frozenset(
            token_id for token_id, token in added.items() if token.content in special_strings
        ) | frozenset(
            # A special token's string may have a second id in the model's vocabulary; decoding skips that as well.
            token_id
            for token_id in map(backend.model.token_to_id, special_strings)
            if token_id is not None
        )
        """Ids that contribute no text when special tokens are skipped."""
        self._contents = {
            token_id: token.content
            for token_id, token in added.items()
            if backend.id_to_token(token_id) != token.content
        }
        """Added tokens with a text that the library (0.23) reports in normalised form. It also misses the special
        ones among them when it decodes."""
        self._decoder_steps = steps_of(backend.decoder)
        self.decoder_kind = decoder_kind(self._decoder_steps)
        self.vocab_size = max([backend.get_vocab_size(with_added_tokens=False), *(i + 1 for i in added)])
        """One more than the highest id. A model may have more rows than that; such ids have no text."""
        self._byte_pieces: dict[bool, BytePieces] = {}
        self._local_pieces: dict[bool, LocalPieces] = {}

    # --- text to ids ----------------------------------------------------------------------------------------------

    def encode(self, text: str, add_special_tokens: bool = True, *, param: str | None = None) -> TokenIds:
        """Return the ids of a text.

        Args:
            text: any text that can be written as UTF-8.
            add_special_tokens: run the tokenizer's post-processor, which adds BOS for many models.
            param: request field that ``text`` comes from, for the error message.

        Raises:
            BadRequest: if the text holds half a surrogate pair, which no UTF-8 text can, or the normaliser makes it too
                long.
        """
        return self.encode_batch([text], add_special_tokens, param=param)[0]

    def encode_batch(
        self, texts: Sequence[str], add_special_tokens: bool = True, *, param: str | None = None
    ) -> list[TokenIds]:
        """Ids of several texts. Releases the GIL, and uses several cores for several texts.

        Raises:
            BadRequest: see :meth:`encode`.
        """
        for text in texts:
            check_text(text, param)
            if self._growth is not None:
                self._growth.check(text, param)
        return self._encode_batch(texts, add_special_tokens)

    def _encode_batch(self, texts: Sequence[str], add_special_tokens: bool) -> list[TokenIds]:
        encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=add_special_tokens)
        return [array("i", encoding.ids) for encoding in encodings]

    def encode_segments(
        self,
        segments: Sequence[tuple[str, str | None]],
        limits: Sequence[int | None],
        params: Sequence[str],
    ) -> list[tuple[TokenIds, bytes | None]]:
        """Return the ids of texts and pairs of texts, with special tokens, truncated to limits.

        Truncation removes the end of the second text, or of the only one; special tokens and the first text of a pair
        stay whole. Releases the GIL.

        Args:
            segments: texts, each with the second text of its pair or ``None``.
            limits: most tokens of each; ``None`` for no truncation.
            params: request fields that the first texts come from, for error messages.

        Returns:
            For each segment its ids, and for a pair also the text that each token belongs to: one byte, 0 or 1, each.

        Raises:
            BadRequest: if truncation leaves nothing of a text, or the normaliser makes one too long.
        """
        if self._growth is not None:
            for pair, param in zip(segments, params, strict=True):
                for text in pair:
                    self._growth.check(text or "", param)
        firsts = self._backend.encode_batch_fast([first for first, _ in segments], add_special_tokens=False)
        seconds = self._backend.encode_batch_fast([second or "" for _, second in segments], add_special_tokens=False)
        results: list[tuple[TokenIds, bytes | None]] = []
        for (_, text), first, second, limit, param in zip(segments, firsts, seconds, limits, params, strict=True):
            is_pair = text is not None
            if limit is not None:
                room = limit - self._backend.num_special_tokens_to_add(is_pair) - (len(first) if is_pair else 0)
                check_room(room, limit, param)
                (second if is_pair else first).truncate(room)
            encoding = self._backend.post_process(first, second if is_pair else None, add_special_tokens=True)
            results.append((array("i", encoding.ids), bytes(encoding.type_ids) if is_pair else None))
        return results

    def encode_rendered(self, texts: Sequence[str], *, param: str | None = None) -> list[TokenIds]:
        """Ids of texts that a chat template wrote.

        A template writes its own special tokens, so the post-processor does not run; except that a sequence which
        the post-processor would begin with BOS does begin with it, exactly once.

        Raises:
            BadRequest: see :meth:`encode`.
        """
        encoded = self.encode_batch(texts, add_special_tokens=False, param=param)
        bos = self.bos_prefix
        return [ids if not bos or ids[:1] == bos else bos + ids for ids in encoded]

    @cached_property
    def bos_prefix(self) -> TokenIds:
        """BOS, if the post-processor puts it before every sequence, else nothing."""
        first = self._encode_batch([_ANCHOR], True)[0][:1]
        return first if first.tolist() == [self.bos_token_id] else array("i")

    @cached_property
    def max_token_bytes(self) -> int | None:
        """Most bytes of UTF-8 text that one token can stand for.

        A text of ``b`` bytes has at least ``b / max_token_bytes`` tokens, so that a text which cannot fit the context
        can be refused before it is tokenised. ``None`` where no such bound is safe: something in the tokenizer may
        remove text, or put any amount of it into one token.
        """
        return max_bytes_per_token(self._backend)

    # --- ids to text ----------------------------------------------------------------------------------------------

    def decode(
        self,
        token_ids: Sequence[int],
        *,
        skip_special_tokens: bool = True,
        spaces_between_special_tokens: bool = True,
    ) -> str:
        """Text of ids; ids that the tokenizer does not know contribute nothing.

        Args:
            token_ids: non-negative ids.
            spaces_between_special_tokens: without effect here; tokenizers of ``tokenizer.json`` have no such choice.
        """
        if not self._contents:
            return self._backend.decode(list(token_ids), skip_special_tokens=skip_special_tokens)
        skipped = self.special_ids if skip_special_tokens else ()
        named = (self.id_to_token(token_id) for token_id in token_ids if token_id not in skipped)
        tokens = [token for token in named if token is not None]
        decoder = self._backend.decoder
        return " ".join(tokens) if decoder is None else decoder.decode(tokens)

    def id_to_token(self, token_id: int) -> str | None:
        """The vocabulary's entry; ``None`` for an id that has none."""
        return self._contents.get(token_id) or self._backend.id_to_token(token_id)

    def token_to_id(self, token: str) -> int | None:
        """Id of a vocabulary entry; ``None`` if there is no such entry."""
        return self._backend.token_to_id(token)

    def token_text(self, token_id: int) -> str:
        """Text of one token on its own; bytes that are no complete character become U+FFFD."""
        return self.id_to_piece_bytes(token_id).decode(errors="replace")

    def id_to_piece_bytes(self, token_id: int) -> bytes:
        """What one token contributes to running text, special tokens included; possibly part of a character."""
        if self.decoder_kind is DecoderKind.BYTE_LEVEL:
            piece = self.byte_pieces(False)[token_id]
            return piece if isinstance(piece, bytes) else piece.encode()
        if self.decoder_kind is DecoderKind.LOCAL:
            local = self.local_pieces(False)[token_id]
            return bytes([local]) if isinstance(local, int) else (local or "").encode()
        token = self.id_to_token(token_id)
        if token is None:
            return b""
        if token_id in self.byte_fallback_ids:
            byte = byte_of(token)
            return b"" if byte is None else bytes([byte])
        context, before = self._context
        return self.decode([*context, token_id], skip_special_tokens=False)[len(before) :].encode()

    @cached_property
    def _context(self) -> tuple[list[int], str]:
        """Token after which another one stands in running text, if there is one, and its text."""
        ids = self._encode_batch([_ANCHOR], False)[0].tolist()[-1:]
        return ids, self.decode(ids, skip_special_tokens=False)

    @property
    def highest_id(self) -> int:
        """Highest id of a token."""
        return max(self._backend.get_vocab(with_added_tokens=True).values(), default=-1)

    def running_text_encoder(self, special_ids: Container[int] = ()) -> Callable[[str], Sequence[int]]:
        """Encoder of text from the middle of a text: it puts nothing in front, and special tokens' strings are text.

        It may still change the text where the vocabulary has no other tokens for it. ``special_ids`` are special, too.
        """
        encode = running_text_backend(self._backend.to_str(), special_ids).encode
        return lambda text: encode(text, add_special_tokens=False).ids

    @property
    def special_token_ids(self) -> dict[str, int]:
        """Special tokens by their strings."""
        strings = {self.id_to_token(token_id): token_id for token_id in sorted(self.special_ids, reverse=True)}
        return {string: token_id for string, token_id in strings.items() if string}

    # --- what decoders need ---------------------------------------------------------------------------------------

    def byte_pieces(self, skip_special_tokens: bool) -> BytePieces:
        """The table of a byte-level tokenizer; shared by all requests."""
        table = self._byte_pieces.get(skip_special_tokens)
        if table is None:
            table = BytePieces(self.id_to_token, self.special_ids if skip_special_tokens else ())
            self._byte_pieces[skip_special_tokens] = table
        return table

    def local_pieces(self, skip_special_tokens: bool) -> LocalPieces:
        """The table of a tokenizer whose decoder is local; shared by all requests."""
        table = self._local_pieces.get(skip_special_tokens)
        if table is None:
            skipped = self.special_ids if skip_special_tokens else ()
            table = LocalPieces(self.id_to_token, skipped, self._backend.decoder, self._decoder_steps)
            self._local_pieces[skip_special_tokens] = table
        return table

    @cached_property
    def byte_fallback_ids(self) -> frozenset[int]:
        """Ids of the tokens that spell one byte each (``<0xE4>``), where the decoder reads them so."""
        if not has_byte_fallback(self._decoder_steps):
            return frozenset()
        ids = (self.token_to_id(f"<0x{byte:02X}>") for byte in range(256))
        return frozenset(token_id for token_id in ids if token_id is not None)

    # --- special tokens -------------------------------------------------------------------------------------------

    @cached_property
    def bos_token_id(self) -> int | None:
        """Id of the token that begins a sequence, if the model has one."""
        return None if self.special.bos is None else self.token_to_id(self.special.bos)

    @cached_property
    def eos_token_id(self) -> int | None:
        """Id of the token that ends a sequence, if the tokenizer names one; a model may have more of them."""
        return None if self.special.eos is None else self.token_to_id(self.special.eos)


def check_room(room: int, limit: int, param: str) -> None:
    """Raise :class:`BadRequest` unless cutting to ``limit`` tokens leaves ``room`` for at least one of the text."""
    if room < 1:
        raise BadRequest(
            f"{param}: {limit} tokens leave no room for any of the text beside the special tokens and, in a pair, the "
            f"first text",
            param=param,
            code="context_length_exceeded",
        )


def check_text(text: str, param: str | None = None) -> None:
    """Make sure that a text is one: JSON escapes can spell half a surrogate pair, which UTF-8 cannot.

    Raises:
        BadRequest: naming ``param`` and the position.
    """
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        where = f"{param}: " if param else ""
        raise BadRequest(
            f"{where}not valid Unicode: a lone surrogate (U+{ord(text[error.start]):04X}) at character {error.start}",
            param=param,
        ) from None
