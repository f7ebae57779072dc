"""Run risky work in a child process, which can be killed and can crash without harm to anything else.

The parent has a :class:`TrialChild`; the child's main function is :func:`answer_parent`. Questions and answers are
MessagePack messages, each preceded by its length, on the child's standard input and output.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeVar

import msgspec

from bough.child_process import module_environment
from bough.errors import BoughError
from bough.process_usage import address_space_bytes

ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
}
"""Environment for libraries that otherwise start one thread per core, each with address space of its own."""

START_SECONDS = 60.0
"""Time allowed for the child to start on a busy machine."""

_LENGTH = struct.Struct("<I")
_Setup = TypeVar("_Setup")
_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


class TrialUnavailable(BoughError):
    """The child did not start; the input it was to try is not at fault."""

    status_code = 503


class TrialChild:
    """The parent's handle on the child. The child exits with the parent, because its input then ends.

    Args:
        command: runs a module whose main function is :func:`answer_parent`.
        purpose: completes the phrase "the process that …" in errors.
        wait: wait until the child has started; otherwise call :meth:`wait_until_started` before the first question.

    Raises:
        TrialUnavailable: the child does not start.
    """

    def __init__(self, command: Sequence[str], setup: Any, purpose: str, *, wait: bool = True) -> None:
        self._purpose = purpose
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={**module_environment(), **ONE_THREAD},
            )
        except OSError as error:
            raise TrialUnavailable(f"the process that {purpose} cannot be started: {error}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        with contextlib.suppress(BrokenPipeError):  # it has already exited, which shows when it is waited for
            _write(self._input, msgspec.msgpack.encode(setup))
        if wait:
            self.wait_until_started()

    def wait_until_started(self) -> None:
        """Wait until the child has started. Further calls return immediately.

        Raises:
            TrialUnavailable: the child does not start.
        """
        started = False
        try:
            self._read(START_SECONDS)
            started = True
        except (EOFError, OSError) as error:
            why = f"in {START_SECONDS:g} s" if isinstance(error, TimeoutError) else "and has ended"
            raise TrialUnavailable(f"the process that {self._purpose} has not started {why}") from None
        finally:
            if not started:
                self.kill()

    def ask(self, question: Any, answer: type[_Answer], timeout_s: float) -> _Answer:
        """Return the child's answer; raises ``TimeoutError`` after ``timeout_s`` seconds, ``EOFError`` or ``OSError``
        if the question has killed it."""
        _write(self._input, msgspec.msgpack.encode(question))
        return msgspec.msgpack.decode(self._read(timeout_s), type=answer)

    def exit_status(self) -> int:
        """Wait for the child to exit and return its exit status; a negative one is a signal."""
        self.kill()
        return self._process.wait()

    def kill(self) -> None:
        """Kill the child immediately."""
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


def answer_parent(
    setup: type[_Setup],
    question: type[_Question],
    start: Callable[[_Setup], Callable[[_Question], Any]],
    *,
    memory_bytes: int,
) -> int:
    """Run a child until its input ends: ``start`` takes the parent's ``setup`` message and returns the function that
    answers questions.

    It may take ``memory_bytes`` of address space beyond what it has now. Returns the exit status.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    limit = address_space_bytes() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    # Output of libraries must not get between the messages.
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    answer = start(msgspec.msgpack.decode(_receive(source) or b"", type=setup))
    _write(target, b"")
    while (frame := _receive(source)) is not None:
        _write(target, msgspec.msgpack.encode(answer(msgspec.msgpack.decode(frame, type=question))))
    return 0


def _end_with_parent(parent: int) -> None:
    """Watch for the end of the parent: a busy child does not notice that its input has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _write(pipe: IO[bytes], data: bytes) -> None:
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[pipe.write(view) :]


def _receive(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    return data if len(data) == length else None
