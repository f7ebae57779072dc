"""Tries grammars out in a process of their own before they come near the scheduler.

A grammar engine is native code that recurses into what clients send and takes time that is hard to foresee. A child
process can be killed, and can die. What it has compiled and walked through within its limits can be compiled again
here: the engine is deterministic. Schemas that are small and use nothing but the plain keywords need no trial.

The child knows no tokens but the single bytes and the special tokens, numbered from 256 on: what is dangerous about a
grammar does not depend on the vocabulary.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import islice
from typing import IO

import msgspec
import numpy as np

from bough.child_process import module_command, module_environment
from bough.constrained.base import GrammarError, mask_words
from bough.constrained.engine_errors import OF_THE_WHOLE
from bough.constrained.llguidance_backend import LLGuidanceBackend, LLGuidanceGrammar, make_byte_tokenizer
from bough.constrained.structural_tag import parts_of
from bough.constrained.translate import Translator
from bough.errors import BoughError
from bough.observability.process_usage import address_space_bytes
from bough.sampling.sampling_params import GrammarSpec

MAX_MEMORY_BYTES = 2 * 2**30
"""Address space of the child beyond what it has once it has started."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""For numpy, which otherwise starts a thread for each core as it is imported, with 40 MiB of address space each."""

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

_LENGTH = struct.Struct("<I")


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
            verdict = process.ask(spec, timeout_s)
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


class TrialUnavailable(BoughError):
    """The process that tries grammars out does not start; that is not the grammar's fault."""

    status_code = 503


class TrialProcess:
    """The child, seen from its parent. Ends with it: its input reaches its end.

    Raises:
        TrialUnavailable: it does not start.
    """

    def __init__(self, setup: TrialSetup) -> None:
        try:
            self._process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={**module_environment(), **ONE_THREAD},
            )
        except OSError as error:
            raise TrialUnavailable(f"the process that tries grammars out cannot be started: {error}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        started = False
        try:
            _write(self._input, msgspec.msgpack.encode(setup))
            self._read(START_SECONDS)
            started = True
        except (EOFError, OSError) as error:
            why = f"in {START_SECONDS:g} s" if isinstance(error, TimeoutError) else "and has ended"
            raise TrialUnavailable(f"the process that tries grammars out has not started {why}") from None
        finally:
            if not started:
                self.kill()

    def ask(self, spec: GrammarSpec, timeout_s: float) -> Verdict:
        """Have a specification tried out.

        Raises:
            TimeoutError: it takes longer than ``timeout_s`` seconds.
            EOFError, OSError: the child has died of it.
        """
        _write(self._input, msgspec.msgpack.encode(Case(spec, timeout_s)))
        return msgspec.msgpack.decode(self._read(timeout_s), type=Verdict)

    def kill(self) -> None:
        """End the child at once."""
        self._process.kill()
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):
                pipe.close()
        self._process.wait()

    def _read(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        (length,) = _LENGTH.unpack(self._read_exactly(_LENGTH.size, deadline))
        return self._read_exactly(length, deadline)

    def _read_exactly(self, count: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < count:
            ready, _, _ = select.select([self._output], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            piece = os.read(self._output.fileno(), count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


START_SECONDS = 60.0
"""How long the child may take to start on a busy machine."""


def _write(pipe: IO[bytes], data: bytes) -> None:
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[pipe.write(view) :]


# --- the child ---


def main() -> int:
    """Judge specifications from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that this one serves
    limit = address_space_bytes() + MAX_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    # Whatever libraries print must not get between the messages.
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    judge = Judge(msgspec.msgpack.decode(_receive(source) or b"", type=TrialSetup))
    threading.stack_size(STACK_BYTES)
    _write(target, b"")
    while (frame := _receive(source)) is not None:
        _write(target, msgspec.msgpack.encode(judge(msgspec.msgpack.decode(frame, type=Case))))
    return 0


def _end_with_parent(parent: int) -> None:
    """A child that is busy does not see that its input has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


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


def _receive(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    return data if len(data) == length else None


if __name__ == "__main__":
    sys.exit(main())
