"""Turns prompts into token ids without holding up the event loop.

A short text is encoded where it stands, which is cheaper than waking another thread. Everything else goes to one of
two worker threads, one for ordinary and one for very long prompts, so that an ordinary one never waits behind a long
one. They run at a lower priority than the event loop, and so do the tokenizer's own threads, which inherit it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from bough.errors import BadRequest
from bough.tokenization.chat_template import ChatTemplate
from bough.tokenization.tokenizer import TokenIds, Tokenizer, check_text

T = TypeVar("T")

INLINE_CHARS = 200
"""Texts up to this length are encoded on the event loop: about 0.1 ms, where waking a thread and waiting for it takes
a quarter of that."""

LONG_CHARS = 20_000
"""Texts from this length on go to the thread for long ones: about 10 ms."""

NICENESS = 5
"""How far the worker threads stand back; the range is 0 (not at all) to 19."""


class PromptEncoder:
    """Encodes texts and runs other work whose cost grows with a prompt.

    Args:
        tokenizer: encodes.
        max_prompt_tokens: prompts that cannot possibly be this short are refused unread.
    """

    def __init__(self, tokenizer: Tokenizer, max_prompt_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._max_prompt_tokens = max_prompt_tokens
        # Found by a walk over the vocabulary, which must not happen on the event loop at the first request.
        self._max_token_bytes = tokenizer.max_token_bytes
        self._ordinary = ThreadPoolExecutor(1, "encode", initializer=_stand_back)
        self._long = ThreadPoolExecutor(1, "encode-long", initializer=_stand_back)

    async def encode(self, texts: Sequence[str], params: Sequence[str]) -> list[TokenIds]:
        """Token ids of plain texts, with what the tokenizer adds by default, such as a BOS token.

        Args:
            texts: prompts.
            params: what the client called each of them, for errors.

        Raises:
            BadRequest: if a text is certainly longer than a prompt may be, or cannot be encoded.
        """
        for text, param in zip(texts, params, strict=True):
            self.check_length(len(text), param)
            check_text(text, param)
        return await self.run(sum(map(len, texts)), lambda: self._tokenizer.encode_batch(texts))

    async def encode_conversation(
        self, template: ChatTemplate, messages: Sequence[Mapping[str, Any]], num_chars: int, **options: Any
    ) -> TokenIds:
        """Token ids of a conversation, as the model was trained to see it.

        Args:
            template: the model's.
            messages: objects with ``role`` and ``content``.
            num_chars: about how long they are together.
            options: what :meth:`ChatTemplate.render` takes besides.

        Raises:
            BadRequest: if the template refuses the conversation, or it is certainly too long.
        """

        def work() -> TokenIds:
            text = template.render(messages, **options)
            self.check_length(len(text), "messages")
            return self._tokenizer.encode_rendered([text], param="messages")[0]

        # Variables that a client sets can make a template slow whatever its messages.
        return await self.run(num_chars if not options.get("kwargs") else max(num_chars, INLINE_CHARS + 1), work)

    def check_length(self, num_chars: int, param: str) -> None:
        """Raise :class:`BadRequest` if a text of so many characters has more tokens than a prompt may have."""
        token_bytes = self._max_token_bytes
        if token_bytes is None:
            return
        least = -(-num_chars // token_bytes)
        if least > self._max_prompt_tokens:
            raise BadRequest(
                f"This model's maximum prompt length is {self._max_prompt_tokens} tokens. However, your prompt has "
                f"{num_chars} characters, which are at least {least} tokens.",
                param=param,
                code="context_length_exceeded",
            )

    async def run(self, num_chars: int, work: Callable[[], T]) -> T:
        """Run ``work`` here or in a worker thread, by the amount of text that it has to go through."""
        if num_chars <= INLINE_CHARS:
            return work()
        lane = self._ordinary if num_chars < LONG_CHARS else self._long
        return await asyncio.get_running_loop().run_in_executor(lane, work)

    def close(self) -> None:
        """End the threads; work that has not begun is dropped."""
        for lane in (self._ordinary, self._long):
            lane.shutdown(wait=False, cancel_futures=True)


def _stand_back(*_: Any) -> None:
    """Lower the priority of the calling thread, where the system allows that for a single thread (Linux does)."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    except (OSError, AttributeError):
        return
