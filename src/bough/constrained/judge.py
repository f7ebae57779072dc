"""Child process that tries grammars out: translates, compiles and follows them, and measures the cost.

It has the model's vocabulary, because masks over more tokens go deeper into a grammar and take longer.
"""

from __future__ import annotations

import math
import random
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np

from bough.child_trial import answer_parent
from bough.constrained.base import GrammarError, mask_words
from bough.constrained.engine_errors import OF_THE_WHOLE
from bough.constrained.grammar_bounds import (
    MASK_SECONDS_PER_TOKEN,
    MAX_BUILD_SECONDS,
    MAX_COMPILED_BYTES,
    MAX_HOLD_SECONDS,
    MAX_MASK_SECONDS,
    MAX_MEAN_MASK_SECONDS,
)
from bough.constrained.llguidance_backend import Grammar, LLGuidanceBackend
from bough.constrained.structural_tag import parts_of
from bough.constrained.translate import Translator
from bough.constrained.vocabulary import Vocabulary, self_contained_tokenizer
from bough.process_usage import allocated_bytes, give_back_freed_memory, stand_back
from bough.sampling.sampling_params import GrammarKind, GrammarSpec

MAX_MEMORY_BYTES = 768 * 2**20
"""Address space of the child beyond what it starts with. Its vocabulary takes 100 MB; a grammar that is far too large
hits the limit quickly."""

MAX_SOURCE_CHARS = 512 * 1024
"""Longest translated specification: the engine copies and splits it while holding the GIL."""

MAX_FORCED_BYTES = 1024
"""Longest text that a grammar may force at once: it takes a millisecond. A grammar that exceeds it forces nothing."""

WALK_STEPS = 64
"""Tokens for which the child follows a grammar."""

CLOSING = 0.3
"""Probability of preferring a token that closes a string or the like, to reach the grammar behind it."""

MAX_SEARCHED_PARTS = 256
"""Most parts of a structural tag that are tried one by one to find the faulty one."""

STACK_BYTES = 48 * 2**20
"""Stack on which the child compiles: smaller than that of the compiler's own threads."""

QUICK_CPU_SECONDS = 0.05
LOWEST_PRIORITY = 19
"""Nice value for the rest of a grammar that takes more processor time than this."""

_LONG = re.compile(r'\{\d{4}|"minLength": ?(?:\d{4}|\d+[.e])|[^"\\/\n]{1024}')
"""Sources that very likely force long texts somewhere."""

_REPEATED = re.compile(r"(?<!\))\{(\d{1,3})\b")
_REPEATED_GROUP = re.compile(r"\)\{(\d{1,3})\b")
MAX_REPEATED = 5000
"""Product of nested repetition counts beyond which a grammar is assumed to force long texts, too."""


class TrialSetup(msgspec.Struct, array_like=True):
    """Everything the child must know in advance."""

    whitespace_pattern: str
    special_tokens: dict[str, int]
    vocabulary: Vocabulary


class Case(msgspec.Struct, array_like=True):
    """One specification to try out."""

    spec: GrammarSpec
    timeout_s: float
    """seconds after which the parent gives up"""


class Verdict(msgspec.Struct, array_like=True):
    """Result of a trial: the translated grammar and its memory, or the problem."""

    source: str | None
    problem: str | None = None
    num_bytes: int = 0


def main() -> int:
    """Judge specifications from standard input until it ends."""

    def start(setup: TrialSetup) -> Judge:
        judge = Judge(setup)
        threading.stack_size(STACK_BYTES)
        return judge

    return answer_parent(TrialSetup, Case, start, memory_bytes=MAX_MEMORY_BYTES)


@dataclass
class Cost:
    """Cost of a grammar so far: bytes, seconds of processor time, and the longest time for which the GIL was held."""

    num_bytes: int
    build_s: float
    hold_s: float
    masks_s: list[float]
    forced_bytes: int

    def problem(self, vocab_size: int) -> str | None:
        """Return a description of the limit that was exceeded, if any."""
        more_s = vocab_size * MASK_SECONDS_PER_TOKEN
        mean_s = sum(self.masks_s) / max(len(self.masks_s), 1)
        bounds = (
            (self.num_bytes, MAX_COMPILED_BYTES, 2**20, "MiB of memory"),
            (self.build_s, MAX_BUILD_SECONDS, 1.0, "s to compile"),
            (self.hold_s, MAX_HOLD_SECONDS, 1e-3, "ms for one token"),
            (
                max(self.masks_s, default=0.0),
                MAX_MASK_SECONDS + more_s,
                1e-3,
                "ms for the tokens that may come next",
            ),
            (mean_s, MAX_MEAN_MASK_SECONDS + more_s, 1e-3, "ms on average for the tokens that may come next"),
        )
        for value, most, unit, what in bounds:
            if value > most:
                return f"it takes more than {most / unit:.3g} {what}; {_SMALLER}"
        return None


_SMALLER = "make bounded repetitions shorter, and its parts fewer"


class Judge:
    """Translates, compiles, and follows grammars for a few steps."""

    def __init__(self, setup: TrialSetup) -> None:
        self._translator = Translator(setup.whitespace_pattern, setup.special_tokens)
        tokenizer = self_contained_tokenizer(setup.vocabulary)
        self._backend = LLGuidanceBackend(tokenizer, self._translator, measures_growth=False)
        self._tokens = setup.vocabulary.tokens
        self._closing = np.array([bool(token) and not token.strip(b'"}],:> \n') for token in self._tokens])

    def __call__(self, case: Case) -> Verdict:
        """Judge a specification, on a separate stack."""
        verdicts: list[Verdict] = []
        thread = threading.Thread(target=lambda: verdicts.append(self._judge(case.spec, case.timeout_s)))
        thread.start()
        thread.join(QUICK_CPU_SECONDS)
        while thread.is_alive():
            stand_back(LOWEST_PRIORITY, thread.native_id)
            thread.join(QUICK_CPU_SECONDS)
        give_back_freed_memory()
        return verdicts[0] if verdicts else Verdict(None, "the grammar engine has failed on it")

    def _judge(self, spec: GrammarSpec, timeout_s: float) -> Verdict:
        begin = time.monotonic()
        check: Callable[[GrammarSpec], object] = self._translator.translate
        try:
            source = self._translator.translate(spec)
            if len(source) > MAX_SOURCE_CHARS:
                return Verdict(None, f"it comes to more than {MAX_SOURCE_CHARS} characters once it is written out")
            check = self._backend.compile
            if forces_much(source):
                source = without_forcing(source)
            cost = self._follow(spec.kind, source)
            if cost.forced_bytes > MAX_FORCED_BYTES:
                source = without_forcing(source)
                cost = self._follow(spec.kind, source)
        except GrammarError as error:
            return Verdict(None, self._located(spec, _said(error, spec), check, begin, begin + timeout_s))
        problem = cost.problem(len(self._tokens))
        return Verdict(source, None, cost.num_bytes) if problem is None else Verdict(None, problem)

    def _located(
        self, spec: GrammarSpec, problem: str, check: Callable[[GrammarSpec], object], begin: float, deadline: float
    ) -> str:
        """Describe the problem; for a structural tag, name the first part for which ``check`` reports it.

        The search stops when there is no time left for a part as slow as the whole has been since ``begin``.
        """
        if spec.kind != "structural_tag" or problem.endswith(OF_THE_WHOLE):
            return problem
        latest = deadline - (time.monotonic() - begin)
        for place, part in islice(parts_of(spec.text), MAX_SEARCHED_PARTS):
            if time.monotonic() > latest:
                break
            try:
                check(part)
            except GrammarError as error:
                return f"{place}{_said(error, part)}"
        return problem

    def _follow(self, kind: GrammarKind, source: str) -> Cost:
        """Compile a grammar, follow a random path through it, and measure both. Raises :class:`GrammarError` if it
        fails.
        """
        before, begin = allocated_bytes(), time.thread_time()
        grammar = self._backend.build(kind, source, 0)
        built = time.thread_time()
        cost = Cost(0, built - begin, 0.0, [], 0)
        try:
            self._walk(kind, grammar, cost)
        finally:
            cost.num_bytes = max(allocated_bytes() - before, 0)
        return cost

    def _walk(self, kind: GrammarKind, grammar: Grammar, cost: Cost) -> None:
        rng, words = random.Random(0), np.zeros(mask_words(len(self._tokens)), dtype=np.int32)
        begin = time.thread_time()
        matcher = grammar.matcher()
        cost.hold_s = time.thread_time() - begin
        for _ in range(WALK_STEPS):
            begin = time.thread_time()
            matcher.fill_mask(words)
            cost.masks_s.append(time.thread_time() - begin)
            if matcher.error is not None:
                raise GrammarError(matcher.error, kind=kind)
            allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
            if not allowed.size or matcher.is_terminated:
                break
            closing = allowed[self._closing[allowed]]
            pool = closing if closing.size and rng.random() < CLOSING else allowed
            begin = time.thread_time()
            judgement = matcher.judge(int(pool[rng.randrange(pool.size)]), True, None)
            cost.hold_s = max(cost.hold_s, time.thread_time() - begin)
            cost.forced_bytes = max(cost.forced_bytes, sum(len(self._tokens[token]) for token in judgement.forced))
            if cost.forced_bytes > MAX_FORCED_BYTES:
                return  # the caller tries again without forced text
            for token in judgement.forced[:WALK_STEPS]:
                matcher.accept(token)


def forces_much(source: str) -> bool:
    """Guess from numbers in the source if a grammar forces long texts, which would take long to measure."""
    if _LONG.search(source):
        return True
    for part in re.split(r'["\n]', source):
        repeated = math.prod(int(count) for count in _REPEATED_GROUP.findall(part))
        if repeated * max((int(count) for count in _REPEATED.findall(part)), default=1) > MAX_REPEATED:
            return True
    return False


def without_forcing(source: str) -> str:
    """Return a grammar that never forces text, so that the time of each mask is bounded."""
    head = '%llguidance {"no_forcing": true}\n'
    if not source.startswith("{"):
        return head + source
    (grammar,) = msgspec.json.decode(source)["grammars"]
    return f"{head}start: %json {msgspec.json.encode(grammar['json_schema']).decode()}\n"


def _said(error: GrammarError, spec: GrammarSpec) -> str:
    return error.message.removeprefix(f"{spec.kind}: ")


if __name__ == "__main__":
    sys.exit(main())
