"""Turns prompts into token ids without holding up the event loop.

A short text is encoded where it stands, which is cheaper than waking another thread. Everything else goes to a worker
thread, one for each of several ranges of length, so that no text waits behind a much longer one; in each, short ones go
first. What has nothing to do with length, such as compiling patterns, has a thread of its own.
"""

from __future__ import annotations

import asyncio
import ctypes
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from bough.errors import BadRequest, PayloadTooLarge
from bough.managers.embedding_struct import EmbeddingRequest
from bough.managers.worker_lane import WorkerLane
from bough.tokenization.tokenizer import TokenIds, Tokenizer, check_text

T = TypeVar("T")

INLINE_CHARS = 200
"""Texts up to this length are encoded on the event loop: about 0.1 ms, where waking a thread and waiting for it takes
a quarter of that."""

LANE_CHARS = (20_000, 200_000)
"""Where one thread's range of lengths ends and the next one's begins: about 10 and 100 ms of work."""

PIECE_CHARS = 50_000
"""Texts of a batch are encoded in lots of about this length: other work gets its turn between them."""

SECONDS_PER_CHAR = 0.5e-6
"""About how long encoding takes."""

MAX_CHARS = 4 * 2**20
"""Longest text that is encoded, be it for its length alone: up to 200 bytes are taken per character meanwhile."""

CHARS_PER_TOKEN = 16
"""Where the model takes more than :data:`MAX_CHARS` that way, so long a text may be. Only runs of spaces and the like
have as many characters per token."""

SPARE_TOKENS = 64
"""Text for so many more tokens than are wanted is looked at, since the last ones depend on what follows."""


class PromptEncoder:
    """Encodes texts and runs other work whose cost grows with a prompt.

    Prompts that cannot possibly be as short as ``max_prompt_tokens`` are refused unread.
    """

    def __init__(self, tokenizer: Tokenizer, max_prompt_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._max_prompt_tokens = max_prompt_tokens
        self._max_chars = max(MAX_CHARS, CHARS_PER_TOKEN * max_prompt_tokens)
        # Found by a walk over the vocabulary, which must not happen on the event loop at the first request.
        self._max_token_bytes = tokenizer.max_token_bytes
        self._lanes = [WorkerLane(f"bough-encode-{index}") for index in range(len(LANE_CHARS) + 1)]
        self._apart = WorkerLane("bough-patterns")

    async def encode(
        self, texts: Sequence[str], params: Sequence[str], *, add_special_tokens: bool = True, bounded: bool = True
    ) -> list[TokenIds]:
        """Token ids of plain texts, with what the tokenizer puts around one if ``add_special_tokens``; ``params`` are
        the client's names for them.

        Raises as :meth:`check_length`, or :class:`BadRequest` if a text cannot be encoded.
        """
        for text, param in zip(texts, params, strict=True):
            self.check_length(len(text), param, bounded=bounded)
            check_text(text, param)
        encoded: list[TokenIds] = []
        for piece in _pieces(texts):
            encoded += await self.run(
                sum(map(len, piece)), partial(self._tokenizer.encode_batch, piece, add_special_tokens)
            )
        return encoded

    async def encode_segments(self, requests: Sequence[EmbeddingRequest], limits: Sequence[int | None]) -> None:
        """Give requests the token ids of their text, or pair of texts, and which text of a pair each belongs to.

        ``limits`` are the most tokens of each, to be cut to; ``None``: as they are. Raises :class:`BadRequest` if a
        text cannot be encoded, or cutting the second would leave nothing of it.
        """
        num_chars = 0
        segments: list[tuple[str, str | None]] = []
        firsts = [request.first_param or request.prompt_param for request in requests]
        for request, first_param, limit in zip(requests, firsts, limits, strict=True):
            texts = [request.text or "", *(() if request.text_pair is None else (request.text_pair,))]
            if limit is not None:
                texts[-1] = texts[-1][: self._most_chars(limit)]
            for text, param in zip(texts, (first_param, request.prompt_param), strict=False):
                self.check_length(len(text), param)
                check_text(text, param)
                num_chars += len(text)
            segments.append((texts[0], texts[1] if len(texts) > 1 else None))
        encoded = await self.run(num_chars, lambda: self._tokenizer.encode_segments(segments, limits, firsts))
        for request, (ids, token_types) in zip(requests, encoded, strict=True):
            request.input_ids, request.token_types = ids, token_types

    def ending(self, text: str, num_tokens: int) -> str:
        """As much of a text as its last ``num_tokens`` tokens can possibly stand for, and a little more; or as much as
        is encoded at all."""
        return text[-self._most_chars(num_tokens) :]

    def _most_chars(self, num_tokens: int) -> int:
        token_bytes = self._max_token_bytes
        if token_bytes is None:
            return self._max_chars
        return min((num_tokens + SPARE_TOKENS) * token_bytes, self._max_chars)

    async def encode_rendered(
        self, render: Callable[[], str], num_chars: int, param: str, *, keep: int | None = None, bounded: bool = True
    ) -> TokenIds:
        """Token ids of a conversation, as the model was trained to see it; all, or at least the last ``keep``.

        ``render`` makes its text, of about ``num_chars`` characters, and ``param`` is the client's name for it. Raises
        as :meth:`check_length`, or :class:`BadRequest` if the template refuses the conversation.
        """

        def work() -> TokenIds:
            text = render()
            if keep is not None:
                text = self.ending(text, keep)
            self.check_length(len(text), param, bounded=bounded)
            return self._tokenizer.encode_rendered([text], param=param)[0]

        return await self.run(num_chars, work)

    def check_length(self, num_chars: int, param: str, *, bounded: bool = True) -> None:
        """Refuse a text that is too long to be encoded; it is a prompt if ``bounded``, and else only measured.

        Raises :class:`BadRequest` if a prompt has more tokens than it may have, by more than :data:`SPARE_TOKENS`: what
        is about to be cut to the length of a prompt may have so many more; :class:`PayloadTooLarge` if another text is
        longer than any may be.
        """
        if num_chars > self._max_chars and not bounded:
            problem = f"{param} has {num_chars} characters, and at most {self._max_chars} are encoded"
            raise PayloadTooLarge(problem, param=param)
        token_bytes = self._max_token_bytes if bounded else None
        least = 0 if token_bytes is None else -(-num_chars // token_bytes)
        if num_chars > self._max_chars:
            what = f"of which at most {self._max_chars} are encoded"
        elif least > self._max_prompt_tokens + SPARE_TOKENS:
            what = f"which are at least {least} tokens"
        else:
            return
        problem = f"This model's maximum prompt length is {self._max_prompt_tokens} tokens. However, your prompt has"
        raise BadRequest(f"{problem} {num_chars} characters, {what}.", param=param, code="context_length_exceeded")

    async def run(self, num_chars: int, work: Callable[[], T]) -> T:
        """Run ``work`` here or in a worker thread, by the amount of text that it has to go through."""
        if num_chars <= INLINE_CHARS:
            return work()
        lane = self._lanes[bisect_right(LANE_CHARS, num_chars)]
        if lane is self._lanes[-1]:
            work = partial(_and_give_back, work)
        return await asyncio.wrap_future(lane.submit(num_chars * SECONDS_PER_CHAR, work))

    async def run_apart(self, work: Callable[[], T]) -> T:
        """Run ``work`` where no text waits for it; first come, first served."""
        return await asyncio.wrap_future(self._apart.submit(0.0, work))

    def close(self) -> None:
        """End the threads; work that has not begun is dropped. Does not wait."""
        for lane in (*self._lanes, self._apart):
            lane.close()

    def join(self, timeout: float | None = None) -> None:
        """After :meth:`close`: wait for each thread to finish what it has begun, at most ``timeout`` seconds."""
        for lane in (*self._lanes, self._apart):
            lane.join(timeout)


def _and_give_back(work: Callable[[], T]) -> T:
    """Run ``work``, then return freed memory that the C library has kept to the system.

    For a text of 4 million characters, it keeps half a gigabyte, reserved for the thread that freed it.
    Returning that takes 0.1 s, 2 % of the work.
    """
    try:
        return work()
    finally:
        if _malloc_trim is not None:
            _malloc_trim(0)


_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only


def _pieces(texts: Sequence[str]) -> Iterator[list[str]]:
    """Consecutive texts in lots of about :data:`PIECE_CHARS`."""
    piece: list[str] = []
    num_chars = 0
    for text in texts:
        if piece and num_chars + len(text) > PIECE_CHARS:
            yield piece
            piece, num_chars = [], 0
        piece.append(text)
        num_chars += len(text)
    if piece:
        yield piece
