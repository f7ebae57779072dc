"""Try grammars out in a separate process before the scheduler uses them.

The grammar engine is native code that recurses into input from clients; its time and memory are hard to predict.
A child process can be killed and can crash; it measures each grammar (:mod:`~bough.constrained.judge`).
The engine is deterministic, so a grammar that stayed within its limits there can be compiled again here.
Small schemas with only plain keywords need no trial.
"""

from __future__ import annotations

import re
import threading
import time

import msgspec

from bough.child_process import module_command
from bough.child_trial import TrialChild
from bough.constrained.base import GrammarError
from bough.constrained.judge import Case, TrialSetup, Verdict
from bough.constrained.llguidance_backend import Grammar, LLGuidanceBackend
from bough.constrained.translate import Translator
from bough.constrained.vocabulary import Vocabulary
from bough.sampling.sampling_params import GrammarSpec

COMMAND = module_command("bough.constrained.judge")

PLAIN_BYTES = 8 * 1024
"""Longest specification that may do without a trial."""

_RISKY = re.compile(
    r'"(?:\$ref|\$dynamicRef|allOf|oneOf|not|if|pattern|patternProperties|propertyNames|multipleOf|dependent\w+'
    r'|contains)"|\\u|"m(?:in|ax)(?:Length|Items|Properties)"\s*:\s*(?:\d{4}|\d+[.eE])|"[^"]{1000}'
)
"""Sources that need a trial: keywords that let a short schema stand for a large or deep grammar, escapes, which could
hide such keywords, bounds of a thousand and more, and long texts."""


def needs_trial(spec: GrammarSpec) -> bool:
    """True if a grammar might be dangerous."""
    if len(spec.text) > PLAIN_BYTES:
        return True
    return spec.kind not in ("json_schema", "choice") or _RISKY.search(spec.text) is not None


class TrialBackend:
    """A backend that compiles only grammars that have passed a trial."""

    def __init__(self, backend: LLGuidanceBackend, translator: Translator, vocabulary: Vocabulary) -> None:
        self._backend = backend
        setup = TrialSetup(translator.whitespace_pattern, dict(translator.special_tokens), vocabulary)
        self._setup = msgspec.Raw(msgspec.msgpack.encode(setup))
        self._idle: list[TrialChild] = []
        self._lock = threading.Lock()
        self._closed = False

    def compile(self, spec: GrammarSpec, timeout_s: float) -> Grammar:
        """Compile a grammar that needs no trial, or has passed it.

        Raises:
            GrammarError: the grammar is invalid, not supported or too large.
            TimeoutError: its trial takes longer than ``timeout_s`` seconds.
            TrialUnavailable: it cannot be tried out.
            Overloaded: there is no memory for it.
        """
        if not needs_trial(spec):
            with self._backend.held.room(0):
                return self._backend.compile(spec)
        verdict = self._try(spec, timeout_s)
        if verdict.source is None:
            raise GrammarError(verdict.problem or "it cannot be compiled", kind=spec.kind)
        with self._backend.held.room(verdict.num_bytes):
            return self._backend.build(spec.kind, verdict.source, verdict.num_bytes)

    def close(self) -> None:
        """End the children."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def _try(self, spec: GrammarSpec, timeout_s: float) -> Verdict:
        """Try a grammar out in a child.

        Raises:
            GrammarError: it is too deep or too large.
            TimeoutError: it takes longer than ``timeout_s`` seconds.
            TrialUnavailable: no child could be started.
        """
        deadline = time.monotonic() + timeout_s
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        verdict = None if idle is None else self._ask(idle, spec, timeout_s)
        if verdict is None:
            if idle is not None:
                # It died perhaps before it was asked, as when memory is short or a signal goes to a whole group.
                timeout_s = max(deadline - time.monotonic(), 0.0)
            verdict = self._ask(TrialChild(COMMAND, self._setup, "tries grammars out"), spec, timeout_s)
        if verdict is None:
            raise GrammarError("it is too deep or too large for the grammar engine", kind=spec.kind)
        return verdict

    def _ask(self, child: TrialChild, spec: GrammarSpec, timeout_s: float) -> Verdict | None:
        """Return the verdict of a child, which survives if it gives one; ``None`` if it has died."""
        verdict = None
        try:
            verdict = child.ask(Case(spec, timeout_s), Verdict, timeout_s)
        except TimeoutError:
            raise
        except (EOFError, OSError):
            return None
        finally:
            with self._lock:
                survives = verdict is not None and not self._closed
                if survives:
                    self._idle.append(child)
            if not survives:
                child.kill()
        return verdict
