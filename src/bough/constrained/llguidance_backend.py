"""Grammars by llguidance: an Earley parser over regular expressions that are compiled while they are used.

Nothing is precomputed per vocabulary, so compiling takes about a millisecond, and a mask some microseconds, since the
walk over the trie of tokens skips whatever the current lexeme allows or forbids as a whole.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache

from llguidance import LLExecutor, LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

from bough.constrained.base import (
    ENDED,
    GOES_ON,
    LATER,
    MASKED,
    REFUSED,
    GrammarError,
    Judgement,
    MaskPlace,
    MaskWords,
)
from bough.constrained.engine_errors import readable
from bough.constrained.translate import Translator
from bough.sampling.sampling_params import GrammarKind, GrammarSpec
from bough.tokenization.tokenizer import Tokenizer

MAX_LEXER_STATES = 100_000
"""States of the automaton that all outputs with the same compiled grammar share and that grows while they use it; at
half a KiB each it takes 50 MB at most. A string of bounded length takes about four states per character."""

BYTES_PER_STATE = 512
STATES_PER_TOKEN = 20
"""By how much the automaton of a grammar that does not repeat itself grows; most stop growing soon."""

WORN_TOKENS = 4096
"""Tokens after which a compiled grammar is not given to new requests, but compiled anew: bounds what it grows to."""

PLAIN_WORN_TOKENS = 65_536
PLAIN_STATES = 2000
"""The same of schemas that bound no length and have no pattern, and more states than any of them comes to: none in
``benchmarks/grammar_corpus.py``, hostile ones aside, has more than 500 after thousands of tokens at random."""

_MAY_GROW = re.compile(r'Length"|"pattern|\{\d')

MAX_GRAMMAR_SYMBOLS = 200_000
MAX_STEP_FUEL = 100_000
"""Work on regular expressions per mask, about 7 ms: bounds how long a request can make all others wait."""

MAX_MASK_THREADS = 8
MIN_PARALLEL_MASKS = 4
MIN_PARALLEL_VOCAB = 32_768
"""A mask takes 2 us for 4,000 tokens and 20 us for 150,000; waking threads takes longer than few or small ones."""

SILENT_LOOKS = 256
LOOKS_PER_DOUBLING = 32
MAX_DOUBLINGS = 6
"""A grammar that has forced no text in :data:`SILENT_LOOKS` looks ahead, one after the other, is asked every second
token only, then ever more rarely: where that misses text, the mask of the next token has just that which begins it."""

MAX_REMEMBERED_LOOKS = 1024
"""Grammars whose habits are remembered when they are compiled anew."""

MAX_REMEMBERED_TEXTS = 4096
MAX_REMEMBERED_CHARACTERS = 256
"""Of texts that grammars force: the same few come again and again, and encoding one takes as long as four masks."""

MIN_GRAMMAR_BYTES = 64 * 1024
BYTES_PER_SOURCE_BYTE = 64
"""Rough memory of a compiled grammar, for the cache's accounts."""


class LLGuidanceBackend:
    """Compiles with llguidance for one vocabulary.

    Args:
        tokenizer: the vocabulary.
        translator: writes specifications as llguidance wants them, with the ids of that vocabulary.
        max_states: see :data:`MAX_LEXER_STATES`.
    """

    def __init__(self, tokenizer: LLTokenizer, translator: Translator, *, max_states: int = MAX_LEXER_STATES) -> None:
        self._tokenizer = tokenizer
        self._translator = translator
        self._looks = lru_cache(MAX_REMEMBERED_LOOKS)(lambda _source_hash: LooksAhead())
        self._limits = LLParserLimits(
            max_lexer_states=max_states,
            max_grammar_size=MAX_GRAMMAR_SYMBOLS,
            step_lexer_fuel=MAX_STEP_FUEL,
            # Takes up to twenty seconds, to save as little at a time that masks are computed at anyway.
            precompute_large_lexemes=False,
            verbose_errors=False,
        )

    def compile(self, spec: GrammarSpec) -> LLGuidanceGrammar:
        """See :class:`~bough.constrained.base.GrammarBackend`."""
        return self.build(spec.kind, self._translator.translate(spec))

    def build(self, kind: GrammarKind, source: str) -> LLGuidanceGrammar:
        """Compile what a translator has written.

        Raises:
            GrammarError: it is wrong, not supported or too large.
        """
        matcher = LLMatcher(self._tokenizer, source, log_level=0, limits=self._limits)
        problem = matcher.get_error()
        if problem:
            raise GrammarError(readable(problem), kind=kind)
        is_plain = kind == "json_schema" and _MAY_GROW.search(source) is None
        looks = self._looks(hash(source))
        return LLGuidanceGrammar(matcher, len(source), is_plain, looks, self._tokenizer.eos_tokens)


class LooksAhead:
    """When to ask a grammar for forced text, which takes as long as three masks, by what came of it so far.

    Attributes:
        tokens_left: until the next look; for matchers to count down.
    """

    def __init__(self) -> None:
        self._num_silent = 0
        self.tokens_left = 1

    def tell(self, has_forced: bool) -> None:
        """Remember what came of a look: one that finds text makes up for half of those that did not."""
        silent = self._num_silent // 2 if has_forced else self._num_silent + 1
        self._num_silent = min(silent, SILENT_LOOKS + LOOKS_PER_DOUBLING * MAX_DOUBLINGS)
        self.tokens_left = 1 << max(self._num_silent - SILENT_LOOKS, 0) // LOOKS_PER_DOUBLING


class LLGuidanceGrammar:
    """See :class:`~bough.constrained.base.Grammar`.

    Attributes:
        num_tokens: accepted by all its matchers so far.
        has_failed: whether a matcher could not go on for want of states, of which copies have no more either.
        looks: when to ask it for forced text; may be shared with others of the same source.
        last_tokens: ends of sequence, and all tokens that an output was complete with: these are looked at at once.
    """

    def __init__(
        self, prototype: LLMatcher, source_len: int, is_plain: bool, looks: LooksAhead, eos_tokens: Iterable[int]
    ) -> None:
        self._prototype = prototype
        self._worn_tokens = PLAIN_WORN_TOKENS if is_plain else WORN_TOKENS
        self._max_states = PLAIN_STATES if is_plain else MAX_LEXER_STATES
        self._lock = threading.Lock()
        self._source_bytes = MIN_GRAMMAR_BYTES + BYTES_PER_SOURCE_BYTE * source_len
        self.num_tokens = 0
        self.has_failed = False
        self.looks = looks
        self.last_tokens = set(eos_tokens)

    @property
    def num_bytes(self) -> int:
        """See the protocol."""
        return self._source_bytes + BYTES_PER_STATE * min(self.num_tokens * STATES_PER_TOKEN, self._max_states)

    @property
    def is_worn(self) -> bool:
        """See the protocol."""
        return self.has_failed or self.num_tokens >= self._worn_tokens

    def matcher(self) -> LLGuidanceMatcher:
        """See the protocol."""
        with self._lock:
            return LLGuidanceMatcher(self._prototype.deep_copy(), self)


class LLGuidanceMatcher:
    """See :class:`~bough.constrained.base.GrammarMatcher`."""

    def __init__(self, matcher: LLMatcher, grammar: LLGuidanceGrammar) -> None:
        self._engine = matcher
        self._grammar = grammar
        self._postponed: int | None = None

    @property
    def error(self) -> str | None:
        """See the protocol."""
        engine = self._up_to_date()
        return readable(engine.get_error()) if engine.is_error() else None

    @property
    def is_accepting(self) -> bool:
        """See the protocol."""
        return self._up_to_date().is_accepting()

    @property
    def is_terminated(self) -> bool:
        """See the protocol."""
        engine = self._up_to_date()
        return engine.is_stopped() and not engine.is_error()

    @staticmethod
    def fill_masks(matchers: Sequence[LLGuidanceMatcher], bits: MaskWords) -> list[int]:
        """See the protocol. Many masks over a large vocabulary are computed on several threads, without the GIL."""
        start, size = bits.ctypes.data, bits.shape[1] * bits.itemsize
        in_parallel = len(matchers) >= MIN_PARALLEL_MASKS and bits.shape[1] * 32 >= MIN_PARALLEL_VOCAB
        engines: list[LLMatcher] = []
        for i, each in enumerate(matchers):
            engine = each._up_to_date()
            engines.append(engine)
            if not in_parallel:
                engine.unsafe_compute_mask_ptr(start + i * size, size)
        if in_parallel:
            _executor().unsafe_compute_mask_ptr(
                [(engine, i) for i, engine in enumerate(engines)], start, size, len(bits)
            )
        ended = [i for i, engine in enumerate(engines) if engine.is_stopped()]
        for i in [i for i in ended if engines[i].is_error()]:
            bits[i] = 0
            matchers[i]._grammar.has_failed = True
            ended.remove(i)
        return ended

    def fill_mask(self, words: MaskWords) -> None:
        """The mask of one matcher, into ``words`` ``[mask_words]``."""
        self.fill_masks([self], words[None])

    def accept(self, token_id: int) -> bool:
        """See the protocol."""
        self._grammar.num_tokens += 1
        return self._up_to_date().consume_token(token_id)

    def judge(self, token_id: int, look_ahead: bool, mask_place: MaskPlace) -> Judgement:
        """See the protocol. llguidance leaves out forced tokens at the end that later text could still merge with.

        A look at a token costs more than the rest of what the scheduler does for it; the thread that computes masks has
        to bring the same parser into its core's cache anyway.
        """
        grammar = self._grammar
        grammar.num_tokens += 1
        if look_ahead:
            grammar.looks.tokens_left -= 1
            look_ahead = grammar.looks.tokens_left <= 0
        if mask_place is LATER and not look_ahead and self._postponed is None and token_id not in grammar.last_tokens:
            self._postponed = token_id
            return GOES_ON
        engine = self._up_to_date()
        if not engine.consume_token(token_id):
            return REFUSED
        if engine.is_stopped():
            if engine.is_error():
                return GOES_ON
            grammar.last_tokens.add(token_id)
            return ENDED
        if look_ahead:
            forced = engine.compute_ff_tokens()
            grammar.looks.tell(bool(forced))
            if forced:
                return Judgement("forced", forced)
        if not isinstance(mask_place, tuple):
            return GOES_ON
        try:
            engine.unsafe_compute_mask_ptr(*mask_place)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic: the step that needs the mask meets it again
            return GOES_ON
        return GOES_ON if engine.is_error() else MASKED

    def rollback(self, num_tokens: int) -> None:
        """See the protocol."""
        if num_tokens:
            self._up_to_date().rollback(num_tokens)

    def _up_to_date(self) -> LLMatcher:
        """The engine, behind all tokens that it was to accept."""
        engine, token = self._engine, self._postponed
        if token is not None:
            self._postponed = None
            # An error is for others to find.
            if engine.consume_token(token) and engine.is_stopped() and not engine.is_error():
                self._grammar.last_tokens.add(token)
        return engine


@cache
def _executor() -> LLExecutor:
    """The threads that compute masks, in this process."""
    return LLExecutor(min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, MAX_MASK_THREADS))


def make_tokenizer(tokenizer: Tokenizer, vocab_size: int, eos_token_ids: Sequence[int]) -> LLTokenizer:
    """The vocabulary of a model. Holds the GIL all the while: a second for 150,000 tokens.

    Args:
        tokenizer: of the model.
        vocab_size: of the model; ids that the tokenizer does not know are never allowed.
        eos_token_ids: of the model.
    """
    ends = [token for token in eos_token_ids if 0 <= token < vocab_size]
    table = TokenTable(tokenizer, vocab_size, ends)
    return LLTokenizer(table, n_vocab=vocab_size, eos_token=ends or None)


def make_byte_tokenizer(special_tokens: Iterable[str]) -> tuple[LLTokenizer, dict[str, int]]:
    """The smallest vocabulary in which everything can be written: the 256 bytes, special tokens, an end of sequence.

    Returns:
        the vocabulary, and the ids that the special tokens have in it.
    """
    table = _ByteTable(special_tokens)
    return LLTokenizer(TokenizerWrapper(table), n_vocab=len(table.tokens), eos_token=table.eos_token_id), table.ids


class _ByteTable:
    bos_token_id = None

    def __init__(self, special_tokens: Iterable[str]) -> None:
        self.ids = {text: 256 + n for n, text in enumerate(special_tokens)}
        self.eos_token_id = 256 + len(self.ids)
        self.special_token_ids = [*self.ids.values(), self.eos_token_id]
        self.tokens = [bytes([byte]) for byte in range(256)] + [text.encode() for text in self.ids] + [b"<end>"]

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


class TokenTable(TokenizerWrapper):
    """The bytes of a model's tokens, and a function that makes tokens of text: a wrapper that wraps nothing.

    To the engine special tokens are no text. Other added tokens are text like any: it may be written with them or
    spelled out, since both read the same.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, ends: Sequence[int]) -> None:
        self._special = {token for token in (*tokenizer.special_ids, *ends) if token < vocab_size}
        self._encode = tokenizer.running_text_encoder(self._special)
        self.eos_token_id = ends[0] if ends else tokenizer.eos_token_id or 0
        self.bos_token_id = tokenizer.bos_token_id
        self.special_token_ids = sorted(self._special)
        known = min(vocab_size, tokenizer.vocab_size)
        self.tokens = [
            (tokenizer.id_to_token(token) or "").encode()
            if token in self._special
            else tokenizer.id_to_piece_bytes(token)
            for token in range(known)
        ]
        self.tokens += [b""] * (vocab_size - known)
        self.is_tokenizer_wrapper = True
        self._remembered: dict[str, list[int]] = {}

    def __call__(self, text: str) -> list[int]:
        """Tokens that the engine accepts for a text, which it asks for where a grammar leaves no other."""
        ids = self._remembered.get(text)
        if ids is None:
            ids = list(self._encode(text))
            data = text.encode()
            if not self._spells(ids, data):
                ids = self._longest_first(data)
            if len(text) <= MAX_REMEMBERED_CHARACTERS:
                if len(self._remembered) >= MAX_REMEMBERED_TEXTS:
                    self._remembered.clear()
                self._remembered[text] = ids
        return ids

    def _spells(self, ids: Sequence[int], data: bytes) -> bool:
        """Whether tokens are just this text, which normal forms, among others, may have changed."""
        pieces = (self.tokens[token] for token in ids if token < len(self.tokens) and token not in self._special)
        return b"".join(pieces) == data

    def _longest_first(self, data: bytes) -> list[int]:
        """Tokens for a text, or for its beginning if no token can spell what follows."""
        ids: list[int] = []
        start = 0
        while start < len(data):
            pieces = (data[start:end] for end in range(min(len(data), start + self._longest), start, -1))
            piece = next((piece for piece in pieces if piece in self._ids), None)
            if piece is None:
                break
            ids.append(self._ids[piece])
            start += len(piece)
        return ids

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {piece: token for token, piece in enumerate(self.tokens) if piece and token not in self._special}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._ids), default=0)
