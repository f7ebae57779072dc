"""Stop strings and patterns of one request, judged on its text as it grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.incremental_decoder import IncrementalDecoder
from bough.tokenization.stop_matcher import StopMatcher
from bough.tokenization.tokenizer import Tokenizer


class TextStops:
    """Decodes a request's output and finds where its text ends.

    Text that might still turn out to be the beginning of a stop string is held back, and with it the ids of the tokens
    it belongs to: an id travels with the event that carries the last character of its text.
    """

    def __init__(self, tokenizer: Tokenizer, prompt_tail: Sequence[int], params: SamplingParams) -> None:
        self._decoder = IncrementalDecoder(
            tokenizer, prompt_tail, params.skip_special_tokens, params.spaces_between_special_tokens
        )
        self._matcher = StopMatcher(params.stop, params.stop_regex, params.no_stop_trim)
        self._decoded_chars = 0
        self._emitted_chars = 0
        self._text: list[str] = []
        self._ends: deque[int] = deque()
        """For each token that is not released yet, the text length at which it is complete."""
        self._undecoded = 0
        """Tokens at the end whose text is not decoded yet (an unfinished UTF-8 sequence)."""
        self._released = 0
        self.matched: str | None = None

    def push(self, token_id: int) -> str | None:
        """Add one token.

        Returns:
            The stop string or pattern that this token completed, or ``None``.
        """
        text, num_pending = self._decoder.push((token_id,))
        self._take(text, self._undecoded + 1 - num_pending)
        self._undecoded = num_pending
        return self.matched

    def skip(self) -> None:
        """Count a token that adds no text: the stop token itself."""
        self._undecoded += 1

    def finish(self) -> str | None:
        """No more tokens will come: let go of everything that was held back.

        Returns:
            The stop pattern that turned out to match now that the text has ended (``$`` does), or what matched before.
        """
        if self.matched is None:
            self._take(self._decoder.flush(), self._undecoded)
            self._undecoded = 0
            if self.matched is None:
                self._emit(self._matcher.flush())
                self.matched = self._matcher.matched
        self._released += self._undecoded + len(self._ends)
        self._undecoded = 0
        self._ends.clear()
        return self.matched

    def take_text(self) -> tuple[str, int]:
        """Text that became final since the last call, and the number of tokens released so far (in all)."""
        text = "".join(self._text)
        self._text.clear()
        return text, self._released

    def _take(self, text: str, num_tokens: int) -> None:
        self._decoded_chars += len(text)
        self._ends.extend([self._decoded_chars] * num_tokens)
        if not text or self.matched is not None:
            self._release()
            return
        step = self._matcher.push(text)
        self.matched = step.matched
        self._emit(step.text)

    def _emit(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._emitted_chars += len(text)
        self._release()

    def _release(self) -> None:
        ends = self._ends
        while ends and ends[0] <= self._emitted_chars:
            ends.popleft()
            self._released += 1
