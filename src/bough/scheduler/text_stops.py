"""Stop strings and patterns of one request, judged on its text as it grows."""

from __future__ import annotations

import copy
import math
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.answer_start import AnswerStart
from bough.tokenization.incremental_decoder import incremental_decoder
from bough.tokenization.stop_matcher import StopMatcher
from bough.tokenization.tokenizer import Tokenizer

SEARCH_SECONDS_PER_TOKEN = 20e-6
"""Processor time that looking for patterns may take per token of a request, in the long run. A usual pattern needs a
quarter of that."""

MAX_UNSEARCHED_TOKENS = 64
"""Most tokens that wait for a search, however long one takes."""


class _Piece(NamedTuple):
    """Text that one token has added."""

    text: str
    num_tokens: int
    """Tokens whose text is complete with it."""
    num_pending: int
    """Tokens whose text was incomplete after it."""


class TextStops:
    """Decodes a request's output and finds the end of its text.

    Text that may be the beginning of a stop string is held back together with the ids of its tokens: an id is sent with
    the event that carries the last character of its text.

    Searching some patterns takes half a millisecond. For these, several tokens are searched at a time, and tokens
    generated after a match that is found late are dropped. This changes when text is sent and when the request ends,
    but not the text, the ids or the finish reason.

    The decoder gets the last tokens of the prompt (``prompt_tail``); ``answer`` finds the start of the answer, before
    which no stop applies; ``None`` if all output is answer.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt_tail: Sequence[int],
        params: SamplingParams,
        answer: AnswerStart | None = None,
    ) -> None:
        self._answer = answer
        self._undecided = ""
        """Text that may turn out to be part of the answer."""
        self._decoder = incremental_decoder(
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
        self._special_stops = {
            token_id: stop
            for stop in (params.stop if params.skip_special_tokens else ())
            if (token_id := tokenizer.token_to_id(stop)) in tokenizer.special_ids
        }
        """Stop strings that the text never shows, by the special tokens that they are the text of."""
        self._has_patterns = bool(params.stop_regex)
        self._unsearched: list[_Piece] = []
        self._search_every = 1
        """Tokens that are searched together."""
        self.matched: str | None = None
        self.matched_late = False
        """True if :meth:`finish` has found a match that ends the text earlier than the reason it was called for."""

    def push(self, token_id: int) -> str | None:
        """Add one token; returns the stop string or pattern that it completed, or ``None``."""
        if token_id in self._special_stops and (self._answer is None or self._answer.is_behind):
            self._begin_answer()
            return self._end_before(self._special_stops[token_id])
        text, num_pending = self._decoder.push((token_id,))
        num_tokens = self._undecoded + 1 - num_pending
        self._undecoded = num_pending
        if self._answer is not None:
            self._before_answer(self._answer, token_id, text, num_tokens)
        elif self._has_patterns:
            self._unsearched.append(_Piece(text, num_tokens, num_pending))
            if len(self._unsearched) >= self._search_every:
                self._search()
        else:
            self._take(text, num_tokens)
        return self.matched

    def skip(self) -> str | None:
        """Count a token that adds no text: the stop token itself, unless an earlier one completed a pattern, which is
        returned."""
        self._search()
        if self.matched is None:
            self._undecoded += 1
        return self.matched

    def finish(self) -> str | None:
        """Let go of all held text; return the pattern that matches at the end of the text (``$`` does), or matched
        before.
        """
        if self._unsearched:
            self._search()
            self.matched_late = self.matched is not None
        if self._answer is not None and not self._answer.is_undecided:
            self._emit_thoughts(self._decoder.flush(), self._undecoded)
            self._undecoded = 0
        self._begin_answer()
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

    def _before_answer(self, start: AnswerStart, token_id: int, text: str, num_tokens: int) -> None:
        """Process a token that comes before the answer, or begins it."""
        answer = start.push(token_id)
        if answer is None and not start.is_undecided:
            self._emit_thoughts(text, num_tokens)
            return
        self._undecided += text
        self._decoded_chars += len(text)
        self._ends.extend([self._decoded_chars] * num_tokens)
        if answer is not None:
            self._begin_answer(answer)

    def _emit_thoughts(self, text: str, num_tokens: int) -> None:
        self._decoded_chars += len(text)
        self._ends.extend([self._decoded_chars] * num_tokens)
        text, self._undecided = self._undecided + text, ""
        self._emit(text)

    def _begin_answer(self, answer: bytes | None = None) -> None:
        """Apply stops from here on; ``answer`` is what there is of it, ``None`` if the output has ended."""
        if self._answer is None:
            return
        answer = self._answer.rest() if answer is None else answer
        self._answer = None
        text, self._undecided = self._undecided, ""
        at = len(text) - min(len(answer.decode(errors="ignore")), len(text))
        self._emit(text[:at])
        step = self._matcher.push(text[at:])
        self.matched = step.matched
        self._emit(step.text)

    def _end_before(self, stop: str) -> str:
        """A special token that ends the text, to which it adds nothing."""
        self._search()
        if self.matched is None:
            self._take(self._decoder.flush(), self._undecoded + 1)
            self._undecoded = 0
            if self.matched is None:
                self._emit(self._matcher.flush())
                self.matched = self._matcher.matched or stop
        return self.matched

    def take_text(self) -> tuple[str, int]:
        """Text that became final since the last call, and the number of tokens released so far (in all)."""
        text = "".join(self._text)
        self._text.clear()
        return text, self._released

    def _search(self) -> None:
        """Look for matches in what was not searched. Up to the token that completes one, everything counts."""
        if not self._unsearched:
            return
        pieces, self._unsearched = self._unsearched, []
        start = time.thread_time()
        count = len(pieces)
        if count > 1 and self._matches(pieces):
            count = 1 + bisect_left(range(1, count), True, key=lambda first: self._matches(pieces[:first]))
            self._undecoded = pieces[count - 1].num_pending
        for piece in pieces[:count]:
            self._decoded_chars += len(piece.text)
            self._ends.extend([self._decoded_chars] * piece.num_tokens)
        step = self._matcher.push("".join(piece.text for piece in pieces[:count]))
        self.matched = step.matched
        self._emit(step.text)
        needed = math.ceil((time.thread_time() - start) / SEARCH_SECONDS_PER_TOKEN)
        self._search_every = min(max(needed, 1), MAX_UNSEARCHED_TOKENS)

    def _matches(self, pieces: list[_Piece]) -> bool:
        """Return whether there is a match in the text of ``pieces``. Changes nothing."""
        return copy.copy(self._matcher).push("".join(piece.text for piece in pieces)).matched is not None

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
