"""Tries grammars out in a process of their own before they come near the scheduler.

A grammar engine is native code that recurses into what clients send and takes time that is hard to foresee. A child
process can be killed, and can die. What it has compiled and walked through within its limits can be compiled again
here: the engine is deterministic. Schemas that are small and use nothing but the plain keywords need no trial.

The child knows 256 tokens, the single bytes: what is dangerous about a grammar does not depend on the vocabulary.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import select
import struct
import subprocess
import sys
import threading
import time
from typing import IO, Any

import msgspec
import numpy as np

from bough.constrained.base import GrammarError, mask_words
from bough.constrained.llguidance_backend import LLGuidanceBackend, make_byte_tokenizer
from bough.constrained.translate import Translator
from bough.sampling.sampling_params import GrammarSpec

MAX_MEMORY_BYTES = 2 * 2**30
"""Address space of the child."""

PLAIN_BYTES = 16 * 1024
"""Longest specification that may do without a trial."""

WALK_STEPS = 24
"""Tokens that the child goes through a grammar."""

STACK_BYTES = 48 * 2**20
"""Stack on which the child compiles: less than the compiler's own threads have."""

_RISKY = re.compile(
    r'"(?:\$ref|\$dynamicRef|allOf|oneOf|not|if|pattern|patternProperties|propertyNames|multipleOf|dependent\w+|contains'
    r'|x-guidance)"|\\u'
)
"""Keywords that let a short schema stand for a large or deep grammar, and escapes, which could hide them."""

_LENGTH = struct.Struct("<I")


class TrialSetup(msgspec.Struct, array_like=True):
    """What the child must know."""

    whitespace_pattern: str
    special_tokens: dict[str, int]


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
        timeout_s: how long a trial may take.
    """

    def __init__(self, backend: LLGuidanceBackend, translator: Translator, *, timeout_s: float) -> None:
        self._backend = backend
        self._setup = TrialSetup(translator.whitespace_pattern, dict(translator.special_tokens))
        self._timeout_s = timeout_s
        self._idle: list[TrialProcess] = []
        self._lock = threading.Lock()
        self._closed = False

    def compile(self, spec: GrammarSpec) -> Any:
        """See :class:`~bough.constrained.base.GrammarBackend`."""
        if not needs_trial(spec):
            return self._backend.compile(spec)
        return self._backend.build(spec.kind, self._try(spec))

    def close(self) -> None:
        """End the children."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()

    def _try(self, spec: GrammarSpec) -> str:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        if process is None:
            process = TrialProcess(self._setup)
        try:
            verdict = process.ask(spec, self._timeout_s)
        except TimeoutError:
            process.kill()
            raise GrammarError(
                f"it takes more than {self._timeout_s:g} s to compile; make it smaller", kind=spec.kind
            ) from None
        except (EOFError, OSError):
            process.kill()
            raise GrammarError("it is too deep or too large for the grammar engine", kind=spec.kind) from None
        with self._lock:
            keep = not self._closed
            if keep:
                self._idle.append(process)
        if not keep:
            process.kill()
        if verdict.source is None:
            raise GrammarError(verdict.problem or "it cannot be compiled", kind=spec.kind)
        return verdict.source


class TrialProcess:
    """The child, seen from its parent. Ends with it: its input reaches its end."""

    def __init__(self, setup: TrialSetup) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bough.constrained.trial"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self._starting = True
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        _write(self._input, msgspec.msgpack.encode(setup))

    def ask(self, spec: GrammarSpec, timeout_s: float) -> Verdict:
        """Have a specification tried out.

        Raises:
            TimeoutError: it takes longer than ``timeout_s`` seconds.
            EOFError, OSError: the child has died of it.
        """
        if self._starting:
            # Starting is not the grammar's fault.
            self._read(START_SECONDS)
            self._starting = False
        _write(self._input, msgspec.msgpack.encode(spec))
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
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    # Whatever libraries print must not get between the messages.
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    setup = msgspec.msgpack.decode(_receive(source) or b"", type=TrialSetup)
    translator = Translator(setup.whitespace_pattern, setup.special_tokens)
    backend = LLGuidanceBackend(make_byte_tokenizer, translator)
    threading.stack_size(STACK_BYTES)
    _write(target, b"")
    while (frame := _receive(source)) is not None:
        verdict = judge(msgspec.msgpack.decode(frame, type=GrammarSpec), translator, backend)
        _write(target, msgspec.msgpack.encode(verdict))
    return 0


def _end_with_parent(parent: int) -> None:
    """A child that is busy does not see that its input has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def judge(spec: GrammarSpec, translator: Translator, backend: LLGuidanceBackend) -> Verdict:
    """Translate, compile, and follow a grammar for a few steps on the stack of the calling thread."""
    result: list[Any] = []

    def compile_grammar() -> None:
        try:
            source = translator.translate(spec)
            result.extend((source, backend.build(spec.kind, source)))
        except GrammarError as error:
            result.append(error)

    thread = threading.Thread(target=compile_grammar)
    thread.start()
    thread.join()
    if not result:
        return Verdict(None, "the grammar engine has failed on it")
    if isinstance(result[0], GrammarError):
        return Verdict(None, result[0].message.removeprefix(f"{spec.kind}: "))
    source, grammar = result
    problem = _walk(grammar)
    return Verdict(None, problem) if problem is not None else Verdict(source)


def _walk(grammar: Any) -> str | None:
    matcher, words = grammar.matcher(), np.zeros(mask_words(len(BYTE_IDS)), dtype=np.int32)
    rng = random.Random(0)
    for _ in range(WALK_STEPS):
        matcher.fill_mask(words)
        if matcher.error is not None:
            return str(matcher.error)
        allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        if not allowed.size or matcher.is_terminated:
            break
        matcher.accept(int(rng.choice(allowed.tolist())))
    return None


BYTE_IDS = range(257)
"""The bytes and an end of sequence."""


def _receive(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    return data if len(data) == length else None


if __name__ == "__main__":
    sys.exit(main())
