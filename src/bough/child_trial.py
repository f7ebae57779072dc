"""Run risky work in a child process, which can be killed and can crash without harm to anything else.

The parent has a :class:`TrialChild`; the child's main function is :func:`answer_parent`. Questions and answers are
MessagePack messages, in the frames of ``multiprocessing``'s connections, on the child's standard input and output.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
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
        setup: everything the child has to know in advance.
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
        with self._process.stdin as writes, self._process.stdout as reads:
            self._input, self._output = _connections(writes, reads)
        with contextlib.suppress(BrokenPipeError):  # it has already exited, which shows when it is waited for
            self._input.send_bytes(msgspec.msgpack.encode(setup))
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
        """Return the child's answer to a question.

        Raises:
            TimeoutError: the answer takes longer than ``timeout_s`` seconds.
            EOFError, OSError: the question has killed the child.
        """
        self._input.send_bytes(msgspec.msgpack.encode(question))
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
        if not self._output.poll(timeout_s):
            raise TimeoutError
        return self._output.recv_bytes()


def answer_parent(
    setup: type[_Setup],
    question: type[_Question],
    start: Callable[[_Setup], Callable[[_Question], Any]],
    *,
    memory_bytes: int,
) -> int:
    """Run a child: answer questions from standard input until it ends.

    Args:
        setup: type of the first message from the parent.
        question: type of the questions.
        start: receives the setup and returns the function that answers questions.
        memory_bytes: address space allowed beyond what the child has now.

    Returns:
        The exit status.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    limit = address_space_bytes() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    target, source = _connections(sys.stdout, sys.stdin)
    # Output of libraries must not get between the messages.
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    answer = start(msgspec.msgpack.decode(source.recv_bytes(), type=setup))
    target.send_bytes(b"")
    while True:
        try:
            frame = source.recv_bytes()
        except EOFError:
            return 0
        target.send_bytes(msgspec.msgpack.encode(answer(msgspec.msgpack.decode(frame, type=question))))


def _end_with_parent(parent: int) -> None:
    """Watch for the end of the parent: a busy child does not notice that its input has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _connections(writes: IO[Any], reads: IO[Any]) -> tuple[Connection, Connection]:
    """Return connections of their own that write to a pipe and read from another."""
    return Connection(os.dup(writes.fileno()), readable=False), Connection(os.dup(reads.fileno()), writable=False)
