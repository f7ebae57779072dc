"""A bound on the memory that prompts take which wait to be computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import NamedTuple

from bough.errors import Overloaded, PayloadTooLarge
from bough.managers.embedding_struct import EmbeddingRequest
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReqState
from bough.managers.scheduler_queue import SchedulerQueue
from bough.sampling.sampling_params import MAX_BAD_WORD_TOKENS, SamplingParams

MIN_BYTES = 1024
"""Least bytes that an output counts, whatever its prompt: the records that each process keeps of it."""

_TOKEN_BYTES = 4

_REFERENCE_BYTES = 8

_ID_BYTES = 40
"""A token id among parameters: an integer, and a reference to it."""

_BIAS_BYTES = 120
"""An entry of ``logit_bias``: an integer, a number, and its part of a table that may be half empty."""

_STOP_ID_BYTES = 96
"""A token id that ends an output: its part of a set that may be three quarters empty, and of two tuples."""

_TEXT_STOPS_BYTES = 3072
"""Bytes of the decoder of an output and the matcher of its stop strings and patterns."""

_ARRAY_BYTES = 256
"""An array, besides its contents."""

_SEQUENCE_BYTES = 72
"""A sequence of tokens that an output must not contain, besides its ids."""


class _Held(NamedTuple):
    """Bytes that parameters take in the scheduler. They get there with every prompt, and nothing is shared there."""

    of_prompt: int
    of_output: int
    """Bytes of each parallel sample, besides."""


class WaitingPrompts:
    """Adds up what waits, from the arrival of a request to the first result of each of its outputs.

    At most ``limit`` bytes may wait. A request that comes when nothing waits is always taken, unless it is a client's
    of a server and its parameters alone are more: a small body can have them copied very often.
    """

    def __init__(self, limit: int, vocab_size: int, queue: SchedulerQueue) -> None:
        self._limit = limit
        self._queue = queue
        self._mask_bytes = vocab_size // 8 + _ARRAY_BYTES
        self.num_bytes = 0

    def add(self, requests: Sequence[GenerateRequest], states: Sequence[ReqState]) -> None:
        """Count the requests of a call that has come; ``states`` are those of their outputs, in order.

        Raises, with nothing added, :class:`PayloadTooLarge` if the copies of their parameters are more than may ever
        wait; :class:`Overloaded` if too much waits already.
        """
        sizes: list[int] = []
        of_parameters = 0
        by_params: dict[int, _Held] = {}  # by identity: the prompts of a batch mostly have theirs in common
        for request in requests:
            params = request.sampling_params
            held = by_params.get(id(params))
            if held is None:
                held = by_params[id(params)] = self._held_by(params)
            num_ids = len(request.token_ids_logprob or ())
            of_prompt = held.of_prompt + _ID_BYTES * num_ids
            if request.extras.extra_key is not None:
                of_prompt += getsizeof(request.extras.extra_key)
            of_output = held.of_output + _REFERENCE_BYTES * num_ids
            of_parameters += of_prompt + of_output * len(request.rids)
            sizes.append(max(prompt_bytes(request), MIN_BYTES) + of_prompt + of_output)
            sizes += [MIN_BYTES + of_output] * (len(request.rids) - 1)
        self._count(states, sizes, of_parameters, f"the parameters of {len(states)} outputs")

    def recount(self, requests: Sequence[GenerateRequest], states: Sequence[ReqState], before: Sequence[int]) -> None:
        """Count requests that were added anew: texts are encoded, the contexts of sessions looked up.

        ``before`` is :func:`prompt_bytes` of each request as it was added. Raises, with nothing changed,
        :class:`PayloadTooLarge` if the contexts of their sessions are more than may ever wait; :class:`Overloaded` if
        too much waits beside them.
        """
        sizes = [state.waiting_bytes for state in states]
        index = 0
        for request, size in zip(requests, before, strict=True):
            if sizes[index]:  # else it waits no more: its client may have left meanwhile
                sizes[index] += max(prompt_bytes(request), MIN_BYTES) - max(size, MIN_BYTES)
            index += len(request.rids)
        has_contexts = any(request.turn is not None for request in requests)
        what = f"{len(requests)} prompts with the contexts of their sessions"
        self._count(states, sizes, sum(sizes) if has_contexts else 0, what)

    def _count(self, states: Sequence[ReqState], sizes: Sequence[int], part: int, what: str) -> None:
        """Let outputs count ``sizes``, of which ``what`` takes ``part``; raises as :meth:`add`."""
        if part > self._limit and len(states) > 1 and states[0].context is not None:
            raise PayloadTooLarge(
                f"{what} take {part} bytes while they wait, and at most {self._limit} may wait (--max-queued-bytes); "
                "send fewer prompts at a time"
            )
        counted, total = sum(state.waiting_bytes for state in states), sum(sizes)
        others = self.num_bytes - counted
        if total > counted and others and others + total > self._limit:
            raise Overloaded(
                f"too much waits to be computed: prompts of {others} bytes, these have {total}, and at most "
                f"{self._limit} may wait (--max-queued-bytes); try again later",
                retry_after=self._queue.retry_after,
                code="queue_full",
            )
        self.num_bytes += total - counted
        for state, size in zip(states, sizes, strict=True):
            state.waiting_bytes = size

    def remove(self, state: ReqState) -> None:
        """An output waits no more. Doing it twice does nothing."""
        self.num_bytes -= state.waiting_bytes
        state.waiting_bytes = 0

    def _held_by(self, params: SamplingParams) -> _Held:
        """What sampling parameters take; a bit more than it is, and nothing if they are numbers only."""
        grammar = 0
        if params.has_grammar:
            grammars = (params.json_schema, params.regex, params.ebnf, params.structural_tag, *(params.choice or ()))
            grammar = _size_of_texts(text for text in grammars if text is not None)
        of_prompt = grammar + _ID_BYTES * len(params.stop_token_ids)
        if params.has_text_stops:
            of_prompt += _size_of_texts(params.stop) + _size_of_texts(params.stop_regex)
        if params.logit_bias:
            of_prompt += _BIAS_BYTES * len(params.logit_bias)
        if params.allowed_token_ids is not None:
            of_prompt += _ID_BYTES * len(params.allowed_token_ids) + self._mask_bytes
        if params.bad_words:
            of_prompt += _size_of_bad_words(params.bad_words)
        # What follows an output through its grammar is about as large as that.
        of_output = grammar + _STOP_ID_BYTES * len(params.stop_token_ids)
        return _Held(of_prompt, of_output + (_TEXT_STOPS_BYTES if params.has_text_stops else 0))


def prompt_bytes(request: GenerateRequest) -> int:
    """Bytes of a prompt, as far as they are known: its text, its token ids, and the context that it goes on from."""
    num_tokens = request.turn.prompt_len if request.turn is not None else len(request.input_ids or ())
    num_bytes = _TOKEN_BYTES * num_tokens + len(request.text or "")
    if isinstance(request, EmbeddingRequest):
        num_bytes += len(request.text_pair or "")
    return num_bytes


def _size_of_texts(texts: Iterable[str]) -> int:
    return sum(getsizeof(text) + _REFERENCE_BYTES for text in texts)


def _size_of_bad_words(words: Sequence[str]) -> int:
    """Bytes of words, and of the sequences of tokens that they will be: each with and without a space before it."""
    num_bytes = sum(len(word.encode("utf-8", "surrogatepass")) for word in words)
    num_tokens = min(2 * num_bytes + len(words), MAX_BAD_WORD_TOKENS)  # a token is a byte at least
    return _size_of_texts(words) + 2 * _SEQUENCE_BYTES * len(words) + _ID_BYTES * num_tokens
