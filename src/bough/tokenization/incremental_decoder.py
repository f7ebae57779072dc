"""Ids to text, one delta at a time.

Whatever comes out of :meth:`IncrementalDecoder.push` is final, and all of it together with
:meth:`IncrementalDecoder.flush` is what decoding all ids at once would give. Cost is linear in the output.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING

from bough.tokenization.pieces import BytePieces, DecoderKind, LocalPieces

if TYPE_CHECKING:
    from bough.tokenization.tokenizer import Tokenizer

PROMPT_TAIL_TOKENS = 5
"""Prompt tokens that a decoder wants to see as context: enough for the longest UTF-8 sequence spelled byte by byte,
and one more."""

MAX_HELD_IDS = 64
"""Ids whose text is held back at most, while it is open how a run of byte tokens ends; and ids that are pending at
most, give or take one character, when an unfinished character is followed by tokens without text."""

REPLACEMENT = "\ufffd"


class IncrementalDecoder:
    """Decodes the output of one request; made by :func:`incremental_decoder`.

    A character that the prompt's last tokens begin and the output ends belongs to the output; what else the prompt
    spells never comes out, though it decides whether the output begins with a space.
    """

    __slots__ = ()

    def push(self, token_ids: Sequence[int]) -> tuple[str, int]:
        """Add ids to the output.

        Returns:
            Text that became final, and how many ids at the end of the output so far have text that is not out yet.
        """
        raise NotImplementedError

    def flush(self) -> str:
        """Text of the ids that are still held back, as it is if nothing follows; they are not pending any more."""
        raise NotImplementedError


class _ByteLevelDecoder(IncrementalDecoder):
    """For byte-level vocabularies: bytes from a table, and UTF-8 that waits for the end of a character."""

    __slots__ = ("_held", "_pieces", "_seeded", "_spans")

    _pieces: BytePieces

    def __init__(self, tokenizer: Tokenizer, prompt_tail: Sequence[int], skip_special_tokens: bool) -> None:
        self._pieces = tokenizer.byte_pieces(skip_special_tokens)
        self._spans: list[int] = []
        """Bytes of each pending id."""
        self._held = b""
        """An unfinished character: the end of the bytes so far."""
        self._seeded = False
        """True if ``_held`` comes from the prompt, and the output has not yet gone on from it."""
        if prompt_tail:
            pieces = [self._pieces[token_id] for token_id in prompt_tail]
            if isinstance(pieces[-1], bytes) or pieces[-1] == "":
                _, self._held = find_printable_text(b"".join(map(_as_bytes, pieces)))
                self._seeded = bool(self._held)

    def push(self, token_ids: Sequence[int]) -> tuple[str, int]:
        if not self._spans and not self._seeded:
            pieces = self._pieces
            if len(token_ids) == 1:
                piece = pieces[token_ids[0]]
                if type(piece) is str:
                    return piece, 0
            else:
                try:
                    return "".join([pieces[token_id] for token_id in token_ids]), 0  # type: ignore[misc]
                except TypeError:  # one of them is bytes
                    pass
        return self._push_bytes(token_ids)

    def _push_bytes(self, token_ids: Sequence[int]) -> tuple[str, int]:
        spans = self._spans
        new = []
        for token_id in token_ids:
            spelled = _as_bytes(self._pieces[token_id])
            new.append(spelled)
            spans.append(len(spelled))
        data = b"".join(new)
        if self._seeded and data:
            self._seeded = False
            if not _continues(self._held, data):
                self._held = b""
        data = self._held + data
        text, self._held = find_printable_text(data)
        num_pending = min(_num_pending(spans, 0 if self._seeded else len(self._held)), MAX_HELD_IDS)
        del spans[: len(spans) - num_pending]
        return text, num_pending

    def flush(self) -> str:
        text = "" if self._seeded else self._held.decode(errors="replace")
        self._held = b""
        self._seeded = False
        self._spans.clear()
        return text


class _LocalDecoder(IncrementalDecoder):
    """For vocabularies of text pieces, with or without byte fallback (sentencepiece, WordPiece).

    The tokenizer's own decoder turns *every* byte of a run of byte tokens into a replacement character if any part of
    the run is not UTF-8, so the text of a run is final only when the run ends, or is known to be broken. A run of more
    than :data:`MAX_HELD_IDS` ids is not waited for: its whole characters come out as they are.
    """

    __slots__ = ("_at_start", "_broken", "_pieces", "_run", "_seed_len", "_spans")

    _pieces: LocalPieces

    def __init__(self, tokenizer: Tokenizer, prompt_tail: Sequence[int], skip_special_tokens: bool) -> None:
        self._pieces = pieces = tokenizer.local_pieces(skip_special_tokens)
        self._at_start = pieces.first_differs
        """True if the next text is the first of the sequence."""
        self._run = bytearray()
        """The bytes of the run that the text so far ends in, except those that are out already."""
        self._seed_len = 0
        """How many of them are the prompt's."""
        self._broken = False
        """True if the run holds something that is not UTF-8."""
        self._spans: list[int] = []
        """Bytes of each pending id: 1, or 0 for one that spells nothing."""
        for token_id in prompt_tail:
            piece = pieces[token_id]
            if piece is None:
                continue
            if type(piece) is int:
                self._run.append(piece)
                self._at_start = False
            else:
                self._run.clear()
                if piece or not pieces.strips_first_space:
                    self._at_start = False
        if self._run:
            self._run = bytearray(find_printable_text(bytes(self._run))[1])
            self._seed_len = len(self._run)

    def push(self, token_ids: Sequence[int]) -> tuple[str, int]:
        if not self._at_start and not self._run and not self._broken:
            pieces = self._pieces
            if len(token_ids) == 1:
                piece = pieces[token_ids[0]]
                if type(piece) is str:
                    return piece, 0
            else:
                try:
                    return "".join([pieces[token_id] for token_id in token_ids]), 0  # type: ignore[misc]
                except TypeError:  # one of them is a byte or skipped
                    pass
        text = "".join([self._push_one(token_id) for token_id in token_ids])
        return text, len(self._spans)

    def _push_one(self, token_id: int) -> str:
        piece = self._pieces[token_id]
        if piece is None:
            if self._spans:
                self._spans.append(0)
                del self._spans[:-MAX_HELD_IDS]
            return ""
        if type(piece) is int:
            return self._push_byte(piece)
        text = self._end_run()
        if self._at_start:
            text += self._pieces.first(token_id)
            if piece or not self._pieces.strips_first_space:
                self._at_start = False
        else:
            text += piece  # type: ignore[operator]
        return text

    def _push_byte(self, byte: int) -> str:
        if self._broken:
            return REPLACEMENT
        run = self._run
        run.append(byte)
        self._spans.append(1)
        try:
            _, consumed = utf_8_decode(run, "strict", False)
        except UnicodeDecodeError:
            return self._break_run()
        if len(self._spans) <= MAX_HELD_IDS or not consumed:
            return ""
        text = self._take_run(consumed)
        del self._spans[: len(self._spans) - _num_pending(self._spans, len(run))]
        return text

    def _break_run(self) -> str:
        if len(self._run) - 1 == self._seed_len:
            # The prompt's unfinished character stays unfinished. That is the prompt's matter: the output's run of
            # bytes begins here.
            byte = self._run[-1]
            self._spans.pop()
            self._run.clear()
            self._seed_len = 0
            if byte < 0x80 or 0xC2 <= byte <= 0xF4:
                return self._push_byte(byte)
            self._at_start = False
            self._broken = True
            return REPLACEMENT
        text = REPLACEMENT * (len(self._run) - self._seed_len)
        self._forget_run()
        self._at_start = False
        self._broken = True
        return text

    def _end_run(self) -> str:
        if not self._run and not self._broken:
            return ""
        _, consumed = utf_8_decode(self._run, "strict", False)
        if consumed == len(self._run):
            text = self._take_run(consumed)
        else:
            text = REPLACEMENT * (len(self._run) - self._seed_len)
            self._at_start = False
        self._forget_run()
        return text

    def _take_run(self, num_bytes: int) -> str:
        text = self._run[:num_bytes].decode()
        del self._run[:num_bytes]
        self._seed_len = 0
        if self._at_start and text:
            self._at_start = False
            if self._pieces.strips_first_space:
                text = text.removeprefix(" ")
        return text

    def _forget_run(self) -> None:
        self._run.clear()
        self._spans.clear()
        self._seed_len = 0
        self._broken = False

    def flush(self) -> str:
        return self._end_run()


class _WindowDecoder(IncrementalDecoder):
    """For every other tokenizer: decode a short window of ids with and without the new ones, and take the difference.

    The window begins at ``decode_ids[surr_offset]``, some ids before those whose text is not out yet
    (``decode_ids[read_offset]`` and after), so that a decoder that treats the first token specially sees the new ones
    inside a text. Ids that contribute nothing are kept out of it, since they would be no context.
    """

    def __init__(
        self, tokenizer: Tokenizer, prompt_tail: Sequence[int], skip_special_tokens: bool, spaces_between: bool
    ) -> None:
        self._tokenizer = tokenizer
        self._skip_special_tokens = skip_special_tokens
        self._spaces_between = spaces_between
        self._byte_fallback = tokenizer.byte_fallback_ids
        self.decode_ids = [token_id for token_id in prompt_tail if self._counts(token_id)]
        self.surr_offset = 0
        self.read_offset = len(self.decode_ids)
        self.decoded_text = self._decode(self.decode_ids)
        """Text of the window up to ``read_offset``: context, or out already."""
        self._num_pending = 0

    def push(self, token_ids: Sequence[int]) -> tuple[str, int]:
        text = "".join([self._push_one(token_id) for token_id in token_ids])
        return text, self._num_pending

    def _push_one(self, token_id: int) -> str:
        if not self._counts(token_id):
            self._num_pending += 0 < self._num_pending < MAX_HELD_IDS
            return ""
        self.decode_ids.append(token_id)
        self._num_pending += 1
        text = self._decode(self.decode_ids[self.surr_offset :])
        unfinished = text.endswith(REPLACEMENT)
        # A character that is really unfinished ends within three more ids.
        patience = MAX_HELD_IDS + 3 if unfinished else MAX_HELD_IDS
        if self._num_pending <= patience and (unfinished or token_id in self._byte_fallback):
            return ""
        return self._advance(text)

    def _advance(self, text: str) -> str:
        """Let out the end of the window's ``text`` and move the window on."""
        known = self.decoded_text
        is_longer = text.startswith(known)
        new = text[len(known if is_longer else commonprefix((known, text))) :]  # noqa: RUF071 - compares characters
        following = self._decode(self.decode_ids[self.read_offset :])
        if following.strip() or len(self.decode_ids) - self.surr_offset > MAX_HELD_IDS:
            self.surr_offset = self.read_offset
            self.decoded_text = following
        else:  # blank text is no context: a decoder may drop it at the beginning
            self.decoded_text = text
        self.read_offset = len(self.decode_ids)
        self._num_pending = 0
        if self.surr_offset > MAX_HELD_IDS:
            del self.decode_ids[: self.surr_offset]
            self.read_offset -= self.surr_offset
            self.surr_offset = 0
        return new

    def flush(self) -> str:
        if not self._num_pending:
            return ""
        return self._advance(self._decode(self.decode_ids[self.surr_offset :]))

    def _counts(self, token_id: int) -> bool:
        tokenizer = self._tokenizer
        if self._skip_special_tokens and token_id in tokenizer.special_ids:
            return False
        return tokenizer.id_to_token(token_id) is not None

    def _decode(self, token_ids: Sequence[int]) -> str:
        return self._tokenizer.decode(
            token_ids, skip_special_tokens=False, spaces_between_special_tokens=self._spaces_between
        )


def incremental_decoder(
    tokenizer: Tokenizer,
    prompt_tail: Sequence[int] = (),
    skip_special_tokens: bool = True,
    spaces_between_special_tokens: bool = True,
) -> IncrementalDecoder:
    """Make the decoder that suits a tokenizer.

    Args:
        prompt_tail: the last ids of the prompt, :data:`PROMPT_TAIL_TOKENS` are enough; may be empty.
        spaces_between_special_tokens: for the few tokenizers that can leave out the spaces around added tokens.
    """
    if tokenizer.decoder_kind is DecoderKind.BYTE_LEVEL:
        return _ByteLevelDecoder(tokenizer, prompt_tail, skip_special_tokens)
    if tokenizer.decoder_kind is DecoderKind.LOCAL:
        return _LocalDecoder(tokenizer, prompt_tail, skip_special_tokens)
    return _WindowDecoder(tokenizer, prompt_tail, skip_special_tokens, spaces_between_special_tokens)


def _as_bytes(piece: str | bytes) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode()


def find_printable_text(data: bytes) -> tuple[str, bytes]:
    """Split UTF-8 into text that no further bytes change, and an unfinished character of at most 3 bytes at its end."""
    text, consumed = utf_8_decode(data, "replace", False)
    return text, data[consumed:]


def _continues(unfinished: bytes, data: bytes) -> bool:
    """Return true if the first byte of ``data`` goes on with an unfinished UTF-8 sequence."""
    text, rest = find_printable_text(unfinished + data[:1])
    return not text or (len(text) == 1 and not rest)


def _num_pending(spans: Sequence[int], num_held: int) -> int:
    """Ids at the end of the output, of which the last spell ``num_held`` bytes that are not out yet."""
    count = len(spans)
    while num_held > 0 and count > 0:
        count -= 1
        num_held -= spans[count]
    return len(spans) - count
