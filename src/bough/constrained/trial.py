"""Tries grammars out in a process of their own before they come near the scheduler.

A grammar engine is native code that recurses into what clients send and takes time that is hard to foresee. A child
process can be killed, and can die. What it has compiled and walked through within its limits can be compiled again
here: the engine is deterministic. Schemas that are small and use nothing but the plain keywords need no trial.

The child knows no tokens but the single bytes and the special tokens, numbered from 256 on: what is dangerous about a
grammar does not depend on the vocabulary.
"""

from __future__ import annotations

import random
import re
import sys
import threading
import time
from collections.abc import Callable
from itertools import islice

import msgspec
import numpy as np

from bough.child_process import module_command
from bough.child_trial import TrialChild, answer_parent
from bough.constrained.base import GrammarError, mask_words
from bough.constrained.engine_errors import OF_THE_WHOLE
from bough.constrained.llguidance_backend import LLGuidanceBackend, LLGuidanceGrammar, make_byte_tokenizer
from bough.constrained.structural_tag import parts_of
from bough.constrained.translate import Translator
from bough.sampling.sampling_params import GrammarSpec

MAX_MEMORY_BYTES = 2 * 2**30
"""Address space of the child beyond what it has once it has started."""

COMMAND = module_command("bough.constrained.trial")

PLAIN_BYTES = 16 * 1024
"""Longest specification that may do without a trial."""

WALK_STEPS = 24
"""Tokens that the child goes through a grammar."""

MAX_SEARCHED_PARTS = 256
"""Parts of a structural tag that are tried out one by one to find the one which is at fault."""

STACK_BYTES = 48 * 2**20
"""Stack on which the child compiles: less than the compiler's own threads have."""

_RISKY = re.compile(
    r'"(?:\$ref|\$dynamicRef|allOf|oneOf|not|if|pattern|patternProperties|propertyNames|multipleOf|dependent\w+'
    r'|contains)"|\\u'
)
"""Keywords that let a short schema stand for a large or deep grammar, and escapes, which could hide them."""


class TrialSetup(msgspec.Struct, array_like=True):
    """What the child must know."""

    whitespace_pattern: str
    special_tokens: dict[str, int]


class Case(msgspec.Struct, array_like=True):
    """What the child is asked."""

    spec: GrammarSpec
    timeout_s: float
    """seconds after which nobody waits for its answer"""


class Verdict(msgspec.Struct, array_like=True):
    """What the child says of a specification: the translated grammar, or what is wrong with it."""

    source: str | None
    problem: str | None = None


def needs_trial(spec: GrammarSpec) -> bool:
    """Whether a grammar might be dangerous."""
    if len(spec.text) > PLAIN_BYTES:
        return True
    return spec.kind != "choice" and (spec.kind != "json_schema" or _RISKY.search(spec.text) is not None)


class TrialBackend:
    """A backend that compiles nothing which has not survived a trial.

    Args:
        backend: compiles.
        translator: of the backend.
    """

    def __init__(self, backend: LLGuidanceBackend, translator: Translator) -> None:
        self._backend = backend
        self._setup = TrialSetup(translator.whitespace_pattern, dict(translator.special_tokens))
        self._idle: list[TrialProcess] = []
        self._lock = threading.Lock()
        self._closed = False

    def compile(self, spec: GrammarSpec, timeout_s: float) -> LLGuidanceGrammar:
        """Compile what needs no trial, or has passed it.

        Raises:
            GrammarError: the grammar is wrong, not supported or too large.
            TimeoutError: its trial takes longer than ``timeout_s`` seconds.
            TrialUnavailable: it cannot be tried out.
        """
        if not needs_trial(spec):
            return self._backend.compile(spec)
        return self._backend.build(spec.kind, self._try(spec, timeout_s))

    def close(self) -> None:
        """End the children."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()

    def _try(self, spec: GrammarSpec, timeout_s: float) -> str:
        """The translated grammar.

        Raises:
            GrammarError: the grammar is wrong, not supported or too large.
            TimeoutError: it takes longer than ``timeout_s`` seconds.
            TrialUnavailable: there is no child to try it out.
        """
        deadline = time.monotonic() + timeout_s
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            try:
                return self._ask(idle, spec, timeout_s)
            except _ChildDied:
                # Perhaps before it was asked, as when memory is short or a signal goes to a whole group.
                timeout_s = max(deadline - time.monotonic(), 0.0)
        try:
            return self._ask(TrialProcess(self._setup), spec, timeout_s)
        except _ChildDied:
            raise GrammarError("it is too deep or too large for the grammar engine", kind=spec.kind) from None

    def _ask(self, process: TrialProcess, spec: GrammarSpec, timeout_s: float) -> str:
        survives = False
        try:
            verdict = process.try_out(spec, timeout_s)
            survives = True
        except TimeoutError:
            raise
        except (EOFError, OSError):
            raise _ChildDied from None
        finally:
            if not survives:
                process.kill()
        self._put_back(process)
        if verdict.source is None:
            raise GrammarError(verdict.problem or "it cannot be compiled", kind=spec.kind)
        return verdict.source

    def _put_back(self, process: TrialProcess) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(process)
                return
        process.kill()


class _ChildDied(Exception):
    """The child has ended without an answer."""


class TrialProcess(TrialChild):
    """The child, seen from its parent.

    Raises:
        TrialUnavailable: it does not start.
    """

    def __init__(self, setup: TrialSetup) -> None:
        super().__init__(COMMAND, setup, "tries grammars out")

    def try_out(self, spec: GrammarSpec, timeout_s: float) -> Verdict:
        """Verdict on a specification; raises as :meth:`TrialChild.ask`."""
        return self.ask(Case(spec, timeout_s), Verdict, timeout_s)


# --- the child ---


def main() -> int:
    """Judge specifications from standard input until it ends."""

    def start(setup: TrialSetup) -> Judge:
        judge = Judge(setup)
        threading.stack_size(STACK_BYTES)
        return judge

    return answer_parent(TrialSetup, Case, start, memory_bytes=MAX_MEMORY_BYTES)


class Judge:
    """Translates, compiles, and follows grammars for a few steps."""

    def __init__(self, setup: TrialSetup) -> None:
        self._translator = Translator(setup.whitespace_pattern, setup.special_tokens)
        tokenizer, ids = make_byte_tokenizer(setup.special_tokens)
        self._num_words = mask_words(tokenizer.vocab_size)
        self._byte_translator = Translator(setup.whitespace_pattern, ids)
        self._backend = LLGuidanceBackend(tokenizer, self._byte_translator)

    def __call__(self, case: Case) -> Verdict:
        """What becomes of a specification, on a stack of its own."""
        verdicts: list[Verdict] = []
        thread = threading.Thread(target=lambda: verdicts.append(self._judge(case.spec, case.timeout_s)))
        thread.start()
        thread.join()
        return verdicts[0] if verdicts else Verdict(None, "the grammar engine has failed on it")

    def _judge(self, spec: GrammarSpec, timeout_s: float) -> Verdict:
        begin = time.monotonic()
        # What is sent back has the model's ids of special tokens; what is tried out has those of the child.
        check: Callable[[GrammarSpec], object] = self._byte_translator.translate
        try:
            source = self._translator.translate(spec)
            tried = source if spec.kind != "structural_tag" else self._byte_translator.translate(spec)
            check = self._backend.compile
            problem = self._walk(self._backend.build(spec.kind, tried))
        except GrammarError as error:
            problem = self._located(spec, _said(error, spec), check, begin, begin + timeout_s)
        return Verdict(source) if problem is None else Verdict(None, problem)

    def _located(
        self, spec: GrammarSpec, problem: str, check: Callable[[GrammarSpec], object], begin: float, deadline: float
    ) -> str:
        """What is wrong; of a structural tag with the first of its parts of which ``check`` says so by itself.

        It is looked for as long as there is time for a part that takes as long as the whole has since ``begin``.
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

    def _walk(self, grammar: LLGuidanceGrammar) -> str | None:
        matcher, words = grammar.matcher(), np.zeros(self._num_words, dtype=np.int32)
        rng = random.Random(0)
        for _ in range(WALK_STEPS):
            matcher.fill_mask(words)
            if matcher.error is not None:
                return matcher.error
            allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
            if not allowed.size or matcher.is_terminated:
                break
            matcher.accept(int(rng.choice(allowed.tolist())))
        return None


def _said(error: GrammarError, spec: GrammarSpec) -> str:
    return error.message.removeprefix(f"{spec.kind}: ")


if __name__ == "__main__":
    sys.exit(main())
