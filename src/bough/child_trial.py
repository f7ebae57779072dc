"""A child process that tries out what might do harm: it can be killed, and its death is only an answer.

The parent has a :class:`TrialChild`; the child's main function is :func:`answer_parent`. Questions and answers are
MessagePack, each after its length, over the child's standard input and output.
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
from bough.observability.process_usage import address_space_bytes

ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
}
"""For libraries that otherwise start a thread for each core, with address space for each."""

START_SECONDS = 60.0
"""Time that the child may take to start on a busy machine."""

_LENGTH = struct.Struct("<I")
_Setup = TypeVar("_Setup")
_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


class TrialUnavailable(BoughError):
    """A child does not start; that is not the fault of what it should try out."""

    status_code = 503


class TrialChild:
    """The child, seen from its parent. Ends with it: its input reaches its end.

    Args:
        command: runs a module whose main function is :func:`answer_parent`.
        setup: all that the child has to know beforehand.
        purpose: ends the words "the process that …" in errors.
        wait: whether to wait until it has started; else :meth:`wait_until_started` does, before the first question.

    Raises:
        TrialUnavailable: it does not start.
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
        with contextlib.suppress(BrokenPipeError):  # it has ended already, which shows when it is waited for
            _write(self._input, msgspec.msgpack.encode(setup))
        if wait:
            self.wait_until_started()

    def wait_until_started(self) -> None:
        """Wait for the child, once.

        Raises:
            TrialUnavailable: it does not start.
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
        """Answer of the child to a question.

        Raises:
            TimeoutError: it takes longer than ``timeout_s`` seconds.
            EOFError, OSError: the child has died of it.
        """
        _write(self._input, msgspec.msgpack.encode(question))
        return msgspec.msgpack.decode(self._read(timeout_s), type=answer)

    def exit_status(self) -> int:
        """Status that the child has ended with, or ends with now; a negative one is a signal."""
        self.kill()
        return self._process.wait()

    def kill(self) -> None:
        """End the child immediately."""
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
    """Main function of a child: answers questions from standard input until that ends.

    Args:
        setup: type of what the parent sends first.
        question: type of the questions.
        start: takes the former, and returns what answers the latter.
        memory_bytes: address space beyond what the child has now.

    Returns:
        The exit status.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that this one serves
    limit = address_space_bytes() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    # Whatever libraries print must not get between the messages.
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    answer = start(msgspec.msgpack.decode(_receive(source) or b"", type=setup))
    _write(target, b"")
    while (frame := _receive(source)) is not None:
        _write(target, msgspec.msgpack.encode(answer(msgspec.msgpack.decode(frame, type=question))))
    return 0


def _end_with_parent(parent: int) -> None:
    """Watch the parent: a child that is busy does not see that its input has ended."""
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
