"""Grammars by llguidance: an Earley parser over regular expressions that are compiled while they are used.

Nothing is precomputed per vocabulary, so compiling takes about a millisecond, and a mask some microseconds, since the
walk over the trie of tokens skips whatever the current lexeme allows or forbids as a whole.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import NamedTuple

from llguidance import LLExecutor, LLMatcher, LLParserLimits, LLTokenizer

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
from bough.constrained.engine_errors import OF_THE_WHOLE, TOO_LARGE, readable
from bough.constrained.grammar_bounds import MAX_GROWN_BYTES
from bough.constrained.held_memory import GrowthMeter, HeldBytes
from bough.constrained.translate import Translator
from bough.process_usage import allocated_bytes
from bough.sampling.sampling_params import GrammarKind, GrammarSpec

MAX_LEXER_STATES = 64_000
"""Most states of the automaton that is shared by all outputs of a compiled grammar, and grows in use. A string of
bounded length takes about four states per character, mostly half a KiB each."""

WORN_TOKENS = 4096
WORN_BYTES = 4 * 2**20
"""Tokens, and bytes of growth, after which new requests get a freshly compiled grammar."""

PLAIN_WORN_TOKENS = 65_536
PLAIN_STATES = 8000
"""The same for schemas without length bounds and patterns, and their most states: of
``tests/constrained/schema_corpus.py`` none except the hostile ones has more than 500 after thousands of tokens. Their
growth is not measured."""

_MAY_GROW = re.compile(r'Length"|"pattern|\{\d')

MAX_GRAMMAR_SYMBOLS = 200_000
MAX_STEP_FUEL = 50_000
"""Most work on regular expressions per mask, about 4 ms: limits the delay to other requests, and the growth of memory,
at most 300 bytes a unit. A choice of five thousand texts needs 40,000, with 150,000 tokens."""

MAX_STEP_ITEMS = 30_000
"""Most work on rules per mask or forced text, about 2 ms: twice the need of a grammar parsed character by character."""

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

MIN_GRAMMAR_BYTES = 64 * 1024
BYTES_PER_SOURCE_BYTE = 128
"""Estimated memory of a grammar that is too small and plain to need a trial; at most 80 bytes a byte were measured."""

MATCHER_BYTES = 4096
"""Memory of a matcher without its copy of the source."""

LARGE_BYTES = 2 * 2**20
"""Size above which a grammar is freed without the GIL: 5 MB take a millisecond."""

_NO_TOKEN = 2**32 - 2

EARLY_TOKENS = 1024
"""Tokens before which a failure would recur if the grammar were compiled again."""

RESTLESS_BYTES = 64 * 1024
"""Joint growth of several grammars above which each is measured separately."""


class LLGuidanceBackend:
    """Compiles grammars with llguidance for one vocabulary, whose ids ``translator`` writes."""

    def __init__(
        self,
        tokenizer: LLTokenizer,
        translator: Translator,
        *,
        max_states: int = MAX_LEXER_STATES,
        measures_growth: bool = True,
    ) -> None:
        self.held = HeldBytes()
        self._meter = GrowthMeter() if measures_growth else None
        self._tokenizer = tokenizer
        self._translator = translator
        self._looks = lru_cache(MAX_REMEMBERED_LOOKS)(lambda _source_hash: LooksAhead())
        self._limits = _limits(max_states)
        self._plain_limits = _limits(min(max_states, PLAIN_STATES))

    def compile(self, spec: GrammarSpec) -> Grammar:
        """Compile a specification. May take seconds; holds the GIL only shortly. For several threads.

        Raises:
            GrammarError: it is wrong, not supported or too large.
        """
        return self.build(spec.kind, self._translator.translate(spec))

    def build(self, kind: GrammarKind, source: str, num_bytes: int | None = None) -> Grammar:
        """Compile the output of a translator; ``num_bytes`` is its memory, if that was measured.

        Raises:
            GrammarError: it is invalid, not supported or too large.
        """
        is_plain = kind == "json_schema" and _MAY_GROW.search(source) is None
        limits = self._plain_limits if is_plain else self._limits
        matcher = LLMatcher(self._tokenizer, source, log_level=0, limits=limits)
        problem = matcher.get_error()
        if problem:
            raise GrammarError(readable(problem), kind=kind)
        if num_bytes is None:
            num_bytes = MIN_GRAMMAR_BYTES + BYTES_PER_SOURCE_BYTE * len(source)
        account = Account(self.held, num_bytes, MATCHER_BYTES + len(source), None if is_plain else self._meter)
        return Grammar(matcher, account, self._looks(hash(source)), self._tokenizer)


def _limits(max_states: int) -> LLParserLimits:
    return LLParserLimits(
        max_lexer_states=max_states,
        max_grammar_size=MAX_GRAMMAR_SYMBOLS,
        step_lexer_fuel=MAX_STEP_FUEL,
        step_max_items=MAX_STEP_ITEMS,
        # Precomputing takes up to twenty seconds and saves little afterwards.
        precompute_large_lexemes=False,
        verbose_errors=False,
    )


class Account(NamedTuple):
    """Initial memory of a grammar and of each matcher, and the counters that both are added to."""

    held: HeldBytes
    num_bytes: int
    matcher_bytes: int
    meter: GrowthMeter | None
    """measures growth; ``None`` if that is not worth its cost"""


class LooksAhead:
    """When to ask a grammar for forced text, which takes as long as three masks, by what came of it so far.

    Matchers count ``tokens_left`` until the next look down.
    """

    def __init__(self) -> None:
        self._num_silent = 0
        self.tokens_left = 1

    def tell(self, has_forced: bool) -> None:
        """Remember what came of a look: one that finds text makes up for half of those that did not."""
        silent = self._num_silent // 2 if has_forced else self._num_silent + 1
        self._num_silent = min(silent, SILENT_LOOKS + LOOKS_PER_DOUBLING * MAX_DOUBLINGS)
        self.tokens_left = 1 << max(self._num_silent - SILENT_LOOKS, 0) // LOOKS_PER_DOUBLING


class Grammar:
    """A compiled grammar; may be shared by any number of requests.

    Attributes:
        num_tokens: tokens accepted by all its matchers so far.
        num_bytes: size in memory, which may grow with use.
        has_failed: a matcher ran out of states, so copies of it would fail, too.
        failure: reason why it failed after so few tokens that compiling it again would not help.
        is_too_large: it has grown beyond its limits, which stops all its matchers.
        is_restless: it had grown when it was last measured.
        looks: decides when to ask for forced text; may be shared by grammars with the same source.
        last_tokens: end-of-sequence ids, and all tokens that completed an output; these are checked immediately.
    """

    def __init__(self, prototype: LLMatcher, account: Account, looks: LooksAhead, tokenizer: LLTokenizer) -> None:
        self._prototype = prototype
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self.held, self.num_bytes, self.matcher_bytes, self.meter = account
        self._first_bytes = self.num_bytes
        self._worn_tokens = PLAIN_WORN_TOKENS if self.meter is None else WORN_TOKENS
        self.num_tokens = 0
        self.has_failed = False
        self.failure: str | None = None
        self.is_too_large = False
        self.is_restless = False
        self.looks = looks
        self.last_tokens = set(tokenizer.eos_tokens)
        self.held.add(self.num_bytes)

    @property
    def is_worn(self) -> bool:
        """True if new requests should get another one, compiled anew, since this one has grown with use."""
        has_grown = self.num_bytes - self._first_bytes > WORN_BYTES
        return has_grown or self.has_failed or self.num_tokens >= self._worn_tokens

    def fail(self, problem: str) -> None:
        """Record that a matcher failed."""
        self.has_failed = True
        if self.num_tokens < EARLY_TOKENS and problem in OF_THE_WHOLE:
            self.failure = problem

    def matcher(self) -> GrammarMatcher:
        """Return a matcher at the beginning. Cheap."""
        with self._lock:
            return GrammarMatcher(self._prototype.deep_copy(), self)

    def grow(self, num_bytes: int) -> None:
        """Add growth in use; matchers detect for themselves when it is too large."""
        self.is_restless = num_bytes > 0
        num_bytes = max(num_bytes, self._first_bytes - self.num_bytes)
        self.num_bytes += num_bytes
        self.held.add(num_bytes)
        has_too_much = self.held.lacking and self.num_bytes - self._first_bytes > WORN_BYTES
        if self.num_bytes > MAX_GROWN_BYTES or has_too_much:
            self.is_too_large = True
            self.fail(TOO_LARGE)

    def __del__(self) -> None:
        if self.num_bytes >= LARGE_BYTES:
            self.held.release(self.num_bytes, partial(_free, self._prototype, self._tokenizer))
        else:
            self.held.release(self.num_bytes)


class GrammarMatcher:
    """One output on its way through a grammar. Not for several threads at once."""

    def __init__(self, matcher: LLMatcher, grammar: Grammar) -> None:
        self._engine = matcher
        self._grammar = grammar
        self._postponed: int | None = None
        grammar.held.add(grammar.matcher_bytes)

    def __del__(self) -> None:
        self._grammar.held.release(self._grammar.matcher_bytes)

    @property
    def error(self) -> str | None:
        """Reason why the grammar cannot be followed any further, for instance because it has become too ambiguous."""
        engine = self._up_to_date()
        if engine.is_error():
            return readable(engine.get_error())
        return TOO_LARGE if self._grammar.is_too_large else None

    @property
    def is_accepting(self) -> bool:
        """True if the output may end here."""
        return self._up_to_date().is_accepting()

    @property
    def is_terminated(self) -> bool:
        """True if the output is complete: nothing may follow, or an end-of-sequence token has been accepted."""
        engine = self._up_to_date()
        return engine.is_stopped() and not engine.is_error()

    @staticmethod
    def fill_masks(matchers: Sequence[GrammarMatcher], bits: MaskWords) -> list[int]:
        """Write which tokens may come next.

        End-of-sequence tokens are among them where the output may end; after an error there are none. Many masks over a
        large vocabulary are computed on several threads, without the GIL.

        Args:
            matchers: ``[G]``.
            bits: int32 ``[G, mask_words]``, contiguous zeros.

        Returns:
            Indices of the outputs that are complete, however often that is asked; their masks allow ends of sequence at
            most.
        """
        start, size = bits.ctypes.data, bits.shape[1] * bits.itemsize
        in_parallel = len(matchers) >= MIN_PARALLEL_MASKS and bits.shape[1] * 32 >= MIN_PARALLEL_VOCAB
        engines: list[LLMatcher] = []
        together: list[tuple[LLMatcher, int]] = []
        for i, each in enumerate(matchers):
            grammar = each._grammar
            before = None if grammar.meter is None else grammar.meter.begin()
            engine = each._up_to_date()
            engines.append(engine)
            if in_parallel and not grammar.is_restless:
                together.append((engine, i))
                continue
            engine.unsafe_compute_mask_ptr(start + i * size, size)
            if before is not None and grammar.meter is not None:
                grammar.grow(grammar.meter.grown(before, grammar.num_bytes))
        if together:
            _fill_together(matchers, together, start, size, len(bits))
        ended = [i for i, engine in enumerate(engines) if engine.is_stopped()]
        for i in [i for i in ended if engines[i].is_error()]:
            bits[i] = 0
            matchers[i]._grammar.fail(readable(engines[i].get_error()))
            ended.remove(i)
        for i, each in enumerate(matchers):
            if each._grammar.is_too_large:
                bits[i] = 0
        return ended

    def fill_mask(self, words: MaskWords) -> None:
        """The mask of one matcher, into ``words`` ``[mask_words]``."""
        self.fill_masks([self], words[None])

    def accept(self, token_id: int) -> bool:
        """Go on by one token; false if the grammar does not allow it, after which the matcher is of no more use."""
        self._grammar.num_tokens += 1
        return self._up_to_date().consume_token(token_id)

    def judge(self, token_id: int, look_ahead: bool, mask_place: MaskPlace) -> Judgement:
        """Go on by one token, and find out what is asked next.

        If the mask is asked for later, a token that most likely is one of many may be looked at then: the answer is
        that the output goes on, and a token that ends it, or is refused, is found out by whatever is asked next, mostly
        :meth:`fill_masks`. A look at a token costs more than the rest of what the scheduler does for it; the thread
        that computes masks has to bring the same parser into its core's cache anyway.

        llguidance leaves out forced tokens at the end that later text could still merge with.

        Args:
            look_ahead: whether to find out what is forced after it.
            mask_place: where to write the mask of the token after it, if the output goes on.
        """
        grammar = self._grammar
        grammar.num_tokens += 1
        if look_ahead:
            grammar.looks.tokens_left -= 1
            look_ahead = grammar.looks.tokens_left <= 0
        if mask_place is LATER and not look_ahead and self._postponed is None and token_id not in grammar.last_tokens:
            self._postponed = token_id
            return GOES_ON
        before = None if grammar.meter is None else grammar.meter.begin()
        judgement = self._judge(token_id, look_ahead, mask_place)
        if before is not None and grammar.meter is not None:
            grammar.grow(grammar.meter.grown(before, grammar.num_bytes))
        return GOES_ON if grammar.is_too_large else judgement

    def _judge(self, token_id: int, look_ahead: bool, mask_place: MaskPlace) -> Judgement:
        engine, grammar = self._up_to_date(), self._grammar
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
        """Take back the tokens accepted last."""
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


def _fill_together(
    matchers: Sequence[GrammarMatcher], engines: list[tuple[LLMatcher, int]], start: int, size: int, rows: int
) -> None:
    """Compute masks on several threads. If the grammars have grown, each is measured separately next time."""
    growing = [matchers[i]._grammar for _, i in engines if matchers[i]._grammar.meter is not None]
    before = allocated_bytes() if growing else 0
    _executor().unsafe_compute_mask_ptr(engines, start, size, rows)
    if growing and allocated_bytes() - before > RESTLESS_BYTES:
        for grammar in growing:
            grammar.is_restless = True


def _free(engine: LLMatcher, tokenizer: LLTokenizer) -> None:
    """Free a grammar without holding the GIL.

    A matcher frees its memory at its first error, and accepting tokens in several matchers releases the GIL.
    """
    other = LLMatcher(tokenizer, "start: /a/", log_level=0)
    _executor().consume_token_par([(engine, _NO_TOKEN), (other, _NO_TOKEN)])


@cache
def _executor() -> LLExecutor:
    """Threads of this process that compute masks."""
    return LLExecutor(min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, MAX_MASK_THREADS))
